"""Sets of serials as spans: sorted, apart from each other, each from its first serial up to, not including, its end."""

from collections.abc import Iterable

Span = tuple[int, int]
Spans = tuple[Span, ...]
OPEN_END = 2**63 - 1
"""The end of a span that has not ended."""
EVER: Spans = ((0, OPEN_END),)


def span(start: int, end: int | None) -> Span:
    """The span of an interval as the catalog stores it, whose end may be open (None)."""
    return start, OPEN_END if end is None else end


def union(spans: Iterable[Span]) -> Spans:
    """The serials that are in any of `spans`, which may overlap and come in any order.

    >>> union([(5, 7), (1, 3), (3, 4)])
    ((1, 4), (5, 7))
    """
    joined: list[Span] = []
    for start, end in sorted(spans):
        if start >= end:
            continue
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return tuple(joined)


def intersection(one: Spans, other: Spans) -> Spans:
    """The serials that are in both.

    >>> intersection(((1, 4), (5, 7)), ((3, 6),))
    ((3, 4), (5, 6))
    """
    if len(one) == len(other) == 1:  # mostly it is
        start, end = max(one[0][0], other[0][0]), min(one[0][1], other[0][1])
        return ((start, end),) if start < end else ()
    found = []
    at = to = 0
    while at < len(one) and to < len(other):
        start, end = max(one[at][0], other[to][0]), min(one[at][1], other[to][1])
        if start < end:
            found.append((start, end))
        if one[at][1] < other[to][1]:
            at += 1
        else:
            to += 1
    return tuple(found)


def difference(one: Spans, other: Spans) -> Spans:
    """The serials of `one` that are not in `other`.

    >>> difference(((1, 9),), ((2, 3), (5, 20)))
    ((1, 2), (3, 5))
    """
    return intersection(one, _gaps(other))


def _gaps(spans: Spans) -> Spans:
    """The serials, from 0 on, that are in none of `spans`."""
    starts, ends = [0, *(end for _, end in spans)], [*(start for start, _ in spans), OPEN_END]
    return tuple((start, end) for start, end in zip(starts, ends, strict=True) if start < end)
