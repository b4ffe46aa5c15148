"""Select the serial ranges and LevelDB versions that Dagster shows, and the old ones that are removed from it.

Dagster's pages stay quick up to some 100,000 partitions, and a range every ten minutes makes 52,560 a year. The catalog
keeps the ranges and versions that Dagster does not show. Removing them from Dagster does not belong here, but to
`defs/maintenance_jobs.py`.
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
    """The partition keys of the ranges and versions that are no longer shown."""

    ranges: frozenset[str]
    versions: frozenset[str]


def shown_ranges(catalog: Catalog, days: float, after: int = 0) -> list[SerialRange]:
    """Return the ranges after the full crawl, in order, without those whose dump has been in use for `days` days.

    Of the ranges that end at or before the serial `after`, only incomplete ranges and ranges whose dump is not in use
    yet are returned.
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
    """Return the LevelDB versions above `after` that were allocated in the last `days` days, and the newest one, in
    order.
    """
    since = catalog.clock() - days * DAY_S
    newest = last_allocated_version(catalog)
    allocated = allocated_versions(catalog, min(after, newest.version - 1)) if newest else []
    return [one.version for one in allocated if one.requested_at > since or one == newest]


def old_partitions(catalog: Catalog, days: float) -> OldPartitions:
    """Return the partitions that are no longer shown, as `shown_ranges` and `shown_versions` decide.

    Reads the whole ledger, since Dagster's partitions can be as old as the ledger. This takes 0.3 s for a year of
    ten-minute ranges, so only the clean-up calls it, and no sensor tick.
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
    """Return the time (unix seconds) since which Dagster keeps runs."""
    return catalog.clock() - days * DAY_S
