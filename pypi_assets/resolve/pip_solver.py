"""Choose versions as pip does: with resolvelib, which pip uses too, and with pip's candidates and preferences."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from resolvelib import AbstractProvider, BaseReporter, ResolutionImpossible, ResolutionTooDeep
from resolvelib.resolvers import Resolution
from resolvelib.structs import RequirementInformation, State

from pypi_assets.resolve.proofs import NoInstallerSolutionError, Proof
from pypi_assets.resolve.questions import Wanted
from pypi_assets.resolve.solver_data import ResolutionLimitError, SolverProvider, Watch
from pypi_assets.resolve.version_sets import Notes, VersionSet

_CONFLICTS = 5
"""A project with this many conflicts is decided before projects with fewer conflicts."""
CONFLICTS_IN_DOUBT = 10
"""After this many conflicts, `in_doubt` checks whether there is a solution at all."""


class _Candidate(NamedTuple):
    """A version of a project, with extras."""

    project: str
    extras: tuple[str, ...]
    number: int

    @property
    def identifier(self) -> str:
        return _identifier(self.project, self.extras)


@dataclass(frozen=True, slots=True)
class _Requirement:
    """A requirement: versions of a project, or exactly one version, to which extras belong.

    If it cannot be met, `impossible` has the reason.
    """

    project: str
    extras: tuple[str, ...] = ()
    wanted: Wanted | None = None
    number: int | None = None
    impossible: str = ""

    @property
    def identifier(self) -> str:
        return _identifier(self.project, self.extras)

    def __str__(self) -> str:
        return self.impossible or (self.wanted.text if self.wanted else self.project)


_Information: TypeAlias = RequirementInformation[_Requirement, _Candidate]


def solve_as_pip(
    provider: SolverProvider, watch: Watch, most_steps: int, in_doubt: Callable[[], object]
) -> dict[str, int]:
    """Return the version of each project, and of each `project[extra]` that is required.

    After some conflicts, `in_doubt` is called once. It raises an error if there is no solution, because pip may take
    exponential time to find that out. Raises NoInstallerSolutionError, ResolutionLimitError and
    UnknownRequirementsError.
    """
    rules = _PipRules(provider)
    resolution: Resolution[_Requirement, _Candidate, str] = Resolution(rules, _Reporter(watch, in_doubt))
    try:
        state = resolution.resolve(rules.of_question(), max_rounds=most_steps)
    except ResolutionTooDeep:
        raise ResolutionLimitError(
            f"the resolution was stopped after {most_steps:,} steps, the last of them about {watch.last}: narrow the"
            " requirements"
        ) from None
    except ResolutionImpossible as error:
        raise NoInstallerSolutionError(_proof(provider, error.causes)) from None
    chosen = [state.mapping[key] for key in _connected(state) if key in state.mapping]
    return provider.reachable({candidate.project: candidate.number for candidate in chosen})


def _connected(state: State[_Requirement, _Candidate, str]) -> list[str]:
    """Return the identifiers that the question's requirements lead to, in the order of the state.

    resolvelib's own search is recursive, and never ends if candidates left over from conflicts require each other.
    """
    keys = {id(candidate): key for key, candidate in state.mapping.items()}
    required_by: dict[str | None, list[str]] = {}
    for key, criterion in state.criteria.items():
        for parent in criterion.iter_parent():
            if parent is None or id(parent) in keys:
                required_by.setdefault(None if parent is None else keys[id(parent)], []).append(key)
    connected: set[str | None] = {None}
    waiting: list[str | None] = [None]
    while waiting:
        new = set(required_by.get(waiting.pop(), ())) - connected
        connected |= new
        waiting += new
    return [key for key in state.criteria if key in connected]


class _Reporter(BaseReporter[_Requirement, _Candidate, str]):
    def __init__(self, watch: Watch, in_doubt: Callable[[], object]) -> None:
        self._watch, self._in_doubt, self._conflicts = watch, in_doubt, 0

    def pinning(self, candidate: _Candidate) -> None:
        self._watch.decided(candidate.project)

    def rejecting_candidate(self, criterion: object, candidate: _Candidate) -> None:  # noqa: ARG002
        self._watch.look()
        self._conflicts += 1
        if self._conflicts == CONFLICTS_IN_DOUBT:
            self._in_doubt()


class _PipRules(AbstractProvider[_Requirement, _Candidate, str]):
    """pip's rules, as a provider of resolvelib, which defines the names of the methods."""

    def __init__(self, provider: SolverProvider) -> None:
        self._provider, self._question = provider, provider.question
        self._requested: dict[str, int] = {}
        self._conflicts: Counter[str] = Counter()
        self._sets: dict[str, VersionSet] = {}
        self._made: dict[_Candidate, _Candidate] = {}

    def of_question(self) -> list[_Requirement]:
        """Return the requirements of the question. Requirements with extras come last."""
        found: list[_Requirement] = []
        for place, wanted in enumerate(self._question.requirements):
            if self._provider.holds(wanted, ""):
                some = _divided(wanted)
                self._requested.setdefault(some[0].identifier, place)
                found += some
        return sorted(dict.fromkeys(found), key=lambda one: bool(one.extras))

    def identify(self, requirement_or_candidate: _Requirement | _Candidate) -> str:
        return requirement_or_candidate.identifier

    def narrow_requirement_selection(
        self,
        identifiers: Iterable[str],
        resolutions: Mapping[str, _Candidate],
        candidates: Mapping[str, Iterator[_Candidate]],  # noqa: ARG002
        information: Mapping[str, Iterator[_Information]],  # noqa: ARG002
        backtrack_causes: Sequence[_Information],
    ) -> Iterable[str]:
        """Return the causes of the last conflict, else identifiers with many conflicts, else all."""
        causes = set()
        for cause in backtrack_causes:
            names = [cause.requirement.identifier, *([cause.parent.identifier] if cause.parent else [])]
            causes.update(names)
            self._conflicts.update(name for name in names if name not in resolutions)
        among = list(identifiers)
        first = [name for name in among if name in causes]
        return first or [name for name in among if self._is_promoted(name)] or among

    def get_preference(
        self,
        identifier: str,
        resolutions: Mapping[str, _Candidate],  # noqa: ARG002
        candidates: Mapping[str, Iterator[_Candidate]],  # noqa: ARG002
        information: Mapping[str, Iterator[_Information]],
        backtrack_causes: Sequence[_Information],  # noqa: ARG002
    ) -> tuple[Any, ...]:
        requirements = [one.requirement for one in information[identifier]]
        notes = Notes.NONE
        for one in requirements:
            if one.wanted is not None:
                notes |= self._matching(one.wanted).notes
        return (
            not self._is_promoted(identifier),
            not any(one.number is not None for one in requirements),
            not notes & Notes.PINNED,
            not notes & Notes.BOUNDED,
            self._requested.get(identifier, math.inf),
            not notes & Notes.CONDITIONED,
            identifier,
        )

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[_Requirement]],
        incompatibilities: Mapping[str, Iterator[_Candidate]],
    ) -> Callable[[], Iterator[_Candidate]]:
        own = list(requirements[identifier])
        project, _, named = identifier.partition("[")
        extras = tuple(named.rstrip("]").split(",")) if named else ()
        of_project = list(requirements.get(project, ())) if extras else []
        excluded = {candidate.number for candidate in incompatibilities.get(identifier, ())}
        if any(one.impossible for one in own) or not [*own, *of_project]:  # none: its parent was undone
            return lambda: iter(())
        sets = [self._matching(one.wanted) for one in [*own, *of_project] if one.wanted is not None]
        if project in self._provider.constraints:
            sets.append(self._provider.constraints[project])
        bits, notes = self._provider.table(project).known, Notes.NONE
        for each in sets:
            bits &= each.bits
            notes |= each.notes
        among = VersionSet(bits, notes)
        exact = {one.number for one in [*own, *of_project] if one.number is not None}
        if exact:
            numbers = [number for number in exact if len(exact) == 1 and number in among]
            return lambda: (_Candidate(project, extras, each) for each in numbers if each not in excluded)
        return lambda: (
            _Candidate(project, extras, each) for each in self._ordered(project, among) if each not in excluded
        )

    def is_satisfied_by(self, requirement: _Requirement, candidate: _Candidate) -> bool:
        wanted, number = requirement.wanted, candidate.number
        if wanted is None:
            return requirement.number == number
        return number in self._matching(wanted)

    def get_dependencies(self, candidate: _Candidate) -> Iterable[_Requirement]:
        project, extras, number = candidate
        found = [_Requirement(project, number=number)] if extras else []
        required = self._provider.required(project, number)
        for error in required.errors:
            return [_Requirement("", impossible=str(error))]
        for wanted in required.held_with(extras):
            if wanted.url is not None:
                return [_Requirement("", impossible=f"{wanted.project} from a URL")]
            for one in _divided(wanted):
                if one.identifier != candidate.identifier:
                    found.append(one)
                elif number not in self._matching(wanted):
                    return [_Requirement("", impossible=f"another version of itself: {wanted.text}")]
        return found

    def _candidate(self, project: str, extras: tuple[str, ...], number: int) -> _Candidate:
        """Return the same object for equal candidates, because resolvelib compares them by identity."""
        candidate = _Candidate(project, extras, number)
        return self._made.setdefault(candidate, candidate)

    def _is_promoted(self, identifier: str) -> bool:
        return self._conflicts[identifier] >= _CONFLICTS

    def _matching(self, wanted: Wanted) -> VersionSet:
        found = self._sets.get(wanted.text)
        if found is None:
            found = self._sets[wanted.text] = self._provider.table(wanted.project).matching(wanted.specifier)
        return found

    def _ordered(self, project: str, among: VersionSet) -> Iterator[int]:
        """Yield the numbers that may be chosen, the question's preferred version first."""
        found = self._found(project, among)
        preferred = self._provider.preferred(project)
        if preferred is None or preferred not in among:
            return found
        numbers = list(found)
        return iter(sorted(numbers, key=lambda number: number != preferred))

    def _found(self, project: str, among: VersionSet) -> Iterator[int]:
        """Yield the numbers that may be chosen, newest first.

        Pre-releases count if a specifier names one or if nothing else is left. Yanked versions count if nothing else is
        left and a version is pinned.
        """
        table = self._provider.table(project)
        has_prereleases = self._question.prereleases.of(project) or among.notes & Notes.PRERELEASES
        parts = [among.bits] if has_prereleases else [among.bits & table.stable, among.bits & ~table.stable]
        for part in parts:
            yanked, is_found = [], False
            for number, candidate in table.newest_first(part):
                if candidate.is_yanked:
                    yanked.append(number)
                else:
                    is_found = True
                    yield number
            if not is_found and among.notes & Notes.PINNED:
                yield from yanked
            if is_found or yanked:
                return


def _divided(wanted: Wanted) -> list[_Requirement]:
    """Return a requirement as resolvelib needs it: with extras and a specifier, it also requires the project itself."""
    one = _Requirement(wanted.project, wanted.extras, wanted)
    return [_Requirement(wanted.project, wanted=wanted), one] if wanted.extras and wanted.specifier else [one]


def _identifier(project: str, extras: tuple[str, ...]) -> str:
    return f"{project}[{','.join(extras)}]" if extras else project


def _proof(provider: SolverProvider, causes: Iterable[_Information]) -> Proof:
    lines, projects = [], set()
    for cause in causes:
        projects.add(cause.requirement.project)
        who = "you require"
        if cause.parent is not None:
            version = provider.candidate(cause.parent.project, cause.parent.number).text
            who = f"{cause.parent.identifier} {version} requires"
            projects.add(cause.parent.project)
        lines.append(f"{who} {cause.requirement}")
    return Proof(
        (f"pip tries no further versions after this conflict: {', and '.join(dict.fromkeys(lines))}.",),
        tuple(sorted(filter(None, projects))),
    )
