"""Retries: what failed becomes due again, by kind or project, except what a worker is retrying already."""

from collections.abc import Sequence

from sqlalchemy import delete, insert, select, update

from pypi_assets.catalog.coordination.claims import WORKER_DIED
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reads.read_outcomes import FAILED, FinishedRead, Outcome
from pypi_assets.catalog.reports.failures import list_failures
from pypi_assets.catalog.tables import distribution_data, live_intervals, projects, read_queue
from pypi_assets.catalog.work.finished_workloads import failed_reads, retry_failed_reads, retry_failed_visits
from pypi_assets.catalog.work.read_queue import claim_reads, count_pending_reads, finish_reads, queue_reads
from pypi_assets.catalog.work.visit_queue import TaskState, claim_visits, finish_visits, workload_progress
from pypi_assets_tests.catalog.claimed_queues import SHARD, Reads, Visits


def fail_reads(catalog: Catalog, queue: Reads, failures: Sequence[tuple[Outcome, str | None]]) -> None:
    with catalog.write() as connection:
        claimed = claim_reads(connection, queue.workload, None, worker="one", now=1.0, until=9.0, limit=len(failures))
        finished = [
            FinishedRead(read.distribution_id, outcome, error_kind=kind)
            for read, (outcome, kind) in zip(claimed, failures, strict=True)
        ]
        finish_reads(connection, finished, "one", 1.0)


def test_failed_reads_of_a_kind_or_project_are_due_at_once(catalog: Catalog):
    one, other = Reads(catalog, 3), Reads(catalog, 1)
    failures = [(Outcome.ERROR, "corrupt archive"), (Outcome.EXHAUSTED, "transient"), (Outcome.VANISHED, "gone")]
    fail_reads(catalog, one, failures)
    fail_reads(catalog, other, [(Outcome.EXHAUSTED, None)])
    with catalog.write() as connection:
        kinds = {kind: len(connection.execute(failed_reads(kind, None)).all()) for _, kind in failures}
        assert kinds == {"corrupt archive": 1, "transient": 1, "gone": 0}
        assert retry_failed_reads(connection, "transient") == 1
        assert count_pending_reads(connection, one.workload) == 1
        assert retry_failed_reads(connection, "transient", "unknown") == 0
        assert retry_failed_reads(connection, WORKER_DIED) == 1  # which has no other kind
        assert retry_failed_reads(connection) == 1
        outcomes = connection.scalars(select(distribution_data.c.outcome).order_by(distribution_data.c.distribution_id))
        assert list(outcomes) == ["pending", "pending", "vanished", "pending"]


def test_what_is_live_and_unread_is_retried_whatever_its_outcome(catalog: Catalog):
    queue = Reads(catalog, 4)
    with catalog.write() as connection:
        vanished, lost, hidden, waiting = queue.items
        connection.execute(delete(read_queue).where(read_queue.c.distribution_id != waiting))
        connection.execute(
            update(distribution_data)
            .where(distribution_data.c.distribution_id.in_([vanished, hidden]))
            .values(outcome=Outcome.VANISHED)
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


def test_a_read_that_is_being_retried_is_left_to_its_worker(catalog: Catalog):
    queue = Reads(catalog, 2)
    fail_reads(catalog, queue, [(Outcome.ERROR, "corrupt archive")] * 2)
    with catalog.write() as connection:
        project_id = connection.scalar(select(projects.c.id))
        queue_reads(connection, [(queue.items[0], project_id)])
        claim_reads(connection, None, None, worker="two", now=2.0, until=9.0, limit=1)
        connection.execute(update(distribution_data).values(outcome=Outcome.ERROR))
        assert len(connection.execute(failed_reads(None, None)).all()) == 2
        assert retry_failed_reads(connection) == 1
        assert set(connection.scalars(select(distribution_data.c.outcome))) == {Outcome.PENDING, FAILED[0]}


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
