"""Explain step by step why requirements have no solution, from facts of the index."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import cast

from pypi_assets.resolve.candidates import Candidates
from pypi_assets.resolve.pubgrub import Incompatibility
from pypi_assets.resolve.pubgrub_solver import ROOT, Constrained, Package
from pypi_assets.resolve.questions import Wanted
from pypi_assets.resolve.releases import ReleaseIndex
from pypi_assets.resolve.solver_data import SolverProvider

_Fact = Incompatibility[Package]
_MOST_RUNS = 4
_MOST_REASONS = 3


@dataclass(frozen=True, slots=True)
class Proof:
    """The steps of a proof, the first conflict first. The last step states that there is no solution.

    `projects` are the projects in the steps.
    """

    steps: tuple[str, ...]
    projects: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.steps)


class NoInstallerSolutionError(Exception):
    """An installer's rules lead to no solution. `proof` has the last conflict."""

    def __init__(self, proof: Proof) -> None:
        super().__init__(str(proof))
        self.proof = proof


def prove(conflict: _Fact, provider: SolverProvider, index: ReleaseIndex) -> Proof:
    """Return the proof that ends in `conflict`, which the solver has found."""
    words = _Words(provider, index)
    steps = _Steps(words)
    steps.tell(conflict)
    return Proof(tuple(steps.lines), tuple(sorted(words.projects)))


def prove_alone(wanted: Wanted, provider: SolverProvider, index: ReleaseIndex) -> Proof | None:
    """Return the proof that a requirement of the question alone has no solution, or None if it may have one."""
    table = provider.table(wanted.project)
    found = table.matching(wanted.specifier)
    if next(table.newest_first(found.bits), None) is not None:
        return None
    words = _Words(provider, index)
    why = words.no_versions(Package(wanted.project), found.bits)
    return Proof((f"Because {why} and you require {wanted.text}, there is no solution.",), tuple(words.projects))


class _Steps:
    """Writes the conclusions of a proof, each after the conclusions that it is derived from.

    A conclusion that is used again further down gets a number.
    """

    def __init__(self, words: "_Words") -> None:
        self._words = words
        self.lines: list[str] = []
        self._lines_of: dict[int, int] = {}
        self._numbers: dict[int, int] = {}
        self._uses: Counter[int] = Counter()

    def tell(self, conflict: _Fact) -> None:
        order = _conclusions(conflict)
        for one in order:
            self._uses.update(id(cause) for cause in _causes(one))
        for one in order:
            self._conclude(one, is_last=one is conflict)

    def _conclude(self, one: _Fact, *, is_last: bool) -> None:
        causes = _causes(one)
        facts = [self._words.fact(cause) for cause in causes if cause.causes is None]
        derived = [cause for cause in causes if cause.causes is not None]
        previous = len(self.lines) - 1
        because = list(dict.fromkeys(filter(None, facts)))
        follows = False
        for cause in derived:
            line = self._lines_of[id(cause)]
            if line == previous:
                follows = True
            else:
                because.append(self._reference(cause, line))
        what = "there is no solution" if is_last or not one.terms else self._words.conclusion(one)
        if not because:
            self.lines.append(f"So {what}.")
        else:
            self.lines.append(f"{'And because' if follows else 'Because'} {' and '.join(because)}, {what}.")
        self._lines_of[id(one)] = len(self.lines) - 1

    def _reference(self, cause: _Fact, line: int) -> str:
        number = self._numbers.get(id(cause))
        if number is None:
            number = self._numbers[id(cause)] = len(self._numbers) + 1
            self.lines[line] += f" ({number})"
        return f"{self._words.conclusion(cause)} ({number})"


def _causes(one: _Fact) -> tuple[_Fact, ...]:
    """Return the causes of a fact, the one that was decided earlier first."""
    return tuple(reversed(one.causes or ()))


def _conclusions(last: _Fact) -> list[_Fact]:
    """Return the derived facts that lead to `last`, each after its own causes, then `last`.

    Of two derived causes, the one with the longer derivation comes first, so that the other is next to the conclusion.
    """
    found: dict[int, _Fact] = {}
    waiting: list[tuple[_Fact, bool]] = [(last, False)]
    while waiting:
        one, is_open = waiting.pop()
        if id(one) in found:
            continue
        if is_open:
            found[id(one)] = one
            continue
        waiting.append((one, True))
        waiting += [(cause, False) for cause in _causes(one) if cause.causes is not None]
    return list(found.values())


class _Words:
    """Turns facts and conclusions into words."""

    def __init__(self, provider: SolverProvider, index: ReleaseIndex) -> None:
        self._provider, self._index = provider, index
        self.projects: set[str] = set()

    def fact(self, one: _Fact) -> str:
        """Return a fact of the index or the question as text, or "" if it is obvious."""
        if one.dependency is not None:
            return self._dependency(one, *one.dependency)
        [(package, term)] = one.terms.items()
        if one.origin is not None:
            return f"{self._named(package, term.bits)} cannot be installed ({one.origin})"
        return self.no_versions(package, term.bits)

    def conclusion(self, one: _Fact) -> str:
        """Return a conclusion from other facts as text."""
        terms = [(name, term) for name, term in list(one.terms.items())[::-1] if name != ROOT]
        positive = [self._named(name, term.bits) for name, term in terms if term.is_positive]
        negative = [self._named(name, term.bits) for name, term in terms if not term.is_positive]
        if not positive and not negative:
            return "there is no solution"
        if not negative:
            return f"{' and '.join(positive)} cannot be installed{' together' if len(positive) > 1 else ''}"
        required = " or ".join(negative)
        return f"{' and '.join(positive)} needs {required}" if positive else f"{required} is needed"

    def _dependency(self, one: _Fact, package: Package, required: Package) -> str:
        if isinstance(one.origin, Constrained):
            self.projects.add(required.project)
            return f"a constraint is {one.origin.wanted.text}"
        if package == ROOT:
            wanted = cast("Wanted", one.origin)
            self.projects.add(wanted.project)
            return f"you require {wanted.text}"
        name = self._named(package, one.terms[package].bits)
        if one.origin is None:
            return ""  # an extra obviously requires its own project
        self.projects.add(required.project)
        return f"{name} requires {required}{cast('Wanted', one.origin).specifier}"

    def no_versions(self, package: Package, wanted_bits: int) -> str:
        """Return as text why none of these versions can be chosen."""
        table = self._provider.table(package.project)
        self.projects.add(table.project)
        newest = next(table.live(table.known), None)
        if newest is None:
            return self._index.absence(table.project) or f"there is no project {table.project} with files"
        bits = wanted_bits & table.known
        if not bits:
            wanted = table.names.get(wanted_bits)
            return f"no version of {table.project} is {wanted or 'left'} (the newest is {newest[1].text})"
        return f"{self._named(package, wanted_bits)} cannot be installed ({self._why_not(table, bits)})"

    def _why_not(self, table: Candidates, bits: int) -> str:
        counts = table.reasons(bits)
        yanked = table.yanked(bits)
        if yanked:
            counts["yanked"] = yanked.bit_count()
        unstable = bits & table.fitting & ~yanked & ~table.stable
        if unstable:
            counts["a pre-release" if unstable.bit_count() == 1 else "pre-releases"] = unstable.bit_count()
        some = counts.most_common(_MOST_REASONS)
        if len(some) == 1:
            count = counts.total()
            return f"{'it is' if count == 1 else f'all {count} are'} {some[0][0]}"
        return ", ".join(f"{count} {'is' if count == 1 else 'are'} {reason}" for reason, count in some)

    def _named(self, package: Package, bits: int) -> str:
        """Return a package and versions as text: a specifier that allows exactly these, else a list of versions."""
        table = self._provider.table(package.project)
        self.projects.add(table.project)
        if table.names.get(bits):
            return f"{package}{table.names[bits]}"
        fitting = bits & table.fitting
        if table.fitting and fitting == table.fitting:
            return str(package)
        for named, text in table.names.items():
            if fitting and named & table.fitting == fitting:
                return f"{package}{text}"
        return f"{package} {_versions(table, fitting or bits & table.known)}"


def _numbers(bits: int) -> Iterable[int]:
    while bits:
        last = bits & -bits
        yield last.bit_length() - 1
        bits ^= last


def _versions(table: Candidates, bits: int) -> str:
    """Return the versions as text. Consecutive versions that can be installed are joined to ranges."""
    numbers = list(_numbers(bits))
    if not numbers:
        return "(no version)"
    places = {number: place for place, number in enumerate(_numbers(table.fitting | bits))}
    runs = []
    for _, some in groupby(enumerate(numbers), lambda one: places[one[1]] - one[0]):
        run = [number for _, number in some]
        first, last = table[run[0]].text, table[run[-1]].text
        runs.append(first if len(run) == 1 else f"{first} to {last}")
    shown = runs if len(runs) <= _MOST_RUNS else [*runs[: _MOST_RUNS - 1], f"{len(runs) - _MOST_RUNS + 1} further runs"]
    return ", ".join(shown)
