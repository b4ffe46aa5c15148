"""The command `impact`, which shows what depends on a project or on one of its versions."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pypi_assets.cli.followed_notes import among
from pypi_assets.cli.lookup import LIMIT, ask, context_of, opened, parameter_options
from pypi_assets.cli.options import AT, command, row_output
from pypi_assets.cli.resolve_options import Solver, solver_options
from pypi_assets.questions.question import find_question
from pypi_assets.terminal import Output, counted, print_message, print_rows

if TYPE_CHECKING:
    from pypi_assets.catalog.reports.moments import Moment
    from pypi_assets.lookup.exposure import ExposedSolution
    from pypi_assets.questions.snapshot import Found

_QUESTION = find_question("impact")
_SOLVED_COLUMNS = ("normalized", "chosen", "required", "version", "advisories", "undecided")
_EXPOSED_COLUMNS = ("required", "allowed", "advisories", "normalized", "version", "condition", "requirements")


@command("impact", _QUESTION.example)
@click.argument("requirement", metavar=f"[{_QUESTION.argument}]", required=False)
@click.option(
    "--osv",
    "osv",
    type=click.Path(exists=True, path_type=Path),
    help="Show projects that advisories affect, instead of the dependents of PROJECT: OSV's all.zip, or a folder.",
)
@parameter_options(_QUESTION)
@LIMIT
@AT
@solver_options
@row_output
def impact_command(
    requirement: str | None,
    osv: Path | None,
    limit: int | None,
    at: "Moment | None",
    solver: Solver | None,
    output: Output,
    **given: Any,
) -> None:
    """Show what depends on PROJECT, or on one of its versions.

    These are the projects whose newest release requires PROJECT. With ==VERSION, only projects that accept this version
    are shown; VERSION may be a removed release. With --transitive, also show projects whose newest release requires the
    newest release of a project that is shown.

    With --osv, show the projects whose newest release allows an affected version as the newest version of a
    requirement. With --osv and --solve, show the projects whose newest solution contains an affected version, at any
    depth.
    """
    if (requirement is None) == (osv is None):
        raise click.UsageError("pass either PROJECT[==VERSION] or --osv")
    if osv is not None:
        if any(given.values()) or limit is not None:
            raise click.UsageError("--osv lists all direct requirements: omit --transitive, --depth and --limit")
        _print_exposed(osv, at, solver, output)
    elif solver is not None:
        raise click.UsageError("--solve works only with --osv")
    elif requirement is not None:
        ask(_QUESTION, [requirement], output=output, limit=limit, at=at, **given)


def _print_exposed(path: Path, at: "Moment | None", solver: Solver | None, output: Output) -> None:
    from pypi_assets.lookup import exposure
    from pypi_assets.lookup.advisories import read_advisories

    advisories = read_advisories(path)
    for name, reason in advisories.problems:
        print_message(f"not used: {name}: {reason}")
    with opened(at) as asking:
        columns: tuple[str, ...]
        snapshot = asking.snapshot
        if solver is None:
            found = asking.answered(
                lambda: snapshot.streamed(exposure.Exposure, exposure.exposed(snapshot, advisories))
            )
            columns, what = _EXPOSED_COLUMNS, "newest releases that allow an affected version as the newest one"
        else:

            def solved() -> "Found[ExposedSolution]":
                solution = solver.solution(snapshot.release_index())
                possible = exposure.possibly_exposed(snapshot, advisories)
                results = exposure.exposed_solutions(possible, advisories, solution)
                return snapshot.streamed(exposure.ExposedSolution, results)

            found = asking.answered(solved)
            columns, what = _SOLVED_COLUMNS, "affected versions in newest solutions"
        context = context_of(found)
        count = print_rows(columns, ({**one, **context} for one in found.results), output)
        count -= 0 if solver is None else solver.kinds["undecided"]
        source = ", from the catalog" if found.version is None else ""
        about = counted(len(advisories.projects), "project")
        read = "1 advisory" if advisories.records == 1 else f"{advisories.records} advisories"
        print_message(
            f"{read} about {about}, without {advisories.withdrawn} that are withdrawn, {advisories.others} of other"
            f" ecosystems and {counted(len(advisories.problems), 'problem')}"
        )
        print_message(f"{what}: {count}, as of serial {found.serial}{source}{among(found.followed_projects)}")
        if solver is not None:
            solver.print_summary()
