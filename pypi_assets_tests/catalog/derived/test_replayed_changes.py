"""Each difference between two states has a serial from which it shows."""

from dataclasses import replace

from pypi_assets.catalog.derived.project_state import Interval
from pypi_assets.catalog.derived.replayed_changes import FollowedSpan, ShownFiles, changed_serials, renamed_projects

BEFORE = ShownFiles(
    facts={1: ("a",), 2: ("b",)},
    live={1: (Interval(5, None),), 2: (Interval(7, 9), Interval(12, None))},
    yanked={1: (Interval(6, 8),)},
    names={3: "demo"},
    followed={3: (FollowedSpan(2, None, None),)},
)


def changed(**after: object) -> set[int]:
    return {*changed_serials(BEFORE, replace(BEFORE, **after))}


def test_equal_states_have_no_change() -> None:
    assert changed() == set()
    assert renamed_projects(BEFORE, BEFORE) == []


def test_each_kind_of_change_has_the_serial_where_it_shows() -> None:
    assert changed(live=BEFORE.live | {1: (Interval(5, 20),)}) == {20}
    assert changed(live=BEFORE.live | {1: (Interval(4, None),)}) == {4, 5}
    assert changed(live=BEFORE.live | {1: ()}) == {5}
    assert changed(yanked={}) == {6, 8}
    assert changed(yanked={1: (Interval(6, None),)}) == {8}
    assert changed(facts=BEFORE.facts | {2: ("other",)}) == {7, 12}
    assert changed(facts=BEFORE.facts | {4: ("new",)}, live=BEFORE.live | {4: (Interval(3, None),)}) == {3}
    assert changed(followed={3: (FollowedSpan(2, None, 11),)}) == {11}
    assert changed(followed={3: (FollowedSpan(2, 15, None),)}) == {15}
    assert renamed_projects(BEFORE, replace(BEFORE, names={3: "Demo"})) == [3]
