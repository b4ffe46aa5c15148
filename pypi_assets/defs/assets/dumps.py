"""The data dumps: all that is live in 256 shards, and what changed in each serial range."""

import time
from typing import Any

import dagster as dg
from dagster import ResourceParam

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_columns import COLUMNS, COLUMNS_VERSION
from pypi_assets.catalog.reports.range_changes import count_causes, first_changes
from pypi_assets.defs.assets.changes import RANGES_IN_ONE_RUN, changed_distribution_data
from pypi_assets.defs.assets.crawl import OWNERS, RETRIES, crawled_distribution_data
from pypi_assets.defs.expected_errors import expected_errors_as_failures
from pypi_assets.defs.markdown import markdown_table
from pypi_assets.defs.marking import count_log, mark_each_range, marking
from pypi_assets.defs.partitions import DUMP_SHARDS, dump_shards, parse_shards, serial_ranges
from pypi_assets.defs.parts import Parts
from pypi_assets.dumps.compaction import compact
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_paths import manifest_path
from pypi_assets.dumps.dump_writer import write_range
from pypi_assets.dumps.full_dump import dump_each_shard
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.input_lists import newest_serials

GROUP = "data_dumps"
DATABASE_POOL = "database"
_SHOWN_CHANGES = 30
FROM_SCRATCH_TAG = "pypi-assets/anew"
"""Of a run that is not to go on with a full dump from before it. A job's config does not reach runs of all shards."""
_FULL_DUMP = """Every distribution live at the complete serial, one row each.

A partition is one of 256 shards, by the first two hex digits of the sha256 of the normalized project name. A run of all
of them joins the open dump or opens one, and commits it with its last shard. Some of them alone join an open dump;
where none is open, they are verified in the newest one, and nothing is published.
"""
_COLUMNS = {
    "dagster/column_schema": dg.TableSchema(
        columns=[dg.TableColumn(name, type=column.type, description=column.meaning) for name, column in COLUMNS.items()]
    )
}


@dg.multi_asset(
    name="write_full_dump",  # Dagster wants an op and a job to differ in name, and the job is called full_dump
    specs=[
        dg.AssetSpec(
            "full_dump",
            description=_FULL_DUMP,
            group_name=GROUP,
            deps=[dg.AssetDep(crawled_distribution_data, partition_mapping=dg.AllPartitionMapping())],
            kinds={"json", "gzip"},
            owners=OWNERS,
            metadata=_COLUMNS,
            code_version=str(COLUMNS_VERSION),
        )
    ],
    partitions_def=dump_shards,
    backfill_policy=dg.BackfillPolicy.single_run(),
    pool=DATABASE_POOL,
    retry_policy=RETRIES,
)
def full_dump(context: dg.AssetExecutionContext, parts: ResourceParam[Parts]) -> dg.MaterializeResult[None]:
    """Writes, or verifies, the run's shards."""
    with marking(context) as mark:
        shards = parse_shards(list(context.partition_keys))
        progress = count_log(context, "rows")
        since = _started_at(context) if FROM_SCRATCH_TAG in context.run.tags else None
        started = time.monotonic()
        for finished in dump_each_shard(
            parts.catalog,
            parts.storage,
            list(shards),
            DUMP_SHARDS,
            progress,
            since,
            concurrency=parts.settings.dump_concurrency,
        ):
            mark(
                shards[finished.file.shard],
                {
                    "dagster/partition_row_count": finished.file.rows,
                    "bytes": finished.file.size,
                    "seconds": round(time.monotonic() - started, 3),
                    "written": finished.written,
                    "directory": finished.directory,
                },
            )
            started = time.monotonic()
    return dg.MaterializeResult()


def _started_at(context: dg.AssetExecutionContext) -> float:
    """When this run began, in unix seconds: the same however often its steps are tried."""
    record = context.instance.get_run_record_by_id(context.run.run_id)
    if record is None or record.start_time is None:
        raise dg.DagsterInvariantViolationError(f"run {context.run.run_id} has not begun")
    return float(record.start_time)


@dg.asset(
    group_name=GROUP,
    deps=[changed_distribution_data],
    partitions_def=serial_ranges,
    backfill_policy=dg.BackfillPolicy.multi_run(RANGES_IN_ONE_RUN),
    kinds={"json", "gzip"},
    owners=OWNERS,
    pool=DATABASE_POOL,
    retry_policy=RETRIES,
    metadata=_COLUMNS,
    code_version=str(COLUMNS_VERSION),
)
def incremental_dump(context: dg.AssetExecutionContext, parts: ResourceParam[Parts]) -> dg.MaterializeResult[None]:
    """Each distribution that changed, as it is at the range's end: its row, or a tombstone where it is not live.

    A partition is a complete serial range `A-B` of the ledger. A dump that is committed and whole is left as it is.
    """

    def write(serials: SerialRange) -> dict[str, Any]:
        progress = count_log(context, f"rows of {serials}")
        manifest = write_range(parts.catalog, parts.storage, serials, progress=progress)
        return {
            "dagster/partition_row_count": manifest.rows,
            "bytes": manifest.size,
            "manifest": parts.storage.uri(manifest_path(manifest.directory)),
            **_told_changes(parts.catalog, serials),
        }

    mark_each_range(context, write)
    return dg.MaterializeResult()


def _told_changes(catalog: Catalog, serials: SerialRange) -> dict[str, dg.MetadataValue[Any]]:
    """What changed in the range: by cause, and the first of it to look at."""
    with catalog.read() as connection:
        counts = count_causes(connection, serials)
        shown = first_changes(connection, serials, _SHOWN_CHANGES)
    rows = [(one.serial, one.cause, one.project, one.version, one.filename) for one in shown]
    preview = markdown_table(("serial", "what", "project", "version", "file"), rows)
    if (left := sum(counts.values()) - len(shown)) > 0:
        preview += f"\n\nand {left} more"
    return {f"changes: {cause}": dg.MetadataValue.int(count) for cause, count in counts.items()} | {
        "preview": dg.MetadataValue.md(preview)
    }


@dg.asset(
    group_name=GROUP,
    deps=[incremental_dump],
    kinds={"json", "gzip"},
    owners=OWNERS,
    retry_policy=RETRIES,
    metadata=_COLUMNS,
    code_version=str(COLUMNS_VERSION),
)
def compacted_dump(context: dg.AssetExecutionContext, parts: ResourceParam[Parts]) -> dg.MaterializeResult[None]:
    """Incremental dumps that follow each other, joined where it pays, so that there are few to read.

    It has no partitions: which ranges are joined follows from those that are in use.
    """
    started = time.monotonic()
    with expected_errors_as_failures():
        manifests = list(
            compact(
                parts.catalog,
                parts.storage,
                held=newest_serials(parts.storage, DATASETS),
                progress=count_log(context, "rows of a compaction"),
            )
        )
        ranges = len(cover(parts.catalog).dumps) - 1
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": sum(manifest.rows for manifest in manifests),
            "bytes": sum(manifest.size for manifest in manifests),
            "compactions": len(manifests),
            "directories": ", ".join(manifest.directory for manifest in manifests),
            "ranges_in_use": max(ranges, 0),
            "seconds": round(time.monotonic() - started, 3),
        }
    )
