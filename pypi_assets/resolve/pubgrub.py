"""The PubGrub algorithm, step by step in the order of uv's implementation, so that uv's choices can be reproduced.

Other modules decide about the next package, the version to try, its requirements, and the wording of a proof. A set
of versions is the bits of an integer; a complement has infinitely many bits. The names are the ones in PubGrub's
description.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Generic, NamedTuple, TypeVar

P = TypeVar("P", bound=Hashable)
"""The type of a package."""
ROOT_BITS = 1
"""The only version of the root, which requires the requirements of the question."""


class Term(NamedTuple):
    """The statement that one of the versions `bits` of a package is chosen.

    If not `is_positive`, the statement that none of them is chosen.
    """

    is_positive: bool
    bits: int

    @property
    def negation(self) -> "Term":
        return Term(not self.is_positive, self.bits)

    def intersection(self, other: "Term") -> "Term":
        if self.is_positive:
            return Term(True, self.bits & (other.bits if other.is_positive else ~other.bits))
        return Term(True, other.bits & ~self.bits) if other.is_positive else Term(False, self.bits | other.bits)

    def union(self, other: "Term") -> "Term":
        return self.negation.intersection(other.negation).negation

    def is_disjoint(self, other: "Term") -> bool:
        if self.is_positive:
            return not self.bits & (other.bits if other.is_positive else ~other.bits)
        return other.is_positive and not other.bits & ~self.bits

    def is_subset(self, other: "Term") -> bool:
        if self.is_positive:
            return not self.bits & (~other.bits if other.is_positive else other.bits)
        return not other.is_positive and not other.bits & ~self.bits


_ANY = Term(False, 0)


@dataclass(eq=False, slots=True)
class Incompatibility(Generic[P]):
    """Terms that cannot all be true. `dependency` is set if the first package requires the second.

    A derived incompatibility has the two `causes` that it follows from. Any other incompatibility is a fact, with the
    `origin` that the caller has given.
    """

    terms: Mapping[P, Term]
    dependency: tuple[P, P] | None = None
    causes: "tuple[Incompatibility[P], Incompatibility[P]] | None" = None
    origin: object = None

    @classmethod
    def of_dependency(
        cls, package: P, bits: int, required: P, required_bits: int, origin: object = None
    ) -> "Incompatibility[P]":
        """Return the fact that versions of a package require a version of another package among `required_bits`."""
        terms = {package: Term(True, bits), required: Term(False, required_bits)}
        return cls(terms, (package, required), origin=origin)

    @classmethod
    def of_versions(cls, package: P, bits: int, origin: object = None) -> "Incompatibility[P]":
        """Return the fact that none of these versions can be chosen."""
        return cls({package: Term(True, bits)}, origin=origin)

    def _merged(self, other: "Incompatibility[P]") -> "Incompatibility[P] | None":
        """Return both facts as one, or None.

        They can be merged if versions of a package have the same requirement, or cannot be chosen for the same reason.
        """
        if self.dependency is None:
            [(package, term)] = self.terms.items()
            return Incompatibility.of_versions(package, term.bits | other.terms[package].bits, self.origin)
        package, required = self.terms
        if self.terms[required] != other.terms[required]:
            return None
        bits = self.terms[package].bits | other.terms[package].bits
        return Incompatibility.of_dependency(package, bits, required, self.terms[required].bits, other.origin)


class _Relation(Enum):
    SATISFIED = auto()
    ALMOST = auto()
    CONTRADICTED = auto()
    INCONCLUSIVE = auto()


class _Satisfier(NamedTuple, Generic[P]):
    """The assignment that made a term true. Without a cause, it is a decision."""

    order: int
    level: int
    cause: Incompatibility[P] | None


@dataclass(slots=True)
class _Assignments(Generic[P]):
    """The knowledge about a package. Each entry of `derived` is a derivation with the term that was known after it."""

    first_level: int
    last_level: int
    term: Term
    derived: list[tuple[_Satisfier[P], Term]] = field(default_factory=list)
    decision: int | None = None
    decided_order: int = 0

    def satisfier(self, excluded: Term) -> _Satisfier[P]:
        """Return the first assignment after which nothing of `excluded` was left."""
        low, high = 0, len(self.derived)
        while low < high:
            middle = (low + high) // 2
            if self.derived[middle][1].is_disjoint(excluded):
                high = middle
            else:
                low = middle + 1
        if low < len(self.derived):
            return self.derived[low][0]
        return _Satisfier(self.decided_order, self.last_level, None)


class NoSolutionError(Exception):
    """The incompatibilities allow no solution. `conflict` is derived from them and cannot be avoided by any choice."""

    def __init__(self, conflict: Incompatibility[Any]) -> None:
        super().__init__()
        self.conflict = conflict


class PartialSolution(Generic[P]):
    """Decisions and their consequences. `undecided` has the packages that need a version, with the remaining versions.

    `conflicts` collects each package and incompatibility of a conflict, and `changed` collects undecided packages whose
    remaining versions changed; the caller clears both. `look` is called at each conflict, and may raise an error.
    """

    def __init__(self, root: P, look: Callable[[], object] = lambda: None) -> None:
        self._root, self._look = root, look
        self.conflicts: list[tuple[P, Incompatibility[P]]] = []
        self.undecided: dict[P, int] = {}
        self.changed: set[P] = set()
        self._level = self._order = 0
        self._assigned: dict[P, _Assignments[P]] = {}
        self._incompatibilities: dict[P, list[Incompatibility[P]]] = {}
        self._merged: dict[Hashable, list[Incompatibility[P]]] = {}
        self._contradicted: dict[Incompatibility[P], int] = {}
        self._has_backtracked = False
        self.add(Incompatibility({root: Term(False, ROOT_BITS)}))

    @property
    def decisions(self) -> dict[P, int]:
        """Return the bits of the chosen versions."""
        return {package: one.decision for package, one in self._assigned.items() if one.decision is not None}

    def has_decided(self, package: P, bits: int) -> bool:
        """Check whether this version of a package is chosen."""
        one = self._assigned.get(package)
        return one is not None and one.decision == bits

    def left(self, package: P) -> int | None:
        """Return the remaining versions of a required package, or None if it is not required."""
        one = self._assigned.get(package)
        return one.term.bits if one is not None and one.term.is_positive else None

    def add(self, one: Incompatibility[P]) -> None:
        """Add an incompatibility.

        It is merged with an equal dependency of other versions or, if it has an origin, with a fact about other
        versions of the same origin.
        """
        key: Hashable = one.dependency
        if key is None and one.causes is None and one.origin is not None:
            key = (*one.terms, one.origin)
        if key is not None:
            same = self._merged.setdefault(key, [])
            for place, past in enumerate(same):
                merged = one._merged(past)
                if merged is not None:
                    for package in merged.terms:
                        self._incompatibilities[package].remove(past)
                    same[place] = one = merged
                    break
            else:
                same.append(one)
        for package in one.terms:
            self._incompatibilities.setdefault(package, []).append(one)

    def propagate(self, package: P) -> None:
        """Derive the consequences of a change of `package`. Raises NoSolutionError."""
        changed = [package]
        while changed:
            conflict = self._propagate_one(changed.pop(), changed)
            if conflict is not None:
                self._look()
                package, cause = self._resolve(conflict)
                changed = [package]
                self._derive(package, cause)

    def try_to_decide(
        self, package: P, bits: int, dependencies: Iterable[Incompatibility[P]]
    ) -> Incompatibility[P] | None:
        """Choose a version, unless one of its dependencies cannot be met. Then return this dependency."""
        term = Term(True, bits)
        if self._has_backtracked:
            for one in dependencies:
                if self._relation(one, {package: term})[0] is _Relation.SATISFIED:
                    return one
        self.decide(package, bits)
        return None

    def decide(self, package: P, bits: int) -> None:
        """Choose a version."""
        self._level += 1
        self._order += 1
        one = self._assigned[package]
        one.last_level, one.decided_order, one.decision = self._level, self._order, bits
        one.term = Term(True, bits)
        self._note(package)

    def take_back(self, package: P) -> None:
        """Undo the decision about a package, and everything after it."""
        one = self._assigned.get(package)
        if one is not None and one.decision is not None:
            self._backtrack(one.last_level - 1)

    def _propagate_one(self, package: P, changed: list[P]) -> Incompatibility[P] | None:
        for one in reversed(self._incompatibilities.get(package, ())):
            if one in self._contradicted:
                continue
            relation, almost = self._relation(one, {})
            if relation is _Relation.SATISFIED:
                return one
            if almost is not None and relation is _Relation.ALMOST:
                if almost not in changed:
                    changed.append(almost)
                self._derive(almost, one)
            elif relation is _Relation.CONTRADICTED:
                self._contradicted[one] = self._level
        return None

    def _relation(self, one: Incompatibility[P], also: Mapping[P, Term]) -> tuple[_Relation, P | None]:
        relation, almost = _Relation.SATISFIED, None
        for package, term in one.terms.items():
            known = also.get(package)
            if known is None and package in self._assigned:
                known = self._assigned[package].term
            if known is not None:
                if known.is_subset(term):
                    continue
                if known.is_disjoint(term):
                    return _Relation.CONTRADICTED, package
            if relation is _Relation.SATISFIED:
                relation, almost = _Relation.ALMOST, package
            else:
                relation = _Relation.INCONCLUSIVE
        return relation, almost

    def _derive(self, package: P, cause: Incompatibility[P]) -> None:
        term = cause.terms[package].negation
        self._order += 1
        one = self._assigned.get(package)
        if one is None:
            one = self._assigned[package] = _Assignments(self._level, self._level, term)
        else:
            one.term, one.last_level = one.term.intersection(term), self._level
        one.derived.append((_Satisfier(self._order, self._level, cause), one.term))
        self._contradicted[cause] = self._level
        self._note(package)

    def _note(self, package: P) -> None:
        one = self._assigned.get(package)
        if one is None or one.decision is not None or not one.term.is_positive:
            self.undecided.pop(package, None)
        elif self.undecided.get(package) != one.term.bits:
            self.undecided[package] = one.term.bits
            self.changed.add(package)

    def _resolve(self, conflict: Incompatibility[P]) -> tuple[P, Incompatibility[P]]:
        """Find the cause of a conflict, and undo the decisions that led to it."""
        one, is_new = conflict, False
        while True:
            if not one.terms or set(one.terms) == {self._root}:
                raise NoSolutionError(one)
            satisfiers = {other: self._assigned[other].satisfier(term.negation) for other, term in one.terms.items()}
            package, satisfier = max(satisfiers.items(), key=lambda each: each[1].order)
            satisfiers[package] = self._previous(package, satisfier, one.terms[package])
            previous = max(1, max(satisfiers.values(), key=lambda each: each.order).level)
            if satisfier.cause is None or previous < satisfier.level:
                self._backtrack(previous)
                if is_new:
                    self.add(one)
                self.conflicts.append((package, one))
                return package, one
            one, is_new = _prior_cause(one, satisfier.cause, package), True
            self.conflicts.append((package, one))

    def _previous(self, package: P, satisfier: _Satisfier[P], term: Term) -> _Satisfier[P]:
        """Return the assignment that satisfied the rest of a term, before its satisfier did."""
        known = self._assigned[package]
        own = known.term if satisfier.cause is None else satisfier.cause.terms[package].negation
        return known.satisfier(own.intersection(term.negation))

    def _backtrack(self, level: int) -> None:
        self._level, self._has_backtracked = level, True
        for package, one in [(package, one) for package, one in self._assigned.items() if one.last_level > level]:
            if one.first_level > level:
                del self._assigned[package]
            else:
                while one.derived[-1][0].level > level:
                    one.derived.pop()
                last, one.term = one.derived[-1]
                one.last_level, one.decision = last.level, None
            self._note(package)
        self._contradicted = {one: at for one, at in self._contradicted.items() if at <= level}


def _prior_cause(one: Incompatibility[P], cause: Incompatibility[P], package: P) -> Incompatibility[P]:
    """Return the consequence of both incompatibilities, without the package that they disagree about."""
    terms = {other: term for other, term in one.terms.items() if other != package}
    for other, term in cause.terms.items():
        if other != package:
            terms[other] = terms[other].intersection(term) if other in terms else term
    union = one.terms[package].union(cause.terms[package])
    if union != _ANY:
        terms[package] = union
    return Incompatibility(terms, causes=(one, cause))
