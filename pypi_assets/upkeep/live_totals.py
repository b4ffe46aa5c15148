"""Totals over all distributions that are live, for those who look at a single run.

Counting reads a row for each of them. So a large catalog is counted once an hour at most, however often ranges end.
"""

from dataclasses import dataclass

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reads.read_outcomes import Outcome
from pypi_assets.catalog.reports.catalog_totals import about_known
from pypi_assets.catalog.reports.live_files import count_live_outcomes

COUNTED_EACH_TIME = 100_000
"""A catalog that knows no more projects and distributions is counted in a fraction of a second."""
RECOUNTED_AFTER_S = 3_600.0


@dataclass(frozen=True, slots=True)
class LiveTotals:
    """How many distributions are live, how many of these were read, and how many failed or were abandoned, at a time
    (unix seconds)."""

    live: int
    read: int
    failed: int
    counted_at: float


def live_totals(catalog: Catalog, before: LiveTotals | None) -> LiveTotals:
    """The totals now; on a large catalog those of `before`, while they are younger than an hour."""
    now = catalog.clock()
    with catalog.read() as connection:
        is_young = before is not None and now - before.counted_at < RECOUNTED_AFTER_S
        if before is not None and is_young and about_known(connection) > COUNTED_EACH_TIME:
            return before
        counts = count_live_outcomes(connection)
    return LiveTotals(
        live=sum(counts.values()),
        read=counts.get(Outcome.DATA, 0),
        failed=counts.get(Outcome.ERROR, 0) + counts.get(Outcome.EXHAUSTED, 0),
        counted_at=now,
    )
