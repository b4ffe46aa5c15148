"""Resolve requirements: choose a version of each project that they lead to, as an installer would."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from pypi_assets.errors import ExpectedError
from pypi_assets.locks.lock_content import shown
from pypi_assets.resolve.candidates import Candidate
from pypi_assets.resolve.pip_solver import solve_as_pip
from pypi_assets.resolve.proofs import NoInstallerSolutionError, Proof, prove, prove_alone
from pypi_assets.resolve.pubgrub import NoSolutionError
from pypi_assets.resolve.pubgrub_solver import solve_as_uv, solve_by_facts
from pypi_assets.resolve.questions import ResolutionQuestion, ResolveError, Semantics, Unknown, Wanted, parse_wanted
from pypi_assets.resolve.releases import ReleaseIndex, past_index
from pypi_assets.resolve.solver_data import (
    ResolutionLimitError,
    SolverProvider,
    UnknownRequirementsError,
    Watch,
    WrongSolutionError,
)
from pypi_assets.resolve.version_sets import VersionSet

__all__ = [
    "ChosenVersion",
    "ReleaseIndex",
    "Resolution",
    "ResolutionLimitError",
    "ResolutionQuestion",
    "ResolveError",
    "Semantics",
    "Unknown",
    "UnknownRequirementsError",
    "UnsolvableError",
    "Wanted",
    "parse_wanted",
    "past_index",
    "resolve",
]

MOST_STEPS = 200_000
MOST_SECONDS = 60.0
_MOST_TRIES = 5
_MOST_AS_PIP = 500
"""The limit of requirements for resolvelib, whose time is quadratic in them. PubGrub solves longer questions."""


class UnsolvableError(ExpectedError):
    """No choice of versions meets the requirements. The message is the proof. `touched` are the projects looked at."""

    def __init__(self, proof: Proof) -> None:
        super().__init__(str(proof))
        self.proof = proof
        self.touched: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ChosenVersion:
    """A chosen version. `requires` are the projects that it requires here, and `extras` are its required extras.

    `required_by` has the projects that require it, with the requirement. The name "" stands for the question.
    """

    project: str
    normalized: str
    version: str
    extras: tuple[str, ...]
    candidate: Candidate
    requires: tuple[str, ...]
    required_by: tuple[tuple[str, str], ...]

    @property
    def is_unknown(self) -> bool:
        """Check whether it is only assumed that the version has no requirements."""
        return self.candidate.file is not None and self.candidate.file["requires_dist"] is None


@dataclass(frozen=True, slots=True)
class Resolution:
    """The chosen versions as of `serial`, by normalized name. `roots` are the projects in the question's requirements.

    `touched` are all projects that were looked at. The outcome stays the same until one of them changes.
    """

    serial: int
    question: ResolutionQuestion
    releases: Mapping[str, ChosenVersion]
    roots: tuple[str, ...]
    steps: int
    touched: frozenset[str]

    @property
    def pins(self) -> dict[str, str]:
        """Return the version of each project.

        >>> resolve(index, question).pins
        {'demo': '2.1', 'six': '1.16.0'}
        """
        return {name: pin.version for name, pin in self.releases.items()}


def resolve(
    index: ReleaseIndex,
    question: ResolutionQuestion,
    *,
    most_steps: int = MOST_STEPS,
    most_seconds: float = MOST_SECONDS,
) -> Resolution:
    """Choose versions as the installer in the question's semantics would.

    Raises UnsolvableError with the proof, ResolutionLimitError, UnknownRequirementsError, and ResolveError if the
    question cannot be answered.
    """
    _check_constraints(question)
    watch = Watch(most_seconds)
    allowed: dict[str, int] = {}
    touched: frozenset[str] = frozenset()
    for _ in range(_MOST_TRIES):
        provider = SolverProvider(index, question, allowed, watch.look)
        try:
            found = _attempt(index, provider, watch, most_steps)
            return replace(found, touched=found.touched | touched)
        except UnknownRequirementsError as error:
            error.touched = touched | provider.touched
            raise
        except UnsolvableError as error:
            error.touched = touched = touched | provider.touched
            late = {name: bits | allowed.get(name, 0) for name, bits in provider.late_pins.items()}
            if all(allowed.get(name, 0) == bits for name, bits in late.items()):
                raise
            allowed |= late  # a yanked version may be chosen once a known requirement pins it
    raise AssertionError("each attempt must allow more yanked versions")


def _check_constraints(question: ResolutionQuestion) -> None:
    """Raise ResolveError for a constraint that the installer rejects, whatever its marker."""
    for one in question.constraints:
        if one.extras and question.semantics is Semantics.PIP:
            raise ResolveError(
                f"constraint {shown(one.text)}: pip rejects constraints with extras: write"
                f" {one.project}{one.specifier}, or use uv's rules, which ignore the extras"
            )


def _attempt(index: ReleaseIndex, provider: SolverProvider, watch: Watch, most_steps: int) -> Resolution:
    question = provider.question
    roots = provider.roots(question.requirements)
    for wanted, _ in roots:
        alone = prove_alone(wanted, provider, index)
        if alone is not None:
            raise UnsolvableError(alone)
    any_solution = partial(_any_solution, index, provider, watch, most_steps)
    try:
        if question.semantics is Semantics.UV:
            pins = _solve_as_uv(provider, watch, most_steps)
        elif len(roots) <= _MOST_AS_PIP:
            pins = solve_as_pip(provider, watch, most_steps, in_doubt=any_solution)
        else:
            pins = any_solution()
    except NoInstallerSolutionError as error:
        any_solution()  # this raises the proof if there is no solution at all, as is mostly the case
        raise UnsolvableError(error.proof) from None
    except WrongSolutionError:
        pins = any_solution()
    return _resolution(index, provider, pins, roots, watch.decisions)


def _solve_as_uv(provider: SolverProvider, watch: Watch, most_steps: int) -> dict[str, int]:
    """Return versions as uv chooses them. Raises NoInstallerSolutionError."""
    try:
        return solve_as_uv(provider, watch, most_steps)
    except NoSolutionError:
        raise NoInstallerSolutionError(Proof(("There is no solution in the order in which uv decides.",), ())) from None


def _any_solution(index: ReleaseIndex, provider: SolverProvider, watch: Watch, most_steps: int) -> dict[str, int]:
    """Return versions that meet the requirements, if there are any. Raises UnsolvableError with the proof."""
    try:
        return solve_by_facts(provider, watch, most_steps)
    except NoSolutionError as error:
        raise UnsolvableError(prove(error.conflict, provider, index)) from None


def _resolution(
    index: ReleaseIndex,
    provider: SolverProvider,
    pins: Mapping[str, int],
    roots: list[tuple[Wanted, dict[str, VersionSet]]],
    steps: int,
) -> Resolution:
    extras: dict[str, set[str]] = {package: set() for package in pins if "[" not in package}
    requires: dict[str, dict[str, None]] = {package: {} for package in extras}
    required_by: dict[str, dict[tuple[str, str], None]] = {package: {} for package in extras}
    for wanted, _ in roots:
        required_by[wanted.project]["", wanted.text] = None
    for package, version in pins.items():
        project, _, extra = package.rstrip("]").partition("[")
        if extra:
            extras[project].add(extra)
        for some in provider.known(package, version).wanted.values():
            for wanted in some:
                if wanted.project != project:
                    requires[project][wanted.project] = None
                    required_by[wanted.project][project, wanted.text] = None
    releases = {}
    for name in sorted(extras):
        candidate = provider.candidate(name, pins[name])
        releases[name] = ChosenVersion(
            project=candidate.files[0]["project"],
            normalized=name,
            version=candidate.text,
            extras=tuple(sorted(extras[name])),
            candidate=candidate,
            requires=tuple(sorted(requires[name])),
            required_by=tuple(required_by[name]),
        )
    named = tuple(dict.fromkeys(wanted.project for wanted, _ in roots))
    return Resolution(index.serial, provider.question, releases, named, steps, provider.touched)
