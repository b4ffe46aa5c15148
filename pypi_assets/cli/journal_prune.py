"""The command that deletes old segments of the journal."""

import click

from pypi_assets.cli.opening import existing_catalog
from pypi_assets.cli.options import JSON
from pypi_assets.terminal import counted, print_json, print_message

_WAIT_S = 60.0


@click.command("prune", epilog="Example: pypi-assets journal prune --before 2025-01-01")
@click.option("--before", required=True, metavar="SERIAL|DATE", help="Delete what ends there or earlier.")
@click.option("--force", is_flag=True, help="Also what a living consumer has not read.")
@click.option("--dry-run", is_flag=True, help="Only report what would be deleted.")
@JSON
def journal_prune_command(*, before: str, force: bool, dry_run: bool, as_json: bool) -> None:
    """Delete the old segments of the journal.

    What a replay from the newest full dump needs always stays, and what a consumer seen within 30 days has not read
    stays without --force. The manifests stay, so that the chain verifies from its beginning.
    """
    from pypi_assets.assembly import storage_from
    from pypi_assets.journal.pruning import prune_journal
    from pypi_assets.journal.reading import Journal
    from pypi_assets.journal.tailing import SinceError, cursor_since
    from pypi_assets.settings import load_settings

    settings = load_settings()
    with existing_catalog(settings) as catalog:
        storage = storage_from(settings, catalog)
        try:
            serial = cursor_since(before, Journal(storage), catalog).whole_serial
        except SinceError as error:
            raise click.UsageError(f"--before: {error}") from None
        pruned = prune_journal(catalog, storage, serial, force=force, dry_run=dry_run, wait_s=_WAIT_S)
    if as_json:
        print_json(
            [
                {
                    "stream": one.stream,
                    "segments": one.segments,
                    "records": one.records,
                    "readable_from": one.readable_from,
                }
                for one in pruned
            ]
        )
        return
    done = "would be deleted" if dry_run else "deleted"
    for one in pruned:
        counts = f"{counted(one.segments, 'segment')} with {counted(one.records, 'record')}"
        print_message(f"{one.stream}: {counts} {done}; it begins after serial {one.readable_from:,}")
