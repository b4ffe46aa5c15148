"""The statistics of visits agree with the visits, and say who is visited next."""

import itertools
from collections.abc import Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, insert, select, update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.derived.visits import Verdict, VisitStatus, begin_visits, record_verdicts
from pypi_assets.catalog.observed.events import store_events
from pypi_assets.catalog.observed.projects import Project, Selection, enter_projects, find_project, project_ids
from pypi_assets.catalog.observed.visit_statistics import (
    VisitedProjects,
    find_visit_statistics,
    note_seen,
    prospects,
    visited_projects,
)
from pypi_assets.catalog.tables import catalog_state, projects, visit_queue, visit_statistics
from pypi_assets.catalog.work.visit_queue import (
    REVISITS,
    claim_visits,
    longest_unvisited,
    queue_revisits,
    queue_visits,
    scope_progress,
)
from pypi_assets.index.models import ChangelogEvent, ProjectPage
from pypi_assets_tests.derived_statistics import derived_statistics, kept_statistics

_numbers = itertools.count()


def enter(connection: Connection, count: int) -> list[Project]:
    """New projects of a catalog that has events up to serial 1,000."""
    if connection.scalar(select(catalog_state.c.id)) is None:
        state = {"events_since": 0, "events_through": 1_000, "exact_from": 0, "next_dump_sequence": 1}
        connection.execute(insert(catalog_state).values(id=1, index_url="", **state))
    names = [f"project-{next(_numbers)}" for _ in range(count)]
    enter_projects(connection, [(name, 0) for name in names])
    found = [find_project(connection, name) for name in names]
    return [project for project in found if project is not None]


def verdict_of(project: Project, visit_id: int, ending: str, now: float) -> Verdict:
    page = ProjectPage(project.name, 5, "active", ())
    match ending:
        case "page":
            return Verdict(visit_id, project, VisitStatus.FULL, page)
        case "no page":
            return Verdict(visit_id, project, VisitStatus.NOT_FOUND, explained_at=7)
        case "old page":
            return Verdict(visit_id, project, VisitStatus.PARTIAL, page, text="stale")
        case "put off":
            return Verdict(visit_id, project, VisitStatus.FAILED, text="503", is_conclusive=False, due_at=now + 10)
    return Verdict(visit_id, project, VisitStatus.FAILED, text="503")


def visit(connection: Connection, found: Sequence[Project], ending: str, now: float, scope: str = "crawl:1") -> None:
    ids = begin_visits(connection, [project.id for project in found], "full", scope, now)
    if ending != "abandoned":
        record_verdicts(connection, [verdict_of(one, ids[one.id], ending, now) for one in found], now + 0.5)


endings = st.sampled_from(["page", "no page", "old page", "put off", "given up", "abandoned"])
steps = st.lists(st.tuples(endings, st.sets(st.integers(0, 3), min_size=1), st.sampled_from(["crawl:1", "range:1-2"])))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
def test_the_statistics_follow_from_the_visits(catalog: Catalog, steps: list[tuple[str, set[int], str]]):
    with catalog.write() as connection:
        entered = enter(connection, 4)
        due: dict[int, float | None] = {}
        for now, (ending, chosen, scope) in enumerate(steps):
            visited = [entered[number] for number in sorted(chosen)]
            visit(connection, visited, ending, float(now), scope)
            if ending != "abandoned":
                due |= dict.fromkeys((one.id for one in visited), now + 10.0 if ending == "put off" else None)
        kept = kept_statistics(connection)
        assert kept == derived_statistics(connection)
        for project in entered:
            found = find_visit_statistics(connection, project.id)
            if found is not None and found.next_due_at is not None:
                assert found.next_due_at == due[project.id]


def test_a_project_is_seen_when_it_is_named_last(catalog: Catalog):
    with catalog.write() as connection:
        [one, other] = enter(connection, 2)
        assert find_visit_statistics(connection, one.id) is None
        note_seen(connection, {one.id: 50.0, other.id: 50.0})
        note_seen(connection, {one.id: 40.0})  # what is stored later can have happened before
        note_seen(connection, {other.id: 60.0})
    with catalog.write() as connection:
        store_events(connection, [ChangelogEvent(one.name, None, 55, "create", 1_001)], 1_000, 1_001, Selection())
    with catalog.read() as connection:
        seen = [find_visit_statistics(connection, project.id) for project in (one, other)]
    assert [found and found.last_seen_at for found in seen] == [55.0, 60.0]
    assert [found and found.last_visited_at for found in seen] == [None, None]


def events_of(connection: Connection, project: Project, *serials: int) -> list[ChangelogEvent]:
    return [
        ChangelogEvent(project.name, "1.0", 1, f"add source file {project.name}-1.0.{serial}.tar.gz", serial)
        for serial in serials
    ]


def test_a_project_lags_behind_since_the_first_event_that_no_page_has_shown(catalog: Catalog):
    with catalog.write() as connection:
        lagging, seen, told, unknown = enter(connection, 4)
        visit(connection, [lagging, seen, told], "page", 1.0)  # of serial 5
        connection.execute(update(projects).where(projects.c.id == seen.id).values(page_serial=1_100))
    events = [event for one in (lagging, seen, unknown) for event in events_of(connection, one, 1_020, 1_090)]
    events += [ChangelogEvent(told.name, None, 1, "add Owner somebody", 1_030)]
    distinct = [
        ChangelogEvent(one.name, one.version, one.timestamp, one.action, one.serial + number)
        for number, one in enumerate(events)
    ]
    with catalog.write() as connection:
        store_events(connection, sorted(distinct, key=lambda one: one.serial), 1_000, 1_200, Selection())
    with catalog.read() as connection:
        found = prospects(connection, {lagging.id: 1_090, seen.id: 1_092, told.id: 0, unknown.id: 1_094}, 1_200)
        told_by_list = prospects(connection, {told.id: 1_150}, 1_200)
    assert [found[one.id].lag for one in (lagging, seen, told)] == [180, None, None]
    assert told_by_list[told.id].lag == 50
    assert found[lagging.id].is_known
    assert unknown.id not in found


def test_visits_are_claimed_in_the_order_of_the_policy(catalog: Catalog):
    with catalog.write() as connection:
        paused, failing, unchanged, nearer, further, unknown = enter(connection, 6)
        visit(connection, [paused, failing, unchanged, nearer, further], "page", 1.0)
        for now in (2.0, 3.0, 4.0):
            visit(connection, [failing], "given up", now)
        visit(connection, [paused], "put off", 20.0)
        serials = {unchanged: 0, nearer: 900, further: 100, unknown: 990, failing: 100, paused: 100}
        queue_visits(connection, "range:5-1000", [(one.id, 0, serial) for one, serial in serials.items()])

        def claimed(now: float) -> list[int]:
            tasks = claim_visits(connection, "range:5-1000", None, worker="one", now=now, until=99.0, limit=10)
            return [task.project.id for task in tasks]

        assert claimed(25.0) == [one.id for one in (unknown, further, nearer, failing, unchanged)]
        assert claimed(30.0) == [paused.id]


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(times=st.lists(st.one_of(st.none(), st.integers(0, 3)), min_size=1, max_size=6), count=st.integers(0, 7))
def test_the_longest_unvisited_are_found_in_order(catalog: Catalog, times: list[int | None], count: int):
    with catalog.write() as connection:
        connection.execute(visit_statistics.delete())
        entered = enter(connection, len(times))
        note_seen(connection, dict.fromkeys((one.id for one in entered), 1.0))
        for project, at in zip(entered, times, strict=True):
            if at is not None:
                visit(connection, [project], "page", float(at))
        order = sorted(
            zip(times, (one.id for one in entered), strict=True),
            key=lambda pair: (-1 if pair[0] is None else pair[0], pair[1]),
        )
        assert [project_id for project_id, _ in longest_unvisited(connection, count)] == [
            project_id for _, project_id in order
        ][:count]


def test_revisits_take_the_longest_unvisited_that_nobody_visits_anyway(catalog: Catalog):
    with catalog.write() as connection:
        entered = enter(connection, 4)
        for at, project in enumerate(entered):
            visit(connection, [project], "page", float(at))
        queue_visits(connection, "range:1-2", [(entered[0].id, 0, 0)])
        assert queue_revisits(connection, 2, excluded_scope="range:1-2") == 2
        assert queue_revisits(connection, 2, excluded_scope="range:2-3") == 2  # those before are not done yet
        assert queue_revisits(connection, 2, excluded_scope="range:2-3") == 0
        assert queue_revisits(connection, 0, excluded_scope="range:2-3") == 0
        assert scope_progress(connection, REVISITS).todo == 4
        connection.execute(update(visit_queue).where(visit_queue.c.scope == REVISITS).values(state="done"))
        assert queue_revisits(connection, 1, excluded_scope="range:2-3") == 1
        queued = connection.scalars(select(visit_queue.c.project_id).where(visit_queue.c.scope == REVISITS)).all()
        assert queued == [entered[0].id]


def test_the_counts_tell_who_was_never_visited_and_who_fails(catalog: Catalog):
    with catalog.write() as connection:
        assert visited_projects(connection) == VisitedProjects(0, None, 0)
        entered = enter(connection, 5)
        note_seen(connection, dict.fromkeys((one.id for one in entered), 1.0))
        visit(connection, entered[:4], "page", 10.0)
        visit(connection, entered[1:2], "old page", 20.0)
        visit(connection, entered[2:3], "put off", 30.0)
        visit(connection, entered[3:4], "no page", 40.0)
        assert visited_projects(connection) == VisitedProjects(1, 10.5, 2)
        assert len(project_ids(connection, [one.normalized for one in entered])) == 5
