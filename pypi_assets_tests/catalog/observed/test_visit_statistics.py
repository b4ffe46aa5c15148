"""Statistics of visits are derived from the visits, and the visit policy uses them."""

import math
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.events import store_events
from pypi_assets.catalog.observed.projects import CatalogProject, project_ids
from pypi_assets.catalog.observed.visit_statistics import (
    WEIGHTS,
    Prospect,
    VisitedProjects,
    due_at,
    nice_of,
    note_seen,
    prospects,
    revisits_for,
    visited_projects,
)
from pypi_assets.catalog.tables import projects
from pypi_assets.index.models import ChangelogEvent
from pypi_assets_tests.catalog.ended_visits import enter, visit
from pypi_assets_tests.derived_statistics import derived_statistics, find_visit_statistics, kept_statistics
from pypi_assets_tests.examples import examples

GREATEST_SERIAL = 2**50
LEAST_SMALLINT, GREATEST_SMALLINT = -(2**15), 2**15 - 1

lags = st.integers(0, GREATEST_SERIAL)
failures = st.integers(0, 10**6)
drawn_prospects = st.builds(Prospect, st.booleans(), st.one_of(st.none(), lags), failures)


@given(drawn_prospects)
def test_nice_values_fit_their_column(prospect: Prospect):
    assert LEAST_SMALLINT <= nice_of(prospect) <= GREATEST_SMALLINT


@given(lags, lags, failures)
@example(0, 2**63 - 1, 0)
def test_order_is_unknown_then_changed_then_others(lag: int, other_lag: int, failed: int):
    unknown = Prospect(is_known=False, lag=lag, failures=failed)
    changed = Prospect(is_known=True, lag=other_lag, failures=failed)
    rest = Prospect(is_known=True, lag=None, failures=failed)
    assert nice_of(unknown) < nice_of(changed) < nice_of(rest)


@given(lags, lags)
def test_greater_lag_never_lowers_priority(lag: int, other_lag: int):
    nearer, further = sorted((lag, other_lag))
    assert nice_of(Prospect(True, further)) <= nice_of(Prospect(True, nearer))


@given(lags)
def test_double_lag_raises_priority(lag: int):
    assert nice_of(Prospect(True, 2 * lag + 1)) < nice_of(Prospect(True, lag))


@given(drawn_prospects, failures)
def test_consecutive_failures_count_up_to_a_bound(prospect: Prospect, more: int):
    failed = replace(prospect, failures=prospect.failures + more)
    counted = min(failed.failures, WEIGHTS.most_failures) - min(prospect.failures, WEIGHTS.most_failures)
    assert nice_of(failed) - nice_of(prospect) == counted * WEIGHTS.failure


@given(drawn_prospects, st.floats(1, 1e10))
def test_project_is_paused_until_its_next_due_time(prospect: Prospect, later: float):
    assert due_at(prospect) == 0.0
    assert due_at(replace(prospect, next_due_at=later)) == later


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
