"""Follow requirements from a scope's roots: compute which projects are reached, and at which serials.

A set of serials is a tuple of spans that are sorted and do not touch. A span contains its first serial, but not its
end: `(5, 7)` is the serials 5 and 6.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

Span = tuple[int, int]
Spans = tuple[Span, ...]
OPEN_END = 2**63 - 1
"""The end of a span that has not ended."""
EVER: Spans = ((0, OPEN_END),)


def span(start: int, end: int | None) -> Span:
    """Return the span of an interval as the catalog stores it: an open end is None."""
    return start, OPEN_END if end is None else end


def union(spans: Iterable[Span]) -> Spans:
    """Return the serials that are in any of `spans`, which may overlap and have any order.

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
    """Return the serials that are in both.

    >>> intersection(((1, 4), (5, 7)), ((3, 6),))
    ((3, 4), (5, 6))
    """
    if len(one) == len(other) == 1:  # the usual case
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
    """Return the serials of `one` that are not in `other`.

    >>> difference(((1, 9),), ((2, 3), (5, 20)))
    ((1, 2), (3, 5))
    """
    return intersection(one, _gaps(other))


def _gaps(spans: Spans) -> Spans:
    """Return the serials of at least 0 that are in none of `spans`."""
    starts, ends = [0, *(end for _, end in spans)], [*(start for start, _ in spans), OPEN_END]
    return tuple((start, end) for start, end in zip(starts, ends, strict=True) if start < end)


_Node = TypeVar("_Node")


@dataclass(frozen=True, slots=True)
class Reached:
    """The serials at which a project is reached, and its depth.

    `depth` is the least number of requirements between a root and the project, at any of these serials. If `is_beyond`,
    the project is required, but only beyond the greatest depth.
    """

    spans: Spans
    depth: int
    is_beyond: bool = False

    @property
    def first(self) -> int:
        """Return the first serial at which it is reached."""
        return self.spans[0][0]


def closure(
    roots: Mapping[_Node, Spans],
    edges: Callable[[_Node], Mapping[_Node, Spans]],
    *,
    accepted: Callable[[_Node], Spans],
    most_depth: int | None = None,
) -> dict[_Node, Reached]:
    """Return the projects that `roots` lead to.

    `edges` returns the requirements of a project. It is called once for each reached project, and again if the project
    is reached at further serials by a longer path. `accepted` returns the serials at which the rules accept a project.
    With a `most_depth` of 0, only the roots are reached.

        closure({"a": EVER}, lambda name: {"b": ((5, 9),)} if name == "a" else {}, accepted=lambda name: EVER)
        # {"a": Reached(EVER, 0), "b": Reached(((5, 9),), 1)}
    """
    reached: dict[_Node, Reached] = {}
    depth = 0
    level: Mapping[_Node, Spans] = roots
    while level:
        is_beyond = most_depth is not None and depth > most_depth
        new: dict[_Node, Spans] = {}
        for node, spans in level.items():
            before = reached.get(node)
            fresh = intersection(spans, accepted(node))
            if before is not None:
                fresh = difference(fresh, before.spans)
            if not fresh:
                continue
            if before is None:
                reached[node] = Reached(fresh, depth, is_beyond)
            elif not is_beyond:
                reached[node] = Reached(union((*before.spans, *fresh)), before.depth)
            new[node] = fresh
        level = {} if is_beyond else _next_level(new, edges)
        depth += 1
    return reached


def _next_level(level: Mapping[_Node, Spans], edges: Callable[[_Node], Mapping[_Node, Spans]]) -> dict[_Node, Spans]:
    found: dict[_Node, Spans] = {}
    for node, spans in level.items():
        for required, holds in edges(node).items():
            if not (both := intersection(spans, holds)):
                continue
            known = found.get(required)
            if known is None:
                found[required] = both
            elif known != both:  # usually they are equal
                found[required] = union((*known, *both))
    return found


def shortest_path(
    roots: Mapping[_Node, Spans],
    edges: Callable[[_Node], Mapping[_Node, Spans]],
    target: _Node,
    serial: int,
    *,
    accepted: Callable[[_Node], Spans],
) -> list[_Node]:
    """Return a shortest path of projects from a root to `target` at one serial, both included; empty if there is none.

    If there are several shortest paths, the order of `roots` and `edges` decides.
    """

    def holds(spans: Spans) -> bool:
        return bool(intersection(spans, ((serial, serial + 1),)))

    came_from: dict[_Node, _Node | None] = {}
    level: list[_Node] = [root for root, spans in roots.items() if holds(spans) and holds(accepted(root))]
    came_from |= dict.fromkeys(level)
    while level and target not in came_from:
        following: list[_Node] = []
        for node in level:
            for required, spans in edges(node).items():
                if required not in came_from and holds(spans) and holds(accepted(required)):
                    came_from[required] = node
                    following.append(required)
        level = following
    return list(_back(came_from, target))[::-1] if target in came_from else []


def _back(came_from: Mapping[_Node, _Node | None], target: _Node) -> Iterator[_Node]:
    node: _Node | None = target
    while node is not None:
        yield node
        node = came_from[node]
