"""Requirements are those that hold with each extra, and of thousands of extras each costs by what it adds."""

import time

from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.resolve.questions import ReleaseRequirements, Wanted
from pypi_assets_tests.naming import mentions
from pypi_assets_tests.resolve.made_index import LINUX

COMPARISONS = st.sampled_from(
    [
        *("extra == 'a'", "'A' == extra", "extra == 'b_C'", "extra != 'a'", "extra in 'a b-c'", "os_name == 'extra'"),
        *("python_version > '3'", "python_version < '3'", "'b-c' != extra"),
    ]
)
MARKERS = st.recursive(
    COMPARISONS,
    lambda some: st.tuples(some, st.sampled_from(["and", "or"]), some).map(lambda one: f"({' '.join(one)})"),
)


def holds(wanted: Wanted, extra: str) -> bool:
    return wanted.marker is None or LINUX.with_extra(extra).holds(str(wanted.marker)) is not False


@given(
    markers=st.lists(MARKERS, max_size=6), extras=st.lists(st.sampled_from(["a", "b-c", "d"]), max_size=3, unique=True)
)
def test_they_are_those_whose_markers_hold(markers, extras):
    texts = ["plain", "not a requirement", *(f"p{place}; {marker}" for place, marker in enumerate(markers))]
    found = ReleaseRequirements(texts, holds)
    every = found.held_with(["a", "b-c", "d", "e"])
    [error] = found.errors
    assert mentions(str(error), "not a requirement")
    parsed = {one.text: one for one in [*every, *found.held]}
    given = [parsed[text] for text in texts if text in parsed]
    assert list(found.held) == [one for one in given if holds(one, "")]
    assert found.held_with(extras) == [one for one in given if any(holds(one, each) for each in extras or [""])]
    for extra in ("a", "b-c", "d"):
        assert found.added(extra) == [one for one in given if holds(one, extra) and not holds(one, "")]


def test_thousands_of_extras_take_little():
    texts = [f"p{number}; extra == 'e{number}'" for number in range(2_000)]
    began = time.process_time()
    found = ReleaseRequirements(texts, holds)
    assert all([one.project for one in found.added(f"e{number}")] == [f"p{number}"] for number in range(2_000))
    assert time.process_time() - began < 10
