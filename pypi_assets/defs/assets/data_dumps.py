"""The assets of data dumps: all live files in 256 shards, and the changes of each serial range."""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import dagster as dg

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_columns import COLUMNS, COLUMNS_VERSION, DumpFile
from pypi_assets.catalog.reports.range_states import count_causes, first_changes
from pypi_assets.defs.expected_errors import expected_errors_as_failures
from pypi_assets.defs.factories import asset
from pypi_assets.defs.policy import (
    DATABASE_POOL,
    DUMP_PARTITIONS,
    FROM_SCRATCH_TAG,
    dump_shards,
    parse_shards,
)
from pypi_assets.defs.ranges import RangeRun, RangeWork, range_asset
from pypi_assets.defs.reporting import count_log, markdown_table, marking
from pypi_assets.defs.resources import CatalogResource, SettingsResource, StorageResource
from pypi_assets.dumps.compaction import compact
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_format import Row
from pypi_assets.dumps.dump_manifest import file_path, manifest_path
from pypi_assets.dumps.dump_reader import first_rows
from pypi_assets.dumps.dump_writer import write_late_changes, write_range
from pypi_assets.dumps.full_dump import dump_each_shard
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.input_lists import newest_serials
from pypi_assets.storage.store import Storage

_SHOWN_CHANGES = 30
_SHOWN_ROWS = 10
_LONGEST_VALUE = 80
_SHOWN_FILES = 3  # a dump of a range has one
_SHOWN_ITEMS = 5
_ROW_COLUMNS = ("project", "version", "filename", "outcome", "modules", "requires_dist")
_READ = ("crawled", "changed", "scope")
"""The kinds of work that read distributions: a full crawl, serial ranges, scopes."""
_FULL_DUMP = """All files on the package index, one row each, with their contents and requirements.

A partition has a 256th of the projects, by the first two hex digits of the SHA-256 of the normalized project name, such
as `ec` for `requests`. `pypi-assets admin where PROJECT` prints it. The dump is published with its last shard.

To make a new dump, run the job `full_dump`, or all partitions. **A run of some partitions continues an incomplete
dump.** If no dump is incomplete, it writes and materializes nothing: it checks these files of the newest dump against
their hashes, records an observation, and fails if a file is corrupt.
"""
_COLUMNS = {
    "dagster/column_schema": dg.TableSchema(
        columns=[dg.TableColumn(name, type=column.type, description=column.meaning) for name, column in COLUMNS.items()]
    )
}


_DUMP: dict[str, Any] = {"kinds": {"json", "gzip"}, "metadata": _COLUMNS, "code_version": str(COLUMNS_VERSION)}
dump_asset = partial(asset, **_DUMP)
"""The decorator of a dump's asset."""


@dump_asset(
    name="full_dump",
    description=_FULL_DUMP,
    deps=[dg.AssetDep(f"{of}_distribution_data", partition_mapping=dg.AllPartitionMapping()) for of in _READ],
    partitions=dump_shards,
    pool=DATABASE_POOL,
    skips_verified=True,
)
def write_full_dump(
    context: dg.AssetExecutionContext, settings: SettingsResource, catalog: CatalogResource, storage: StorageResource
) -> Iterator[dg.MaterializeResult[None]]:
    """Write or verify the shards of the run. The name differs from the job's, as Dagster requires of an op."""
    with marking(context) as mark:
        files = PartitionFiles(parse_shards(dump_shards, context.partition_keys), settings.get().dump_shards)
        progress = count_log(context, "rows")
        since = _started_at(context) if FROM_SCRATCH_TAG in context.run.tags else None
        started = time.monotonic()
        verified = False
        for finished in dump_each_shard(
            catalog.get(),
            storage.get(),
            files.wanted,
            files.shards,
            progress,
            since,
            concurrency=settings.get().dump_concurrency,
        ):
            mark.data_version = finished.directory
            for key, of_partition in files.finish(finished.file):
                metadata: dict[str, Any] = {
                    "dagster/partition_row_count": sum(file.rows for file in of_partition),
                    "bytes": sum(file.size for file in of_partition),
                    "seconds": round(time.monotonic() - started, 3),
                    "written": finished.written,
                    "directory": finished.directory,
                    **_look(storage.get(), finished.directory, *of_partition),
                }
                if finished.is_verified:
                    verified = True
                    context.log_event(dg.AssetObservation(context.asset_key, partition=key, metadata=metadata))
                else:
                    mark(key, metadata)
                started = time.monotonic()
    if not verified:
        yield mark.result()


class PartitionFiles:
    """The files of a full dump of `shards` files, by partition of the asset.

    If there are more files than partitions, a partition has several. If there are fewer, several partitions share a
    file, and each of them displays it.
    """

    def __init__(self, keys: Mapping[int, str], shards: int) -> None:
        self.shards = shards
        self.files_of_partition, self._partitions_of_file = (
            max(shards // DUMP_PARTITIONS, 1),
            max(DUMP_PARTITIONS // shards, 1),
        )
        self._keys = keys
        self._finished: defaultdict[int, list[DumpFile]] = defaultdict(list)
        self.wanted = sorted({shard for partition in keys for shard in self._shards_of(partition)})

    def finish(self, file: DumpFile) -> Iterator[tuple[str, Sequence[DumpFile]]]:
        """Yield the wanted partitions that are complete with this file, each as its key and its files in order."""
        first = file.shard // self.files_of_partition * self._partitions_of_file
        for partition in range(first, first + self._partitions_of_file):
            if partition in self._keys:
                files = self._finished[partition]
                files.append(file)
                if len(files) == self.files_of_partition:
                    yield self._keys[partition], sorted(files, key=lambda one: one.shard)

    def _shards_of(self, partition: int) -> range:
        first = partition // self._partitions_of_file * self.files_of_partition
        return range(first, first + self.files_of_partition)


def _started_at(context: dg.AssetExecutionContext) -> float:
    """Return the start of this run in unix seconds. Retries of its steps get the same time."""
    record = context.instance.get_run_record_by_id(context.run.run_id)
    if record is None or record.start_time is None:
        raise dg.DagsterInvariantViolationError(f"run {context.run.run_id} has not started")
    return float(record.start_time)


@range_asset(deps=["changed_distribution_data"], **_DUMP)
def incremental_dump(run: RangeRun) -> RangeWork:
    """The changes of the package index within a range of serials, one row for each changed file.

    A row has the file as it is at the end of the range; a deleted file has a tombstone. A partition is a crawled range
    `A-B` of serials, the numbers of the index's events. A complete dump is not written again.
    """

    catalog, storage = run.catalog.get(), run.storage.get()

    def write(serials: SerialRange) -> dict[str, Any]:
        progress = count_log(run.context, f"rows of {serials}")
        manifest = write_range(catalog, storage, serials, progress=progress)
        return {
            "dagster/partition_row_count": manifest.rows,
            "bytes": manifest.size,
            **_look(storage, manifest.directory, *manifest.files),
            **_preview(catalog, serials),
        }

    return write


def _look(storage: Storage, directory: str, *files: DumpFile) -> dict[str, dg.MetadataValue[Any]]:
    """Return the places of a dump's manifest and of some of its files, and the first rows of the first file."""
    rows = [_row_of_table(row) for row in first_rows(storage, directory, files[0], _SHOWN_ROWS)]
    uris = [storage.uri(file_path(directory, file.name)) for file in files[:_SHOWN_FILES]]
    return {
        "manifest": dg.MetadataValue.path(storage.uri(manifest_path(directory))),
        **{f"file {number}" if number else "file": dg.MetadataValue.path(uri) for number, uri in enumerate(uris)},
        **({"first rows": dg.MetadataValue.md(markdown_table(_ROW_COLUMNS, rows, _LONGEST_VALUE))} if rows else {}),
    }


def _row_of_table(row: Row) -> list[str]:
    """Return a row of a dump as cells of a table. A deleted file has the outcome `gone`."""
    shown = {**row, "outcome": "gone"} if row.get("tombstone") else row
    return [_text(shown.get(column)) for column in _ROW_COLUMNS]


def _text(value: object) -> str:
    """Return a value of a row as text: of a list only the first items, and nothing for None."""
    if isinstance(value, list):
        return ", ".join(map(str, value[:_SHOWN_ITEMS])) + (", ..." if len(value) > _SHOWN_ITEMS else "")
    return "" if value is None else str(value)


def _preview(catalog: Catalog, serials: SerialRange) -> dict[str, dg.MetadataValue[Any]]:
    """Return the counts of the range's changes by cause, and a table of the first changes."""
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


@dump_asset(deps=["incremental_dump"], pool=DATABASE_POOL)
def late_dump(
    context: dg.AssetExecutionContext, catalog: CatalogResource, storage: StorageResource
) -> dg.MaterializeResult[None]:
    """Facts that became known late, about ranges that are already dumped, such as a file that a retry has read.

    Its rows replace rows of the dumps before it. Without such facts, a run writes nothing.
    """
    with expected_errors_as_failures():
        manifest = write_late_changes(catalog.get(), storage.get(), count_log(context, "rows of late facts"))
    if manifest is None:
        return dg.MaterializeResult(metadata={"dagster/row_count": 0})
    return dg.MaterializeResult(
        data_version=dg.DataVersion(manifest.directory),
        metadata={
            "dagster/row_count": manifest.rows,
            "bytes": manifest.size,
            "serial": manifest.serials.end,
            **_look(storage.get(), manifest.directory, *manifest.files),
        },
    )


@dump_asset(deps=["incremental_dump", "late_dump"])
def compacted_dump(
    context: dg.AssetExecutionContext, catalog: CatalogResource, storage: StorageResource
) -> dg.MaterializeResult[None]:
    """Small dumps of changes, joined into larger ones, so that readers open few files.

    The rows stay the same, so assets that read dumps do not become stale. It has no partitions, since the dumps to join
    follow from the dumps in use. A run writes nothing if no join is worthwhile.
    """
    started = time.monotonic()
    with expected_errors_as_failures():
        manifests = list(
            compact(
                catalog.get(),
                storage.get(),
                held=newest_serials(storage.get(), DATASETS),
                progress=count_log(context, "rows of a compaction"),
            )
        )
        reached = cover(catalog.get())
    return dg.MaterializeResult(
        data_version=dg.DataVersion(str(COLUMNS_VERSION)),  # joining changes no row, so downstream assets stay fresh
        metadata={
            "dagster/row_count": sum(manifest.rows for manifest in manifests),
            "bytes": sum(manifest.size for manifest in manifests),
            "compactions": len(manifests),
            "directories": ", ".join(manifest.directory for manifest in manifests),
            **({} if not manifests else _look(storage.get(), manifests[-1].directory, *manifests[-1].files)),
            "ranges_in_use": max(len(reached.dumps) - 1, 0),
            "seconds": round(time.monotonic() - started, 3),
        },
    )
