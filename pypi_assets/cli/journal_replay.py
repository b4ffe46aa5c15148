"""The command that makes a catalog of the journal."""

import click

from pypi_assets import terminal
from pypi_assets.cli.options import JSON
from pypi_assets.progress import Progress
from pypi_assets.terminal import counted, print_json, print_message


@click.command("replay", epilog="Example: pypi-assets journal replay --into sqlite:////data/replayed.sqlite")
@click.option("--into", "database_url", required=True, metavar="DATABASE_URL", help="The new catalog's database.")
@click.option("--from", "storage_url", metavar="STORAGE_URL", help="Where the journal is; default: this storage.")
@click.option("--to", "serial", type=click.IntRange(1), help="The last serial; default: the journal's.")
@click.option("--from-dump", is_flag=True, help="Begin with the newest full dump, which is faster.")
@JSON
def journal_replay_command(
    *, database_url: str, storage_url: str | None, serial: int | None, from_dump: bool, as_json: bool
) -> None:
    """Make a catalog from the journal: it answers as the one that wrote it, at each serial.

    Begun with a dump, it answers from the dump's serial on. A stopped replay goes on where it was stopped, and a
    finished one goes on with what the journal has since.
    """
    from pypi_assets.assembly import storage_from
    from pypi_assets.catalog.database import open_catalog
    from pypi_assets.cli.opening import existing_catalog
    from pypi_assets.journal.comparing import open_other
    from pypi_assets.journal.replay import replay
    from pypi_assets.settings import load_settings

    if storage_url is None:
        settings = load_settings()
        with existing_catalog(settings) as own:
            storage = storage_from(settings, own, read_only=True)
    else:
        storage = open_other(storage_url)
    catalog = open_catalog(database_url)
    try:
        with terminal.progress_shown() as report:
            done = replay(
                storage,
                catalog,
                serial,
                from_dump=from_dump,
                progress=lambda records: report(Progress("records", records, 0)),
            )
    finally:
        catalog.close()
    if as_json:
        print_json(
            {
                "through": done.through,
                "exact_from": done.exact_from,
                "records": done.records,
                "dump": done.dump,
                "began": done.began,
            }
        )
        return
    print_message(f"began {done.began}: {counted(done.records, 'record', ',')} entered")
    if done.exact_from > done.through:
        print_message(f"no exact answers up to serial {done.through:,}: they begin at {done.exact_from:,}")
        return
    print_message(f"answers for the serials {done.exact_from:,} to {done.through:,}")
