"""The data that solvers need: the versions of projects, the version to try next, and its requirements.

Each project is a package of a solver, and each of its extras is another package, `name[extra]`. A package with an extra
requires the same version of the project, and the additional requirements of the extra.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

from pypi_assets.distributions.record import FAILS
from pypi_assets.errors import ExpectedError
from pypi_assets.locks.environments import Environment
from pypi_assets.resolve.candidates import Candidate, Candidates, refusal
from pypi_assets.resolve.questions import (
    ReleaseRequirements,
    ResolutionQuestion,
    ResolveError,
    Semantics,
    Unknown,
    Wanted,
)
from pypi_assets.resolve.read_ahead import ReadAhead
from pypi_assets.resolve.releases import ReleaseIndex
from pypi_assets.resolve.version_sets import Notes, VersionSet

IMPOSSIBLE = "!"
"""The prefix of the name of a package without versions. The rest is the reason why a version cannot be installed."""


_OF_LOCKS: Mapping[str, Any] = {"extras": frozenset(), "dependency_groups": frozenset()}
"""Marker variables that exist only in lock files. In requirements they are empty, as in uv."""


class UnknownRequirementsError(ResolveError):
    """A file with unknown requirements would be chosen. `touched` are the projects that the resolution looked at."""

    touched: frozenset[str] = frozenset()


class WrongSolutionError(Exception):
    """The chosen versions do not meet their requirements. resolvelib can end like this after some conflicts."""


class ResolutionLimitError(ExpectedError):
    """A resolution exceeded its steps or its time. The message has the last project that was tried."""


class Known(NamedTuple):
    """The requirements of a version: the allowed versions by package, and the requirements behind them."""

    sets: dict[str, VersionSet]
    wanted: dict[str, list[Wanted]]


class SolverProvider:
    """Answers a solver's queries about one question."""

    def __init__(
        self,
        index: ReleaseIndex,
        question: ResolutionQuestion,
        pinned_yanked: Mapping[str, int],
        look: Callable[[], object] = lambda: None,
    ) -> None:
        self.question, self._index = question, index
        self._environments: dict[str, Environment] = {}
        self._tables: dict[str, Candidates] = {}
        self._untouched: dict[str, Candidates] = {}
        self._known: dict[tuple[str, int], Known] = {}
        self._required: dict[tuple[str, int], ReleaseRequirements] = {}
        self.allowed = dict(pinned_yanked)
        self.late_pins: dict[str, int] = {}
        self._ahead = ReadAhead(index, question, self._table_ahead, self._requirements, look)
        if index.reads_together:
            self._ahead.constrain(self._held(question.constraints))
            self._ahead.follow_roots(self._held(question.requirements))
        self.constraints = self._constraints()
        """The versions that constraints allow, by project. Only constraints that hold in the environment count."""

    def table(self, package: str) -> Candidates:
        """Return the versions of a package's project."""
        found = self._tables.get(package)
        if found is None:
            project = package.partition("[")[0]
            found = self._tables[package] = self._table_ahead(project) if project == package else self.table(project)
        return found

    def _table_ahead(self, project: str) -> Candidates:
        """Return the versions of a project that is not looked at yet."""
        found = self._untouched.get(project)
        if found is None:
            conditions = self.question.conditions_of(project)
            found = self._untouched[project] = self._index.candidates(project, conditions)
        return found

    @property
    def touched(self) -> frozenset[str]:
        """Return the projects that were looked at."""
        return frozenset(one for one in self._tables if "[" not in one)

    def candidate(self, package: str, version: int) -> Candidate:
        """Return the version with this number."""
        return self.table(package)[version]

    def roots(self, requirements: Iterable[Wanted]) -> list[tuple[Wanted, dict[str, VersionSet]]]:
        """Return the question's requirements that hold in the environment, each with the packages that it requires."""
        found = []
        for wanted in requirements:
            if self.holds(wanted, ""):
                self._refuse_url(wanted)
                self._note_root(wanted)
                sets = {package: self.table(wanted.project).matching(wanted.specifier) for package in _packages(wanted)}
                found.append((wanted, sets))
        return found

    def reachable(self, versions: Mapping[str, int]) -> dict[str, int]:
        """Return the versions of all packages that the question leads to, given the chosen versions of projects.

        Raises WrongSolutionError if the versions do not meet the requirements.
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
            raise ResolveError(f"{wanted.text}: files at URLs are not on the index: name a version instead")

    def holds(self, wanted: Wanted, extra: str) -> bool:
        if wanted.marker is None:
            return True
        environment = self._environments.get(extra)
        if environment is None:
            known = self.question.environment.with_extra(extra)
            environment = replace(known, variables={**known.variables, **_OF_LOCKS})
            self._environments[extra] = environment
        return environment.holds(str(wanted.marker)) is not False

    def preferred(self, project: str) -> int | None:
        """Return the version that the question prefers, if it has a file to choose."""
        text = self.question.preferred.get(project)
        table = self.table(project)
        number = None if text is None else table.number_of(text)
        return None if number is None or table[number].file is None else number

    def choose(self, package: str, wanted: VersionSet) -> int | None:
        """Return the version among `wanted` to try first, or None if none of them can be chosen."""
        table = self.table(package)
        preferred = self.preferred(table.project)
        if preferred is not None and preferred in wanted and not table[preferred].is_yanked:
            return preferred
        allowed = self.allowed.get(table.project, 0)
        if self.question.semantics is Semantics.UV:
            return self._choose_as_uv(table, wanted.bits, allowed)
        return self._choose_as_pip(table, wanted, allowed)

    def _choose_as_uv(self, table: Candidates, bits: int, allowed: int) -> int | None:
        """Return the newest version. Pre-releases count if nothing else is left."""
        parts = [bits] if self.question.prereleases.of(table.project) else [bits & table.stable, bits & ~table.stable]
        for part in parts:
            for number, candidate in table.newest_first(part):
                if not candidate.is_yanked or allowed >> number & 1:
                    return number
        return None

    def _choose_as_pip(self, table: Candidates, wanted: VersionSet, allowed: int) -> int | None:
        """Return the newest version.

        Pre-releases count if a requirement so far names one, or if nothing else is left. Yanked versions count if
        nothing else is left and one is pinned.
        """
        if self.question.prereleases.of(table.project) or wanted.notes & Notes.PRERELEASES:
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

    def known(self, package: str, version: int) -> Known:
        """Return the requirements of a version of a package."""
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
        found = self.required(project, version)
        for error in found.errors:
            self._add_impossible(known, str(error))
        for wanted in found.added(extra) if extra else found.held:
            if wanted.url is not None:
                self._add_impossible(known, f"it requires {wanted.project} from a URL")
            else:
                self._add(known, wanted)
        return known

    def _add(self, known: Known, wanted: Wanted) -> None:
        found = self.matching(wanted)
        for package in _packages(wanted):
            before = known.sets.get(package)
            known.sets[package] = found if before is None else before & found
            known.wanted.setdefault(package, []).append(wanted)

    def matching(self, wanted: Wanted) -> VersionSet:
        """Return the versions that a version's requirement allows. Record yanked ones that pip allows for a pin."""
        table = self.table(wanted.project)
        found = table.matching(wanted.specifier)
        if found.notes & Notes.PINNED and self.question.semantics is Semantics.PIP:
            yanked = table.yanked(found.bits) & ~self.allowed.get(wanted.project, 0)
            if yanked:
                self.late_pins[wanted.project] = self.late_pins.get(wanted.project, 0) | yanked
        return found

    def _add_impossible(self, known: Known, reason: str) -> None:
        known.sets[f"{IMPOSSIBLE}{reason}"] = VersionSet.singleton(0)

    def required(self, project: str, version: int) -> ReleaseRequirements:
        """Return the requirements of a version of a project. Raises UnknownRequirementsError."""
        found = self._requirements(project, version)
        if self._index.reads_together:
            self._ahead.follow_version(project, version, found)
        return found

    def _requirements(self, project: str, version: int) -> ReleaseRequirements:
        key = project, version
        found = self._required.get(key)
        if found is None:
            found = self._required[key] = ReleaseRequirements(self._texts(project, version), self.holds)
        return found

    def _held(self, some: Iterable[Wanted]) -> list[Wanted]:
        return [one for one in some if one.url is None and self.holds(one, "")]

    def _texts(self, project: str, version: int) -> Iterable[str]:
        file = self._table_ahead(project)[version].file
        if file is None:  # only versions with a file are chosen
            return ()
        is_refused = refusal(file, self.question.semantics is Semantics.UV) == FAILS
        if is_refused or file["requires_dist"] is None:
            if self.question.unknown is Unknown.FAIL:
                why = "; ".join(file["refusals"]) if is_refused else file["outcome"]
                raise UnknownRequirementsError(
                    f"the requirements of {file['filename']} are unknown ({why}), and it would be chosen: exclude this"
                    " version, or assume that it has none with --unknown assume-none"
                )
            return file["requires_dist"] or ()
        return cast("list[str]", file["requires_dist"])


class Watch:
    """A limit on the time of a resolution. It records the last package that was tried."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._ends = seconds, time.monotonic() + seconds
        self.decisions = 0
        self.last = ""

    def decided(self, package: str) -> None:
        """Record that a version of a package was chosen. Raises ResolutionLimitError, as `look` does."""
        self.decisions += 1
        self.last = package
        self.look()

    def look(self) -> None:
        """Raise ResolutionLimitError if the time is over."""
        if time.monotonic() > self._ends:
            raise ResolutionLimitError(
                f"the resolution was stopped after {self._seconds:g} s and {self.decisions:,} decisions, the last of"
                f" them about {self.last}: narrow the requirements, or allow more time"
            )


def _packages(wanted: Wanted) -> list[str]:
    return [wanted.project, *(f"{wanted.project}[{extra}]" for extra in wanted.extras)]
