"""The command that shows which projects a version breaks."""

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import click

from pypi_assets.cli.moments import AT
from pypi_assets.cli.newest_answers import (
    COLUMNS,
    DEPTH,
    TRANSITIVE,
    NewestAnswers,
    check_depth,
    counting,
    named_version,
    print_summary,
    with_context,
)
from pypi_assets.cli.options import command, row_output
from pypi_assets.terminal import Output, print_rows

if TYPE_CHECKING:
    from pypi_assets.catalog.reports.moments import Moment


@command("breaks", "urllib3==2.0 --transitive")
@click.argument("requirement", metavar="PROJECT==VERSION")
@TRANSITIVE
@DEPTH
@AT
@row_output
def breaks_command(requirement: str, transitive: bool, depth: int | None, at: "Moment | None", output: Output) -> None:
    """Show projects whose newest release excludes VERSION of PROJECT.

    With --transitive also projects whose newest release requires the newest release of one of these, and so on.
    """
    from pypi_assets.lookup.impact import Break, breaks

    check_depth(depth, transitive=transitive)
    name, version = named_version(requirement)
    if version is None:
        raise click.BadParameter(f"{requirement!r:.100} has no version: give PROJECT==VERSION")
    query = partial(breaks, project=name, version=version, transitive=transitive, depth=depth)
    depths: Counter[int] = Counter()
    with NewestAnswers(at) as answers:
        found = answers.answer(Break, query, name)
        columns = ("reason", *COLUMNS, *(("chain",) if transitive else ()))
        print_rows(columns, counting(with_context(found), depths), output)
        print_summary(found, depths, f"the newest release of no project excludes {name} {version}")
        answers.print_notes(name, version, found)
