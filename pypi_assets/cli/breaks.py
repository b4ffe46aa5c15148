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
    Query,
    check_depth,
    counting,
    named_version,
    print_summary,
    with_context,
)
from pypi_assets.cli.options import command, row_output
from pypi_assets.cli.solver_options import Solver, solver_options
from pypi_assets.terminal import Output, print_rows

if TYPE_CHECKING:
    from pypi_assets.catalog.reports.moments import Moment


@command("breaks", "urllib3==2.0 --transitive")
@click.argument("requirement", metavar="PROJECT==VERSION")
@TRANSITIVE
@DEPTH
@AT
@solver_options
@row_output
def breaks_command(
    requirement: str, transitive: bool, depth: int | None, at: "Moment | None", solver: Solver | None, output: Output
) -> None:
    """Show projects whose newest release excludes VERSION of PROJECT.

    With --transitive also projects whose newest release requires the newest release of one of these, and so on.

    With --solve also those whose newest release has no solution with VERSION, with the proof: of all projects that can
    lead to PROJECT, by any of their releases. What is not decided within the limits is printed as well.
    """
    from pypi_assets.lookup.impact import Break, breaks

    check_depth(depth, transitive=transitive)
    name, version = named_version(requirement)
    if version is None:
        raise click.BadParameter(f"{requirement!r:.100} has no version: give PROJECT==VERSION")
    of_version = partial(breaks, project=name, version=version, transitive=transitive, depth=depth)
    query: Query = of_version
    depths: Counter[int] = Counter()
    columns = ("reason", *COLUMNS, *(("chain",) if transitive else ()))
    nothing_found = f"the newest release of no project excludes {name} {version}"
    with NewestAnswers(at) as answers:
        if solver is not None:
            answers.require_release(name, version)
            solvable = solver.solvable(answers.release_index(), name, version)
            query = solver.counting(partial(of_version, solvable=solvable))
            columns = (*columns, "older", "proof")
            nothing_found += ", and none lacks a solution with it"
        found = answers.answer(Break, query, name)
        print_rows(columns, counting(with_context(found), depths), output)
        print_summary(found, depths, nothing_found)
        if solver is not None:
            solver.print_summary()
        answers.print_notes(name, version, found)
