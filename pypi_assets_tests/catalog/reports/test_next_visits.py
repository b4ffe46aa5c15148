"""The next visits are shown in the order in which workers claim them, with the reasons for which they are queued."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, insert, select

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.observed.observations import Observations
from pypi_assets.catalog.observed.projects import CatalogProject, enter_projects, project_ids
from pypi_assets.catalog.observed.visit_statistics import note_seen
from pypi_assets.catalog.reports.next_visits import (
    POLLS,
    NextVisit,
    VisitReason,
    VisitState,
    next_visits,
    next_visits_of,
    result_of,
)
from pypi_assets.catalog.tables import catalog_state, visit_queue, visit_statistics
from pypi_assets.catalog.work.revisits import queue_revisits
from pypi_assets.catalog.work.visit_queue import (
    LISTING,
    REVISITS,
    TaskState,
    claim_visits,
    finish_visits,
    postpone_visits,
    queue_visits,
)
from pypi_assets.index.observing.shown_pages import ShownProject
from pypi_assets.visit_policies import VISIT_POLICIES, VisitPolicy
from pypi_assets_tests.catalog.ended_visits import enter, visit
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.examples import examples
from pypi_assets_tests.measured_work import measure

NOW = 1_000.0
RANGE = "range:5-1000"
drawn_visits = st.lists(
    st.tuples(st.sampled_from(["page", "put off", None]), st.integers(0, 900)), min_size=1, max_size=8
)


def at(catalog: Catalog, now: float = NOW) -> Catalog:
    return replace(catalog, clock=lambda: now)


def forget_queue(connection: Connection) -> None:
    connection.execute(visit_queue.delete())
    connection.execute(visit_statistics.delete())


@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=drawn_visits, policy=st.sampled_from(list(VISIT_POLICIES.values())), limit=st.integers(1, 9))
def test_order_equals_the_order_of_claims(
    catalog: Catalog, drawn: list[tuple[str | None, int]], policy: VisitPolicy, limit: int
):
    with replace(at(catalog), visit_policy=policy).write() as connection:
        forget_queue(connection)
        entered = enter(connection, len(drawn))
        for project, (ending, _) in zip(entered, drawn, strict=True):
            if ending is not None:
                visit(connection, [project], ending, NOW - 5.0)  # put off until NOW + 5
        queue_visits(connection, RANGE, [(one.id, 0, serial) for one, (_, serial) in zip(entered, drawn, strict=True)])
        shown = [one for one in next_visits(connection, limit) if one.workload == RANGE]
        found = [one for one in next_visits(connection, 20) if one.workload == RANGE]
        alone = {one.name: next_visits_of(connection, one.name) for one in entered}
        claimed = claim_visits(connection, RANGE, None, worker="one", now=NOW, until=NOW + 9, limit=20)
        running = [one for one in next_visits(connection, 20) if one.workload == RANGE]
    due = [one for one in found if one.state == VisitState.DUE]
    waiting = [one for one in found if one.state == VisitState.LATER]
    assert [one.project for one in due] == [task.project.name for task in claimed]
    assert [one.place for one in due] == list(range(1, len(claimed) + 1))
    assert found[: len(shown)] == shown
    assert found == [*due, *waiting]
    assert {one.project for one in found} == {one.name for one in entered}
    assert [one.due_at for one in waiting] == [NOW + 5.0] * len(waiting)
    assert [one.place for one in waiting] == [None] * len(waiting)
    assert {one.project for one in running if one.state == VisitState.RUNNING} == {one.project for one in due}
    for one in found:
        assert alone[one.project] == [one]


def queued(connection: Connection, workload: str, project: CatalogProject) -> NextVisit:
    queue_visits(connection, workload, [(project.id, 0, 7)])
    found = next_visits_of(connection, project.name)
    assert found is not None
    return next(one for one in found if one.workload == workload)


def test_each_visit_has_its_reason(catalog: Catalog):
    with at(catalog).write() as connection:
        forget_queue(connection)
        visited, failing, unknown = enter(connection, 3)
        visit(connection, [visited, failing], "page", 1.0)
        visit(connection, [failing], "exhausted", 2.0)
        cases = {
            RANGE: VisitReason.EVENTS,
            "crawl:1": VisitReason.FULL_CRAWL,
            "audit:1": VisitReason.AUDIT,
            "scope:1": VisitReason.SCOPE,
            REVISITS: VisitReason.STALE,
            LISTING: VisitReason.LISTED,
            "requested": VisitReason.ASKED,
        }
        for workload, reason in cases.items():
            assert queued(connection, workload, visited).reason == reason
        assert queued(connection, "crawl:1", unknown).reason == VisitReason.NEVER_VISITED
        assert queued(connection, "requested", unknown).reason == VisitReason.ASKED
        assert queued(connection, REVISITS, failing).reason == VisitReason.RETRY
        queue_visits(connection, "range:1-5", [(visited.id, 0, 7)], listed_at=9)
        [task] = claim_visits(connection, "audit:1", None, worker="one", now=NOW, until=NOW, limit=1)
        postpone_visits(connection, NOW, [(task, NOW + 60, "HTTP 503", False)])
        found = next_visits_of(connection, visited.name)
        assert found is not None
        shown = {one.workload: one for one in found}
        assert next_visits_of(connection, "unknown-project") is None
    assert shown["range:1-5"].reason == VisitReason.LISTED
    retried = shown["audit:1"]
    assert (retried.reason, retried.state, retried.due_at) == (VisitReason.RETRY, VisitState.LATER, NOW + 60)
    assert (retried.attempts, retried.error, retried.waiting_since) == (1, "HTTP 503", NOW)
    assert shown[RANGE].lag == 1_000 - 7
    result = result_of(retried)
    assert (result["state"], result["reason"], result["due_at"]) == ("later", "retry", "1970-01-01T00:17:40Z")


def test_first_visits_of_all_workloads_are_shown(catalog: Catalog):
    workloads = ("range:9-10", "range:10-11", "audit:1")
    with at(catalog).write() as connection:
        forget_queue(connection)
        entered = enter(connection, 20)
        visit(connection, entered, "page", 1.0)
        for workload in (*workloads, "aborted:1"):
            queue_visits(connection, workload, [(one.id, 0, 0) for one in entered])
        found = next_visits(connection, 6)
    assert [(one.workload, one.place) for one in found] == [(one, place) for place in (1, 2) for one in workloads]


def test_planned_revisits_are_the_next_choice(catalog: Catalog):
    for policy in VISIT_POLICIES.values():
        with replace(at(catalog), visit_policy=policy).write() as connection:
            forget_queue(connection)
            entered = enter(connection, 6)
            note_seen(connection, dict.fromkeys((one.id for one in entered), 1.0))
            for number, project in enumerate(entered[1:]):
                visit(connection, [project], "page", 100.0 * number)
            queue_visits(connection, RANGE, [(entered[2].id, 0, 7)])
            found = next_visits(connection, 20)
            planned = [one for one in found if one.state == VisitState.PLANNED]
            assert next_visits_of(connection, planned[1].project) == [planned[1]]
            queue_revisits(connection, 3, excluded_workload=RANGE)
            due = [one.project for one in next_visits(connection, 20) if one.state == VisitState.DUE]
        assert [one.project for one in found if one.workload == RANGE] == [entered[2].name]
        assert [one.place for one in planned] == [1, 2, 3, 4, 5]
        assert [one.reason for one in planned] == [VisitReason.NEVER_VISITED, *[VisitReason.STALE] * 4]
        assert set(due) == {entered[2].name, *(one.project for one in planned[:3])}


def test_abandoned_visit_is_planned_at_its_retry(catalog: Catalog):
    with at(catalog).write() as connection:
        forget_queue(connection)
        [project] = enter(connection, 1)
        queue_visits(connection, RANGE, [(project.id, 0, 7)])
        [task] = claim_visits(connection, RANGE, None, worker="one", now=NOW, until=NOW + 9, limit=1)
        visit(connection, [project], "exhausted", NOW)
        finish_visits(connection, [(task, TaskState.EXHAUSTED, "HTTP 503")])
        found = next_visits_of(connection, project.name)
        shown = next_visits(connection, 5)
    assert found is not None
    [planned] = found
    assert (planned.state, planned.workload, planned.error) == (VisitState.PLANNED, REVISITS, "HTTP 503")
    assert (planned.reason, planned.due_at) == (VisitReason.RETRY, NOW + 0.5 + 600.0)
    assert planned in shown


def test_polls_of_an_index_without_serials_are_planned(catalog: Catalog):
    memory = Observations(at(catalog), "https://pages.example.org/simple/")
    memory.save_list([ShownProject("late"), ShownProject("soon")], memory.known_list().validators, 90.0)
    with catalog.write() as connection:
        enter(connection, 0)
        enter_projects(connection, [("Late", 0)])
    memory.take_due(100.0, 5_000.0, 1, seen_before=100.0, among=["late"])
    with catalog.read() as connection:
        polls = [one for one in next_visits(connection, 20) if one.workload == POLLS]
        late = next_visits_of(connection, "late")
    assert [(one.project, one.place, one.due_at) for one in polls] == [("soon", 1, 90.0), ("late", 2, 5_000.0)]
    assert {one.reason for one in polls} == {VisitReason.NEVER_VISITED}
    assert late is not None
    assert [(one.project, one.place) for one in late if one.workload == POLLS] == [("Late", 2)]


def test_empty_catalog_has_no_next_visits(tmp_path: Path):
    catalog = open_catalog(sqlite_database(tmp_path / "catalog.sqlite"))
    with catalog.read() as connection:
        assert connection.scalar(select(catalog_state.c.id)) is None
        assert next_visits(connection, 5) == []
        assert next_visits_of(connection, "demo") is None


def look(catalog: Catalog) -> None:
    with catalog.read() as connection:
        assert len(next_visits(connection, 10)) == 10


def test_work_does_not_grow_with_the_queue(tmp_path: Path):
    catalog = at(open_catalog(sqlite_database(tmp_path / "catalog.sqlite")))
    works = []
    for count in (200, 3_000):
        with catalog.write() as connection:
            enter(connection, 0)
            names = [f"queued-{number}" for number in range(count)]
            enter_projects(connection, [(name, 0) for name in names])
            ids = sorted(project_ids(connection, names).values())
            forget_queue(connection)
            known = [{"project_id": id_, "last_visited_at": float(id_), "pace": id_ % 16} for id_ in ids]
            connection.execute(insert(visit_statistics), known)
            queue_visits(connection, RANGE, [(id_, 0, 0) for id_ in ids[count // 2 :]])
        for_each = [replace(catalog, visit_policy=policy) for policy in VISIT_POLICIES.values()]
        works += [measure(catalog, partial(look, opened)) for opened in for_each]
    for young, old in zip(works[:4], works[4:], strict=True):
        assert old.statements <= young.statements
        for statement, steps in old.by_statement.items():
            assert steps <= young.by_statement.get(statement, 0) * 1.3 + 100, statement
