"""Statistics of visits are derived from the visits, and change times from events."""

import math
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, select, update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.events import store_events
from pypi_assets.catalog.observed.projects import CatalogProject, project_ids
from pypi_assets.catalog.observed.visit_statistics import (
    VisitedProjects,
    note_changes,
    note_seen,
    prospects,
    revisits_for,
    visited_projects,
)
from pypi_assets.catalog.tables import projects, visit_statistics
from pypi_assets.index.models import ChangelogEvent
from pypi_assets.visit_policies import UNKNOWN_PACE
from pypi_assets_tests.catalog.ended_visits import enter, visit
from pypi_assets_tests.derived_statistics import derived_statistics, find_visit_statistics, kept_statistics
from pypi_assets_tests.examples import examples


@given(st.integers(0, 10**6), st.floats(0, 100), st.floats(0, 1, exclude_max=True))
@example(4, 25.0, 0.9999999999999999)  # which 1 + draw rounds up
def test_share_is_met_within_one_visit(visits: int, share: float, draw: float):
    exactly = visits * share / 100
    assert revisits_for(visits, share, draw) in {math.floor(exactly), math.ceil(exactly)}


@given(st.lists(st.integers(0, 300), min_size=1, max_size=50), st.sampled_from([0.0, 0.5, 1.0, 20.0, 100.0]))
def test_small_ranges_add_up_to_the_share(ranges: list[int], share: float):
    draws = [number / 1_000 + 1 / 2_000 for number in range(1_000)]
    for visits in ranges:
        mean = sum(revisits_for(visits, share, draw) for draw in draws) / len(draws)
        assert abs(mean - visits * share / 100) < 0.002


endings = st.sampled_from(["page", "no page", "old page", "put off", "exhausted", "abandoned"])


steps = st.lists(st.tuples(endings, st.sets(st.integers(0, 3), min_size=1), st.sampled_from(["crawl:1", "range:1-2"])))


@pytest.mark.nightly
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
def test_statistics_are_derived_from_visits(catalog: Catalog, steps: list[tuple[str, set[int], str]]):
    with catalog.write() as connection:
        entered = enter(connection, 4)
        due: dict[int, float | None] = {}
        for now, (ending, chosen, workload) in enumerate(steps):
            visited = [entered[number] for number in sorted(chosen)]
            visit(connection, visited, ending, float(now), workload)
            if ending != "abandoned":
                due |= dict.fromkeys((one.id for one in visited), now + 10.0 if ending == "put off" else None)
        kept = kept_statistics(connection)
        assert kept == derived_statistics(connection)
        for project in entered:
            found = find_visit_statistics(connection, project.id)
            if found is not None and found.next_due_at is not None:
                assert found.next_due_at == due[project.id]


def test_project_is_seen_when_last_named(catalog: Catalog):
    with catalog.write() as connection:
        [one, other] = enter(connection, 2)
        assert find_visit_statistics(connection, one.id) is None
        note_seen(connection, {one.id: 50.0, other.id: 50.0})
        note_seen(connection, {one.id: 40.0})  # a later row can describe an earlier time
        note_seen(connection, {other.id: 60.0})
    with catalog.write() as connection:
        store_events(connection, [ChangelogEvent(one.name, None, 55, "create", 1_001)], 1_000, 1_001)
    with catalog.read() as connection:
        seen = [find_visit_statistics(connection, project.id) for project in (one, other)]
    assert [found and found.last_seen_at for found in seen] == [55.0, 60.0]
    assert [found and found.last_visited_at for found in seen] == [None, None]


def events_of(connection: Connection, project: CatalogProject, *serials: int) -> list[ChangelogEvent]:
    return [
        ChangelogEvent(project.name, "1.0", 1, f"add source file {project.name}-1.0.{serial}.tar.gz", serial)
        for serial in serials
    ]


def test_lag_counts_from_the_first_event_missing_from_pages(catalog: Catalog):
    with catalog.write() as connection:
        lagging, seen, owned, unknown = enter(connection, 4)
        visit(connection, [lagging, seen, owned], "page", 1.0)  # at serial 5
        connection.execute(update(projects).where(projects.c.id == seen.id).values(page_serial=1_100))
    events = [event for one in (lagging, seen, unknown) for event in events_of(connection, one, 1_020, 1_090)]
    events += [ChangelogEvent(owned.name, None, 1, "add Owner somebody", 1_030)]
    distinct = [
        ChangelogEvent(one.name, one.version, one.timestamp, one.action, one.serial + number)
        for number, one in enumerate(events)
    ]
    with catalog.write() as connection:
        store_events(connection, sorted(distinct, key=lambda one: one.serial), 1_000, 1_200)
    with catalog.read() as connection:
        found = prospects(connection, {lagging.id: 1_090, seen.id: 1_092, owned.id: 0, unknown.id: 1_094}, 1_200)
        with_list = prospects(connection, {owned.id: 1_150}, 1_200)
    assert [found[one.id].lag for one in (lagging, seen, owned)] == [180, None, None]
    assert with_list[owned.id].lag == 50
    assert found[lagging.id].is_known
    assert unknown.id not in found


def test_change_times_of_events_set_the_pace_at_the_next_visit(catalog: Catalog):
    hour = 3_600
    with catalog.write() as connection:
        daily, idle, owned = enter(connection, 3)
    events = [
        ChangelogEvent(daily.name, "1.0", day * 24 * hour + minute * 60, f"add source file d-{day}.{minute}.zip", 0)
        for day in range(1, 5)
        for minute in (0, 5)  # the files of one release
    ]
    events += [ChangelogEvent(owned.name, None, 96 * hour, "add Owner somebody", 0)]
    numbered = [replace(event, serial=1_001 + number) for number, event in enumerate(events)]
    with catalog.write() as connection:
        store_events(connection, numbered, 1_000, 1_100)
        visit(connection, [daily, idle, owned], "page", 96.0 * hour)
        note_seen(connection, {daily.id: 1.0})
        note_changes(connection, {daily.id: [1.0 * hour, 25.0 * hour]})  # stored again
    with catalog.read() as connection:
        found = prospects(connection, dict.fromkeys((daily.id, idle.id, owned.id), 0), 1_100)
        stored = connection.execute(
            select(visit_statistics.c.last_changed_at, visit_statistics.c.change_gap_s).where(
                visit_statistics.c.project_id == daily.id
            )
        ).one()
    assert {one: found[one.id].pace for one in (daily, idle, owned)} == {
        daily: 5,  # one change in 2 ** 5 hours, the power next to 24
        idle: UNKNOWN_PACE,
        owned: UNKNOWN_PACE,
    }
    assert stored.last_changed_at == 96 * hour + 300
    assert stored.change_gap_s == pytest.approx(24 * hour - 300)


def test_never_visited_and_failing_projects_are_counted(catalog: Catalog):
    with catalog.write() as connection:
        assert visited_projects(connection) == VisitedProjects(0, None, 0)
        entered = enter(connection, 5)
        note_seen(connection, dict.fromkeys((project.id for project in entered), 1.0))
        visit(connection, entered[:4], "page", 10.0)
        visit(connection, entered[1:2], "old page", 20.0)
        visit(connection, entered[2:3], "put off", 30.0)
        visit(connection, entered[3:4], "no page", 40.0)
        assert visited_projects(connection) == VisitedProjects(1, 10.5, 2)
        assert len(project_ids(connection, [project.normalized for project in entered])) == 5
