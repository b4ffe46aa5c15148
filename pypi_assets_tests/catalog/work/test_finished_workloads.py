"""Finished tasks leave the queue once their workload is complete, and still count. Abandoned tasks stay."""

from collections.abc import Sequence

import pytest
from sqlalchemy import delete, func, insert, select, update

from pypi_assets.catalog.coordination.claims import WORKER_DIED, claim_workload, expire_claims, new_worker
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import allocate_range, complete_range, require_range
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.projects import CatalogProject, Selection
from pypi_assets.catalog.reads.read_outcomes import FAILED, FinishedRead, ReadOutcome
from pypi_assets.catalog.reports.failures import list_failures
from pypi_assets.catalog.tables import distribution_data, events, live_intervals, projects, read_queue, visit_queue
from pypi_assets.catalog.work import finished_workloads as module
from pypi_assets.catalog.work.audits import complete_audit, open_audit
from pypi_assets.catalog.work.finished_workloads import (
    failed_reads,
    forget_done,
    forget_visits,
    projects_of_range,
    projects_to_explain,
    queue_again,
    queue_done,
    retry_failed_reads,
    retry_failed_visits,
)
from pypi_assets.catalog.work.full_crawls import complete_crawl, list_projects, open_crawl
from pypi_assets.catalog.work.read_queue import claim_reads, count_pending_reads, finish_reads, queue_reads
from pypi_assets.catalog.work.visit_queue import (
    REVISITS,
    TaskState,
    WorkloadProgress,
    claim_visits,
    finish_visits,
    queue_visits,
    range_workload,
    workload_progress,
)
from pypi_assets.index.models import ListedProject
from pypi_assets_tests.catalog.claimed_queues import SHARD, Reads, Visits
from pypi_assets_tests.catalog.ended_visits import enter

SERIALS = SerialRange(10, 20)
WORKLOAD = range_workload(SERIALS)


def queued(catalog: Catalog) -> int:
    with catalog.read() as connection:
        return connection.scalar(select(func.count()).select_from(visit_queue)) or 0


def finish(catalog: Catalog, workload: str, *states: TaskState) -> None:
    """Finish one visit of `workload` for each of `states`."""
    with catalog.write() as connection:
        tasks = claim_visits(connection, workload, None, worker="one", now=1.0, until=9.0, limit=len(states))
        finish_visits(connection, [(task, state, None) for task, state in zip(tasks, states, strict=True)])


@pytest.fixture
def entered(opened: Catalog) -> list[CatalogProject]:
    """Enter three projects that the range visits: two visits succeed and one is exhausted."""
    with opened.write() as connection:
        assert allocate_range(connection, 20, 5.0) == SERIALS
        found = enter(connection, 3)
        queue_visits(connection, WORKLOAD, [(project.id, 0, 15) for project in found])
    finish(opened, WORKLOAD, TaskState.DONE, TaskState.EXHAUSTED, TaskState.DONE)
    return found


def test_finished_tasks_leave_the_queue_with_their_range_and_still_count(
    opened: Catalog, entered: list[CatalogProject]
) -> None:
    before = WorkloadProgress(todo=0, done=2, exhausted=1)
    with opened.write() as connection:
        assert forget_done(connection, WORKLOAD) == 0  # the range is not complete
        complete_range(connection, SERIALS, 6.0)
        assert workload_progress(connection, WORKLOAD) == before
        assert forget_done(connection, WORKLOAD) == 2
        assert forget_done(connection, WORKLOAD) == 0
        assert workload_progress(connection, WORKLOAD) == before
        assert require_range(connection, SERIALS).visited == 2
        assert connection.scalars(select(visit_queue.c.state)).all() == [TaskState.EXHAUSTED]


def test_complete_range_is_revisited_as_a_whole(opened: Catalog, entered: list[CatalogProject]) -> None:
    tasks = [(project.id, 0, 15) for project in entered]
    with opened.write() as connection:
        complete_range(connection, SERIALS, 6.0)
        forget_done(connection, WORKLOAD)
        queue_again(connection, WORKLOAD, tasks)
        assert workload_progress(connection, WORKLOAD) == WorkloadProgress(todo=3, done=0, exhausted=0)
    finish(opened, WORKLOAD, *[TaskState.DONE] * 3)
    with opened.write() as connection:
        assert forget_done(connection, WORKLOAD) == 3
        assert workload_progress(connection, WORKLOAD) == WorkloadProgress(todo=0, done=3, exhausted=0)
        queue_done(connection, WORKLOAD, tasks)  # for the reads of the range
        assert workload_progress(connection, WORKLOAD) == WorkloadProgress(todo=0, done=3, exhausted=0)
        assert forget_done(connection, WORKLOAD) == 3


def test_full_crawl_and_audit_leave_no_tasks_without_active_workers(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AT_A_TIME", 2)
    crawl = open_crawl(catalog, 10, 10, "https://index.example.org/simple/", Selection())
    list_projects(catalog, crawl, [ListedProject(f"project{number}", number) for number in range(5)], 10)
    finish(catalog, crawl.workload, *[TaskState.DONE] * 5)
    forget_visits(catalog, crawl.workload)
    assert queued(catalog) == 5
    assert complete_crawl(catalog, crawl)
    worker = new_worker()
    with catalog.write() as connection:
        claim_workload(connection, crawl.workload, worker, catalog.clock(), catalog.clock() + 60)
    forget_visits(catalog, crawl.workload)
    assert queued(catalog) == 5
    with catalog.write() as connection:
        expire_claims(connection, worker)
    forget_visits(catalog, crawl.workload)
    assert queued(catalog) == 0
    with catalog.read() as connection:
        assert workload_progress(connection, crawl.workload).done == 5
        [first, *_] = connection.scalars(select(projects.c.id)).all()
    audit = open_audit(catalog, 10.0)
    with catalog.write() as connection:
        queue_visits(connection, audit.workload, [(first, 0, 0)])
        queue_visits(connection, REVISITS, [(first, 0, 0)])
    for workload in (audit.workload, REVISITS):
        finish(catalog, workload, TaskState.DONE)
        forget_visits(catalog, workload)
    assert queued(catalog) == 2
    complete_audit(catalog, audit)
    for workload in (audit.workload, REVISITS):  # revisits have no end
        forget_visits(catalog, workload)
    assert queued(catalog) == 1


def test_listed_range_keeps_unlisted_projects_until_explained(opened: Catalog) -> None:
    with opened.write() as connection:
        assert allocate_range(connection, 20, 5.0, "simple") == SERIALS
        listed, seen, unlisted = enter(connection, 3)
        queue_visits(connection, WORKLOAD, [(listed.id, 0, 15), (seen.id, 0, 12)], listed_at=20)
        queue_visits(connection, WORKLOAD, [(unlisted.id, 0, 0)], unlisted_at=20)
        connection.execute(update(projects).where(projects.c.id == seen.id).values(page_serial=12))
        connection.execute(update(visit_queue).values(state=TaskState.DONE))
        complete_range(connection, SERIALS, 6.0, exact_from=20)
        assert forget_done(connection, WORKLOAD) == 2
        assert projects_to_explain(connection, [SERIALS]) == [seen.id, unlisted.id]
        event = {"serial": 15, "project_id": listed.id, "name": listed.name, "timestamp": 0, "action": "new release"}
        connection.execute(insert(events).values(kind="add file", **event))
        entry = require_range(connection, SERIALS)
        assert [task[0] for task in projects_of_range(connection, entry)] == [listed.id, seen.id]


def fail_reads(catalog: Catalog, queue: Reads, failures: Sequence[tuple[ReadOutcome, str | None]]) -> None:
    with catalog.write() as connection:
        claimed = claim_reads(connection, queue.workload, None, worker="one", now=1.0, until=9.0, limit=len(failures))
        finished = [
            FinishedRead(read.distribution_id, outcome, error_kind=kind)
            for read, (outcome, kind) in zip(claimed, failures, strict=True)
        ]
        finish_reads(connection, finished, "one", 1.0)


def test_retried_reads_of_a_kind_or_project_are_due_at_once(catalog: Catalog):
    one, other = Reads(catalog, 3), Reads(catalog, 1)
    failures = [
        (ReadOutcome.ERROR, "corrupt archive"),
        (ReadOutcome.EXHAUSTED, "transient"),
        (ReadOutcome.VANISHED, "gone"),
    ]
    fail_reads(catalog, one, failures)
    fail_reads(catalog, other, [(ReadOutcome.EXHAUSTED, None)])
    with catalog.write() as connection:
        kinds = {kind: len(connection.execute(failed_reads(kind, None)).all()) for _, kind in failures}
        assert kinds == {"corrupt archive": 1, "transient": 1, "gone": 0}
        assert retry_failed_reads(connection, "transient") == 1
        assert count_pending_reads(connection, one.workload) == 1
        assert retry_failed_reads(connection, "transient", "unknown") == 0
        assert retry_failed_reads(connection, WORKER_DIED) == 1  # no other kind of failure is retried
        assert retry_failed_reads(connection) == 1
        outcomes = connection.scalars(select(distribution_data.c.outcome).order_by(distribution_data.c.distribution_id))
        assert list(outcomes) == ["pending", "pending", "vanished", "pending"]


def test_live_unread_files_are_retried_with_any_outcome(catalog: Catalog):
    queue = Reads(catalog, 4)
    with catalog.write() as connection:
        vanished, lost, hidden, waiting = queue.items
        connection.execute(delete(read_queue).where(read_queue.c.distribution_id != waiting))
        connection.execute(
            update(distribution_data)
            .where(distribution_data.c.distribution_id.in_([vanished, hidden]))
            .values(outcome=ReadOutcome.VANISHED)
        )
        live = [{"distribution_id": id_, "start": 1} for id_ in queue.items if id_ != hidden]
        connection.execute(insert(live_intervals), live)
        assert [(failure.filename, failure.outcome) for failure in list_failures(connection, 9, "gone")] == [
            ("file0", "gave up"),
            ("file1", "gave up"),
        ]
        assert retry_failed_reads(connection) == 2
        assert set(connection.scalars(select(read_queue.c.distribution_id))) == {vanished, lost, waiting}
        outcomes = connection.scalars(select(distribution_data.c.outcome).order_by(distribution_data.c.distribution_id))
        assert list(outcomes) == ["pending", "pending", "vanished", "pending"]


def test_read_being_retried_is_left_to_its_worker(catalog: Catalog):
    queue = Reads(catalog, 2)
    fail_reads(catalog, queue, [(ReadOutcome.ERROR, "corrupt archive")] * 2)
    with catalog.write() as connection:
        project_id = connection.scalar(select(projects.c.id))
        queue_reads(connection, [(queue.items[0], project_id)])
        claim_reads(connection, None, None, worker="two", now=2.0, until=9.0, limit=1)
        connection.execute(update(distribution_data).values(outcome=ReadOutcome.ERROR))
        assert len(connection.execute(failed_reads(None, None)).all()) == 2
        assert retry_failed_reads(connection) == 1
        assert set(connection.scalars(select(distribution_data.c.outcome))) == {ReadOutcome.PENDING, FAILED[0]}


def test_exhausted_visits_are_due_again_and_their_workloads_are_returned(catalog: Catalog):
    one, other = Visits(catalog, 2), Visits(catalog, 1)
    with catalog.write() as connection:
        for queue in (one, other):
            tasks = claim_visits(connection, queue.workload, [SHARD], worker="one", now=1.0, until=9.0, limit=9)
            finish_visits(connection, [(task, TaskState.EXHAUSTED, "503") for task in tasks])
        name = connection.scalar(select(projects.c.normalized).where(projects.c.id == one.items[0]))
        assert retry_failed_visits(connection, name) == [one.workload]
        assert workload_progress(connection, one.workload).todo == 1
        assert retry_failed_visits(connection) == sorted([one.workload, other.workload])
        assert retry_failed_visits(connection) == []
        [task, _] = claim_visits(connection, one.workload, None, worker="two", now=1.0, until=9.0, limit=9)
        assert task.attempts == 0
