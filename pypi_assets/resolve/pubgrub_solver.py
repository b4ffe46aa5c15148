"""Choose versions by PubGrub. This module defines the packages, their order, and their requirements.

The order is uv's. It depends on when a project was seen first, on pins, and on conflicts. uv treats a project, each of
its extras, and each requirement under a marker as separate packages. The latter two are proxies: they require the same
version of the project. Without proxies, the same search finds a solution if there is one, or the facts for a proof that
there is none.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import heappop, heappush
from typing import Any, Literal, NamedTuple

from packaging.markers import Marker
from packaging.utils import canonicalize_name

from pypi_assets.resolve.candidates import TOO_NEW
from pypi_assets.resolve.pubgrub import ROOT_BITS, Incompatibility, PartialSolution
from pypi_assets.resolve.questions import ReleaseRequirements, Wanted
from pypi_assets.resolve.solver_data import ResolutionLimitError, SolverProvider, Watch
from pypi_assets.resolve.version_sets import Notes, VersionSet

_CONFLICTS = 5
"""A package with this many conflicts is decided earlier, and decisions that conflict with it are undone."""
_PINNED, _EARLY, _LATE, _USUAL = range(4)
_ALL = -1
_ITSELF = "it requires another version of itself"


class Package(NamedTuple):
    """A project, or a proxy for its requirements with an extra or under a marker.

    A package with an extra that is not a proxy has the additional requirements of the extra.
    """

    project: str
    extra: str = ""
    marker: str = ""
    is_proxy: bool = False

    def __str__(self) -> str:
        return f"{self.project}[{self.extra}]" if self.extra else self.project


ROOT = Package("")
"""The package that requires the requirements of the question."""


class Constrained(NamedTuple):
    """The origin of a fact: a constraint of the question excludes these versions."""

    wanted: Wanted


class _Dependency(NamedTuple):
    """A requirement: versions of a package. Without `origin`, a part of a project requires the project itself."""

    package: Package
    bits: int
    is_pin: bool
    origin: Wanted | Constrained | None = None


class _ImpossibleError(Exception):
    """A version requires something that no index can serve. The message is the reason."""


def solve_as_uv(provider: SolverProvider, watch: Watch, most_steps: int) -> dict[str, int]:
    """Return the versions that uv would choose, by project and by each required `project[extra]`.

    Raises NoSolutionError, ResolutionLimitError and UnknownRequirementsError.
    """
    return _Solver(provider, watch, is_uv=True).solve(most_steps)


def solve_by_facts(provider: SolverProvider, watch: Watch, most_steps: int) -> dict[str, int]:
    """Return versions that meet all requirements, if there are any. The question's semantics decide the candidates.

    Raises NoSolutionError with the derivation from facts, ResolutionLimitError and UnknownRequirementsError. The origin
    of a fact is a requirement, a `Constrained`, the reason why a version is impossible, or None.
    """
    return _Solver(provider, watch, is_uv=False).solve(most_steps)


class _Solver:
    """Decides one package after the other. With `is_uv`, it has uv's packages and takes uv's steps."""

    def __init__(self, provider: SolverProvider, watch: Watch, *, is_uv: bool) -> None:
        self._provider, self._watch, self._is_uv = provider, watch, is_uv
        self._question = provider.question
        self._requiring: defaultdict[str, list[tuple[Package, int, int]]] = defaultdict(list)
        self._solution = PartialSolution(ROOT, watch.look)
        self._order = _Order()
        self._known: set[tuple[Package, int]] = set()
        self._proxies: set[tuple[Package, int]] = set()
        self._constraints: dict[str, list[Wanted]] = {}
        for constraint in self._question.constraints:
            self._constraints.setdefault(constraint.project, []).append(constraint)

    def solve(self, most_steps: int) -> dict[str, int]:
        solution = self._solution
        changed = ROOT
        for _ in range(most_steps):
            solution.propagate(changed)
            for package, conflict in solution.conflicts:
                self._order.count(package, conflict)
            solution.conflicts.clear()
            for package in self._order.rearranged():
                solution.take_back(package)
            first = self._order.first(solution.undecided, solution.changed)
            if first is None:
                return self._pins()
            changed = first
            if changed == ROOT:
                self._decide(ROOT, ROOT_BITS, self._of_question())
            else:
                self._watch.decided(str(changed))
                self._choose(changed, solution.undecided[changed])
        raise ResolutionLimitError(
            f"the resolution was stopped after {most_steps:,} steps, the last of them about {self._watch.last}: narrow"
            " the requirements"
        )

    def _choose(self, package: Package, wanted: int) -> None:
        """Decide for a version among `wanted`, or record why it cannot be chosen."""
        version, is_usable = self._newest(package.project, wanted) if self._is_uv else self._best(package, wanted)
        if version is None:
            self._solution.add(Incompatibility.of_versions(package, wanted))
        elif not is_usable:
            self._solution.add(Incompatibility.of_versions(package, 1 << version))
        elif (package, version) in self._known:
            self._solution.decide(package, 1 << version)
        else:
            self._known.add((package, version))
            try:
                dependencies = self._of_version(package, version)
            except _ImpossibleError as error:
                self._exclude(package, 1 << version, str(error))
            else:
                self._decide(package, 1 << version, dependencies)

    def _exclude(self, package: Package, bits: int, reason: str) -> None:
        """Record that versions cannot be installed. For uv, the reason is omitted: facts with a reason are merged."""
        self._solution.add(Incompatibility.of_versions(package, bits, None if self._is_uv else reason))

    def _decide(self, package: Package, bits: int, dependencies: list[_Dependency]) -> None:
        found = []
        for required in dependencies:
            self._order.see(required)
            if required.package != package:
                found.append(
                    Incompatibility.of_dependency(package, bits, required.package, required.bits, required.origin)
                )
            elif not bits & required.bits:
                found.append(Incompatibility.of_versions(package, bits, None if self._is_uv else _ITSELF))
            if isinstance(required.origin, Wanted) and not self._is_uv:
                notes = self._provider.matching(required.origin).notes
                self._requiring[required.package.project].append((package, bits, notes))
        for one in found:
            self._solution.add(one)
        for required in dependencies:
            if required.package.is_proxy and required[:2] not in self._proxies:
                self._proxies.add(required[:2])
                base = Package(required.package.project)
                self._solution.add(Incompatibility.of_dependency(required.package, required.bits, base, required.bits))
        conflict = self._solution.try_to_decide(package, bits, found)
        if conflict is not None:
            self._order.count(package, conflict)

    def _best(self, package: Package, wanted: int) -> tuple[int | None, bool]:
        """Return the next version to try, and True. For a package with an extra, prefer the version of the project."""
        project = package.project
        constraint = self._provider.constraints.get(project)
        notes = Notes.NONE if constraint is None else constraint.notes
        for requiring, bits, its_notes in self._requiring[project]:
            if self._solution.has_decided(requiring, bits):
                notes |= its_notes
        of_project = self._solution.left(Package(project)) if package.extra else None
        version = None
        if of_project is not None:
            version = self._provider.choose(project, VersionSet(wanted & of_project, notes))
        return self._provider.choose(project, VersionSet(wanted, notes)) if version is None else version, True

    def _newest(self, project: str, wanted: int) -> tuple[int | None, bool]:
        """Return the next version that uv tries, and whether a file of this version can be installed."""
        table = self._provider.table(project)
        allowed = self._provider.allowed.get(project, 0)
        bits = wanted & table.known
        preferred = self._provider.preferred(project)
        if preferred is not None and bits >> preferred & 1 and not table[preferred].is_yanked:
            return preferred, True
        parts = [bits] if self._question.prereleases.of(project) else [bits & table.stable, bits & ~table.stable]
        for part in parts:
            for number, candidate in table.live(part):
                if candidate.reason == TOO_NEW:
                    continue
                is_allowed = not candidate.is_yanked or bool(allowed >> number & 1)
                return number, candidate.file is not None and is_allowed
        return None, False

    def _of_question(self) -> list[_Dependency]:
        roots = [wanted for wanted in self._question.requirements if self._provider.holds(wanted, "")]
        return [one for wanted in roots for one in self._constrained(wanted, self._marker(wanted), "")]

    def _of_version(self, package: Package, version: int) -> list[_Dependency]:
        """Return the requirements of a version of a package. Raises _ImpossibleError."""
        project, bits = package.project, 1 << version
        if package.is_proxy:
            markers = dict.fromkeys(["", package.marker])
            extras = dict.fromkeys(["", package.extra])
            return [_Dependency(Package(project, extra, marker), bits, True) for marker in markers for extra in extras]
        requirements = self._provider.required(project, version)
        for error in requirements.errors:
            raise _ImpossibleError(str(error))
        base = [_Dependency(Package(project), bits, True)] if package.extra and not self._is_uv else []
        return [*base, *self._flattened(project, package.extra, requirements)]

    def _flattened(self, project: str, extra: str, requirements: ReleaseRequirements) -> Iterator[_Dependency]:
        """Yield dependencies. Extras of the project itself are replaced by their requirements."""
        own, waiting, seen = [], deque[tuple[str, frozenset[str]]](), set[tuple[str, frozenset[str]]]()
        for wanted in self._held(requirements, extra):
            marker = self._marker(wanted)
            if wanted.project != project:
                yield from self._constrained(wanted, marker, extra)
                continue
            waiting += [(each, frozenset({marker})) for each in wanted.extras]
            bits, is_pin = self._matching(wanted)
            own.append(_Dependency(self._package(project, "", marker), bits, is_pin, wanted))
        while waiting:
            if (one := waiting.popleft()) in seen:
                continue
            seen.add(one)
            self._watch.look()  # combinations of markers can be very many
            for wanted in self._held(requirements, one[0]):
                markers = one[1] | {self._marker(wanted)}  # a set, since extras can require each other in a circle
                if wanted.project == project:
                    waiting += [(each, markers) for each in wanted.extras]
                else:
                    yield from self._constrained(wanted, _joined(*markers), one[0])
        yield from own

    def _held(self, requirements: ReleaseRequirements, extra: str) -> Sequence[Wanted]:
        """Return the requirements that hold, or the additional ones of an extra. Raises _ImpossibleError."""
        held = requirements.added(extra) if extra else requirements.held
        for wanted in held:
            if wanted.url is not None:
                raise _ImpossibleError(f"it requires {wanted.project} from a URL")
        return held

    def _marker(self, wanted: Wanted) -> str:
        """Return the text of a marker that is a part of uv's package, or "" if packages do not have one."""
        return _shown(wanted.marker) if self._is_uv else ""

    def _package(self, project: str, extra: str, marker: str) -> Package:
        """Return the package for a requirement. For uv, an extra or a marker makes it a proxy."""
        return Package(project, extra, marker, bool(extra or marker)) if self._is_uv else Package(project, extra)

    def _constrained(self, wanted: Wanted, marker: str, extra: str) -> Iterator[_Dependency]:
        """Yield the dependencies of a requirement, and of the constraints on its project."""
        bits, is_pin = self._matching(wanted)
        extras = _written_extras(wanted)
        for each in extras if extras and self._is_uv else ["", *extras]:
            yield _Dependency(self._package(wanted.project, each, marker), bits, is_pin, wanted)
        for constraint in self._constraints.get(wanted.project, ()):
            if self._provider.holds(constraint, extra):
                bits, is_pin = self._matching(constraint)
                joined = _joined(marker, self._marker(constraint))
                yield _Dependency(self._package(wanted.project, "", joined), bits, is_pin, Constrained(constraint))

    def _matching(self, wanted: Wanted) -> tuple[int, bool]:
        if self._is_uv and not wanted.specifier:
            return _ALL, False
        found = self._provider.matching(wanted)
        return found.bits, bool(found.notes & Notes.PINNED)

    def _pins(self) -> dict[str, int]:
        """Return the decisions about required packages, by the provider's names of packages."""
        versions = {package.project: bits.bit_length() - 1 for package, bits in self._solution.decisions.items()}
        return self._provider.reachable(versions)


class _Order:
    """The order of packages. The first one is decided next."""

    def __init__(self) -> None:
        self._groups = {ROOT.project: _PINNED}
        self._places = {ROOT.project: 0}
        self._seen = {ROOT: 0}
        self._packages = {ROOT.project: [ROOT]}
        self._ranked: list[tuple[tuple[int, int, bool, int], Package]] = []
        self._moved: set[str] = set()
        self._affected: Counter[Package] = Counter()
        self._culprits: Counter[Package] = Counter()
        self._earlier: list[Package] = []
        self._later: list[Package] = []

    def see(self, required: _Dependency) -> None:
        """Record a requirement, which may be the first one of its project."""
        package = required.package
        seen = [package, Package(package.project)] if package.is_proxy else [package]
        project = package.project
        for each in seen:
            if each not in self._seen:
                self._seen[each] = len(self._seen)
                self._packages.setdefault(project, []).append(each)
        self._places.setdefault(project, len(self._places))
        if required.is_pin:
            self._move(project, _PINNED)
        else:
            self._groups.setdefault(project, _USUAL)

    def first(self, undecided: Mapping[Package, int], changed: set[Package]) -> Package | None:
        """Return the package to decide next, or None. `undecided` has the remaining versions of each package.

        `changed` has the packages whose remaining versions changed. It is emptied.
        """
        for project in self._moved:
            changed.update(self._packages[project])
        self._moved.clear()
        for package in changed & undecided.keys():
            heappush(self._ranked, (self._rank(package, undecided[package]), package))
        changed.clear()
        while self._ranked:
            rank, package = self._ranked[0]
            if package in undecided and rank == self._rank(package, undecided[package]):
                return package
            heappop(self._ranked)  # an outdated entry
        return None

    def _move(self, project: str, group: int) -> None:
        if self._groups.get(project) != group:
            self._groups[project] = group
            self._moved.add(project)

    def _rank(self, package: Package, wanted: int) -> tuple[int, int, bool, int]:
        is_single = wanted > 0 and not wanted & (wanted - 1)
        project = package.project
        return self._groups[project], self._places[project], not is_single, self._seen[package]

    def count(self, package: Package, conflict: Incompatibility[Package]) -> None:
        """Record that a package had a conflict with the other packages in it."""
        others = [other for other in conflict.terms if other.project != package.project]
        for other in others:
            self._culprits[other] += 1
            if self._culprits[other] == _CONFLICTS and other != ROOT:
                self._later.append(other)
        if others:
            self._affected[package] += 1
            if self._affected[package] == _CONFLICTS and package != ROOT:
                self._earlier.append(package)

    def rearranged(self) -> Iterator[Package]:
        """Change the groups after many conflicts, and yield the packages whose decisions must be undone."""
        for package in self._earlier:
            self._move(package.project, _EARLY)
        for package in self._later:
            if self._groups[package.project] not in {_EARLY, _LATE}:
                self._move(package.project, _LATE)
                yield package
        self._earlier, self._later = [], []


def _written_extras(wanted: Wanted) -> list[str]:
    """Return the extras in the order in which they are written."""
    if len(wanted.extras) < 2:
        return list(wanted.extras)
    inside = wanted.text.partition("[")[2].partition("]")[0]
    return [canonicalize_name(extra.strip()) for extra in inside.split(",")]


def _joined(*markers: str) -> str:
    return " and ".join(sorted(set(filter(None, markers))))


@lru_cache(maxsize=2_048)  # each can have thousands of characters
def _shown(marker: Marker | None) -> str:
    """Return a marker as text without its comparisons of extras, normalized so that equal markers are equal texts."""
    shown = True if marker is None else _reduced(marker._markers)
    return "" if shown is True else shown


def _reduced(markers: list[Any]) -> str | Literal[True]:
    alternatives: list[list[str | Literal[True]]] = [[]]
    for part in markers:
        if part == "or":
            alternatives.append([])
        elif isinstance(part, list):
            alternatives[-1].append(_reduced(part))
        elif part != "and":
            left, operator, right = (each.serialize() for each in part)
            alternatives[-1].append("extra" in (left, right) or f"{left} {operator} {right}")
    texts = []
    for alternative in alternatives:
        parts = [part for part in alternative if part is not True]
        if not parts:
            return True
        texts.append(_joined(*parts))
    return texts[0] if len(texts) == 1 else f"({' or '.join(sorted(set(texts)))})"
