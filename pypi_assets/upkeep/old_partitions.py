"""Which serial ranges and LevelDB versions Dagster shows, and which are old and go.

Dagster's pages stay quick up to some 100,000 partitions, and a range every ten minutes makes 52,560 a year. What is
left out is still in the catalog. Removing it from Dagster does not belong here, but to `defs/maintenance_jobs.py`.
"""

from dataclasses import dataclass

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import LedgerRange, RangeState, past_range_keys, recent_ranges
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.allocated_names import allocated_versions, last_allocated_version
from pypi_assets.dumps.cover import cover
from pypi_assets.leveldbs.versions.input_lists import version_name

DAY_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class OldPartitions:
    """The keys of the ranges and versions that are no longer shown."""

    ranges: frozenset[str]
    versions: frozenset[str]


def shown_ranges(catalog: Catalog, days: float, after: int = 0) -> list[SerialRange]:
    """The ranges that follow a full crawl, in order, without those whose dump has been in use for that many `days`.

    Of the ranges that end at the serial `after` or before it, only those that are not complete or not in use yet.
    """
    in_use = cover(catalog).serial
    since = catalog.clock() - days * DAY_S
    with catalog.read() as connection:
        entries = recent_ranges(connection, beyond=min(after, in_use))
    return [entry.serials for entry in entries if _is_shown(entry, in_use, since)]


def _is_shown(entry: LedgerRange, in_use: int, since: float) -> bool:
    if entry.state != RangeState.COMPLETE:
        return True
    is_recent = entry.serials.end > in_use or (entry.completed_at is not None and entry.completed_at > since)
    return entry.serials.start > 0 and is_recent


def shown_versions(catalog: Catalog, days: float, after: int = 0) -> list[int]:
    """The LevelDB versions beyond `after` that were allocated in the last `days` days, and the newest one, in order."""
    since = catalog.clock() - days * DAY_S
    newest = last_allocated_version(catalog)
    allocated = allocated_versions(catalog, min(after, newest.version - 1)) if newest else []
    return [one.version for one in allocated if one.requested_at > since or one == newest]


def old_partitions(catalog: Catalog, days: float) -> OldPartitions:
    """What of the ledger's ranges and the allocated versions is not shown any more: all but what `shown_ranges` and
    `shown_versions` return.

    Reads the whole ledger, since Dagster's partitions can be as old as it is: 0.3 s for a year of ranges of ten
    minutes. A clean-up does so, and no tick.
    """
    in_use = cover(catalog).serial
    since = catalog.clock() - days * DAY_S
    with catalog.read() as connection:
        ranges = past_range_keys(connection, through=in_use, before=since)
    versions = {one.version for one in allocated_versions(catalog)}
    return OldPartitions(
        ranges=frozenset(ranges),
        versions=frozenset(version_name(number) for number in versions.difference(shown_versions(catalog, days))),
    )


def runs_kept_since(catalog: Catalog, days: float) -> float:
    """The time (unix seconds) since which runs are kept in Dagster."""
    return catalog.clock() - days * DAY_S
