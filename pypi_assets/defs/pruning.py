"""What Dagster has of what comes without end, ranges, versions and periodic work: new partitions and runs, and old ones
not for ever.

Its pages stay quick up to some 100,000 partitions, and a range every ten minutes makes 52,560 a year; its database
grows with the events of each run. What is left out here is still in the catalog.
"""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime

import dagster as dg

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import LedgerRange, RangeState, ledger, recent_ranges
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.leveldb_versions import allocated_versions, last_allocated_version
from pypi_assets.defs.partitions import leveldb_versions, serial_ranges
from pypi_assets.dumps.cover import cover
from pypi_assets.leveldbs.versions.leveldb_paths import version_name

DAY_S = 24 * 3600.0


def shown_ranges(catalog: Catalog, days: float, after: int = 0) -> list[SerialRange]:
    """The ranges that follow a full crawl, in order: of those that are in use as dumps, not the ones that were complete
    so many days ago.

    Of those that end at the serial `after` or before it, the ones that are not complete or not in use yet.
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
    """The LevelDB versions beyond `after` that were asked for since so many days ago, and the newest one, in order."""
    since = catalog.clock() - days * DAY_S
    newest = last_allocated_version(catalog)
    asked = allocated_versions(catalog, min(after, newest.version - 1)) if newest else []
    return [one.version for one in asked if one.requested_at > since or one == newest]


def prune_partitions(instance: dg.DagsterInstance, catalog: Catalog, days: float) -> int:
    """Takes the partitions of what is no longer shown out of the instance, and says how many. Others are left alone."""
    with catalog.read() as connection:
        ranges = [entry.serials for entry in ledger(connection)]
    old_ranges = {serials.key for serials in {*ranges} - {*shown_ranges(catalog, days)}}
    versions = [one.version for one in allocated_versions(catalog)]
    old_versions = {version_name(version) for version in {*versions} - {*shown_versions(catalog, days)}}
    return _prune(instance, serial_ranges, old_ranges) + _prune(instance, leveldb_versions, old_versions)


def prune_runs(instance: dg.DagsterInstance, jobs: Iterable[str], before: float) -> int:
    """Deletes the runs of `jobs` that succeeded before then (unix seconds), with events and logs, and says how many.

    The newest one of each job stays, so that what it made is not shown as missing; and so do runs that failed, by whose
    number sensors tell how often something was tried.
    """
    pruned, until = 0, datetime.fromtimestamp(before, UTC)
    for job in jobs:
        succeeded = [dg.DagsterRunStatus.SUCCESS]
        newest = instance.get_run_ids(dg.RunsFilter(job_name=job, statuses=succeeded), limit=1)
        old = instance.get_run_ids(dg.RunsFilter(job_name=job, statuses=succeeded, updated_before=until))
        for run in {*old} - {*newest}:
            instance.compute_log_manager.delete_logs(prefix=[run])
            instance.delete_run(run)
            pruned += 1
    return pruned


def _prune(instance: dg.DagsterInstance, partitions: dg.DynamicPartitionsDefinition, old: Collection[str]) -> int:
    name = str(partitions.name)
    pruned = [key for key in instance.get_dynamic_partitions(name) if key in old]
    for key in pruned:
        instance.delete_dynamic_partition(name, key)
    return len(pruned)
