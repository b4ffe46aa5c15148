"""Totals over all live distributions, for those who look at a single run, and how the counts behind them are checked.

The counts are kept in the transactions that change them. Counting again reads every row, and corrects what differs.
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
    """How many distributions are live, how many of these were read, and how many failed or were abandoned."""

    live: int
    read: int
    failed: int


def live_totals(catalog: Catalog) -> LiveTotals:
    """The totals now; quick on any catalog."""
    with catalog.read() as connection:
        counts = live_outcomes(connection)
    return LiveTotals(
        live=sum(counts.values()),
        read=counts.get(ReadOutcome.DATA, 0),
        failed=counts.get(ReadOutcome.ERROR, 0) + counts.get(ReadOutcome.EXHAUSTED, 0),
    )


def recount(catalog: Catalog) -> dict[str, int]:
    """Counts again what counts are kept of, and corrects those that differ. Returns by how much they were too low, by
    name: nothing where all were right.

    Other processes can go on: what they change meanwhile is added to the corrected counts.
    """
    with catalog.read_once() as connection:
        differences = count_differences(connection)
    if differences:
        catalog.transact(partial(add_counts, changes=differences))
    return differences
