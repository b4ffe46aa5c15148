"""The command that lists the live distributions, of one project or of all."""

from contextlib import closing
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING

import click

from pypi_assets.cli.followed_notes import among
from pypi_assets.cli.moments import AT, catalog_at
from pypi_assets.cli.options import command, row_output
from pypi_assets.cli.questions import LIMIT, ask
from pypi_assets.questions.files import COLUMNS
from pypi_assets.questions.question import find_question
from pypi_assets.terminal import Output, print_message, print_rows

if TYPE_CHECKING:
    from pypi_assets.catalog.reports.moments import Moment

_QUESTION = find_question("files")


@command("files", _QUESTION.example, within="lookup")
@click.argument("project", required=False)
@LIMIT
@AT
@row_output
def files_command(project: str | None, limit: int | None, at: "Moment | None", output: Output) -> None:
    """List the live distributions.

    Without PROJECT, those of all projects, by project. With -, names of projects come from standard input, one a line.
    """
    if project is None:
        _list_all(limit, at, output)
    else:
        ask(_QUESTION, (project,), output=output, limit=limit, at=at)


def _list_all(limit: int | None, at: "Moment | None", output: Output) -> None:
    """Print the live distributions of all projects. They are read while they are printed."""
    from pypi_assets.catalog.observed.followed import count_answered
    from pypi_assets.catalog.reports.live_files import live_files

    with catalog_at(at) as (catalog, serial):
        with catalog.read() as connection:
            followed = among(count_answered(connection, serial))
        with closing(live_files(catalog, serial)) as files:
            count = print_rows(COLUMNS, (asdict(file) for file in islice(files, limit)), output)
    nothing = "" if count else "no distribution is live "
    print_message(f"{nothing}as of serial {serial}, from the catalog{followed}")
