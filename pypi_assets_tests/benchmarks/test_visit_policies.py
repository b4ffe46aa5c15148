"""The simulation of visit policies: equal histories and budgets, and the ranking that docs/operations.md states."""

from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.visit_policies import WAYS, Simulation, drawn_histories, recorded_histories, simulate
from pypi_assets.catalog.database import open_catalog
from pypi_assets.catalog.observed.events import store_events
from pypi_assets.index.models import ChangelogEvent
from pypi_assets.visit_policies import VISIT_POLICIES
from pypi_assets_tests.catalog.ended_visits import enter
from pypi_assets_tests.databases import sqlite_database


def simulated(way: str, projects: int, days: int) -> dict[str, Simulation]:
    histories = drawn_histories(projects, days, seed=1)
    return {name: simulate(way, policy, histories, days) for name, policy in VISIT_POLICIES.items()}


def require_equal_budgets(found: dict[str, Simulation], days: int) -> None:
    [requests] = {one.requests for one in found.values()}
    [changes] = {len(one.delays) for one in found.values()}
    assert 0 < requests <= days * 24 * found["age"].budget
    assert changes == sum(at > days * 12 * 3_600 for history in found["age"].histories for at in history)


def test_budgets_and_histories_are_equal_for_each_policy() -> None:
    assert drawn_histories(20, 30, seed=1) == drawn_histories(20, 30, seed=1) != drawn_histories(20, 30, seed=2)
    sizes = {"ranges": (60, 40), "polls": (240, 12), "revisits": (60, 12)}
    assert sizes.keys() == WAYS.keys()
    for way, (projects, days) in sizes.items():
        found = simulated(way, projects, days)
        require_equal_budgets(found, days)
        for one in found.values():
            assert 0 < one.delay_mean_h <= one.delay_p95_h
            assert 0 < one.stale_percent < 100


@pytest.mark.nightly
def test_stated_ranking_of_policies_holds() -> None:
    ranges = simulated("ranges", projects=500, days=100)
    require_equal_budgets(ranges, 100)
    for name in ("balanced", "lag"):
        assert ranges[name].delay_mean_h < ranges["age"].delay_mean_h
        assert abs(ranges[name].stale_percent - ranges["age"].stale_percent) < 0.1
    for way in ("polls", "revisits"):
        found = simulated(way, projects=500, days=100)
        require_equal_budgets(found, 100)
        assert found["lag"].delays == found["age"].delays
        for name in VISIT_POLICIES.keys() - {"activity"}:
            assert found["activity"].delay_mean_h < found[name].delay_mean_h
            assert found["activity"].stale_percent < found[name].stale_percent
    assert found["balanced"].delays == found["age"].delays


def test_histories_of_a_catalog_are_its_changes_of_files(tmp_path: Path) -> None:
    url = sqlite_database(tmp_path / "catalog.sqlite")
    with closing(open_catalog(url)) as catalog, catalog.write() as connection:
        one, other = enter(connection, 2)
        events = [
            ChangelogEvent(one.name, "1.0", 500, "add source file a-1.0.zip", 1_001),
            ChangelogEvent(other.name, None, 550, "add Owner somebody", 1_002),
            ChangelogEvent(other.name, "1.0", 600, "yank release", 1_003),
            ChangelogEvent(one.name, "1.0", 700, "remove release", 1_004),
        ]
        store_events(connection, events, 1_000, 1_004)
    assert sorted(recorded_histories(url)) == [[0.0, 200.0], [100.0]]
