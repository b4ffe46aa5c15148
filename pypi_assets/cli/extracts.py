"""Commands for the packs of stored extracts."""

from dataclasses import asdict

import click

from pypi_assets.cli.opening import existing_catalog
from pypi_assets.cli.options import JSON, command
from pypi_assets.terminal import counted, print_json


@click.group("extracts")
def extracts_group() -> None:
    """Manage the stored extracts of distributions.

    An extract is what was read of a distribution's file. From it, `pypi-assets reprocess` makes the record again
    without a download. Many extracts lie in one file, a pack.
    """


@command("clean", "--dry-run", group=extracts_group)
@click.option("--dry-run", is_flag=True, help="Only report what would be deleted.")
@JSON
def extracts_clean_command(dry_run: bool, as_json: bool) -> None:
    """Delete unused packs.

    A pack is unused if no distribution refers to it and it is older than a day.
    """
    from pypi_assets.assembly import storage_from
    from pypi_assets.settings import load_settings
    from pypi_assets.upkeep.deletion import DeletionChain, kept_from

    settings = load_settings()
    with existing_catalog(settings) as catalog:
        chain = DeletionChain(catalog, storage_from(settings, catalog), kept_from(settings))
        cleaned = chain.clean_packs(dry_run=dry_run)
    if as_json:
        print_json(asdict(cleaned))
        return
    done = "would be deleted" if dry_run else "deleted"
    click.echo(f"{len(cleaned.deleted)} of {counted(cleaned.packs, 'pack')} {done}, {cleaned.size} bytes")
