"""The options of commands that can resolve projects one by one, and what these resolutions are made with."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pypi_assets.cli.resolve_options import SOLVER_NAMES, SOLVER_OPTIONS, Given
from pypi_assets.terminal import counted, print_message

if TYPE_CHECKING:
    from packaging.version import Version

    from pypi_assets.lookup.exposure import Solution
    from pypi_assets.lookup.impact import Solvable
    from pypi_assets.questions.breaks import BreaksParameters
    from pypi_assets.questions.snapshot import Snapshot
    from pypi_assets.resolve.questions import Question
    from pypi_assets.resolve.releases import ReleaseIndex
    from pypi_assets.resolve.solutions import Allowance
    from pypi_assets.resolve.targets import Target

_OPTIONS = (
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
_NAMES = (*SOLVER_NAMES, "project_seconds", "total_seconds")


@dataclass
class Solver:
    """What resolutions of an answer are made with; `kinds` counts what came of them."""

    given: Given
    target: "Target"
    project_seconds: float
    allowance: "Allowance"
    kinds: Counter[str] = field(default_factory=Counter)

    @property
    def question(self) -> "Question":
        return self.given.question(self.target)

    def __call__(self, snapshot: "Snapshot", given: "BreaksParameters", version: "Version") -> "Solvable":
        """Return the verdicts on projects with this version of a project. Counting begins again."""
        from pypi_assets.lookup.impact import Verdict
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
        options = {name: arguments.pop(name) for name in _NAMES}
        if not arguments.pop("solve"):
            context = click.get_current_context()
            for name in _NAMES:
                if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
                    raise click.UsageError(f"{_spelled(context, name)} goes with --solve")
            run(solver=None, **arguments)
            return
        run(solver=_solver(options), **arguments)

    decorated: Callable[..., Any] = with_solver
    for option in reversed(_OPTIONS):
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
