"""The command that deletes old rows of the catalog."""

import click

from pypi_assets.cli.opening import existing_catalog
from pypi_assets.cli.options import JSON, command
from pypi_assets.terminal import print_json


@command("prune", "--dry-run")
@click.option("--dry-run", is_flag=True, help="Only report what would be deleted.")
@JSON
def prune_command(dry_run: bool, as_json: bool) -> None:
    """Delete old rows of the catalog.

    Visits are kept for PYPI_ASSETS_VISITS_KEPT_DAYS, attempts to read for PYPI_ASSETS_READ_ATTEMPTS_KEPT_DAYS. Also
    deletes what no file refers to any more. One run looks at a bounded number of rows, and the next one goes on there.
    """
    from pypi_assets.assembly import storage_from
    from pypi_assets.settings import load_settings
    from pypi_assets.upkeep.deletion import DeletionChain, kept_from

    settings = load_settings()
    with existing_catalog(settings) as catalog:
        rows = DeletionChain(catalog, storage_from(settings, catalog), kept_from(settings)).clean_rows(dry_run=dry_run)
    if as_json:
        print_json(rows)
        return
    done = "would be deleted" if dry_run else "deleted"
    for table, count in rows.items():
        click.echo(f"{table}: {count} {done}")
