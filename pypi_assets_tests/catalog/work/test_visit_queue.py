"""The queues of visits and of reads, and audits."""

import pytest
from sqlalchemy import func, select, update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.tables import (
    distributions,
    read_attempts,
    visit_queue,
    visit_statuses,
    visits,
)
from pypi_assets.catalog.work.audits import (
    Drift,
    Findings,
    complete_audit,
    last_completed_audit,
    note_listed,
    open_audit,
)
from pypi_assets.catalog.work.read_queue import ABANDONED, claim_reads, queue_reads
from pypi_assets.catalog.work.visit_queue import (
    TaskState,
    claim_visits,
    clear_exhausted,
    finish_visits,
    queue_visits,
)
from pypi_assets_tests.catalog.claimed_queues import Reads
from pypi_assets_tests.catalog.ended_visits import enter, visit


def test_visits_are_claimed_in_policy_order(catalog: Catalog):
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


def test_success_clears_exhausted_visits_that_needed_no_newer_page(catalog: Catalog):
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


def test_lower_nice_values_run_first(catalog: Catalog):
    queue = Reads(catalog, 6)
    with catalog.write() as connection:
        project_id = connection.scalar(select(distributions.c.project_id).where(distributions.c.id == queue.items[0]))
        queue_reads(connection, [(item, project_id) for item in queue.items[4:]], nice=-1)
        queue_reads(connection, [(queue.items[0], project_id)], nice=1)
    assert queue.claim("one", 1_000.0, 6) == [*queue.items[4:], *queue.items[1:4], queue.items[0]]


def test_bytes_that_change_during_a_read_are_reread(catalog: Catalog):
    queue = Reads(catalog, 2)
    assert queue.claim("one", 1_000.0, 2) == queue.items
    with catalog.write() as connection:
        project_id = connection.scalar(select(distributions.c.project_id).where(distributions.c.id == queue.items[0]))
        queue_reads(connection, [(queue.items[0], project_id)])
    assert queue.finish("one", queue.items, 1_001.0, None) == {queue.items[1]}
    assert queue.claim("two", 1_001.0, 2) == [queue.items[0]]


def test_attempt_of_a_dead_worker_counts_and_is_kept(catalog: Catalog):
    queue = Reads(catalog, 1)
    for at, worker in enumerate(("one", "two", "three"), 1):
        assert queue.claim(worker, 1_000.0 * at, 1) == queue.items
    with catalog.write() as connection:
        [read] = claim_reads(connection, None, None, worker="four", now=9_000.0, until=9_010.0, limit=9)
        kept = connection.execute(
            select(read_attempts.c.attempt, read_attempts.c.worker, read_attempts.c.outcome).order_by(
                read_attempts.c.id
            )
        ).all()
        assert connection.scalar(select(func.count()).select_from(read_attempts)) == 3
    assert (read.attempts, read.first_failed_at) == (3, 2_000.0)
    assert kept == [(1, "one", ABANDONED), (2, "two", ABANDONED), (3, "three", ABANDONED)]


def test_open_audit_is_joined_and_keeps_its_share(catalog: Catalog):
    opened = open_audit(catalog, 5.0)
    assert open_audit(catalog, 50.0) == opened
    assert complete_audit(catalog, opened).completed_at is not None
    other = open_audit(catalog, 50.0)
    assert (other.id > opened.id, other.share_percent) == (True, 50.0)
    with catalog.read() as connection:
        completed = last_completed_audit(connection)
    assert completed is not None
    assert completed.id == opened.id


def test_audit_counts_all_projects_and_names_some():
    findings = Findings()
    for number in range(25):
        findings.add(Drift.NOT_LISTED, f"project{number}")
    assert findings.counts == {"project not listed": 25}
    assert findings.examples == {"project not listed": [f"project{number}" for number in range(10)]}


@pytest.mark.parametrize("times", [1, 2])
def test_differences_between_pages_of_one_serial_are_found_once(catalog: Catalog, times: int):
    audit = open_audit(catalog, 100.0)
    with catalog.write() as connection:
        same, archived, newer, never_seen = enter(connection, 4)
        visit(connection, [same, archived, newer], "page", 1.0)
        listed = Findings()
        listed.add(Drift.UNKNOWN_PROJECT, "unknown")
        audit = note_listed(connection, audit, 1_000, listed)
        queue_visits(connection, audit.workload, [(one.id, 0, 0) for one in (same, archived, newer, never_seen)])
        for project in (same, archived, newer, never_seen):
            visit(connection, [project], "page", 2.0, audit.workload)
        for project, changed in ((archived, {"page_status": "archived"}), (newer, {"page_serial": 6})):
            latest = select(func.max(visits.c.id)).where(visits.c.project_id == project.id).scalar_subquery()
            visited = visit_statuses.c.visit_id == latest
            connection.execute(update(visit_statuses).where(visited).values(changed))
    for _ in range(times):
        found = complete_audit(catalog, audit)
    assert found.serial == 1_000
    assert found.findings.counts == {"unknown project": 1, "status changed": 1}
    assert found.findings.examples == {"unknown project": ["unknown"], "status changed": [archived.name]}
