"""Version sets, terms, and the steps of PubGrub."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.resolve.pubgrub import ROOT_BITS, Incompatibility, NoSolutionError, PartialSolution, Term
from pypi_assets.resolve.version_sets import Notes, VersionSet

VERSIONS = range(3)
TERMS = [Term(is_positive, bits) for is_positive in (True, False) for bits in range(8)]


def meaning(term: Term) -> set[int | None]:
    """Return the choices that satisfy a term. None stands for no version."""
    among: set[int | None] = {version for version in VERSIONS if term.bits >> version & 1}
    return among if term.is_positive else {*VERSIONS, None} - among


def test_terms_are_sets(subtests: pytest.Subtests) -> None:
    for left, right in list(product(TERMS, TERMS)):
        with subtests.test(left=left, right=right):
            assert meaning(left.negation) == {*VERSIONS, None} - meaning(left)
            assert meaning(left.intersection(right)) == meaning(left) & meaning(right)
            assert meaning(left.union(right)) == meaning(left) | meaning(right)
            assert left.is_disjoint(right) == meaning(left).isdisjoint(meaning(right))
            assert left.is_subset(right) == (meaning(left) <= meaning(right))


def decide_root(solution: PartialSolution[str], *required: tuple[str, int]) -> None:
    solution.propagate("root")
    for package, bits in required:
        solution.add(Incompatibility.of_dependency("root", ROOT_BITS, package, bits))
    solution.decide("root", ROOT_BITS)


def test_requirements_are_derived() -> None:
    solution = PartialSolution("root")
    assert solution.decisions == {}
    decide_root(solution, ("a", 0b110), ("a", 0b011), ("b", -1))
    solution.propagate("root")
    assert solution.undecided == {"a": 0b010, "b": -1}
    assert solution.decisions == {"root": ROOT_BITS}


def test_conflict_reverts_only_its_causes() -> None:
    solution = PartialSolution("root")
    decide_root(solution, ("a", 0b11), ("b", 0b11))
    solution.propagate("root")
    needs_c = Incompatibility.of_dependency("a", 0b10, "c", 0b1)
    solution.add(needs_c)
    assert solution.try_to_decide("a", 0b10, [needs_c]) is None
    solution.propagate("a")
    solution.decide("b", 0b10)
    solution.add(Incompatibility.of_versions("c", 0b1))
    solution.propagate("c")
    assert solution.undecided == {"a": 0b01, "b": 0b11}
    assert [package for package, _ in solution.conflicts] == ["c", "a"]
    excludes_a = Incompatibility.of_dependency("b", 0b10, "a", 0b10)
    solution.add(excludes_a)
    assert solution.try_to_decide("b", 0b10, [excludes_a]) is excludes_a
    solution.propagate("b")
    assert solution.undecided == {"a": 0b01, "b": 0b01}


def test_equal_dependencies_of_versions_are_merged() -> None:
    solution = PartialSolution("root")
    decide_root(solution, ("a", 0b111))
    for bits in (0b100, 0b010):
        solution.add(Incompatibility.of_dependency("a", bits, "b", 0b1))
    solution.add(Incompatibility.of_versions("b", 0b1))
    solution.propagate("root")
    assert solution.undecided == {"a": 0b111}
    solution.propagate("b")  # both versions at once
    assert solution.undecided == {"a": 0b001}


def test_decision_is_reverted() -> None:
    solution = PartialSolution("root")
    decide_root(solution, ("a", 0b11), ("b", 0b11))
    solution.propagate("root")
    solution.decide("a", 0b10)
    solution.decide("b", 0b10)
    solution.take_back("c")
    assert solution.decisions == {"root": 1, "a": 0b10, "b": 0b10}
    solution.take_back("a")
    assert solution.decisions == {"root": 1}
    assert solution.undecided == {"a": 0b11, "b": 0b11}


def test_no_solution() -> None:
    solution = PartialSolution("root")
    decide_root(solution, ("a", 0b1))
    solution.add(Incompatibility.of_versions("a", 0b11))
    with pytest.raises(NoSolutionError):
        solution.propagate("a")


def test_versions_excluded_for_one_reason_are_merged() -> None:
    solution = PartialSolution("root")
    decide_root(solution, ("a", 0b111))
    for bits, reason in ((0b100, "reason"), (0b010, "other"), (0b001, "reason")):
        solution.add(Incompatibility.of_versions("a", bits, reason))
    with pytest.raises(NoSolutionError) as raised:
        solution.propagate("a")
    facts, waiting = {}, [raised.value.conflict]
    while waiting:
        fact = waiting.pop()
        waiting += fact.causes or ()
        if fact.causes is None and fact.origin is not None:
            facts[fact.origin] = fact.terms["a"].bits
    assert facts == {"reason": 0b101, "other": 0b010}


SETS = st.builds(
    VersionSet,
    st.integers(-(2**9), 2**9),
    st.sampled_from(
        [Notes.NONE, Notes.PINNED, Notes.BOUNDED, Notes.CONDITIONED, Notes.PRERELEASES, Notes.PINNED | Notes.BOUNDED]
    ),
)
MEMBERS = range(12)


def members(versions: VersionSet) -> set[int]:
    return {number for number in MEMBERS if number in versions}


@given(SETS, SETS)
def test_operations_match_set_operations(left: VersionSet, right: VersionSet):
    assert members(left & right) == members(left) & members(right)
    assert members(left | right) == members(left) | members(right)
    assert members(left - right) == members(left) - members(right)
    assert members(~left) == set(MEMBERS) - members(left)
    relation = left.relation(right)
    assert relation.is_subset == left.is_subset(right) == right.is_superset(left) == (members(left) <= members(right))
    assert relation.is_disjoint == left.is_disjoint(right) == (not members(left) & members(right))
    assert left.is_empty == (not members(left))
    assert left.is_subset((left - right) | right)  # without this a solver may never end


@given(SETS, SETS)
def test_intersection_joins_notes_and_notes_do_not_change_members(left: VersionSet, right: VersionSet):
    assert (left & right).notes == left.notes | right.notes
    assert (left - right).notes == left.notes
    assert (~left).notes == Notes.NONE
    assert members(VersionSet(left.bits)) == members(left)
    assert left == VersionSet(left.bits, left.notes)
    assert hash(left) == hash(VersionSet(left.bits, left.notes))


def test_bounds():
    assert VersionSet.empty().is_empty
    assert members(VersionSet.full()) == set(MEMBERS)
    assert members(VersionSet.singleton(3)) == {3}
    assert ~VersionSet.empty() == VersionSet.full()
