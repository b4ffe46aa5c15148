"""Explains why requirements have no solution, step by step, from facts of the index."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any, cast

from nab_resolver.types import Incompatibility, IncompatibilityCause, Term

from pypi_assets.resolve.candidates import Candidates
from pypi_assets.resolve.provider import IMPOSSIBLE, Provider
from pypi_assets.resolve.questions import Wanted
from pypi_assets.resolve.releases import ReleaseIndex
from pypi_assets.resolve.version_sets import VersionSet

_Fact = Incompatibility[Any, Any]
_Term = Term[Any, Any]
_MOST_RUNS = 4
_MOST_REASONS = 3


@dataclass(frozen=True, slots=True)
class Proof:
    """The steps of a proof, the first conflict first; the last one is that there is no solution.

    `projects` are those that it names.
    """

    steps: tuple[str, ...]
    projects: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.steps)


class NoInstallerSolutionError(Exception):
    """An installer's rules lead to no solution; `proof` has the conflict that was met last."""

    def __init__(self, proof: Proof) -> None:
        super().__init__(str(proof))
        self.proof = proof


def prove(conflict: _Fact, provider: Provider, index: ReleaseIndex) -> Proof:
    """The proof that ends in `conflict`, which the solver has found."""
    words = _Words(provider, index)
    steps = _Steps(words)
    steps.tell(conflict)
    return Proof(tuple(steps.lines), tuple(sorted(words.projects)))


def prove_alone(wanted: Wanted, provider: Provider, index: ReleaseIndex) -> Proof | None:
    """The proof that a requirement of the question has no solution whatever else is required; None where it may."""
    table = provider.table(wanted.project)
    found = table.matching(wanted.specifier)
    if next(table.newest_first(found.bits), None) is not None:
        return None
    words = _Words(provider, index)
    why = words.no_versions(Term(wanted.project, found))
    return Proof((f"Because {why} and you require {wanted.text}, there is no solution.",), tuple(words.projects))


class _Steps:
    """Writes the conclusions of a proof, each after those that it stands on.

    A conclusion that is needed again further down gets a number.
    """

    def __init__(self, words: "_Words") -> None:
        self._words = words
        self.lines: list[str] = []
        self._lines_of: dict[int, int] = {}
        self._numbers: dict[int, int] = {}
        self._uses: Counter[int] = Counter()

    def tell(self, conflict: _Fact) -> None:
        if conflict.cause is not IncompatibilityCause.DERIVED:
            self.lines.append(f"There is no solution: {self._words.fact(conflict)}.")
            return
        order = _conclusions(conflict)
        for one in order:
            self._uses.update(id(cause) for cause in _causes(one))
        for one in order:
            self._conclude(one, is_last=one is conflict)

    def _conclude(self, one: _Fact, *, is_last: bool) -> None:
        causes = _causes(one)
        missing = {cause.terms[0].package for cause in causes if cause.cause is IncompatibilityCause.NO_VERSIONS}
        external = [cause for cause in causes if cause.cause is not IncompatibilityCause.DERIVED]
        facts = [self._words.fact(cause, missing) for cause in external]
        derived = [cause for cause in causes if cause.cause is IncompatibilityCause.DERIVED]
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


def _causes(one: _Fact) -> list[_Fact]:
    return [cause for cause in (one.cause_left, one.cause_right) if cause is not None]


def _conclusions(last: _Fact) -> list[_Fact]:
    """The derived facts that `last` stands on, each after its own causes, and `last` itself.

    Of two derived causes the one comes first that is longer to derive, so that the other stands next to what follows.
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
        derived = [cause for cause in _causes(one) if cause.cause is IncompatibilityCause.DERIVED]
        waiting += [(cause, False) for cause in derived]
    return list(found.values())


class _Words:
    """Puts facts and conclusions into words."""

    def __init__(self, provider: Provider, index: ReleaseIndex) -> None:
        self._provider, self._index = provider, index
        self.projects: set[str] = set()

    def fact(self, one: _Fact, missing: Collection[str] = ()) -> str:
        """A fact of the index or of the question; empty for one that is obvious. Of the `missing` packages it stands
        next to it that they have no such version.
        """
        terms = [term for term in one.terms if isinstance(term.package, str)]
        if one.cause is IncompatibilityCause.ROOT:
            wanted = one.origin
            self.projects.add(wanted.project)
            return f"you require {wanted.text}"
        if one.cause is IncompatibilityCause.DEPENDENCY:
            if len(terms) == 2 and terms[0].package.startswith(f"{terms[1].package}["):
                return ""  # what has an extra is a part of the project
            return self._dependency(terms, missing)
        if one.cause is IncompatibilityCause.CONSTRAINT:
            return f"a constraint leaves no version of {self._named(terms[0])}"
        return self.no_versions(terms[0])

    def conclusion(self, one: _Fact) -> str:
        """What follows from other facts."""
        terms = [term for term in one.terms if isinstance(term.package, str)]
        positive = [term for term in terms if term.is_positive()]
        negative = [term for term in terms if not term.is_positive()]
        if not terms:
            return "there is no solution"
        if not negative:
            names = " and ".join(self._named(term) for term in positive)
            return f"{names} cannot be installed{' together' if len(positive) > 1 else ''}"
        required = " or ".join(self._named(term) for term in negative)
        if not positive:
            return f"{required} is needed"
        return f"{' and '.join(self._named(term) for term in positive)} needs {required}"

    def _dependency(self, terms: list[_Term], missing: Collection[str]) -> str:
        parent = terms[0]
        name = self._named(parent)
        if len(terms) == 1:
            return f"{name} requires another version of itself"
        child = terms[1]
        if child.package.startswith(IMPOSSIBLE):
            return f"{name} cannot be installed ({child.package.removeprefix(IMPOSSIBLE)})"
        wanted = self._wanted(parent, child) or self._named(child)
        table = self._provider.table(child.package)
        is_met = _bits(child) & table.known or not table.known or child.package in missing
        nothing = "" if is_met else ", which no version is"
        return f"{name} requires {wanted}{nothing}"

    def _wanted(self, parent: _Term, child: _Term) -> str:
        """The requirements as the first of the versions writes them."""
        for number in _numbers(_bits(parent) & self._provider.table(parent.package).known):
            if self._provider.candidate(parent.package, number).file is not None:
                found = self._provider.known(parent.package, number).wanted.get(child.package, ())
                return " and ".join(dict.fromkeys(f"{child.package}{one.specifier}" for one in found))
        return ""

    def no_versions(self, term: _Term) -> str:
        """Why none of these versions can be chosen."""
        table = self._provider.table(term.package)
        self.projects.add(table.project)
        newest = next(table.live(table.known), None)
        if newest is None:
            return self._index.absence(table.project) or f"there is no project {table.project} with files"
        wanted_bits = _bits(term)
        bits = wanted_bits & table.known
        wanted = self._specified(table, wanted_bits)
        if not bits:
            return f"no version of {table.project} is {wanted or 'left'} (the newest is {newest[1].text})"
        return f"{self._named(term)} cannot be installed ({self._why_not(table, bits)})"

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

    def _named(self, term: _Term) -> str:
        """A package with versions of it: by a specifier that allows just these, else by the versions."""
        table = self._provider.table(term.package)
        if term.package.startswith(IMPOSSIBLE):
            return str(term.package.removeprefix(IMPOSSIBLE))
        self.projects.add(table.project)
        bits = _bits(term)
        specified = self._specified(table, bits)
        if specified is not None:
            return f"{term.package}{specified}"
        fitting = bits & table.fitting
        if table.fitting and fitting == table.fitting:
            return str(term.package)
        for named, text in table.names.items():
            if fitting and named & table.fitting == fitting:
                return f"{term.package}{text}"
        return f"{term.package} {_versions(table, fitting or bits & table.known)}"

    def _specified(self, table: Candidates, bits: int) -> str | None:
        """The text of a specifier that allows just these versions; None where there is none."""
        return table.names.get(bits) or None


def _bits(term: _Term) -> int:
    return cast("VersionSet", term.constraint).bits


def _numbers(bits: int) -> Iterable[int]:
    while bits:
        last = bits & -bits
        yield last.bit_length() - 1
        bits ^= last


def _versions(table: Candidates, bits: int) -> str:
    """The versions, those that follow each other among the ones that can be installed as one run."""
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
