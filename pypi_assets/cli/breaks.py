"""The command that shows which projects a version breaks."""

from typing import TYPE_CHECKING, Any

import click

from pypi_assets.cli.moments import AT
from pypi_assets.cli.options import command, row_output
from pypi_assets.cli.questions import LIMIT, ask, parameter_options
from pypi_assets.cli.solver_options import Solver, solver_options
from pypi_assets.questions.breaks import SOLVING
from pypi_assets.questions.question import find_question
from pypi_assets.terminal import Output

if TYPE_CHECKING:
    from pypi_assets.catalog.reports.moments import Moment

_QUESTION = find_question("breaks")


@command("breaks", _QUESTION.example, within="lookup")
@click.argument("requirement", metavar=_QUESTION.argument)
@parameter_options(_QUESTION, without=SOLVING)
@LIMIT
@AT
@solver_options
@row_output
def breaks_command(
    requirement: str, limit: int | None, at: "Moment | None", solver: Solver | None, output: Output, **given: Any
) -> None:
    """Show projects whose newest release excludes VERSION of PROJECT.

    With --transitive also projects whose newest release requires the newest release of one of these, and so on.

    With --solve also those whose newest release has no solution with VERSION, with the proof: of all projects that can
    lead to PROJECT, by any of their releases. What is not decided within the limits is printed as well.
    """
    given["solve"] = solver is not None
    ask(_QUESTION, [requirement], output=output, limit=limit, at=at, solver=solver, **given)
