"""The command that shows what depends on a project, or on one of its versions."""

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


@command("impact", "urllib3==2.0 --transitive")
@click.argument("requirement", metavar="PROJECT[==VERSION]")
@TRANSITIVE
@DEPTH
@AT
@row_output
def impact_command(requirement: str, transitive: bool, depth: int | None, at: "Moment | None", output: Output) -> None:
    """Show what depends on PROJECT, or on one of its versions.

    These are the projects whose newest release requires PROJECT, and with ==VERSION those that accept this version. It
    need not be there any more, so it can be a removed release. With --transitive also projects whose newest release
    requires the newest release of one of these, and so on.
    """
    from pypi_assets.lookup.impact import Impact, impact

    check_depth(depth, transitive=transitive)
    name, version = named_version(requirement)
    query = partial(impact, project=name, version=version, transitive=transitive, depth=depth)
    wanted = f"requires {name}" if version is None else f"accepts {name} {version}"
    depths: Counter[int] = Counter()
    with NewestAnswers(at) as answers:
        found = answers.answer(Impact, query, name)
        columns = (*COLUMNS, *(("chain",) if transitive else ()))
        print_rows(columns, counting(with_context(found), depths), output)
        print_summary(found, depths, f"the newest release of no project {wanted}")
        answers.print_notes(name, version, found)
