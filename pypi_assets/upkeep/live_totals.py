"""Totals over all live distributions, for the report of a single run, and the check of the counters behind them.

Each transaction that changes rows also updates the counters. A recount reads every row, and corrects wrong counters.
"""

from dataclasses import dataclass
from functools import partial

from pypi_assets.catalog.counters import add_counts
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reads.file_counts import live_outcomes
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.reports.catalog_status import count_differences


@dataclass(frozen=True, slots=True)
class LiveTotals:
    """The number of live distributions, how many of them were read, and how many failed or were abandoned."""

    live: int
    read: int
    failed: int


def live_totals(catalog: Catalog) -> LiveTotals:
    """Return the present totals. This is quick on any catalog."""
    with catalog.read() as connection:
        counts = live_outcomes(connection)
    return LiveTotals(
        live=sum(counts.values()),
        read=counts.get(ReadOutcome.DATA, 0),
        failed=counts.get(ReadOutcome.ERROR, 0) + counts.get(ReadOutcome.EXHAUSTED, 0),
    )


def recount(catalog: Catalog) -> dict[str, int]:
    """Count all rows again, and correct the counters that differ.

    Returns by how much each counter was too low, by name; empty if all were right. Other processes can go on: their
    changes are added to the corrected counters.
    """
    with catalog.read_once() as connection:
        differences = count_differences(connection)
    if differences:
        catalog.transact(partial(add_counts, changes=differences))
    return differences
