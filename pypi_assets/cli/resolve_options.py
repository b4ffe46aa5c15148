"""The options of commands that resolve requirements, the question that they make, and a solver for other questions."""

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
            self.fail(f"{str(value)!r:.100} is no time span: write 7d, 36h or 2w", param, ctx)
        return timedelta(hours=int(match[1]) * _HOURS[match[2]])


_FILE_OPTIONS = (
    click.option(
        "-r",
        "--requirement",
        "files",
        multiple=True,
        type=_FILE,
        help="What this requirements.txt names; can be repeated.",
    ),
    click.option(
        "-c",
        "--constraint",
        "constraint_files",
        multiple=True,
        type=_FILE,
        help="Allow no versions but those of this file; can be repeated.",
    ),
    click.option(
        "--cooldown",
        type=_Age(),
        metavar="AGE",
        help="Leave out files that were uploaded within this time, 7d for example.",
    ),
)
SOLVER_OPTIONS = (
    click.option(
        "--python",
        "pythons",
        multiple=True,
        help="For this version of CPython, 3.12 for example; default: the running one.",
    ),
    click.option(
        "--platform",
        "platforms",
        multiple=True,
        help="For linux-x86_64, macos-arm64, windows-x86_64 and others, or a platform as wheels name it, win_arm64 for"
        " example; default: the running one.",
    ),
    click.option("--pre", "prereleases", is_flag=True, help="Pre-releases count as other releases do."),
    click.option("--only-binary", is_flag=True, help="Take no sdists."),
    click.option(
        "--unknown",
        type=click.Choice(["fail", "assume-none"]),
        default="fail",
        show_default=True,
        help="Where it is not known what a file requires: fail, or assume that it is nothing.",
    ),
    click.option(
        "--semantics",
        type=click.Choice(["pip", "uv"]),
        default="pip",
        show_default=True,
        help="Whose rules hold where installers differ.",
    ),
)
SOLVER_NAMES = ("pythons", "platforms", "prereleases", "only_binary", "unknown", "semantics")


@dataclass(frozen=True, slots=True)
class Given:
    """What the options mean. The requirements are read, and the names of environments not yet."""

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
        """The one environment. Raises UsageError where several are named, and BadParameter."""
        from pypi_assets.locks.environments import EnvironmentNameError
        from pypi_assets.resolve.targets import target

        if len(self.pythons) > 1 or len(self.platforms) > 1:
            raise click.UsageError("several of --python or --platform go with --universal alone")
        try:
            return target(*(self.pythons or [None]), *(self.platforms or [None]))
        except EnvironmentNameError as error:
            raise click.BadParameter(str(error)) from error

    def universal_targets(self) -> "tuple[Target, ...]":
        """Several environments. Raises BadParameter."""
        from pypi_assets.locks.environments import EnvironmentNameError
        from pypi_assets.resolve.questions import ResolveError
        from pypi_assets.resolve.targets import universal_targets

        try:
            return universal_targets(self.pythons, self.platforms)
        except (EnvironmentNameError, ResolveError) as error:
            raise click.BadParameter(str(error)) from error

    def question(self, target: "Target", moment: datetime | None = None) -> "ResolutionQuestion":
        """The question for an environment. A cooldown counts back from `moment`."""
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
    """A decorator for a command that resolves: REQUIREMENT... and the options, which it takes as `given`."""

    @wraps(run)
    def with_question(
        *, requirements: Sequence[str], files: Sequence[Path], constraint_files: Sequence[Path], **arguments: Any
    ) -> None:
        from pypi_assets.resolve.requirement_files import read_requirements

        if not requirements and not files:
            raise click.UsageError("nothing is required: give REQUIREMENT, or -r FILE")
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
    click.option("--solve", is_flag=True, help="Choose versions as an installer would, for each project apart."),
    *SOLVER_OPTIONS,
    click.option(
        "--project-seconds",
        type=click.FloatRange(0, min_open=True),
        default=10.0,
        show_default=True,
        help="With --solve: how long one resolution may take.",
    ),
    click.option(
        "--total-seconds",
        type=click.FloatRange(0, min_open=True),
        help="With --solve: how long all resolutions may take; by default as long as they take.",
    ),
)
_SOLVE_NAMES = (*SOLVER_NAMES, "project_seconds", "total_seconds")


@dataclass
class Solver:
    """What resolutions of an answer are made with; `kinds` counts what came of them."""

    given: Given
    target: "Target"
    project_seconds: float
    allowance: "Allowance"
    kinds: Counter[str] = field(default_factory=Counter)

    @property
    def question(self) -> "ResolutionQuestion":
        return self.given.question(self.target)

    def __call__(self, snapshot: "Snapshot", given: "BreaksParameters", version: "Version") -> "Solvable":
        """Return the verdicts on projects with this version of a project. Counting begins again."""
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
        """Return the newest solutions of projects. Counting begins again."""
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
        """Count from the start: a search is run again if its snapshot changes."""
        self.kinds.clear()
        self.allowance.left_out = 0

    def print_summary(self) -> None:
        """Prints what came of the resolutions, so that what is not known is not taken for solvable."""
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
            print_message(f"{self.allowance.left_out} of these were left out: allow more with --total-seconds")


def solver_options(run: Callable[..., None]) -> Callable[..., Any]:
    """A decorator for a command that can resolve: the options, which it takes as `solver`; None without --solve."""

    @wraps(run)
    def with_solver(**arguments: Any) -> None:
        options = {name: arguments.pop(name) for name in _SOLVE_NAMES}
        if not arguments.pop("solve"):
            context = click.get_current_context()
            for name in _SOLVE_NAMES:
                if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
                    raise click.UsageError(f"{_spelled(context, name)} goes with --solve")
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
