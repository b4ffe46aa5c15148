"""Sets of versions of one project. Each version is a bit."""

from dataclasses import dataclass
from typing import Self


class Notes:
    """Properties of the specifiers that a set was made from, as bits. They are independent of its members."""

    NONE = 0
    PINNED = 1
    """A specifier names a single version, by `==` or `===`."""
    BOUNDED = 2
    """A specifier has an upper bound: `<`, `<=`, `~=` or `==X.*`."""
    CONDITIONED = 4
    """There is a specifier."""
    PRERELEASES = 8
    """A specifier names a pre-release."""


class Relation:
    """The relation of one set to another."""

    __slots__ = ("is_disjoint", "is_subset")

    def __init__(self, is_subset: bool, is_disjoint: bool) -> None:
        self.is_subset, self.is_disjoint = is_subset, is_disjoint


_RELATIONS = {(subset, disjoint): Relation(subset, disjoint) for subset in (False, True) for disjoint in (False, True)}


@dataclass(frozen=True, slots=True)
class VersionSet:
    """A set of versions: bit N stands for version N. A complement has infinitely many bits, as a negative integer.

    `notes` count for equality, but not for membership. An intersection has the notes of both sets.
    """

    bits: int
    notes: int = Notes.NONE

    @classmethod
    def empty(cls) -> Self:
        return cls(0)

    @classmethod
    def full(cls) -> Self:
        return cls(-1)

    @classmethod
    def singleton(cls, version: int) -> Self:
        return cls(1 << version)

    @property
    def is_empty(self) -> bool:
        return not self.bits

    def __contains__(self, version: int) -> bool:
        return bool(self.bits >> version & 1)

    def __and__(self, other: object) -> Self:
        if not isinstance(other, VersionSet):
            return NotImplemented
        return type(self)(self.bits & other.bits, self.notes | other.notes)

    def __or__(self, other: object) -> Self:
        if not isinstance(other, VersionSet):
            return NotImplemented
        return type(self)(self.bits | other.bits, self.notes & other.notes)

    def __invert__(self) -> Self:
        return type(self)(~self.bits)

    def __sub__(self, other: object) -> Self:
        if not isinstance(other, VersionSet):
            return NotImplemented
        return type(self)(self.bits & ~other.bits, self.notes)

    def is_subset(self, other: Self) -> bool:
        return not self.bits & ~other.bits

    def is_superset(self, other: Self) -> bool:
        return not other.bits & ~self.bits

    def is_disjoint(self, other: Self) -> bool:
        return not self.bits & other.bits

    def relation(self, other: Self) -> Relation:
        return _RELATIONS[not self.bits & ~other.bits, not self.bits & other.bits]
