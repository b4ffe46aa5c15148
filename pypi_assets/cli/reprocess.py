"""The command that makes records again from stored extracts."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from pypi_assets import terminal
from pypi_assets.cli.opening import existing_catalog, opened_readers
from pypi_assets.cli.options import JSON, command
from pypi_assets.distributions.record import EXTRACTOR_VERSION
from pypi_assets.terminal import counted, plain, print_json, print_message

if TYPE_CHECKING:
    from pypi_assets.extracts.reprocess import Reprocessed

_SHOWN_FILES = 3


@command("reprocess", "--project requests")
@click.option(
    "--older-than-version",
    type=click.IntRange(1),
    default=EXTRACTOR_VERSION,
    show_default=True,
    help="Only records of extractors older than this version; the default is the current one.",
)
@click.option("--project", help="Only the records of this project.")
@click.option(
    "--processes",
    type=click.IntRange(1),
    help="How many processes read at once, about 100 MB each; default: one for each core, at most 8.",
)
@click.option(
    "--read-again",
    is_flag=True,
    help="Queue the files that no stored extract can supply; `pypi-assets failures retry` reads them.",
)
@JSON
def reprocess_command(
    older_than_version: int, project: str | None, processes: int | None, read_again: bool, as_json: bool
) -> None:
    """Make records again from stored extracts.

    Run it after an upgrade that reads files by other rules. No file is downloaded. The next full dump contains what
    changed: run `pypi-assets dump redo` for it.
    """
    from pypi_assets.assembly import storage_from
    from pypi_assets.extracts.reprocess import PROCESSES, reprocess
    from pypi_assets.settings import load_settings

    settings = load_settings()
    with (
        existing_catalog(settings) as catalog,
        opened_readers(settings) as readers,
        terminal.progress_shown() as report,
    ):
        result = reprocess(
            catalog,
            storage_from(settings, catalog),
            readers,
            older_than=older_than_version,
            project=project,
            processes=processes or PROCESSES,
            read_again=read_again,
            report=report,
        )
    if as_json:
        print_json(asdict(result))
    else:
        click.echo(
            f"{counted(result.looked_at, 'record')} made again in {result.seconds:.1f} s, {result.changed} of them"
            f" changed: {result.gained_modules} gained modules, {result.lost_modules} lost modules,"
            f" {result.changed_requirements} have other requirements, {result.changed_errors} another error or none"
        )
        for sort, examples in result.examples.items():
            for example in examples:
                click.echo(f"  {sort}: {plain(example)}")
    if result.overtaken:
        print_message(f"read again by a crawl meanwhile, and left as they are: {result.overtaken}")
    if result.unread:
        broken = f"broken packs: {len(result.broken_packs)}"
        print_message(f"extracts without a new record, whose old record stays: {result.unread}; {broken}")
    for problem in result.problems:
        print_message(problem)
    if result.not_supplied:
        first = ", ".join(map(plain, result.not_supplied_files[:_SHOWN_FILES]))
        print_message(
            f"no stored extract brings {counted(result.not_supplied, 'file')} up to date: {first} ...; {_next(result)}"
        )


def _next(result: "Reprocessed") -> str:
    if result.queued:
        return f"{result.queued} are queued: `pypi-assets failures retry` reads them"
    return "`pypi-assets reprocess --read-again` queues them, to be read from the index again"
