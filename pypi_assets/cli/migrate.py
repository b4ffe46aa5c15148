"""The command that brings the catalog's tables up to date."""

import click

from pypi_assets.cli.options import JSON, command
from pypi_assets.terminal import print_json


@command("migrate")
@JSON
def migrate_command(as_json: bool) -> None:
    """Upgrade the tables of the catalog.

    Run it after an upgrade of pypi-assets; it does nothing where they are up to date. Stop all processes that use the
    catalog and back it up first.
    """
    from pypi_assets.catalog.database import migrate_catalog
    from pypi_assets.settings import load_settings

    before, after = migrate_catalog(load_settings().resolved_database_url)
    if as_json:
        print_json({"before": before, "after": after})
    elif before == after:
        click.echo(f"the catalog has schema {after}, and is up to date")
    else:
        click.echo(f"the catalog has schema {after} now" + (f", and had {before}" if before else ", and had no tables"))
