"""Spans behave like sets of serials."""

from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.scopes.closure import EVER, OPEN_END, Spans, difference, intersection, union

LAST = 30
SPANS = st.lists(st.tuples(st.integers(0, LAST), st.integers(0, LAST))).map(union)


def serials(spans: Spans) -> set[int]:
    return {serial for start, end in spans for serial in range(start, min(end, LAST))}


def are_apart(spans: Spans) -> bool:
    flat = [serial for span in spans for serial in span]
    return flat == sorted(set(flat))


@given(SPANS, SPANS)
def test_span_operations_equal_set_operations(one: Spans, other: Spans) -> None:
    assert serials(union((*one, *other))) == serials(one) | serials(other)
    assert serials(intersection(one, other)) == serials(one) & serials(other)
    assert serials(difference(one, other)) == serials(one) - serials(other)
    assert all(map(are_apart, (one, union((*one, *other)), intersection(one, other), difference(one, other))))


def test_open_span_has_no_end() -> None:
    assert difference(EVER, ((3, 5),)) == ((0, 3), (5, OPEN_END))
    assert difference(EVER, EVER) == ()
    assert intersection(((7, OPEN_END),), ((3, OPEN_END),)) == ((7, OPEN_END),)
