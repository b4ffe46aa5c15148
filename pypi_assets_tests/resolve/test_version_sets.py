from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.resolve.version_sets import Notes, VersionSet

SETS = st.builds(VersionSet, st.integers(-(2**9), 2**9), st.sampled_from([*Notes, Notes.PINNED | Notes.BOUNDED]))
MEMBERS = range(12)


def members(some: VersionSet) -> set[int]:
    return {number for number in MEMBERS if number in some}


@given(SETS, SETS)
def test_operations_are_those_of_sets(one: VersionSet, other: VersionSet):
    assert members(one & other) == members(one) & members(other)
    assert members(one | other) == members(one) | members(other)
    assert members(one - other) == members(one) - members(other)
    assert members(~one) == set(MEMBERS) - members(one)
    relation = one.relation(other)
    assert relation.is_subset == one.is_subset(other) == other.is_superset(one) == (members(one) <= members(other))
    assert relation.is_disjoint == one.is_disjoint(other) == (not members(one) & members(other))
    assert one.is_empty == (not members(one))
    assert one.is_subset((one - other) | other)  # without which a solver may never end


@given(SETS, SETS)
def test_an_intersection_has_the_notes_of_both_and_no_note_changes_the_members(one: VersionSet, other: VersionSet):
    assert (one & other).notes == one.notes | other.notes
    assert (one - other).notes == one.notes
    assert (~one).notes == Notes.NONE
    assert members(VersionSet(one.bits)) == members(one)
    assert one == VersionSet(one.bits, one.notes)
    assert hash(one) == hash(VersionSet(one.bits, one.notes))


def test_the_ends():
    assert VersionSet.empty().is_empty
    assert members(VersionSet.full()) == set(MEMBERS)
    assert members(VersionSet.singleton(3)) == {3}
    assert ~VersionSet.empty() == VersionSet.full()
