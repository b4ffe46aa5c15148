"""The jobs that materialize assets or run checks, and the tags that route a scope's runs: priority, queue and pod.

`full_crawl` and the full dumps take all their partitions in one run. Jobs of one op are in `maintenance_jobs.py`.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass

import dagster as dg

from pypi_assets.catalog.database import NoCatalogError
from pypi_assets.catalog.scopes.stored_scopes import Scope, find_scope
from pypi_assets.components import existing_catalog_from
from pypi_assets.defs import health
from pypi_assets.defs.factories import AssetJob
from pypi_assets.defs.naming import JobFactory, Naming
from pypi_assets.defs.policy import (
    BUILDING,
    CRAWLING,
    DUMPING,
    ENDS_IN_TIME,
    EXPORTING_TABLES,
    FROM_SCRATCH_TAG,
    ONE_AT_A_TIME_TAG,
    all_of,
    dump_shards,
    project_parts,
    scope_names,
    with_tag,
)
from pypi_assets.setting_sources import read_all_indexes, selected_index
from pypi_assets.settings import load_settings
from pypi_assets.workspace import name_in_dagster

CELERY_QUEUE_TAG = "dagster-celery/queue"
PRIORITY_TAG = "dagster/priority"


def tags_of(scope: Scope) -> dict[str, str]:
    """Return the tags of a scope's runs."""
    tags = {PRIORITY_TAG: str(-scope.nice)} if scope.nice else {}
    if scope.tag is None:
        return tags
    return tags | {CELERY_QUEUE_TAG: scope.tag} | with_tag(scope.tag, is_match_only=scope.match_only)


@dataclass(frozen=True)
class TagsOfPartition:
    """Returns the tags of a scope's run, by the scope's name, as they are when the run is requested.

    `index` is the name of the scope's index in Dagster; empty for the default index.
    """

    index: str = ""

    def __call__(self, name: str) -> dict[str, str]:
        indexes = read_all_indexes() if self.index else None
        names = indexes.names if indexes else []
        with selected_index(next((one for one in names if name_in_dagster(one) == self.index), None)):
            settings = load_settings()
        try:
            with closing(existing_catalog_from(settings)) as catalog, catalog.read() as connection:
                scope = find_scope(connection, name)
        except NoCatalogError:
            return {}
        return {} if scope is None else tags_of(scope)


def partitioned_by_scope(naming: Naming) -> dg.PartitionedConfig:
    """Return the configuration of a job whose partitions are scopes: each run has the tags of its scope."""
    return dg.PartitionedConfig(
        partitions_def=naming.partitions(scope_names),
        run_config_for_partition_key_fn=lambda _: {},
        tags_for_partition_key_fn=TagsOfPartition(naming.index),
    )


_AFTER_FULL_CRAWL = [health.catalog_is_fresh, health.few_are_exhausted, health.nothing_drifted]
"""Checks of assets that follow the index. A full crawl changes the same data, so it runs them as well."""

Requests = Callable[[dg.ScheduleEvaluationContext], Iterator[dg.RunRequest | dg.SkipReason]]


@dataclass(frozen=True, slots=True)
class Schedule:
    """The time at which a job runs. `cron` is in UTC.

    `requests` yields the run requests of a tick, or why there are none; without it, a tick requests one run. It gets
    the resources that `needs` names.
    """

    name: str
    job: JobFactory
    cron: str
    description: str
    requests: Requests | None = None
    needs: frozenset[str] = frozenset()


full_crawl_job = AssetJob(
    "full_crawl",
    groups=["crawl_full"],
    checks=_AFTER_FULL_CRAWL,
    tags=all_of(project_parts) | CRAWLING | {ONE_AT_A_TIME_TAG: "full_crawl"},
    description="Reads the whole package index from scratch, in one run: lists all projects, visits their pages, and"
    " reads every file. The next run continues a stopped one. Its tags take all partitions: in the Launchpad,"
    " choose no partition and confirm. After that, *Re-execute latest run* in the list of jobs does the same.",
)
follow_scopes_job = AssetJob(
    "follow_scopes",
    groups=["crawl_scopes"],
    config=partitioned_by_scope,
    tags=CRAWLING,
    description="Visits and reads all projects that the roots of a scope lead to. A partition is a scope, made by"
    " `pypi-assets scope create`. The sensor scope_work adds partitions, and requests those with pending work.",
)
full_dump_job = AssetJob(
    "full_dump",
    assets=["full_dump"],
    tags=all_of(dump_shards) | ENDS_IN_TIME | DUMPING | {ONE_AT_A_TIME_TAG: "full_dump"},
    description="Writes a new dump of all files on the package index, in one run of all 256 shards. Its tags take all"
    " partitions: in the Launchpad, choose no partition and confirm. The dump is as of the serial (the number of an"
    " event of the index) up to which the index was crawled.",
)
redump_job = AssetJob(
    "redump",
    assets=["full_dump"],
    tags=all_of(dump_shards) | ENDS_IN_TIME | DUMPING | {ONE_AT_A_TIME_TAG: "full_dump", FROM_SCRATCH_TAG: "true"},
    description="Writes a dump like the job full_dump, but always from scratch: it does not continue a dump that was"
    " begun before. Use it after the job reprocess_distributions, or if dumps lack new columns. In the Launchpad,"
    " choose no partition and confirm.",
)
dump_late_changes_job = AssetJob(
    "dump_late_changes",
    assets=["late_dump"],
    tags=ENDS_IN_TIME | {ONE_AT_A_TIME_TAG: "dump_late_changes"},
    description="Dumps facts that became known late, about ranges that are already dumped. The sensor late_changes"
    " requests it.",
)
compact_dumps_job = AssetJob(
    "compact_dumps",
    assets=["compacted_dump"],
    tags=ENDS_IN_TIME | {ONE_AT_A_TIME_TAG: "compact_dumps"},
    description="Joins small dumps of changes into larger ones, so that readers open few files. Writes nothing if it"
    " is not worthwhile.",
)
incremental_crawl_job = AssetJob(
    "incremental_crawl",
    groups=["crawl_incremental"],
    assets=["incremental_dump", "change_journal"],
    tags=ENDS_IN_TIME | CRAWLING,
    description="Brings the data up to date with the changes of the package index, dumps them, and writes them into the"
    " journal. A partition is a range of serials (numbers of the index's events), which the sensor new_serial_range"
    " adds and requests.",
)
update_leveldbs_job = AssetJob(
    "update_leveldbs",
    groups=["leveldbs"],
    tags=ENDS_IN_TIME | BUILDING,
    description="Builds the databases (LevelDB) for look-ups from the dumps, and publishes them as one version. A"
    " partition is a version, which the sensor new_leveldb_version adds and requests.",
)
export_parquet_job = AssetJob(
    "export_parquet",
    assets=["parquet_export"],
    tags=ENDS_IN_TIME | EXPORTING_TABLES | {ONE_AT_A_TIME_TAG: "export_parquet"},
    description="Exports all files on the package index as Parquet, if the dumps have changes. Needs the extra"
    " `parquet`.",
)
update_tables_job = AssetJob(
    "update_tables",
    assets=["iceberg_tables"],
    tags=ENDS_IN_TIME | EXPORTING_TABLES | {ONE_AT_A_TIME_TAG: "update_tables"},
    description="Adds a snapshot for each new dump to the Apache Iceberg tables. Needs the extra `tables`.",
)
health_job = AssetJob(
    "health",
    checks=health.HEALTH_CHECKS,
    tags=ENDS_IN_TIME | {ONE_AT_A_TIME_TAG: "health"},
    description="Checks how far the data lags the package index, how much could not be read, and what the last audit"
    " found.",
)

FEW_RUNS = [full_crawl_job, full_dump_job, redump_job]
"""Jobs with few runs, which show what was made as long as nothing newer exists. Their runs are never deleted."""
OF_ONE_PARTITION = [incremental_crawl_job, update_leveldbs_job, follow_scopes_job]
"""Jobs whose runs need a partition (a range, a version or a scope), which sensors add."""
MANY_RUNS = [
    *OF_ONE_PARTITION,
    dump_late_changes_job,
    compact_dumps_job,
    export_parquet_job,
    update_tables_job,
    health_job,
]
