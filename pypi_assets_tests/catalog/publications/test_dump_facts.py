"""Leaves are equal where the dumps are, however they were joined, and what describes them has one size."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.catalog.publications.dump_facts import NO_LEAVES, Leaves, all_leaves

NAMES = st.lists(st.text("0123456789-.", min_size=1, max_size=12), unique=True, max_size=12)


@given(NAMES, st.lists(st.integers(0, 12), max_size=4))
def test_the_way_of_joining_makes_no_difference(names: list[str], cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(names)]
    parts = [Leaves.of(names[start:end]) for start, end in pairwise(edges)]
    whole = Leaves.of(names)
    assert all_leaves(parts) == whole
    assert sum(parts, NO_LEAVES) == whole
    assert (whole.count, len(whole.digest)) == (len(names), 64)


@given(NAMES, NAMES)
def test_other_dumps_are_other_leaves(some: list[str], others: list[str]) -> None:
    assert (Leaves.of(some) == Leaves.of(others)) == (set(some) == set(others))
