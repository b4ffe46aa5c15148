"""Finds versions that meet all requirements, wherever there are some, or a proof that there are none.

It takes the steps of PubGrub in pip's order of preference. Its answers are those of no installer: it is for what
installers cannot answer, or not in time.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from heapq import heappop, heappush, heapreplace
from math import inf
from typing import NamedTuple

from pypi_assets.resolve.provider import IMPOSSIBLE, Known, Provider, ResolutionLimitError, Watch
from pypi_assets.resolve.pubgrub import ROOT_BITS, Incompatibility, PartialSolution
from pypi_assets.resolve.questions import Wanted
from pypi_assets.resolve.version_sets import Notes, VersionSet

ROOT = ""
"""The package that requires what the question requires."""
_CONFLICTS = 5
"""From this conflict on, a package is decided first."""
_ITSELF = f"{IMPOSSIBLE}it requires another version of itself"
_ALL = -1


class Constrained(NamedTuple):
    """The origin of a fact: a constraint of the question excludes these versions."""

    wanted: Wanted


class _Required(NamedTuple):
    """What is required of a project by a version of a package."""

    package: str
    bits: int
    notes: Notes


def solve_completely(provider: Provider, watch: Watch, most_steps: int) -> dict[str, int]:
    """The version of each project, and of each `project[extra]` that is wanted.

    Raises NoSolutionError with the derivation, ResolutionLimitError and UnknownRequirementsError. The origin of a fact
    is the requirement, a `Constrained`, or None.
    """
    return _CompleteSolver(provider, watch).solve(most_steps)


class _CompleteSolver:
    def __init__(self, provider: Provider, watch: Watch) -> None:
        self._provider, self._watch = provider, watch
        self._solution = PartialSolution(ROOT, watch.look)
        self._known: set[tuple[str, int]] = set()
        self._impossibilities: set[str] = set()
        self._requiring: defaultdict[str, list[_Required]] = defaultdict(list)
        self._notes: defaultdict[str, Notes] = defaultdict(lambda: Notes.NONE)
        self._places: dict[str, int] = {}
        self._conflicts: Counter[str] = Counter()
        self._ranked: list[tuple[tuple[object, ...], str]] = []

    def solve(self, most_steps: int) -> dict[str, int]:
        solution = self._solution
        self._constrain()
        changed = ROOT
        for _ in range(most_steps):
            solution.propagate(changed)
            self._count_conflicts()
            first = self._first()
            if first is None:
                return self._pins()
            changed = first
            if changed == ROOT:
                self._decide(ROOT, ROOT_BITS, list(self._of_question()))
            else:
                self._watch.decided(changed)
                self._choose(changed, solution.undecided[changed])
        raise ResolutionLimitError(
            f"the resolution was ended after {most_steps:,} steps, the last of them about {self._watch.last}: narrow"
            " the requirements"
        )

    def _constrain(self) -> None:
        for wanted in self._provider.question.constraints:
            if self._provider.holds(wanted, ""):
                excluded = ~self._matching(wanted).bits
                self._solution.add(Incompatibility.of_versions(wanted.project, excluded, Constrained(wanted)))

    def _choose(self, package: str, bits: int) -> None:
        """Decides for a version among these, or notes that there is none."""
        version = self._version(package, bits)
        if version is None:
            self._solution.add(Incompatibility.of_versions(package, bits))
        elif (package, version) in self._known:
            self._solution.decide(package, 1 << version)
        else:
            self._known.add((package, version))
            known = self._provider.known(package, version)
            self._decide(package, 1 << version, list(self._of_version(package, 1 << version, known)))

    def _version(self, package: str, bits: int) -> int | None:
        """That of the project, for a package with an extra."""
        project = package.partition("[")[0]
        notes = self._notes_of(project)
        of_project = self._solution.left(project) if project != package else None
        found = None
        if of_project is not None:
            found = self._provider.choose(package, VersionSet(bits & of_project, notes))
        return self._provider.choose(package, VersionSet(bits, notes)) if found is None else found

    def _notes_of(self, project: str) -> Notes:
        """Those of what is required of a project now, by the versions that are chosen."""
        constraint = self._provider.constraints.get(project)
        notes = Notes.NONE if constraint is None else constraint.notes
        for one in self._requiring[project]:
            if self._solution.has_decided(one.package, one.bits):
                notes |= one.notes
        return notes

    def _of_question(self) -> Iterator[Incompatibility[str]]:
        for wanted, sets in self._provider.roots(self._provider.question.requirements):
            self._places.setdefault(wanted.project, len(self._places))
            self._note(ROOT, ROOT_BITS, wanted)
            for package, found in sets.items():
                yield Incompatibility.of_dependency(ROOT, ROOT_BITS, package, found.bits, wanted)

    def _of_version(self, package: str, bits: int, known: Known) -> Iterator[Incompatibility[str]]:
        for required in known.sets:
            if required.startswith(IMPOSSIBLE):
                yield self._impossible(package, bits, required)
        project = package.partition("[")[0]
        if project != package:
            yield Incompatibility.of_dependency(package, bits, project, bits)
        for required, some in known.wanted.items():
            for wanted in some:
                found = self._matching(wanted).bits
                self._note(package, bits, wanted)
                if required != package:
                    yield Incompatibility.of_dependency(package, bits, required, found, wanted)
                elif not bits & found:
                    yield self._impossible(package, bits, _ITSELF)

    def _impossible(self, package: str, bits: int, reason: str) -> Incompatibility[str]:
        """That a version requires what is not there. Versions with one reason are one fact of a proof."""
        if reason not in self._impossibilities:
            self._impossibilities.add(reason)
            self._solution.add(Incompatibility.of_versions(reason, _ALL))
        return Incompatibility.of_dependency(package, bits, reason, _ALL)

    def _decide(self, package: str, bits: int, dependencies: list[Incompatibility[str]]) -> None:
        for one in dependencies:
            self._solution.add(one)
        conflict = self._solution.try_to_decide(package, bits, dependencies)
        if conflict is not None:
            self._conflicts[package] += 1

    def _note(self, package: str, bits: int, wanted: Wanted) -> None:
        """Notes what is required of a project, for the choice of its version and the order of decisions."""
        notes = self._matching(wanted).notes
        self._requiring[wanted.project].append(_Required(package, bits, notes))
        if self._notes[wanted.project] | notes != self._notes[wanted.project]:
            self._notes[wanted.project] |= notes
            self._solution.changed.add(wanted.project)

    def _matching(self, wanted: Wanted) -> VersionSet:
        return self._provider.table(wanted.project).matching(wanted.specifier)

    def _count_conflicts(self) -> None:
        for package, _ in self._solution.conflicts:
            self._conflicts[package] += 1
            self._solution.changed.add(package)
        self._solution.conflicts.clear()

    def _first(self) -> str | None:
        """The package that is decided first; None where none is left."""
        undecided, changed = self._solution.undecided, self._solution.changed
        for package in changed & undecided.keys():
            heappush(self._ranked, (self._rank(package), package))
        changed.clear()
        while self._ranked:
            rank, package = self._ranked[0]
            if package not in undecided:
                heappop(self._ranked)
            elif rank == (now := self._rank(package)):
                return package
            else:
                heapreplace(self._ranked, (now, package))
        return None

    def _rank(self, package: str) -> tuple[object, ...]:
        project = package.partition("[")[0]
        notes = self._notes[project]
        return (
            package != ROOT,
            self._conflicts[package] < _CONFLICTS,
            not notes & Notes.PINNED,
            not notes & Notes.BOUNDED,
            self._places.get(project, inf),
            not notes & Notes.CONDITIONED,
        )

    def _pins(self) -> dict[str, int]:
        return {package: bits.bit_length() - 1 for package, bits in self._solution.decisions.items() if package != ROOT}
