"""The commands that take records down from the journal, and list what was taken down."""

import click

from pypi_assets import terminal
from pypi_assets.cli.opening import existing_catalog
from pypi_assets.cli.options import JSON
from pypi_assets.progress import Progress
from pypi_assets.terminal import counted, local_time, print_json, print_json_rows, print_message, print_table
from pypi_assets.times import utc_text

_WAIT_S = 600.0
_COLUMNS = ("takedown", "added", "state", "project", "version", "file", "record", "reason")


@click.command(
    "takedown", epilog="Example: pypi-assets journal takedown demo --file demo-1.0.tar.gz --reason 'order of a court'"
)
@click.argument("project", required=False)
@click.option("--release", metavar="VERSION", help="Only what is of this release.")
@click.option("--file", "filename", metavar="FILENAME", help="Only what is of this file.")
@click.option("--record", metavar="STREAM:SERIAL:ORDINAL", help="One record, instead of a project.")
@click.option("--reason", required=True, help="Is shown in place of each record.")
@click.option("--hide-name", is_flag=True, help="Leave out the project's name too.")
@JSON
def journal_takedown_command(
    *,
    project: str | None,
    release: str | None,
    filename: str | None,
    record: str | None,
    reason: str,
    hide_name: bool,
    as_json: bool,
) -> None:
    """Take all records of PROJECT down from the journal, or those of a release or file of it.

    A record of the kind `taken down` replaces each, also in what is written later. The chain still verifies, and
    mirrors follow. The catalog, dumps, LevelDBs and what consumers have received stay as they are.
    """
    from pypi_assets.assembly import storage_from
    from pypi_assets.catalog.publications.journal_segments import add_takedown
    from pypi_assets.journal.publishing import complete_takedowns
    from pypi_assets.journal.takedowns import TakedownError, wanted_takedown
    from pypi_assets.settings import load_settings

    settings = load_settings()
    try:
        wanted = wanted_takedown(reason, project, release, filename, record, hides_name=hide_name)
    except TakedownError as error:
        raise click.UsageError(str(error)) from None
    with existing_catalog(settings) as catalog, terminal.progress_shown() as report:
        storage = storage_from(settings, catalog)
        added = add_takedown(catalog, wanted)

        def note(records: int) -> None:
            report(Progress("records", records, 0))

        count = complete_takedowns(catalog, storage, note, wait_s=_WAIT_S)
    if as_json:
        print_json({"takedown": added.id, "records": count})
    else:
        print_message(f"takedown {added.id}: {counted(count, 'record')} replaced")


@click.command("takedowns", epilog="Example: pypi-assets journal takedowns --lift 3")
@click.option("--lift", type=int, metavar="ID", help="What is written from now on has it again.")
@JSON
def journal_takedowns_command(*, lift: int | None, as_json: bool) -> None:
    """List what was taken down from the journal."""
    from pypi_assets.catalog.publications.journal_segments import all_takedowns, lift_takedown
    from pypi_assets.settings import load_settings

    with existing_catalog(load_settings()) as catalog:
        if lift is not None:
            if not lift_takedown(catalog, lift):
                raise click.UsageError(f"there is no takedown {lift}: `pypi-assets journal takedowns` lists them")
            print_message(f"takedown {lift} is lifted; what it has replaced stays replaced")
            return
        with catalog.read() as connection:
            found = all_takedowns(connection)
    records = [None if one.serial is None else f"{one.stream}:{one.serial}:{one.ordinal}" for one in found]
    if as_json:
        print_json_rows(
            {
                "id": one.id,
                "added": utc_text(one.added_at),
                "done": None if one.done_at is None else utc_text(one.done_at),
                "project": one.project,
                "version": one.version,
                "filename": one.filename,
                "record": record,
                "hides_name": one.hides_name,
                "reason": one.reason,
            }
            for one, record in zip(found, records, strict=True)
        )
        return
    print_table(
        _COLUMNS,
        (
            (
                one.id,
                local_time(one.added_at),
                "waiting" if one.done_at is None else "done",
                one.project,
                one.version,
                one.filename,
                record,
                one.reason,
            )
            for one, record in zip(found, records, strict=True)
        ),
    )
    if not found:
        print_message("nothing was taken down")
