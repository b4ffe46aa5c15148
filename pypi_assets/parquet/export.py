"""Export the live distributions at the end of the cover as Parquet. The manifest is written last.

An interrupted export leaves files that no manifest names, and the next export uses another directory. Only one process
exports at a time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import BinaryIO, Protocol

from pypi_assets.catalog.coordination.leases import lease, renewing
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.allocated_names import allocate_export
from pypi_assets.catalog.publications.dump_columns import DumpFile
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_format import Row
from pypi_assets.dumps.dump_manifest import DumpManifest, read_manifest
from pypi_assets.dumps.dump_reader import iter_dump, iter_rows
from pypi_assets.dumps.dump_writer import put_file
from pypi_assets.dumps.later_rows import later_rows
from pypi_assets.extras import install_command
from pypi_assets.parquet.export_manifest import (
    FILE_NAME,
    Export,
    ParquetError,
    export_path,
    file_path,
    manifest_path,
    newest_export,
)
from pypi_assets.storage.store import Storage

LEASE_TTL_S = 600.0
ROWS_OF_SEVERAL_SHARDS = 65_536
BYTES_OF_SEVERAL_SHARDS = 2 * 1024**2
"""The compressed bytes of the full dump's files in one file. They fill a row group of some 32 MiB uncompressed."""

Progress = Callable[[int], None]


class _WriteRows(Protocol):
    def __call__(self, target: BinaryIO, rows: Iterable[Row], progress: Progress, *, are_sorted: bool) -> int: ...


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The newest export. `published` is false if it existed before."""

    export: Export
    published: bool


def export_parquet(
    catalog: Catalog, storage: Storage, *, force: bool = False, progress: Progress | None = None
) -> ExportResult:
    """Write and commit an export of the present cover, unless the newest export is complete and has the same cover.

    With `force` it is always written. `progress` receives the number of rows written.

    Raises ParquetError if there is no full dump or pyarrow is not installed, LeaseTakenError if another process
    exports, and DumpDamagedError if a dump of the cover is corrupt.
    """
    with lease(catalog, "publish parquet", LEASE_TTL_S) as held:
        dumps = cover(catalog)
        if not dumps.dumps:
            raise ParquetError("there is no full dump to export: run `pypi-assets dump full` first")
        newest = newest_export(storage)
        if newest is not None and newest.cover == dumps.directories and not force:
            return ExportResult(newest, published=False)
        write_rows = _writer()
        full, *ranges = (read_manifest(storage, directory) for directory in dumps.directories)
        directory = _new_directory(catalog, storage, dumps.serial)
        files = tuple(_write_files(storage, directory, full, ranges, write_rows, renewing(held, progress)))
        export = Export(dumps.serial, directory, dumps.directories, files, [full, *ranges][-1].followed_projects)
        held.renew()  # a process that lost the lease must not publish
        storage.put(manifest_path(directory), export.encode())
        return ExportResult(export, published=True)


def _new_directory(catalog: Catalog, storage: Storage, serial: int) -> str:
    """Return a directory that was never allocated before, not even by a catalog that was lost."""
    while any(storage.list(export_path(directory := allocate_export(catalog, serial)))):
        pass
    return directory


def _write_files(
    storage: Storage,
    directory: str,
    full: DumpManifest,
    ranges: list[DumpManifest],
    write_rows: _WriteRows,
    report: Progress,
) -> Iterator[DumpFile]:
    written = 0
    with later_rows(full.shards) as later:
        for manifest in ranges:
            later.add(iter_dump(storage, manifest.directory))
            report(0)
        for sources in _in_files(full.files, later.count_by_shard()):
            first = sources[0].shard
            rows = chain.from_iterable(
                later.applied_to(source.shard, iter_rows(storage, full.directory, source)) for source in sources
            )
            path = file_path(directory, FILE_NAME.format(shard=first))
            progress = partial(_report_all, report, written)
            write = partial(write_rows, rows=rows, progress=progress, are_sorted=len(sources) == 1)
            file = put_file(storage, path, first, write)
            written += file.rows
            yield file
            report(written)


def _in_files(shards: Iterable[DumpFile], later: Mapping[int, int]) -> Iterator[list[DumpFile]]:
    """Group successive shards into files: as many as fit into one row group, but at least one.

    `later` has the number of rows that the ranges have for each shard.
    """
    together: list[DumpFile] = []
    rows = size = 0
    for shard in shards:
        rows += shard.rows + later.get(shard.shard, 0)
        size += shard.size
        if together and (rows > ROWS_OF_SEVERAL_SHARDS or size > BYTES_OF_SEVERAL_SHARDS):
            yield together
            together, rows, size = [], shard.rows + later.get(shard.shard, 0), shard.size
        together.append(shard)
    if together:
        yield together


def _report_all(report: Progress, before: int, rows: int) -> None:
    report(before + rows)


def _writer() -> _WriteRows:
    try:
        from pypi_assets.parquet.parquet_writer import write_rows  # its requirements are an extra
    except ImportError as error:
        raise ParquetError(f"{error}: Parquet needs `{install_command('parquet')}`") from error
    return write_rows
