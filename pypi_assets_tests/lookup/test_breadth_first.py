"""Each name comes once, by the shortest way that leads to it."""

from collections.abc import Container, Iterator

from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.lookup.newest_requirements import breadth_first

NAMES = "abcdef"


@given(
    edges=st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), max_size=4)),
    depth=st.none() | st.integers(0, 4),
    leaves_out=st.booleans(),
)
def test_each_name_comes_once_at_its_least_depth(edges: dict[str, list[str]], depth: int | None, leaves_out: bool):
    def direct(name: str, found: Container[str]) -> Iterator[tuple[str, str]]:
        return ((one, one.upper()) for one in edges.get(name, []) if not (leaves_out and one in found))

    found = list(breadth_first(direct, "a", depth))
    depths = {"a": 0}
    for _ in NAMES:  # relaxed until nothing changes
        for name, others in edges.items():
            for one in others:
                if name in depths:
                    depths[one] = min(depths.get(one, len(NAMES)), depths[name] + 1)
    expected = {one.upper(): steps for one, steps in depths.items() if steps and (depth is None or steps <= depth)}
    assert {name: steps for steps, name in found} == expected
    assert len(found) == len(expected)
    assert [steps for steps, _ in found] == sorted(steps for steps, _ in found)
