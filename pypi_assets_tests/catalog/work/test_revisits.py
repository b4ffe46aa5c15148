"""The visit policy chooses revisits, as a full sort of all projects would."""

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, select, update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.visit_statistics import note_seen
from pypi_assets.catalog.tables import visit_queue, visit_statistics
from pypi_assets.catalog.work.revisits import choose_projects, queue_revisits
from pypi_assets.catalog.work.visit_queue import (
    REVISITS,
    TaskState,
    claim_visits,
    finish_visits,
    queue_visits,
    workload_progress,
)
from pypi_assets.visit_policies import NEVER_VISITED, PACES, VISIT_POLICIES, VisitFacts, VisitPlace, VisitPolicy
from pypi_assets_tests.catalog.ended_visits import enter, visit
from pypi_assets_tests.examples import examples

NOW = 1e8
drawn_statistics = st.lists(
    st.tuples(st.none() | st.integers(0, 10**8).map(float), st.sampled_from(list(PACES))), min_size=1, max_size=12
)


@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=drawn_statistics, count=st.integers(0, 13), unwanted=st.sets(st.integers(0, 11)))
def test_choice_equals_a_sort_by_the_policy(
    catalog: Catalog, drawn: list[tuple[float | None, int]], count: int, unwanted: set[int]
):
    with catalog.write() as connection:
        connection.execute(visit_statistics.delete())
        ids = [project.id for project in enter(connection, len(drawn))]
        rows = [
            {"project_id": id_, "last_visited_at": at, "pace": pace} for id_, (at, pace) in zip(ids, drawn, strict=True)
        ]
        connection.execute(insert(visit_statistics), rows)
    known = list(zip(ids, drawn, strict=True))
    skipped = {id_ for number, id_ in enumerate(ids) if number in unwanted}
    for policy in VISIT_POLICIES.values():
        expected = [id_ for *_, id_ in sorted(ordered(policy, at, pace, id_) for id_, (at, pace) in known)]
        with replace(catalog, clock=lambda: NOW, visit_policy=policy).read() as connection:
            assert [one.project_id for one in choose_projects(connection, count)] == expected[:count]
            wanted = choose_projects(connection, count, is_wanted=lambda id_: id_ not in skipped)
            assert [one.project_id for one in wanted] == [id_ for id_ in expected if id_ not in skipped][:count]


def ordered(policy: VisitPolicy, at: float | None, pace: int, id_: int) -> tuple[bool, VisitPlace, float, int]:
    facts = NEVER_VISITED if at is None else VisitFacts(True, None, at, pace)
    return at is not None, policy.place(facts, NOW), at or 0.0, id_


@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(times=st.lists(st.one_of(st.none(), st.integers(0, 3)), min_size=1, max_size=6), count=st.integers(0, 7))
def test_longest_unvisited_projects_are_found_in_order(catalog: Catalog, times: list[int | None], count: int):
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
        assert [one.project_id for one in choose_projects(connection, count)] == [
            project_id for _, project_id in order
        ][:count]


def test_revisits_take_longest_unvisited_projects_without_other_workload(catalog: Catalog):
    with catalog.write() as connection:
        entered = enter(connection, 4)
        for at, project in enumerate(entered):
            visit(connection, [project], "page", float(at))
        queue_visits(connection, "range:1-2", [(entered[0].id, 0, 0)])
        assert queue_revisits(connection, 2, excluded_workload="range:1-2") == 2
        assert (
            queue_revisits(connection, 2, excluded_workload="range:2-3") == 2
        )  # the earlier revisits are not finished
        assert queue_revisits(connection, 2, excluded_workload="range:2-3") == 0
        assert queue_revisits(connection, 0, excluded_workload="range:2-3") == 0
        assert workload_progress(connection, REVISITS).todo == 4
        connection.execute(update(visit_queue).where(visit_queue.c.workload == REVISITS).values(state="done"))
        assert queue_revisits(connection, 1, excluded_workload="range:2-3") == 1
        queued = connection.scalars(select(visit_queue.c.project_id).where(visit_queue.c.workload == REVISITS)).all()
        assert queued == [entered[0].id]


def test_exhausted_revisit_is_retried_on_its_turn(catalog: Catalog):
    with catalog.write() as connection:
        entered = enter(connection, 2)
        note_seen(connection, dict.fromkeys((project.id for project in entered), 1.0))
        visit(connection, [entered[0]], "page", 1.0)
        visit(connection, [entered[1]], "page", 2.0)
        assert queue_revisits(connection, 1, "range:0-1") == 1
        [task] = claim_visits(connection, REVISITS, None, worker="one", now=3.0, until=9.0, limit=9)
        finish_visits(connection, [(task, TaskState.EXHAUSTED, "503")])
        assert queue_revisits(connection, 1, "range:1-2") == 1
        [again] = claim_visits(connection, REVISITS, None, worker="one", now=3.0, until=9.0, limit=9)
        assert (again.project.id, again.attempts) == (entered[0].id, 0)
