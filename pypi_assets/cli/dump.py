"""The commands `pypi-assets dump ...`, which write, compact, export and delete data dumps."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from pypi_assets import terminal
from pypi_assets.catalog.publications.dump_columns import FULL_DUMP_SHARDS
from pypi_assets.cli.contexts import existing_catalog
from pypi_assets.cli.options import JSON, command
from pypi_assets.progress import Progress
from pypi_assets.terminal import counted, print_json, print_message

if TYPE_CHECKING:
    from pypi_assets.dumps.dump_manifest import DumpManifest
    from pypi_assets.storage.store import Storage

_SHARDS = click.option(
    "--shards",
    type=click.Choice([str(shards) for shards in FULL_DUMP_SHARDS]),
    help="Number of files; 1 or 16 are enough for a small index. Default: as in the newest full dump, or else"
    " PYPI_ASSETS_DUMP_SHARDS.",
)
_CONCURRENCY = click.option(
    "--concurrency",
    type=click.IntRange(1, 12),
    help="Number of files to write at once; default: PYPI_ASSETS_DUMP_CONCURRENCY.",
)


@click.group("dump")
def dump_group() -> None:
    """Write data dumps from the catalog, and Parquet from the dumps.

    A data dump is compressed JSON, with a line for each distribution. LevelDB versions are built from dumps. Start with
    `dump full`; run `dump incremental` after each `pypi-assets crawl incremental` to add the changes.
    """


@command("full", "--shards 16", group=dump_group)
@_SHARDS
@_CONCURRENCY
@JSON
def dump_full_command(shards: str | None, concurrency: int | None, as_json: bool) -> None:
    """Dump all live distributions.

    The dump is as of the complete serial, up to which the catalog has all changes. A stopped dump with the same number
    of files is continued. Run `pypi-assets leveldb update` next.
    """
    _dump_full(shards, concurrency, as_json)


@command("redo", "--shards 16", group=dump_group)
@_SHARDS
@_CONCURRENCY
@JSON
def dump_redo_command(shards: str | None, concurrency: int | None, as_json: bool) -> None:
    """Write a full dump even if nothing has changed.

    Run it after `pypi-assets admin reprocess`, since no incremental dump contains its changes. The current dumps stay
    in use until the new dump is complete. The next LevelDB versions are then built from scratch. To continue a stopped
    redo, run `pypi-assets dump full`.
    """
    _dump_full(shards, concurrency, as_json, from_scratch=True)


def _dump_full(wanted: str | None, concurrency: int | None, as_json: bool, *, from_scratch: bool = False) -> None:
    from pypi_assets.catalog.publications.dump_columns import DumpKind
    from pypi_assets.components import storage_from
    from pypi_assets.dumps.full_dump import full_dump, newest_dump
    from pypi_assets.settings import load_settings

    settings = load_settings()
    with existing_catalog(settings) as catalog, terminal.progress_shown() as report:
        storage = storage_from(settings, catalog)
        since = catalog.clock() if from_scratch else None
        newest = newest_dump(catalog, DumpKind.FULL)
        shards = int(wanted) if wanted else newest.shards if newest else settings.dump_shards
        manifest = full_dump(
            catalog,
            storage,
            shards,
            lambda written: report(Progress("shards", written, shards)),
            since,
            concurrency=concurrency or settings.dump_concurrency,
        )
    _print_dumps([manifest], storage, as_json)


@command("incremental", group=dump_group)
@JSON
def dump_incremental_command(as_json: bool) -> None:
    """Dump the changes since the last dump.

    Each complete serial range becomes a dump. Facts that became known later about ranges that were already dumped go
    into another dump. Run `pypi-assets leveldb update` next.
    """
    from pypi_assets.components import storage_from
    from pypi_assets.dumps.dump_writer import write_missing_ranges
    from pypi_assets.settings import load_settings

    settings = load_settings()
    with existing_catalog(settings) as catalog, terminal.progress_shown() as report:
        storage = storage_from(settings, catalog)
        manifests: list[DumpManifest] = []
        for manifest in write_missing_ranges(catalog, storage):
            manifests.append(manifest)
            report(Progress("dumps", len(manifests), 0))
    _print_dumps(manifests, storage, as_json)
    if not manifests:
        print_message("every complete range is dumped, and there are no late facts")


@command("compact", "--growth 1", group=dump_group)
@click.option(
    "--growth",
    type=click.IntRange(1),
    help="Join ranges if their total size is at least this many times the largest one; 1 joins all. Default: 4.",
)
@click.option(
    "--most",
    type=click.IntRange(2),
    help="Join at most this many dumps into one. Default: 64.",
)
@JSON
def dump_compact_command(growth: int | None, most: int | None, as_json: bool) -> None:
    """Join dumps of adjacent ranges into one.

    Readers then have fewer dumps to read. Dumps that the newest LevelDB versions do not contain yet are not joined for
    a day.
    """
    from pypi_assets.components import storage_from
    from pypi_assets.dumps.compaction import GROWTH, MOST, compact
    from pypi_assets.leveldbs.datasets.registry import DATASETS
    from pypi_assets.leveldbs.versions.input_lists import newest_serials
    from pypi_assets.settings import load_settings

    settings = load_settings()
    with existing_catalog(settings) as catalog, terminal.progress_shown() as report:
        storage = storage_from(settings, catalog)
        held = newest_serials(storage, DATASETS)
        manifests = list(
            compact(
                catalog,
                storage,
                held=held,
                growth=growth or GROWTH,
                most=most or MOST,
                progress=lambda rows: report(Progress("rows", rows, 0)),
            )
        )
    _print_dumps(manifests, storage, as_json)
    if not manifests:
        print_message("no dumps can be joined")


@command("parquet", "--views", group=dump_group)
@click.option("--force", is_flag=True, help="Write all rows again, even if nothing has changed.")
@click.option("--views", is_flag=True, help="Write parquet/pypi.duckdb too, a DuckDB database of views.")
@JSON
def dump_parquet_command(force: bool, views: bool, as_json: bool) -> None:
    """Export the live distributions as Parquet.

    The export is as of the end of the dumps, and reads only dumps: run `pypi-assets dump incremental` first. An export
    adds only the changes since the last one, until they are many. parquet/latest.json names its files, for DuckDB,
    pandas or Spark. Once there are views, each export updates them.
    """
    from pypi_assets.components import storage_from
    from pypi_assets.parquet.export import export_parquet
    from pypi_assets.parquet.latest import LATEST
    from pypi_assets.parquet.views import VIEWS
    from pypi_assets.settings import load_settings

    settings = load_settings()
    with existing_catalog(settings) as catalog, terminal.progress_shown() as report:
        storage = storage_from(settings, catalog)
        result = export_parquet(
            catalog,
            storage,
            force=force,
            views=views,
            memory_bytes=settings.leveldb_memory_bytes,
            progress=lambda rows: report(Progress("parquet rows", rows, 0)),
        )
        has_views = storage.exists(VIEWS)
    export = result.export
    if as_json:
        fields = {
            "serial": export.serial,
            "directory": export.directory,
            "published": result.published,
            "rows": export.rows,
            "bytes": export.size,
            "cover": export.cover,
            "files": len(export.files),
            "changed_rows": export.changed_rows,
            "latest": storage.uri(LATEST),
            "views": storage.uri(VIEWS) if has_views else None,
        }
        print_json(fields)
        return
    changes = f" with {counted(export.changed_rows, 'change')}" if export.changed_rows else ""
    click.echo(
        f"parquet {export.directory}: {counted(export.rows, 'row')}{changes} in {counted(len(export.files), 'file')},"
        f" {export.size} bytes, {storage.uri(LATEST)}"
    )
    if has_views:
        click.echo(f"views: {storage.uri(VIEWS)}")
    if not result.published:
        print_message("nothing has changed since that export")


@command("tables", group=dump_group)
@click.option("--from-scratch", is_flag=True, help="Create the tables again, without their earlier snapshots.")
@JSON
def dump_tables_command(from_scratch: bool, as_json: bool) -> None:
    """Bring the Apache Iceberg tables up to date.

    Each dump becomes a snapshot with the serial of its end. The tables have files, requirements, modules, commands and
    events. Only dumps and events are read: run `pypi-assets dump incremental` first.
    """
    from pypi_assets.components import storage_from, table_options_from
    from pypi_assets.iceberg.newest_tables import NEWEST_PATH
    from pypi_assets.iceberg.table_catalog import require_iceberg
    from pypi_assets.settings import load_settings

    require_iceberg()
    from pypi_assets.iceberg.updates import update_tables

    settings = load_settings()
    options = table_options_from(settings)
    with existing_catalog(settings) as catalog, terminal.progress_shown() as report:
        storage = storage_from(settings, catalog)
        result = update_tables(
            catalog,
            storage,
            options,
            from_scratch=from_scratch,
            progress=lambda rows: report(Progress("table rows", rows, 0)),
        )
    latest = storage.uri(NEWEST_PATH)
    if as_json:
        tables = {
            name: asdict(table) | {"snapshots_added": result.added.get(name, 0)}
            for name, table in result.newest.tables.items()
        }
        print_json({"serial": result.newest.serial, "latest": latest, "tables": tables})
        return
    for name, table in result.newest.tables.items():
        click.echo(f"{options.namespace}.{name}: {counted(table.rows, 'row')} at serial {result.newest.serial}")
    click.echo(latest)
    if not result.added:
        print_message("nothing has changed since these snapshots")


@command("clean", "--dry-run", group=dump_group)
@click.option("--dry-run", is_flag=True, help="Only list the files that would be deleted.")
@JSON
def dump_clean_command(dry_run: bool, as_json: bool) -> None:
    """Delete superseded dumps, LevelDB versions, Parquet exports and snapshots of tables.

    It also deletes incomplete files of stopped runs. Files in use are kept, and so are files that are younger than
    PYPI_ASSETS_SUPERSEDED_KEPT_HOURS. Try --dry-run first.
    """
    from pypi_assets.components import storage_from
    from pypi_assets.settings import load_settings
    from pypi_assets.upkeep.deletion import DeletionChain, kept_from

    settings = load_settings()
    with existing_catalog(settings) as catalog:
        chain = DeletionChain(catalog, storage_from(settings, catalog), kept_from(settings))
        removed = [*chain.clean_publications(dry_run=dry_run), *chain.clean_tables(dry_run=dry_run)]
    if as_json:
        print_json([asdict(removal) for removal in removed])
        return
    for removal in removed:
        click.echo(f"{removal.path}: {removal.reason.value}, {counted(removal.files, 'file')}, {removal.size} bytes")
    done = "would be deleted" if dry_run else "deleted"
    total = sum(removal.size for removal in removed)
    print_message(f"{done}: {counted(sum(removal.files for removal in removed), 'file')}, {total} bytes")


def _print_dumps(manifests: "Sequence[DumpManifest]", storage: "Storage", as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {
                    "kind": manifest.kind.value,
                    "range": manifest.serials.key,
                    "directory": manifest.directory,
                    "shards": manifest.shards,
                    "rows": manifest.rows,
                    "bytes": manifest.size,
                }
                for manifest in manifests
            ]
        )
        return
    for manifest in manifests:
        click.echo(
            f"{manifest.kind.value} dump {manifest.directory}: {counted(manifest.rows, 'row')} in"
            f" {counted(len(manifest.files), 'file')}, {manifest.size} bytes, below {storage.url}"
        )
