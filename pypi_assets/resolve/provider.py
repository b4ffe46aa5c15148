"""What the solver needs to know: which version to try next, what it requires, and which project to decide first.

A project is a package of the solver, named as it is, and each of its extras another one: `name[extra]`. A package with
an extra requires the project in the same version, and what the extra adds.
"""

import time
from collections.abc import Iterable, Mapping
from math import inf
from typing import Any, NamedTuple, cast

from nab_resolver.resolver import BaseProvider, ResolverObserver

from pypi_assets.errors import ExpectedError
from pypi_assets.locks.environments import Environment
from pypi_assets.resolve.candidates import Candidate, Candidates
from pypi_assets.resolve.questions import Question, ResolveError, Semantics, Unknown, Wanted, parse_wanted
from pypi_assets.resolve.releases import ReadReleases, ReleaseIndex
from pypi_assets.resolve.version_sets import Notes, VersionSet

_CONFLICTS = 5
"""From how many conflicts on uv changes the order of a project."""
IMPOSSIBLE = "!"
"""Begins the name of a package without versions; the reason follows for which a version cannot be installed."""


class UnknownRequirementsError(ResolveError):
    """A file would be chosen of which it is not known what it requires. `touched` are the projects looked at."""

    touched: frozenset[str] = frozenset()


class WrongSolutionError(Exception):
    """Chosen versions do not meet what they require. pip's library ends like that after some conflicts."""


class ResolutionLimitError(ExpectedError):
    """A resolution took more steps, or longer, than it may; the text has what was tried last."""


class Known(NamedTuple):
    """What a version requires, by package, and the requirements that lead to it."""

    sets: dict[str, VersionSet]
    wanted: dict[str, list[Wanted]]


class Provider(BaseProvider[str, int]):
    """Answers the solver for one question."""

    def __init__(self, index: ReleaseIndex, question: Question, pinned_yanked: Mapping[str, int]) -> None:
        self.question, self._index = question, index
        self._environments: dict[str, Environment] = {}
        self._tables: dict[str, Candidates] = {}
        self._known: dict[tuple[str, int], Known] = {}
        self._ranks = _UvRanks() if question.semantics is Semantics.UV else _PipRanks()
        self.allowed = dict(pinned_yanked)
        self.late_pins: dict[str, int] = {}
        self._decided: Mapping[str, int] = {}
        self._ranges: Mapping[str, VersionSet] = {}
        self.constraints = self._constraints()
        """The versions that the constraints that hold in the environment leave, by project."""

    def table(self, package: str) -> Candidates:
        """The versions of the project of a package."""
        found = self._tables.get(package)
        if found is None:
            project = package.partition("[")[0]
            if package.startswith(IMPOSSIBLE):
                found = Candidates(package, ReadReleases(()), self.question.conditions_of(package))
            elif project == package:
                found = self._index.candidates(project, self.question.conditions_of(project))
            else:
                found = self.table(project)
            self._tables[package] = found
        return found

    @property
    def touched(self) -> frozenset[str]:
        """The projects that were looked at."""
        return frozenset(one for one in self._tables if "[" not in one and not one.startswith(IMPOSSIBLE))

    def candidate(self, package: str, version: int) -> Candidate:
        """The version with this number."""
        return self.table(package)[version]

    def roots(self, requirements: Iterable[Wanted]) -> list[tuple[Wanted, dict[str, VersionSet]]]:
        """The requirements of the question that hold in the environment, each with the packages that it leads to."""
        found = []
        for wanted in requirements:
            if self.holds(wanted, ""):
                self._refuse_url(wanted)
                self._note_root(wanted)
                sets = {package: self.table(wanted.project).matching(wanted.specifier) for package in _packages(wanted)}
                self._ranks.see(wanted.project, is_pinned=bool(next(iter(sets.values())).notes & Notes.PINNED))
                found.append((wanted, sets))
        return found

    def reachable(self, versions: Mapping[str, int]) -> dict[str, int]:
        """The versions of the packages that the question leads to, of those that were chosen for projects.

        Raises WrongSolutionError where they do not meet what is required.
        """
        waiting = [one for _, sets in self.roots(self.question.requirements) for one in sets.items()]
        found: dict[str, int] = {}
        while waiting:
            package, required = waiting.pop()
            version = versions.get(package.partition("[")[0])
            if version is None or version not in required:
                raise WrongSolutionError
            if package not in found:
                found[package] = version
                waiting += self.known(package, version).sets.items()
        return found

    def _constraints(self) -> dict[str, VersionSet]:
        found: dict[str, VersionSet] = {}
        for wanted in self.question.constraints:
            if self.holds(wanted, ""):
                self._refuse_url(wanted)
                self._note_root(wanted)
                left = self.table(wanted.project).matching(wanted.specifier)
                found[wanted.project] = found[wanted.project] & left if wanted.project in found else left
        return found

    def _note_root(self, wanted: Wanted) -> None:
        table = self.table(wanted.project)
        found = table.matching(wanted.specifier)
        if found.notes & Notes.PINNED:
            is_uv = self.question.semantics is Semantics.UV
            pinned = table.named_alone(wanted.specifier) if is_uv else found.bits
            self.allowed[wanted.project] = self.allowed.get(wanted.project, 0) | table.yanked(pinned)

    def _refuse_url(self, wanted: Wanted) -> None:
        if wanted.url is not None:
            raise ResolveError(f"{wanted.text}: what a URL leads to is on no index: name a version instead")

    def holds(self, wanted: Wanted, extra: str) -> bool:
        if wanted.marker is None:
            return True
        environment = self._environments.get(extra)
        if environment is None:
            environment = self._environments[extra] = self.question.environment.with_extra(extra)
        return environment.holds(str(wanted.marker)) is not False

    def preferred(self, project: str) -> int | None:
        """The version that the question prefers, where a file of it can be taken."""
        text = self.question.preferred.get(project)
        table = self.table(project)
        number = None if text is None else table.number_of(text)
        return None if number is None or table[number].file is None else number

    def receive_partial_solution_hint(self, positive_ranges: Mapping[str, Any], decisions: Mapping[str, int]) -> None:
        self._decided, self._ranges = decisions, positive_ranges

    def choose_version(self, package: str, version_range: Any) -> int | None:
        if package.endswith("]"):
            project = package.partition("[")[0]
            decided = self._decided.get(project)
            if decided is not None and decided in version_range:
                return decided
            of_project = self._ranges.get(project)
            if of_project is not None:
                found = self._choose(package, version_range & of_project)
                if found is not None:
                    return found
        return self._choose(package, version_range)

    def has_satisfying_version(self, package: str, version_range: Any) -> bool:
        return self._choose(package, version_range) is not None

    def _choose(self, package: str, wanted: VersionSet) -> int | None:
        table = self.table(package)
        allowed = self.allowed.get(table.project, 0)
        if self.question.semantics is Semantics.UV:
            return self._choose_as_uv(table, wanted.bits, allowed)
        return self._choose_as_pip(table, wanted, allowed)

    def _choose_as_uv(self, table: Candidates, bits: int, allowed: int) -> int | None:
        """Pre-releases count where nothing else is left."""
        parts = [bits] if self.question.prereleases else [bits & table.stable, bits & ~table.stable]
        for part in parts:
            for number, candidate in table.newest_first(part):
                if not candidate.is_yanked or allowed >> number & 1:
                    return number
        return None

    def _choose_as_pip(self, table: Candidates, wanted: VersionSet, allowed: int) -> int | None:
        """Pre-releases count where one is named by what is required so far, or where nothing else is left; and yanked
        versions where nothing else is left and one is pinned.
        """
        if self.question.prereleases or wanted.notes & Notes.PRERELEASES:
            parts = [wanted.bits]
        else:
            parts = [wanted.bits & table.stable, wanted.bits & ~table.stable]
        for part in parts:
            yanked = []
            for number, candidate in table.newest_first(part):
                if not candidate.is_yanked:
                    return number
                yanked.append(number)
            if yanked:
                return next((number for number in yanked if allowed >> number & 1), None)
        return None

    def get_dependencies(self, package: str, version: int) -> Mapping[str, Any]:
        return self.known(package, version).sets

    def known(self, package: str, version: int) -> Known:
        """What a version of a package requires."""
        key = package, version
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._find(package, version)
        return found

    def _find(self, package: str, version: int) -> Known:
        project, _, extra = package.rstrip("]").partition("[")
        known = Known({}, {})
        if extra:
            known.sets[project] = VersionSet.singleton(version)
        texts = self.requirements(project, version)
        for text in texts:
            try:
                wanted = parse_wanted(text)
            except ResolveError as error:
                self._add_impossible(known, str(error))
                continue
            if (extra and self.holds(wanted, "")) or not self.holds(wanted, extra):
                continue
            if wanted.url is not None:
                self._add_impossible(known, f"it requires {wanted.project} from a URL")
                continue
            self._add(known, wanted)
        return known

    def _add(self, known: Known, wanted: Wanted) -> None:
        table = self.table(wanted.project)
        found = table.matching(wanted.specifier)
        is_pinned = bool(found.notes & Notes.PINNED)
        self._ranks.see(wanted.project, is_pinned=is_pinned)
        if is_pinned and self.question.semantics is Semantics.PIP:
            yanked = table.yanked(found.bits) & ~self.allowed.get(wanted.project, 0)
            if yanked:
                self.late_pins[wanted.project] = self.late_pins.get(wanted.project, 0) | yanked
        for package in _packages(wanted):
            before = known.sets.get(package)
            known.sets[package] = found if before is None else before & found
            known.wanted.setdefault(package, []).append(wanted)

    def _add_impossible(self, known: Known, reason: str) -> None:
        known.sets[f"{IMPOSSIBLE}{reason}"] = VersionSet.singleton(0)

    def requirements(self, project: str, version: int) -> Iterable[str]:
        file = self.candidate(project, version).file
        if file is None:  # only versions with a file are chosen
            return ()
        if file["requires_dist"] is None:
            if self.question.unknown is Unknown.FAIL:
                raise UnknownRequirementsError(
                    f"it is not known what {file['filename']} requires ({file['outcome']}), and it would be chosen:"
                    " exclude this version, or assume that it requires nothing with --unknown assume-none"
                )
            return ()
        return cast("list[str]", file["requires_dist"])

    def prioritize(
        self,
        package: str,
        version_range: Any,
        conflict_counts: Mapping[str, int],
        culprit_counts: Mapping[str, int] | None = None,
    ) -> tuple[object, ...]:
        return self._ranks.rank(package, version_range, conflict_counts, culprit_counts or {})

    def widen_decision(self, package: str, version: int) -> None:  # noqa: ARG002
        return None

    def order_roots(self, requirements: Iterable[Wanted]) -> None:
        """Sets which projects the question names, and in which order."""
        self._ranks.requested({wanted.project: place for place, wanted in reversed(list(enumerate(requirements)))})


class _Ranks:
    """Which package is decided first: that of the least rank."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._pinned: set[str] = set()
        self._requested: Mapping[str, int] = {}

    def requested(self, places: Mapping[str, int]) -> None:
        self._requested = places

    def see(self, project: str, *, is_pinned: bool) -> None:
        """A requirement names a project, maybe for the first time."""
        self._places.setdefault(project, len(self._places))
        if is_pinned:
            self._pinned.add(project)

    def rank(
        self,
        package: str,
        version_range: VersionSet,
        conflict_counts: Mapping[str, int],
        culprit_counts: Mapping[str, int],
    ) -> tuple[object, ...]:
        raise NotImplementedError


class _UvRanks(_Ranks):
    """Pinned projects first, then those that conflict often, then by when they were first seen."""

    def rank(
        self,
        package: str,
        version_range: VersionSet,  # noqa: ARG002
        conflict_counts: Mapping[str, int],
        culprit_counts: Mapping[str, int],
    ) -> tuple[object, ...]:
        project = package.partition("[")[0]
        if project in self._pinned:
            group = 0
        elif conflict_counts.get(package, 0) >= _CONFLICTS:
            group = 1
        elif culprit_counts.get(package, 0) >= _CONFLICTS:
            group = 2
        else:
            group = 3
        return group, self._places.get(project, inf), project != package


class _PipRanks(_Ranks):
    """By what is required of a project so far: pinned, bounded, named by the question, conditioned; then by
    name.
    """

    def rank(
        self,
        package: str,
        version_range: VersionSet,
        conflict_counts: Mapping[str, int],
        culprit_counts: Mapping[str, int],  # noqa: ARG002
    ) -> tuple[object, ...]:
        project = package.partition("[")[0]
        notes = version_range.notes
        return (
            conflict_counts.get(package, 0) < _CONFLICTS,
            not notes & Notes.PINNED,
            not notes & Notes.BOUNDED,
            self._requested.get(project, inf),
            not notes & Notes.CONDITIONED,
            package,
        )


class Watch(ResolverObserver[str, int]):
    """Ends a resolution that takes too long, and remembers what was tried last."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._ends = seconds, time.monotonic() + seconds
        self.decisions = 0
        self.last = ""

    def on_decision(self, package: str, version: int, level: int) -> None:  # noqa: ARG002
        self.decisions += 1
        self.last = package
        self._look()

    def on_conflict(self, incompatibility: object) -> None:  # noqa: ARG002
        self._look()

    def _look(self) -> None:
        if time.monotonic() > self._ends:
            raise ResolutionLimitError(
                f"the resolution was ended after {self._seconds:g} s and {self.decisions:,} decisions, the last of"
                f" them about {self.last}: narrow the requirements, or allow more time"
            )


def _packages(wanted: Wanted) -> list[str]:
    return [wanted.project, *(f"{wanted.project}[{extra}]" for extra in wanted.extras)]
