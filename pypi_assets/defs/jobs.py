"""The jobs that materialize assets or run checks, and the tags that route the runs of a scope: priority, queue, pod.

`full_crawl` and the full dumps take all their partitions in one run. Jobs of one function are in `maintenance_jobs.py`.
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
    EXPORTING,
    FROM_SCRATCH_TAG,
    ONE_AT_A_TIME_TAG,
    all_of,
    dump_shards,
    project_parts,
    scope_names,
    with_tag,
)
from pypi_assets.setting_variables import read_all_indexes, selected_index
from pypi_assets.settings import load_settings
from pypi_assets.workspace import name_in_dagster

CELERY_QUEUE_TAG = "dagster-celery/queue"
PRIORITY_TAG = "dagster/priority"


def tags_of(scope: Scope) -> dict[str, str]:
    """The tags of a scope's runs."""
    tags = {PRIORITY_TAG: str(-scope.nice)} if scope.nice else {}
    if scope.tag is None:
        return tags
    return tags | {CELERY_QUEUE_TAG: scope.tag} | with_tag(scope.tag, is_match_only=scope.match_only)


@dataclass(frozen=True)
class TagsOfPartition:
    """Gives the tags of a run of a scope, by its name, as they are when the run is requested.

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
"""Checks of assets that follow the index: a full crawl changes what they check as well."""

Requests = Callable[[dg.ScheduleEvaluationContext], Iterator[dg.RunRequest | dg.SkipReason]]


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a job runs by the clock: `cron` is in UTC.

    `requests` yields what a tick requests, or why it requests nothing; without it, that is one run. It gets the
    resources that `needs` names.
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
    description="Reads the whole package index from scratch, in one run: lists all projects, visits their pages,"
    " reads every file. A run that stopped is continued by the next one. Its tags take all partitions: in the"
    " Launchpad, choose none, and confirm; from then on, *Re-execute latest run* in the list of jobs does the same.",
)
follow_scopes_job = AssetJob(
    "follow_scopes",
    groups=["crawl_scopes"],
    config=partitioned_by_scope,
    tags=CRAWLING,
    description="Visits and reads what the roots of a scope lead to, until nothing is left. A partition is a scope,"
    " which `pypi-assets scope create` makes. The sensor scope_work adds them, and requests those with work.",
)
full_dump_job = AssetJob(
    "full_dump",
    assets=["full_dump"],
    tags=all_of(dump_shards) | ENDS_IN_TIME | DUMPING | {ONE_AT_A_TIME_TAG: "full_dump"},
    description="Writes a new dump of all files that the package index has, in one run of all 256 shards. Its tags take"
    " all partitions: in the Launchpad, choose none, and confirm. The dump is as of the serial (the number of an event"
    " of the index) that is crawled.",
)
redump_job = AssetJob(
    "redump",
    assets=["full_dump"],
    tags=all_of(dump_shards) | ENDS_IN_TIME | DUMPING | {ONE_AT_A_TIME_TAG: "full_dump", FROM_SCRATCH_TAG: "true"},
    description="Writes a dump like the job full_dump, but from scratch, and joins none that was begun before. For"
    " use after the job reprocess_distributions, or where dumps lack new columns. In the Launchpad, choose no"
    " partition, and confirm.",
)
dump_late_changes_job = AssetJob(
    "dump_late_changes",
    assets=["late_dump"],
    tags=ENDS_IN_TIME | {ONE_AT_A_TIME_TAG: "dump_late_changes"},
    description="Dumps what was learnt late of stretches of time that are dumped already. The sensor late_changes"
    " requests it.",
)
compact_dumps_job = AssetJob(
    "compact_dumps",
    assets=["compacted_dump"],
    tags=ENDS_IN_TIME | {ONE_AT_A_TIME_TAG: "compact_dumps"},
    description="Joins small dumps of changes into larger ones, so that those who read them open few files. Writes"
    " nothing where it does not pay.",
)
incremental_crawl_job = AssetJob(
    "incremental_crawl",
    groups=["crawl_incremental"],
    assets=["incremental_dump", "change_journal"],
    tags=ENDS_IN_TIME | CRAWLING,
    description="Brings the data up to date with what changed on the package index, dumps that, and writes it into the"
    " journal. A partition is a range of serials (numbers of the index's events), which the sensor new_serial_range"
    " adds and requests.",
)
update_leveldbs_job = AssetJob(
    "update_leveldbs",
    groups=["leveldbs"],
    tags=ENDS_IN_TIME | BUILDING,
    description="Builds the databases (LevelDB) that look-ups read from the dumps, and publishes them as one version."
    " A partition is a version, which the sensor new_leveldb_version adds and requests.",
)
export_parquet_job = AssetJob(
    "export_parquet",
    assets=["parquet_export"],
    tags=ENDS_IN_TIME | EXPORTING | {ONE_AT_A_TIME_TAG: "export_parquet"},
    description="Exports all files that the package index has as Parquet, where the dumps have anything new. Needs"
    " the extra `parquet`.",
)
health_job = AssetJob(
    "health",
    checks=health.HEALTH_CHECKS,
    tags=ENDS_IN_TIME | {ONE_AT_A_TIME_TAG: "health"},
    description="Checks how far the data lags the package index, how much could not be read, and what the last audit"
    " found.",
)

FEW_RUNS = [full_crawl_job, full_dump_job, redump_job]
"""Their runs are few, and show what was made for as long as nothing newer is: they are never pruned."""
OF_ONE_PARTITION = [incremental_crawl_job, update_leveldbs_job, follow_scopes_job]
"""A run of them needs a range, a version or a scope, which sensors add."""
MANY_RUNS = [*OF_ONE_PARTITION, dump_late_changes_job, compact_dumps_job, export_parquet_job, health_job]
