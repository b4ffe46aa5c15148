"""The jobs that materialize assets or run checks. `full_crawl` and the full dumps take all their partitions in one run.

Jobs that are made of ops are in `maintenance_jobs.py`.
"""

import dagster as dg

from pypi_assets.defs import health
from pypi_assets.defs.partitions import all_of, dump_shards, project_shards
from pypi_assets.defs.pods import BUILDING, CRAWLING, DUMPING, EXPORTING
from pypi_assets.defs.policy import ENDS_IN_TIME, FROM_SCRATCH_TAG, ONE_AT_A_TIME_TAG

_HEALTH_CHECKS = dg.AssetSelection.checks(*dg.load_asset_checks_from_modules([health]))


def _with_checks(selection: dg.AssetSelection) -> dg.AssetSelection:
    """The assets with the checks that follow them; those of `health` have a job of their own."""
    return selection - _HEALTH_CHECKS


full_crawl_job = dg.define_asset_job(
    "full_crawl",
    selection=_with_checks(dg.AssetSelection.groups("full_crawl")),
    tags=all_of(project_shards) | CRAWLING | {ONE_AT_A_TIME_TAG: "full_crawl"},
    description="Lists the index, visits every project and reads every distribution; continues an open full crawl.",
)
full_dump_job = dg.define_asset_job(
    "full_dump",
    selection=dg.AssetSelection.assets("full_dump"),
    tags=all_of(dump_shards) | ENDS_IN_TIME | DUMPING | {ONE_AT_A_TIME_TAG: "full_dump"},
    description="Dumps what is live at the complete serial, all 256 shards.",
)
redump_job = dg.define_asset_job(
    "redump",
    selection=dg.AssetSelection.assets("full_dump"),
    tags=all_of(dump_shards) | ENDS_IN_TIME | DUMPING | {ONE_AT_A_TIME_TAG: "full_dump", FROM_SCRATCH_TAG: "true"},
    description="Dumps what is live at the complete serial again, from scratch: after a reprocess, or for new columns.",
)
compact_dumps_job = dg.define_asset_job(
    "compact_dumps",
    selection=dg.AssetSelection.assets("compacted_dump"),
    tags=ENDS_IN_TIME | {ONE_AT_A_TIME_TAG: "compact_dumps"},
    description="Joins dumps of ranges that follow each other, so that readers open few files.",
)
incremental_crawl_job = dg.define_asset_job(
    "incremental_crawl",
    selection=_with_checks(
        dg.AssetSelection.groups("incremental_crawl") | dg.AssetSelection.assets("incremental_dump")
    ),
    tags=ENDS_IN_TIME | CRAWLING,
    description="Follows the changelog over one serial range, and dumps what changed.",
)
update_leveldbs_job = dg.define_asset_job(
    "update_leveldbs",
    selection=_with_checks(dg.AssetSelection.groups("leveldbs")),
    tags=ENDS_IN_TIME | BUILDING,
    description="Builds and publishes one version of every LevelDB dataset from the dumps.",
)
export_parquet_job = dg.define_asset_job(
    "export_parquet",
    selection=dg.AssetSelection.assets("parquet_export"),
    tags=ENDS_IN_TIME | EXPORTING | {ONE_AT_A_TIME_TAG: "export_parquet"},
    description="Exports what is live at the end of the dumps as Parquet, where anything is new.",
)
health_job = dg.define_asset_job(
    "health",
    selection=_HEALTH_CHECKS,
    tags=ENDS_IN_TIME | {ONE_AT_A_TIME_TAG: "health"},
    description="Checks how far each stage lags, how much was abandoned, and what an audit found.",
)

FEW_RUNS = [full_crawl_job, full_dump_job, redump_job]
"""Their runs are few, and show what was made for as long as nothing newer is: they are never pruned."""
OF_ONE_PARTITION = [incremental_crawl_job, update_leveldbs_job]
"""A run of them needs a range or a version, which sensors allocate."""
MANY_RUNS = [*OF_ONE_PARTITION, compact_dumps_job, export_parquet_job, health_job]
