"""The position of each day in the plot of solvability."""

from datetime import date, timedelta
from itertools import pairwise
from typing import Any

import pytest

from pypi_assets.service.pages.solvability_page import LEFT, NARROW, SHARES, TOP, WIDTH, plots
from pypi_assets_tests.named import unnamed

FIRST = date(2026, 3, 1)


def day(number: int, solvable: int, unsolvable: int, lost: int = 0) -> dict[str, Any]:
    counts = {"solvable": solvable, "unsolvable": unsolvable}
    return {"day": (FIRST + timedelta(days=number)).isoformat(), "outcomes": counts, "newly_unsolvable": lost}


def test_days_without_counts_are_not_drawn():
    assert plots([]) == []
    assert plots([{"day": "2026-03-01", "outcomes": {}, "newly_unsolvable": 0}]) == []


def test_days_are_in_order_and_a_gap_breaks_the_line():
    wide, narrow = plots([day(0, 100, 0), day(1, 93, 7, lost=7), day(4, 999, 1, lost=1)])
    assert (wide.width, narrow.width) == (WIDTH, NARROW)
    for drawn in (wide, narrow):
        first, second = drawn.lines
        assert (len(first), len(second)) == (2, 1)
        xs = [point.x for line in drawn.lines for point in line]
        assert LEFT < xs[0] < xs[1] < xs[2] < drawn.right
        assert xs[2] - xs[1] == pytest.approx(3 * (xs[1] - xs[0]), abs=0.3)
        assert first[0].y == TOP  # all are solvable
        assert TOP < second[0].y < first[1].y < TOP + SHARES
        assert [
            unnamed(bar.text, *of) for bar, of in zip(drawn.bars, [("2026-03-02", 7), ("2026-03-05", 1)], strict=True)
        ] == [[], []]
        assert [bar.y + bar.height for bar in drawn.bars] == pytest.approx([drawn.base] * 2)
        assert drawn.bars[0].height == 7 * drawn.bars[1].height
        assert [tick.text for tick in drawn.shares] == ["100 %", "90 %"]
        assert (drawn.dates[0].text, drawn.dates[-1].text) == ("2026-03-01", "2026-03-05")
    assert unnamed(second[0].text, "2026-03-05", "99.9") == []
    assert unnamed(wide.summary, "99.9", 93, 8) == []


@pytest.mark.parametrize(("solvable", "unsolvable"), [(0, 5), (5, 0), (1, 1)])
def test_single_day_is_drawn_inside_for_any_share(solvable: int, unsolvable: int):
    for drawn in plots([day(0, solvable, unsolvable)]):
        [[point]] = drawn.lines
        assert LEFT < point.x < drawn.right
        assert TOP <= point.y <= TOP + SHARES
        assert len(drawn.dates) == 1


def test_a_year_has_only_as_many_labels_as_fit():
    for drawn in plots([day(number, 9, 1, lost=1) for number in range(400)]):
        xs = [tick.at for tick in drawn.dates]
        assert all(after - before > 60 for before, after in pairwise(xs))
        assert all(bar.width >= 0.7 for bar in drawn.bars)
