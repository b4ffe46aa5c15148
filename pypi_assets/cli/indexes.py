"""The command that lists the indexes, and what Dagster is to load for them."""

from typing import TYPE_CHECKING, Any

import click

from pypi_assets.cli.options import command, row_output
from pypi_assets.terminal import Output, print_message, print_rows

if TYPE_CHECKING:
    from pypi_assets.indexes import IndexTable

_COLUMNS = ("index", "url", "lister", "default", "private", "scopes", "database", "storage")


@command("indexes", "--json")
@click.option("--workspace", is_flag=True, help="Print a workspace.yaml for Dagster: a code location for each index.")
@row_output
def indexes_command(workspace: bool, output: Output) -> None:
    """List the indexes that PYPI_ASSETS_INDEXES names.

    The settings of each are checked, so it reports what is wrong with any of them. It sends no request.
    """
    from pypi_assets.setting_variables import read_all_indexes, read_variables
    from pypi_assets.workspace import workspace_yaml

    indexes = read_all_indexes()
    if workspace:
        if indexes is None:
            raise click.UsageError("--workspace is for several indexes, and PYPI_ASSETS_INDEXES is not set")
        click.echo(workspace_yaml(indexes.tables), nl=False)
        return
    selected = read_variables().index
    tables = indexes.tables if indexes else (None,)
    print_rows(_COLUMNS, [_row(table) for table in tables], output)
    if selected is None:
        print_message("PYPI_ASSETS_INDEXES is not set, so there is one index")
    else:
        print_message(f"commands are for {selected.name}, or for the one that --index names")


def _row(table: "IndexTable | None") -> dict[str, Any]:
    from sqlalchemy.engine import make_url

    from pypi_assets.index.urls import redact
    from pypi_assets.setting_variables import selected_index
    from pypi_assets.settings import load_settings

    with selected_index(table.name if table else None):
        settings = load_settings()
    return {
        "index": table.name if table else None,
        "url": redact(settings.index_url),
        "lister": settings.lister,
        "default": table.is_default if table else True,
        "private": table.is_private if table else False,
        "scopes": [scope.name for scope in table.scopes] if table else [],
        "database": make_url(settings.resolved_database_url).render_as_string(hide_password=True),
        "storage": settings.resolved_storage_url,
    }
