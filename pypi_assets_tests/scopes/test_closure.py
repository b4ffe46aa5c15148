"""The closure over all serials equals a search at each serial."""

from collections.abc import Mapping
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.scopes.closure import EVER, OPEN_END, Reached, Spans, closure, shortest_path, union

NODES = "abcdef"
LAST = 8
SPANS = st.lists(st.tuples(st.integers(0, LAST), st.integers(0, LAST)), max_size=3).map(union)
ROOTS = st.dictionaries(st.sampled_from(NODES), SPANS, max_size=3)
EDGES = st.dictionaries(st.sampled_from(NODES), st.dictionaries(st.sampled_from(NODES), SPANS, max_size=4), max_size=6)
Edges = Mapping[str, Mapping[str, Spans]]


def holds(spans: Spans, serial: int) -> bool:
    return any(start <= serial < end for start, end in spans)


def depths_at(serial: int, roots: Mapping[str, Spans], edges: Edges, accepted: Mapping[str, Spans]) -> dict[str, int]:
    """Return the depths of all nodes that the roots lead to at one serial, found step by step."""

    def enters(node: str) -> bool:
        return holds(accepted.get(node, EVER), serial)

    depths = {root: 0 for root, spans in roots.items() if holds(spans, serial) and enters(root)}
    for depth in range(1, len(NODES) + 1):
        for node in [node for node, at in depths.items() if at == depth - 1]:
            for required, spans in edges.get(node, {}).items():
                if holds(spans, serial) and enters(required):
                    depths.setdefault(required, depth)
    return depths


@given(ROOTS, EDGES, st.dictionaries(st.sampled_from(NODES), SPANS, max_size=2), st.none() | st.integers(0, 4))
def test_closure_equals_a_search_at_each_serial(
    roots: dict[str, Spans], edges: Edges, accepted: dict[str, Spans], most_depth: int | None
) -> None:
    found = closure(
        roots, lambda node: edges.get(node, {}), accepted=lambda node: accepted.get(node, EVER), most_depth=most_depth
    )
    by_serial = {serial: depths_at(serial, roots, edges, accepted) for serial in range(LAST + 1)}
    for node in NODES:
        depths = {serial: depths[node] for serial, depths in by_serial.items() if node in depths}
        within = {serial for serial, depth in depths.items() if most_depth is None or depth <= most_depth}
        if within:
            assert {serial for serial in by_serial if holds(found[node].spans, serial)} == within
            assert found[node].depth == min(depths.values())
            assert found[node].first == min(within)
            assert not found[node].is_beyond
        elif most_depth is not None and most_depth + 1 in depths.values():
            assert found[node].is_beyond
        else:
            assert node not in found


@given(ROOTS, EDGES, st.integers(0, LAST), st.sampled_from(NODES))
def test_shortest_path_is_as_long_as_the_depth(roots: dict[str, Spans], edges: Edges, serial: int, target: str) -> None:
    path = shortest_path(roots, lambda node: edges.get(node, {}), target, serial, accepted=lambda _: EVER)
    depths = depths_at(serial, roots, edges, {})
    if target not in depths:
        assert path == []
        return
    assert len(path) == depths[target] + 1
    assert (path[-1], path[0] in roots) == (target, True)
    assert all(holds(edges[one][other], serial) for one, other in pairwise(path))


def test_cycle_without_roots_is_not_reached() -> None:
    edges = {"a": {"b": EVER}, "b": {"a": EVER}}
    assert closure({"c": EVER}, lambda node: edges.get(node, {}), accepted=lambda _: EVER) == {"c": Reached(EVER, 0)}


def test_node_keeps_its_longer_path_before_a_shorter_one() -> None:
    edges = {"a": {"b": EVER, "c": ((5, OPEN_END),)}, "b": {"c": EVER}}
    found = closure({"a": EVER}, lambda node: edges.get(node, {}), accepted=lambda _: EVER)
    assert found["c"] == Reached(EVER, 1)


def test_long_chain_takes_linear_steps() -> None:
    calls = 0

    def edges(node: int) -> dict[int, Spans]:
        nonlocal calls
        calls += 1
        return {node + 1: EVER} if node < 5_000 else {}

    assert closure({0: EVER}, edges, accepted=lambda _: EVER)[5_000].depth == 5_000
    assert calls == 5_001
