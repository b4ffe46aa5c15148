"""The command that shows what depends on a project, or on one of its versions."""

from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pypi_assets.cli.followed_notes import among
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
from pypi_assets.cli.solver_options import Solver, solver_options
from pypi_assets.terminal import Output, counted, print_message, print_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pypi_assets.catalog.reports.moments import Moment
    from pypi_assets.lookup.exposure import ExposedSolution
    from pypi_assets.lookup.newest_requirements import NewestRequirements


_SOLVED_COLUMNS = ("normalized", "chosen", "required", "version", "advisories", "undecided")
_EXPOSED_COLUMNS = ("required", "allowed", "advisories", "normalized", "version", "condition", "requirements")


@command("impact", "urllib3==2.0 --transitive")
@click.argument("requirement", metavar="[PROJECT[==VERSION]]", required=False)
@click.option(
    "--osv",
    "osv",
    type=click.Path(exists=True, path_type=Path),
    help="Instead of PROJECT: whose newest release allows what these advisories affect; OSV's all.zip, or a folder.",
)
@TRANSITIVE
@DEPTH
@AT
@solver_options
@row_output
def impact_command(
    requirement: str | None,
    osv: Path | None,
    transitive: bool,
    depth: int | None,
    at: "Moment | None",
    solver: Solver | None,
    output: Output,
) -> None:
    """Show what depends on PROJECT, or on one of its versions.

    These are the projects whose newest release requires PROJECT, and with ==VERSION those that accept this version. It
    need not be there any more, so it can be a removed release. With --transitive also projects whose newest release
    requires the newest release of one of these, and so on.

    With --osv, the projects whose newest release allows an affected version as the newest one of what it requires. With
    --solve as well, those of which the newest solution has an affected version, however far away it is required.
    """
    if (requirement is None) == (osv is None):
        raise click.UsageError("give either PROJECT[==VERSION] or --osv")
    check_depth(depth, transitive=transitive)
    if osv is not None:
        if transitive:
            raise click.UsageError("--osv looks at direct requirements: without --transitive")
        _print_exposed(osv, at, solver, output)
    elif solver is not None:
        raise click.UsageError("--solve goes with --osv")
    elif requirement is not None:
        _print_impact(requirement, depth if transitive else 1, at, output)


def _print_impact(requirement: str, depth: int | None, at: "Moment | None", output: Output) -> None:
    from pypi_assets.lookup.impact import Impact, impact

    name, version = named_version(requirement)
    query = partial(impact, project=name, version=version, transitive=depth != 1, depth=depth)
    wanted = f"requires {name}" if version is None else f"accepts {name} {version}"
    depths: Counter[int] = Counter()
    with NewestAnswers(at) as answers:
        found = answers.answer(Impact, query, name)
        columns = (*COLUMNS, *(() if depth == 1 else ("chain",)))
        print_rows(columns, counting(with_context(found), depths), output)
        print_summary(found, depths, f"the newest release of no project {wanted}")
        answers.print_notes(name, version, found)


def _print_exposed(path: Path, at: "Moment | None", solver: Solver | None, output: Output) -> None:
    from pypi_assets.lookup import exposure
    from pypi_assets.lookup.advisories import read_advisories

    advisories = read_advisories(path)
    for name, reason in advisories.problems:
        print_message(f"not used: {name}: {reason}")
    with NewestAnswers(at) as answers:
        if solver is None:
            found = answers.answer(exposure.Exposure, partial(exposure.exposed, advisories=advisories))
            count = print_rows(_EXPOSED_COLUMNS, with_context(found), output)
            what = "newest releases that allow an affected version as the newest one"
        else:
            solution = solver.solution(answers.release_index())

            def query(graph: "NewestRequirements") -> "Iterator[ExposedSolution]":
                return exposure.exposed_solutions(exposure.possibly_exposed(graph, advisories), advisories, solution)

            found = answers.answer(exposure.ExposedSolution, solver.counting(query))
            count = print_rows(_SOLVED_COLUMNS, with_context(found), output) - solver.kinds["undecided"]
            what = "affected versions in newest solutions"
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
