"""The read-only views of `pypi-assets admin`: ranges, partitions, indexes and settings."""

from typing import TYPE_CHECKING, Any

import click

from pypi_assets.cli.contexts import existing_catalog
from pypi_assets.cli.options import command, row_output
from pypi_assets.terminal import Output, local_time, print_message, print_rows

if TYPE_CHECKING:
    from pypi_assets.catalog.reports.range_states import RangeStatus
    from pypi_assets.indexes import IndexTable

_SHOWN_COMPLETE_RANGES = 10
_PARTITION_COLUMNS = ("assets", "partition", "file")
_SETTING_COLUMNS = ("variable", "default", "accepts")
_INDEX_COLUMNS = ("index", "url", "lister", "default", "private", "scopes", "database", "storage")


@command("ranges", "--all", within="admin")
@click.option("--all", "all_ranges", is_flag=True, help="Include all complete ranges, not only the newest ten.")
@row_output
def ranges_command(all_ranges: bool, output: Output) -> None:
    """List serial ranges with their states.

    A serial range holds consecutive serials of the index that are crawled together. It is complete, running, failed,
    interrupted, waiting or missing. The last row is the missing range up to the index's last serial.
    """
    from pypi_assets.catalog.reports.range_states import range_statuses
    from pypi_assets.catalog.work.full_crawls import followed_index
    from pypi_assets.settings import load_settings
    from pypi_assets.status import query_last_serial

    settings = load_settings()
    with existing_catalog(settings) as catalog:
        with catalog.read() as connection:
            followed = followed_index(connection)
        index_serial, problem = query_last_serial(settings, followed)
        with catalog.read() as connection:
            found = range_statuses(
                connection,
                catalog.clock(),
                index_serial=index_serial,
                complete=None if all_ranges else _SHOWN_COMPLETE_RANGES,
            )
    columns = ("range", "state", "to_visit", "to_read", "gave_up", "completed", "error")
    rows = [_range_row(status) for status in found]
    if problem:
        print_message(problem)
    if inexact := [status.serials.key for status in found if status.exact_from is not None]:
        spans = ", ".join(inexact)
        print_message(f"changes in {spans} come from the list of projects; their single events are not known")
    if not print_rows(columns, rows, output):
        print_message("there are no ranges: run `pypi-assets crawl full` first")


def _range_row(status: "RangeStatus") -> dict[str, object]:
    return {
        "range": status.serials.key,
        "state": status.state.value,
        "projects": status.visits.total,
        "visited": status.visits.done,
        "gave_up": status.visits.exhausted,
        "to_visit": status.visits.todo,
        "to_read": status.reads_to_do,
        "asked": local_time(status.requested_at),
        "begun": local_time(status.begun_at),
        "completed": local_time(status.completed_at),
        "error": status.error_text,
        "lister": status.lister,
        "exact_from": status.exact_from,
    }


@command("where", "requests", within="admin")
@click.argument("project")
@row_output
def where_command(project: str, output: Output) -> None:
    """Show the partitions and the dump file that contain PROJECT.

    Partitions follow from the hash of the normalized name, so any name has them. The file belongs to the newest full
    dump.
    """
    from packaging.utils import canonicalize_name

    from pypi_assets.catalog.observed.projects import project_part_key, project_shard
    from pypi_assets.catalog.publications.dump_columns import DEFAULT_SHARDS, DumpKind
    from pypi_assets.components import storage_from
    from pypi_assets.dumps.dump_manifest import file_path, read_manifest, shard_key, shard_of
    from pypi_assets.dumps.full_dump import newest_dump
    from pypi_assets.settings import load_settings

    normalized = canonicalize_name(project)
    settings = load_settings()
    with existing_catalog(settings) as catalog:
        newest, file = newest_dump(catalog, DumpKind.FULL), None
        if newest is not None:
            storage = storage_from(settings, catalog)
            files = {one.shard: one.name for one in read_manifest(storage, newest.directory).files}
            file = storage.uri(file_path(newest.directory, files[shard_of(normalized, newest.shards)]))
    crawled, dumped = project_part_key(project_shard(normalized)), shard_key(shard_of(normalized, DEFAULT_SHARDS))
    rows = [("crawled_projects, crawled_distribution_data", crawled, None), ("full_dump", dumped, file)]
    print_rows(_PARTITION_COLUMNS, [dict(zip(_PARTITION_COLUMNS, row, strict=True)) for row in rows], output)


@command("indexes", "--json", within="admin")
@click.option("--workspace", is_flag=True, help="Print a workspace.yaml for Dagster, with a code location per index.")
@row_output
def indexes_command(workspace: bool, output: Output) -> None:
    """List the indexes that PYPI_ASSETS_INDEXES names.

    It checks the settings of every index, and reports errors. It sends no request.
    """
    from pypi_assets.setting_sources import read_all_indexes, read_variables
    from pypi_assets.workspace import workspace_yaml

    indexes = read_all_indexes()
    if workspace:
        if indexes is None:
            raise click.UsageError("--workspace needs several indexes, and PYPI_ASSETS_INDEXES is not set")
        click.echo(workspace_yaml(indexes.tables), nl=False)
        return
    selected = read_variables().index
    tables = indexes.tables if indexes else (None,)
    print_rows(_INDEX_COLUMNS, [_index_row(table) for table in tables], output)
    if selected is None:
        print_message("PYPI_ASSETS_INDEXES is not set, so there is one index")
    else:
        print_message(f"commands use {selected.name}, or the index that --index names")


def _index_row(table: "IndexTable | None") -> dict[str, Any]:
    from sqlalchemy.engine import make_url

    from pypi_assets.index.urls import redact
    from pypi_assets.setting_sources import selected_index
    from pypi_assets.settings import load_settings

    with selected_index(table.name if table else None):
        settings = load_settings()
    return {
        "index": table.name if table else None,
        "url": redact(settings.index_url),
        "lister": settings.lister,
        "default": table.is_default if table else True,
        "private": table.is_private if table else False,
        "scopes": list(table.scopes) if table else [],
        "database": make_url(settings.resolved_database_url).render_as_string(hide_password=True),
        "storage": settings.resolved_storage_url,
    }


@command("settings", "--json", within="admin")
@row_output
def settings_command(output: Output) -> None:
    """List all settings with their defaults and accepted values."""
    from pypi_assets.settings import ENV_PREFIX, Settings

    rows = [
        {
            "variable": f"{ENV_PREFIX}{name.upper()}",
            "default": "" if (default := field.get_default(call_default_factory=True)) in (None, ()) else str(default),
            "accepts": field.description,
        }
        for name, field in Settings.model_fields.items()
    ]
    print_rows(_SETTING_COLUMNS, rows, output)
