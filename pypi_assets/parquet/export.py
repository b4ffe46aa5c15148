"""Export the live distributions at the end of the cover as Parquet. The manifest is written last.

An export adds the changes since the newest one as a layer of it, or writes all rows (see `appending.py`). An
interrupted export leaves files that no manifest names, and the next export uses another directory. Only one process
exports at a time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

from pypi_assets.catalog.coordination.leases import lease, renewing
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.allocated_names import allocate_export
from pypi_assets.dumps.cover import Cover, cover
from pypi_assets.dumps.dump_manifest import DumpManifest, read_manifest
from pypi_assets.dumps.held_dumps import HeldDumps
from pypi_assets.dumps.later_rows import later_rows
from pypi_assets.extras import install_command
from pypi_assets.parquet.appending import layers_to_keep
from pypi_assets.parquet.export_manifest import (
    Export,
    ExportLayer,
    ParquetError,
    export_path,
    manifest_path,
    newest_export,
)
from pypi_assets.parquet.latest import write_latest
from pypi_assets.parquet.views import VIEWS, require_duckdb, write_views
from pypi_assets.storage.store import Storage

LEASE_TTL_S = 600.0
MEMORY_BYTES = 1024**3

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The newest export. `published` is false if it existed before."""

    export: Export
    published: bool


def export_parquet(
    catalog: Catalog,
    storage: Storage,
    *,
    force: bool = False,
    views: bool = False,
    memory_bytes: int = MEMORY_BYTES,
    progress: Progress | None = None,
) -> ExportResult:
    """Write and commit an export of the present cover, unless the newest export is complete and has the same dumps.

    If the newest export can be continued, only the changes since then are written. With `force`, all rows are always
    written. `memory_bytes` bounds the number of processes for that. `progress` receives the number of rows written.
    With `views`, and from then on, `parquet/pypi.duckdb` has views on the newest export.

    Raises ParquetError if there is no full dump or a package is not installed, LeaseTakenError if another process
    exports, and DumpDamagedError if a dump of the cover is corrupt.
    """
    with lease(catalog, "publish parquet", LEASE_TTL_S) as held:
        dumps = cover(catalog)
        if not dumps.dumps:
            raise ParquetError("there is no full dump to export: run `pypi-assets dump full` first")
        views = views or storage.exists(VIEWS)
        if views:
            require_duckdb()
        newest = newest_export(storage)
        if newest is not None and newest.has_dumps(dumps.dumps) and not force:
            _name_it(storage, newest, views=views)  # a killed export can have committed without it
            return ExportResult(newest, published=False)
        _require_pyarrow()
        read = cache(lambda dump: read_manifest(storage, dump.directory))
        report = renewing(held, progress)
        found = None if force else layers_to_keep(newest, dumps.dumps, lambda dump: read(dump).rows)
        directory = _new_directory(catalog, storage, dumps.serial)
        if found is None or newest is None:
            manifests = [read(dump) for dump in dumps.dumps]
            buckets, layers = _written(storage, directory, dumps, manifests, memory_bytes, report)
        else:
            kept, following = found
            buckets = newest.buckets
            manifests = [read(dump) for dump in following]
            layers = (*kept, _changed(storage, directory, dumps, kept, buckets, manifests, report))
        followed_projects = read(dumps.dumps[-1]).followed_projects
        export = Export(
            dumps.serial, directory, dumps.directories, buckets, layers, followed_projects=followed_projects
        )
        held.renew()  # a process that lost the lease must not publish
        storage.put(manifest_path(directory), export.encode())
        _name_it(storage, export, views=views)
        return ExportResult(export, published=True)


def _name_it(storage: Storage, export: Export, *, views: bool) -> None:
    """Let `latest.json` and `views` name `export`."""
    write_latest(storage, export)
    if views:
        write_views(storage, export)


def _new_directory(catalog: Catalog, storage: Storage, serial: int) -> str:
    """Return a directory that was never allocated before, not even by a catalog that was lost."""
    while any(storage.list(export_path(directory := allocate_export(catalog, serial)))):
        pass
    return directory


def _written(
    storage: Storage,
    directory: str,
    dumps: Cover,
    manifests: list[DumpManifest],
    memory_bytes: int,
    report: Progress,
) -> tuple[int, tuple[ExportLayer, ...]]:
    """Write all live rows. Return the number of buckets and the layer."""
    from pypi_assets.parquet.buckets import bucket_count, buckets_of, process_count, write_buckets

    full, *ranges = manifests
    if storage.before_write is not None:
        storage.before_write()  # other processes write without asking
    with TemporaryDirectory(prefix="pypi-assets-parquet-") as folder:
        path = Path(folder, "later")
        with later_rows(full.shards, path) as later:
            later.add_dumps(storage, [manifest.directory for manifest in ranges], partial(report, 0))
            rows, size = sum(one.rows for one in manifests), sum(one.size for one in manifests)
            buckets = bucket_count(rows, size, full.shards)
            files = write_buckets(
                storage,
                full,
                buckets_of(full, buckets, directory),
                later,
                path,
                process_count(storage, rows, memory_bytes),
                report,
            )
    live = sum(file.rows for file in files)
    return buckets, (ExportLayer(0, HeldDumps.of(dumps.dumps), live, tuple(files)),)


def _changed(
    storage: Storage,
    directory: str,
    dumps: Cover,
    kept: tuple[ExportLayer, ...],
    buckets: int,
    ranges: list[DumpManifest],
    report: Progress,
) -> ExportLayer:
    """Write the changes of `ranges`, which follow the `kept` layers. Return their layer."""
    from pypi_assets.parquet.changes import live_after, write_changes

    number = kept[-1].number + 1
    with later_rows(buckets) as later:
        later.add_dumps(storage, [manifest.directory for manifest in ranges], partial(report, 0))
        files = write_changes(storage, directory, number, later, buckets, report)
        live = live_after(storage, kept, later, buckets, report)
    return ExportLayer(number, HeldDumps.of(dumps.dumps), live, files)


def _require_pyarrow() -> None:
    try:
        import pyarrow.parquet  # noqa: F401 - it is an extra
    except ImportError as error:
        raise ParquetError(f"{error}: Parquet needs `{install_command('parquet')}`") from error
