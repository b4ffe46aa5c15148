"""Solutions of single projects: the pins of a project's newest release, and its verdict with a version.

The questions of one answer differ only in the project, so they are made from a question without requirements. Each
resolution has its own limits, and an `Allowance` limits all of them together.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from packaging.version import Version

from pypi_assets.lookup.exposure import Undecided
from pypi_assets.lookup.release_impact import Verdict
from pypi_assets.resolve.questions import ResolutionQuestion, ResolveError, parse_wanted
from pypi_assets.resolve.releases import ReleaseIndex
from pypi_assets.resolve.resolving import UnsolvableError, resolve
from pypi_assets.resolve.solver_data import ResolutionLimitError

MOST_STEPS, MOST_SECONDS = 50_000, 10.0
_NOT_DECIDED = (ResolutionLimitError, ResolveError)
_Found = TypeVar("_Found")


def with_version(question: ResolutionQuestion, project: str, version: Version) -> ResolutionQuestion:
    """Return the question with `project` constrained to this version."""
    return replace(question, constraints=(*question.constraints, parse_wanted(f"{project}=={version}")))


def verdict_on(
    index: ReleaseIndex,
    question: ResolutionQuestion,
    without: ResolutionQuestion,
    project: str,
    newest: str,
    *,
    most_seconds: float = MOST_SECONDS,
) -> Verdict | None:
    """Return the verdict on the newest release of a project, or None if it has a solution.

    `question` constrains a project to the version in question, and `without` is the same question without this
    constraint.
    """
    try:
        proof = _proof_against(index, question, f"{project}=={newest}", most_seconds)
    except _NOT_DECIDED as error:
        return Verdict("undecided", str(error))
    if proof is None:
        return None
    try:
        if broken := _proof_against(index, without, f"{project}=={newest}", most_seconds):
            return Verdict("broken", broken)
        found = _pins(index, question, project, most_seconds)
    except (*_NOT_DECIDED, UnsolvableError):
        found = {}
    return Verdict("unsolvable", proof, found.get(project))


def solution_of(
    index: ReleaseIndex, question: ResolutionQuestion, project: str, *, most_seconds: float = MOST_SECONDS
) -> Mapping[str, str] | Undecided | None:
    """Return the pins if the project is the only requirement. The result is as for `exposure.Solution`."""
    try:
        return _pins(index, question, project, most_seconds)
    except UnsolvableError:
        return None
    except _NOT_DECIDED as error:
        return Undecided(str(error))


@dataclass
class Allowance:
    """The seconds that all resolutions of an answer may take together. None: they have no limit.

    `decided` counts the resolutions that were made, and `left_out` the ones that were not, because the time was over.
    """

    seconds: float | None = None
    decided: int = 0
    left_out: int = 0
    _used: float = 0.0

    def spend(self, solve: Callable[[], _Found], left_out: Callable[[str], _Found]) -> _Found:
        """Return the result of `solve` or, once the time is over, of `left_out`, which is called with the reason."""
        if self.seconds is not None and self._used >= self.seconds:
            self.left_out += 1
            return left_out(f"not resolved: the {self.seconds:g} s for all projects were over")
        began = time.monotonic()
        found = solve()
        self._used += time.monotonic() - began
        self.decided += 1
        return found


def _proof_against(
    index: ReleaseIndex, question: ResolutionQuestion, requirement: str, most_seconds: float
) -> str | None:
    """Return the proof that there is no solution, or None if there is one."""
    try:
        _pins(index, question, requirement, most_seconds)
    except UnsolvableError as error:
        return str(error)
    return None


def _pins(index: ReleaseIndex, question: ResolutionQuestion, requirement: str, most_seconds: float) -> dict[str, str]:
    whole = replace(question, requirements=(parse_wanted(requirement),))
    return resolve(index, whole, most_steps=MOST_STEPS, most_seconds=most_seconds).pins
