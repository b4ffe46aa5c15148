"""The queue of visits: its order is that of the policy, and revisits take what was not visited for longest."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.visit_statistics import (
    note_seen,
)
from pypi_assets.catalog.tables import visit_queue, visit_statistics
from pypi_assets.catalog.work.visit_queue import (
    REVISITS,
    TaskState,
    claim_visits,
    clear_exhausted,
    finish_visits,
    longest_unvisited,
    queue_revisits,
    queue_visits,
    workload_progress,
)
from pypi_assets_tests.catalog.ended_visits import enter, visit
from pypi_assets_tests.examples import examples


def test_visits_are_claimed_in_the_order_of_the_policy(catalog: Catalog):
    with catalog.write() as connection:
        paused, failing, unchanged, nearer, further, unknown = enter(connection, 6)
        visit(connection, [paused, failing, unchanged, nearer, further], "page", 1.0)
        for now in (2.0, 3.0, 4.0):
            visit(connection, [failing], "exhausted", now)
        visit(connection, [paused], "put off", 20.0)
        serials = {unchanged: 0, nearer: 900, further: 100, unknown: 990, failing: 100, paused: 100}
        queue_visits(connection, "range:5-1000", [(one.id, 0, serial) for one, serial in serials.items()])

        def claimed(now: float) -> list[int]:
            tasks = claim_visits(connection, "range:5-1000", None, worker="one", now=now, until=99.0, limit=10)
            return [task.project.id for task in tasks]

        assert claimed(25.0) == [one.id for one in (unknown, further, nearer, failing, unchanged)]
        assert claimed(30.0) == [paused.id]


@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
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


def test_revisits_take_the_longest_unvisited_that_no_workload_visits_anyway(catalog: Catalog):
    with catalog.write() as connection:
        entered = enter(connection, 4)
        for at, project in enumerate(entered):
            visit(connection, [project], "page", float(at))
        queue_visits(connection, "range:1-2", [(entered[0].id, 0, 0)])
        assert queue_revisits(connection, 2, excluded_workload="range:1-2") == 2
        assert queue_revisits(connection, 2, excluded_workload="range:2-3") == 2  # those before are not done yet
        assert queue_revisits(connection, 2, excluded_workload="range:2-3") == 0
        assert queue_revisits(connection, 0, excluded_workload="range:2-3") == 0
        assert workload_progress(connection, REVISITS).todo == 4
        connection.execute(update(visit_queue).where(visit_queue.c.workload == REVISITS).values(state="done"))
        assert queue_revisits(connection, 1, excluded_workload="range:2-3") == 1
        queued = connection.scalars(select(visit_queue.c.project_id).where(visit_queue.c.workload == REVISITS)).all()
        assert queued == [entered[0].id]


def test_an_exhausted_revisit_is_tried_again_when_it_is_its_turn(catalog: Catalog):
    with catalog.write() as connection:
        entered = enter(connection, 2)
        note_seen(connection, dict.fromkeys((one.id for one in entered), 1.0))
        visit(connection, [entered[0]], "page", 1.0)
        visit(connection, [entered[1]], "page", 2.0)
        assert queue_revisits(connection, 1, "range:0-1") == 1
        [task] = claim_visits(connection, REVISITS, None, worker="one", now=3.0, until=9.0, limit=9)
        finish_visits(connection, [(task, TaskState.EXHAUSTED, "503")])
        assert queue_revisits(connection, 1, "range:1-2") == 1
        [again] = claim_visits(connection, REVISITS, None, worker="one", now=3.0, until=9.0, limit=9)
        assert (again.project.id, again.attempts) == (entered[0].id, 0)


def test_a_success_clears_exhausted_visits_that_wanted_no_newer_page(catalog: Catalog):
    with catalog.write() as connection:
        one, other = enter(connection, 2)
        for workload, serial in (("range:0-5", 5), ("range:5-9", 9), ("audit:1", 0)):
            queue_visits(connection, workload, [(one.id, 0, serial), (other.id, 0, serial)])
            tasks = claim_visits(connection, workload, None, worker="one", now=3.0, until=9.0, limit=9)
            finish_visits(connection, [(task, TaskState.EXHAUSTED, "503") for task in tasks])

        def exhausted() -> list[tuple[int, int]]:
            columns = (visit_queue.c.project_id, visit_queue.c.min_serial)
            query = select(*columns).where(visit_queue.c.state == TaskState.EXHAUSTED).order_by(*columns)
            return [tuple(row) for row in connection.execute(query)]

        clear_exhausted(connection, {one.id: 5})
        assert exhausted() == [(one.id, 9), (other.id, 0), (other.id, 5), (other.id, 9)]
        clear_exhausted(connection, {one.id: 4, other.id: None})
        assert exhausted() == [(one.id, 9)]
