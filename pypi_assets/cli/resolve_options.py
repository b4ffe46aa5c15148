"""The options of commands that resolve requirements, the question they make, and a solver for other questions."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pypi_assets.terminal import counted, print_message

if TYPE_CHECKING:
    from packaging.version import Version

    from pypi_assets.lookup.exposure import Solution
    from pypi_assets.lookup.release_impact import Solvable
    from pypi_assets.questions.breaks import BreaksParameters
    from pypi_assets.questions.snapshot import Snapshot
    from pypi_assets.resolve.questions import Control, ResolutionQuestion, Wanted
    from pypi_assets.resolve.releases import ReleaseIndex
    from pypi_assets.resolve.solutions import Allowance
    from pypi_assets.resolve.targets import Target

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_AGE = re.compile(r"([0-9]{1,4})([hdw])", re.ASCII)
_HOURS = {"h": 1, "d": 24, "w": 7 * 24}


class _Age(click.ParamType[Any]):
    """A time span in hours, days or weeks."""

    name = "age"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        match = _AGE.fullmatch(str(value))
        if match is None:
            self.fail(
                f"{str(value)!r:.100} is not a time span: pass hours, days or weeks, such as 36h, 7d or 2w", param, ctx
            )
        return timedelta(hours=int(match[1]) * _HOURS[match[2]])


_FILE_OPTIONS = (
    click.option(
        "-r",
        "--requirement",
        "files",
        multiple=True,
        type=_FILE,
        help="Resolve the requirements in this requirements.txt; repeatable.",
    ),
    click.option(
        "-c",
        "--constraint",
        "constraint_files",
        multiple=True,
        type=_FILE,
        help="Allow only versions that this constraints file allows; repeatable.",
    ),
    click.option(
        "--cooldown",
        type=_Age(),
        metavar="AGE",
        help="Skip files that were uploaded within this time span, such as 7d.",
    ),
)
SOLVER_OPTIONS = (
    click.option(
        "--python",
        "pythons",
        multiple=True,
        help="The CPython version to resolve for, such as 3.12; default: the running version.",
    ),
    click.option(
        "--platform",
        "platforms",
        multiple=True,
        help="The platform to resolve for, such as linux-x86_64, macos-arm64 or windows-x86_64, or a platform tag of"
        " wheels, such as win_arm64; default: the running platform.",
    ),
    click.option("--pre", "prereleases", is_flag=True, help="Allow pre-releases, like other releases."),
    click.option("--only-binary", is_flag=True, help="Skip sdists."),
    click.option(
        "--unknown",
        type=click.Choice(["fail", "assume-none"]),
        default="fail",
        show_default=True,
        help="If a file's requirements are not known: fail, or assume that it requires nothing.",
    ),
    click.option(
        "--semantics",
        type=click.Choice(["pip", "uv"]),
        default="pip",
        show_default=True,
        help="The installer whose resolution rules to follow.",
    ),
)
SOLVER_NAMES = ("pythons", "platforms", "prereleases", "only_binary", "unknown", "semantics")


@dataclass(frozen=True, slots=True)
class Given:
    """The values of the options. Files of requirements are read; names of environments are not checked yet."""

    requirements: "tuple[Wanted, ...]"
    constraints: "tuple[Wanted, ...]"
    pythons: tuple[str, ...]
    platforms: tuple[str, ...]
    prereleases: "Control"
    formats: "Control"
    only_binary: bool
    unknown: str
    semantics: str
    cooldown: timedelta | None = None
    ignored_options: tuple[str, ...] = ()

    def target(self) -> "Target":
        """Return the environment. Raises UsageError if several are named, and BadParameter for an unknown name."""
        from pypi_assets.locks.environments import EnvironmentNameError
        from pypi_assets.resolve.targets import target

        if len(self.pythons) > 1 or len(self.platforms) > 1:
            raise click.UsageError("several --python or --platform options work only with --universal")
        try:
            return target(*(self.pythons or [None]), *(self.platforms or [None]))
        except EnvironmentNameError as error:
            raise click.BadParameter(str(error)) from error

    def universal_targets(self) -> "tuple[Target, ...]":
        """Return several environments. Raises BadParameter for an unknown name."""
        from pypi_assets.locks.environments import EnvironmentNameError
        from pypi_assets.resolve.questions import ResolveError
        from pypi_assets.resolve.targets import universal_targets

        try:
            return universal_targets(self.pythons, self.platforms)
        except (EnvironmentNameError, ResolveError) as error:
            raise click.BadParameter(str(error)) from error

    def question(self, target: "Target", moment: datetime | None = None) -> "ResolutionQuestion":
        """Return the question for an environment. A cooldown counts back from `moment`."""
        from pypi_assets.resolve.questions import ResolutionQuestion, Semantics, Unknown

        return ResolutionQuestion(
            requirements=self.requirements,
            environment=target.environment,
            constraints=self.constraints,
            semantics=Semantics(self.semantics),
            prereleases=self.prereleases,
            only_binary=self.only_binary,
            uploaded_before=None if self.cooldown is None or moment is None else moment - self.cooldown,
            unknown=Unknown(self.unknown),
            formats=self.formats,
        )


def question_options(run: Callable[..., None]) -> Callable[..., Any]:
    """Add the options of a resolution and REQUIREMENT... to a command, which receives them as `given`."""

    @wraps(run)
    def with_question(
        *, requirements: Sequence[str], files: Sequence[Path], constraint_files: Sequence[Path], **arguments: Any
    ) -> None:
        from pypi_assets.resolve.requirement_files import read_requirements

        if not requirements and not files:
            raise click.UsageError("nothing to resolve: pass REQUIREMENT, or -r FILE")
        given = tuple(map(_parsed, requirements))
        options = {name: arguments.pop(name) for name in (*SOLVER_NAMES, "cooldown")}
        read = read_requirements(files, constraint_files, prereleases=options.pop("prereleases"))
        found = Given(
            (*given, *read.requirements),
            tuple(read.constraints),
            prereleases=read.prereleases,
            formats=read.formats,
            ignored_options=tuple(read.ignored),
            **options,
        )
        for sentence in found.ignored_options:
            print_message(sentence)
        run(given=found, **arguments)

    decorated: Callable[..., Any] = with_question
    for option in reversed((*_FILE_OPTIONS, *SOLVER_OPTIONS)):
        decorated = option(decorated)
    return click.argument("requirements", metavar="REQUIREMENT...", nargs=-1)(decorated)


def _parsed(text: str) -> "Wanted":
    from pypi_assets.resolve.questions import ResolveError, parse_wanted

    try:
        return parse_wanted(text)
    except ResolveError as error:
        raise click.BadParameter(str(error)) from error


_SOLVE_OPTIONS = (
    click.option("--solve", is_flag=True, help="Choose versions as an installer would, for each project separately."),
    *SOLVER_OPTIONS,
    click.option(
        "--project-seconds",
        type=click.FloatRange(0, min_open=True),
        default=10.0,
        show_default=True,
        help="With --solve: time limit for one resolution.",
    ),
    click.option(
        "--total-seconds",
        type=click.FloatRange(0, min_open=True),
        help="With --solve: time limit for all resolutions together; default: none.",
    ),
)
_SOLVE_NAMES = (*SOLVER_NAMES, "project_seconds", "total_seconds")


@dataclass
class Solver:
    """The settings of resolutions within an answer. `kinds` counts their results."""

    given: Given
    target: "Target"
    project_seconds: float
    allowance: "Allowance"
    kinds: Counter[str] = field(default_factory=Counter)

    @property
    def question(self) -> "ResolutionQuestion":
        return self.given.question(self.target)

    def __call__(self, snapshot: "Snapshot", given: "BreaksParameters", version: "Version") -> "Solvable":
        """Return a function that checks whether a project can be installed with this version. Resets the counts."""
        from pypi_assets.lookup.release_impact import Verdict
        from pypi_assets.resolve.solutions import verdict_on, with_version

        self._begin()
        index, without = snapshot.release_index(), self.question
        question = with_version(without, given.project, version)

        def solvable(name: str, newest: str) -> Verdict | None:
            def solve() -> Verdict | None:
                return verdict_on(index, question, without, name, newest, most_seconds=self.project_seconds)

            found = self.allowance.spend(solve, lambda reason: Verdict("undecided", reason))
            self.kinds["solvable" if found is None else found.reason] += 1
            return found

        return solvable

    def solution(self, index: "ReleaseIndex") -> "Solution":
        """Return a function that resolves a project to its newest solution. Resets the counts."""
        from pypi_assets.lookup.exposure import Undecided
        from pypi_assets.resolve.solutions import solution_of

        self._begin()
        question = self.question

        def solution(name: str) -> Any:
            def solve() -> Any:
                return solution_of(index, question, name, most_seconds=self.project_seconds)

            found = self.allowance.spend(solve, Undecided)
            kinds = {type(None): "unsolvable", Undecided: "undecided"}
            self.kinds[kinds.get(type(found), "solvable")] += 1
            return found

        return solution

    def _begin(self) -> None:
        """Reset the counts. A search starts again if its snapshot changes."""
        self.kinds.clear()
        self.allowance.left_out = 0

    def print_summary(self) -> None:
        """Print how the resolutions ended, so that undecided projects are not taken for solvable."""
        names = {
            "solvable": "with a solution",
            "unsolvable": "without",
            "broken": "without one in any case",
            "undecided": "not decided",
        }
        parts = ", ".join(f"{self.kinds[kind]} {name}" for kind, name in names.items() if self.kinds[kind])
        count = counted(self.kinds.total(), "project")
        print_message(
            f"resolved for {self.target}, as {self.given.semantics} resolves: {count}{': ' if parts else ''}{parts}"
        )
        if self.allowance.left_out:
            print_message(f"{self.allowance.left_out} of these were skipped: allow more time with --total-seconds")


def solver_options(run: Callable[..., None]) -> Callable[..., Any]:
    """Add the options of a solver to a command, which receives it as `solver`; None without --solve."""

    @wraps(run)
    def with_solver(**arguments: Any) -> None:
        options = {name: arguments.pop(name) for name in _SOLVE_NAMES}
        if not arguments.pop("solve"):
            context = click.get_current_context()
            for name in _SOLVE_NAMES:
                if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
                    raise click.UsageError(f"{_spelled(context, name)} works only with --solve")
            run(solver=None, **arguments)
            return
        run(solver=_solver(options), **arguments)

    decorated: Callable[..., Any] = with_solver
    for option in reversed(_SOLVE_OPTIONS):
        decorated = option(decorated)
    return decorated


def _solver(options: dict[str, Any]) -> Solver:
    from pypi_assets.resolve.questions import Control
    from pypi_assets.resolve.solutions import Allowance

    each, total = options.pop("project_seconds"), options.pop("total_seconds")
    prereleases = Control.for_all(options.pop("prereleases"))
    given = Given((), (), prereleases=prereleases, formats=Control(), **options)
    return Solver(given, given.target(), each, Allowance(total))


def _spelled(context: click.Context, name: str) -> str:
    return next(one.opts[0] for one in context.command.params if one.name == name)
