"""Which partitions Dagster has of what comes without end, ranges and versions: new ones, and old ones not for ever.

Its pages stay quick up to some 100,000 partitions, and a range every ten minutes makes 52,560 a year. What is left out
here is still in the catalog, and its runs are still in Dagster.
"""

from collections.abc import Collection

import dagster as dg

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger import RangeState, ledger, recent_ranges
from pypi_assets.catalog.leveldbs import asked_versions
from pypi_assets.defs.partitions import leveldb_versions, serial_ranges
from pypi_assets.dumps.cover import cover
from pypi_assets.leveldbs.layout import version_name

_DAY_S = 24 * 3600.0


def shown_ranges(catalog: Catalog, days: float) -> list[str]:
    """The keys of the ranges that follow a full crawl, in order: of those that are in use as dumps, not the ones that
    were complete so many days ago.
    """
    since = catalog.clock() - days * _DAY_S
    with catalog.read() as connection:
        entries = recent_ranges(connection, beyond=cover(catalog).serial, since=since)
    return [entry.serials.key for entry in entries if entry.serials.start > 0 or entry.state != RangeState.COMPLETE]


def shown_versions(catalog: Catalog, days: float) -> list[str]:
    """The names of the LevelDB versions that were asked for since so many days ago, and of the newest one."""
    since = catalog.clock() - days * _DAY_S
    asked = asked_versions(catalog)
    return [version_name(one.version) for one in asked if one.asked_at > since or one == asked[-1]]


def prune_partitions(instance: dg.DagsterInstance, catalog: Catalog, days: float) -> int:
    """Takes the partitions of what is no longer shown out of the instance, and says how many. Others are left alone."""
    with catalog.read() as connection:
        ranges = [entry.serials.key for entry in ledger(connection)]
    versions = [version_name(one.version) for one in asked_versions(catalog)]
    return _prune(instance, serial_ranges, {*ranges} - {*shown_ranges(catalog, days)}) + _prune(
        instance, leveldb_versions, {*versions} - {*shown_versions(catalog, days)}
    )


def _prune(instance: dg.DagsterInstance, partitions: dg.DynamicPartitionsDefinition, old: Collection[str]) -> int:
    name = str(partitions.name)
    pruned = [key for key in instance.get_dynamic_partitions(name) if key in old]
    for key in pruned:
        instance.delete_dynamic_partition(name, key)
    return len(pruned)
