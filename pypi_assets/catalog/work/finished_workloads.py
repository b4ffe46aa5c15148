"""Remove finished visits from the queue, and return work to a queue.

Finished visits leave the queue once their workload is complete. Failed reads and exhausted visits become due again on
request.
"""

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, case, delete, exists, func, select, update

from pypi_assets.catalog.coordination.claims import WORKER_DIED, workloads_at_work
from pypi_assets.catalog.database import Catalog, at_a_time, insert_missing, lock_rows
from pypi_assets.catalog.ledger.epochs import note_changed_files
from pypi_assets.catalog.ledger.range_ledger import LedgerRange
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.events import changed_projects
from pypi_assets.catalog.observed.followed import is_followed
from pypi_assets.catalog.reads.file_counts import counting_files
from pypi_assets.catalog.reads.read_outcomes import FAILED, GONE, ReadOutcome
from pypi_assets.catalog.tables import (
    audits,
    distribution_data,
    distributions,
    full_crawls,
    live_intervals,
    projects,
    read_attempts,
    read_queue,
    serial_ranges,
    visit_queue,
)
from pypi_assets.catalog.work.read_queue import queue_reads
from pypi_assets.catalog.work.visit_queue import (
    IS_EXHAUSTED,
    RESET,
    TaskState,
    owner_of,
    queue_visits,
    range_workload,
    requeue_visits,
)

_AT_A_TIME = 10_000


def forget_done(connection: Connection, workload: str, limit: int | None = None) -> int:
    """Remove the finished visits of `workload`, at most `limit`, if it is complete. Return how many were removed.

    Projects that were missing from a list of projects stay until the events of that time are known: then they are
    computed again.
    """
    _lock_crawl(connection, workload)
    if not _is_complete(connection, workload):
        return 0
    over = and_(visit_queue.c.workload == workload, visit_queue.c.state == TaskState.DONE)
    if _is_inexact(connection, workload):
        over = and_(over, visit_queue.c.unlisted_at.is_(None))
    if limit is not None:
        some = select(visit_queue.c.project_id).where(over).limit(limit).scalar_subquery()
        over = and_(over, visit_queue.c.project_id.in_(some))
    lock_rows(connection, visit_queue, over)
    gone = connection.execute(delete(visit_queue).where(over)).rowcount
    _add_visited(connection, workload, gone)
    return gone


def forget_visits(catalog: Catalog, workload: str) -> None:
    """Remove the finished visits of `workload`, if it is complete and no worker is active on it.

    It takes several short transactions, since a full crawl visits every project.
    """
    gone = _AT_A_TIME
    while gone == _AT_A_TIME:
        with catalog.read() as connection:
            if workload in workloads_at_work(connection, catalog.clock()):
                return
        gone = catalog.transact(partial(forget_done, workload=workload, limit=_AT_A_TIME))


def queue_again(
    connection: Connection, workload: str, tasks: Collection[tuple[int, int, int]], shards: Sequence[int] | None = None
) -> None:
    """Make visits of a complete workload due once more.

    These are `tasks`, as in `queue_visits`, and the visits that the queue still has within `shards` (None: all).
    """
    _lock_crawl(connection, workload)
    returned = queue_visits(connection, workload, tasks)
    requeue_visits(connection, workload, shards)
    _add_visited(connection, workload, -returned)


def queue_done(connection: Connection, workload: str, tasks: Collection[tuple[int, int, int]]) -> None:
    """Insert finished visits of a complete workload, as in `queue_visits`, so that reads of its projects are found."""
    rows = [
        {"workload": workload, "project_id": project_id, "shard": shard, "min_serial": serial, "state": TaskState.DONE}
        for project_id, shard, serial in sorted(tasks)
    ]
    _lock_crawl(connection, workload)
    _add_visited(connection, workload, -insert_missing(connection, visit_queue, rows))


def projects_of_range(connection: Connection, entry: LedgerRange) -> list[tuple[int, int, int]]:
    """Return the projects that a range visits, as (project id, shard, least serial of the page).

    They are the projects of its events; for a listed range, also those whose newest page is in that range.
    """
    found = {task[0]: task for task in changed_projects(connection, entry.serials)}
    if entry.exact_from is not None:
        seen = projects.c.page_serial > entry.serials.start, projects.c.page_serial <= entry.serials.end
        rows = connection.execute(select(projects.c.id, projects.c.shard, projects.c.page_serial).where(*seen))
        for project_id, shard, page_serial in rows:
            found.setdefault(project_id, (project_id, shard, page_serial))
    return sorted(found.values())


def projects_to_explain(connection: Connection, ranges: Sequence[SerialRange]) -> list[int]:
    """Return, in order, the ids of the projects whose state the events of some listed `ranges` may explain.

    A page that such a range saw is newer than all events stored then. Projects without a page are still queued.
    """
    start = min(serials.start for serials in ranges)
    found = set(connection.scalars(select(projects.c.id).where(projects.c.page_serial > start)))
    for workloads in at_a_time(range_workload(serials) for serials in ranges):
        found.update(connection.scalars(select(visit_queue.c.project_id).where(visit_queue.c.workload.in_(workloads))))
    return sorted(found)


def _lock_crawl(connection: Connection, workload: str) -> None:
    """Lock the full crawl that counts the visits of `workload`, before visits are locked.

    docs/design.md has the order of locks.
    """
    owner = owner_of(workload)
    if owner is not None and owner.table is full_crawls:
        lock_rows(connection, full_crawls, owner.is_it)


def _is_complete(connection: Connection, workload: str) -> bool:
    kind, _, key = workload.partition(":")
    if kind == "audit":
        return connection.scalar(select(audits.c.completed_at).where(audits.c.id == int(key))) is not None
    owner = owner_of(workload)
    return owner is not None and connection.scalar(select(owner.table.c.completed_at).where(owner.is_it)) is not None


def _is_inexact(connection: Connection, workload: str) -> bool:
    owner = owner_of(workload)
    if owner is None or owner.table is not serial_ranges:
        return False
    return connection.scalar(select(serial_ranges.c.exact_from).where(owner.is_it)) is not None


def _add_visited(connection: Connection, workload: str, count: int) -> None:
    owner = owner_of(workload)
    if owner is not None and count:
        visited = owner.table.c.visited + count
        values = {"visited": case((visited < 0, 0), else_=visited)}
        connection.execute(update(owner.table).where(owner.is_it).values(values))


def retry_failed_reads(connection: Connection, kind: str | None = None, normalized: str | None = None) -> int:
    """Make failed reads due immediately: all, or only those with one kind of error or in one project. Return how many.

    Live files that were not read are included, whatever their outcome. Reads that a worker is retrying right now are
    left to it. Files of projects that are no longer followed are skipped.
    """
    are_free = distributions.c.url.is_not(None), read_queue.c.claimed_by.is_(None)
    followed = is_followed(connection, distributions.c.project_id)
    failed = [
        (row.id, row.project_id)
        for query in (failed_reads(kind, normalized).where(*are_free), unread_live_files(kind, normalized))
        for row in connection.execute(query.where(followed))
    ]
    queue_reads(connection, failed)
    for ids in at_a_time(sorted(id_ for id_, _ in failed)):
        are_failed = distribution_data.c.distribution_id.in_(ids)
        with counting_files(connection, ids):
            connection.execute(update(distribution_data).where(are_failed).values(outcome=ReadOutcome.PENDING))
    note_changed_files(connection, [id_ for id_, _ in failed])
    return len(failed)


def retry_failed_visits(connection: Connection, normalized: str | None = None) -> list[str]:
    """Make exhausted visits due again. Return their workloads."""
    exhausted = IS_EXHAUSTED
    if normalized is not None:
        named = select(projects.c.id).where(projects.c.normalized == normalized)
        exhausted = and_(exhausted, visit_queue.c.project_id.in_(named))
    workloads = sorted(set(connection.scalars(select(visit_queue.c.workload).where(exhausted))))
    lock_rows(connection, visit_queue, exhausted)
    connection.execute(update(visit_queue).where(exhausted).values(RESET))
    return workloads


def failed_reads(kind: str | None, normalized: str | None) -> Select[Any]:
    """Return a query of reads that ended in an error or are exhausted, and of queued reads that have failed before."""
    data = distribution_data.c
    error_kind = func.coalesce(data.error_kind, WORKER_DIED)
    return _reads(error_kind, kind, normalized).where(
        data.outcome.in_((*FAILED, ReadOutcome.PENDING)),
        data.outcome.in_(FAILED) | read_queue.c.first_failed_at.is_not(None),
    )


def unread_live_files(kind: str | None, normalized: str | None) -> Select[Any]:
    """Return a query of live files with a URL that are neither read nor queued, as `gone`. There should be none."""
    data = distribution_data.c
    is_live = exists().where(live_intervals.c.distribution_id == data.distribution_id, live_intervals.c.end.is_(None))
    return _reads(func.coalesce(data.error_kind, GONE), kind, normalized).where(
        data.outcome.in_((ReadOutcome.PENDING, ReadOutcome.VANISHED)),
        read_queue.c.distribution_id.is_(None),
        distributions.c.url.is_not(None),
        is_live,
    )


def _reads(error_kind: ColumnElement[str], kind: str | None, normalized: str | None) -> Select[Any]:
    """Return a query of reads with this kind of error and in this project, by project and filename."""
    data = distribution_data.c
    attempts = select(func.count()).where(read_attempts.c.distribution_id == data.distribution_id).scalar_subquery()
    query = (
        select(
            distributions.c.id,
            distributions.c.project_id,
            projects.c.name,
            distributions.c.filename,
            data.outcome,
            error_kind.label("error_kind"),
            data.error_text,
            attempts.label("attempts"),
            read_queue.c.attempts.label("used_attempts"),
            read_queue.c.due_at,
        )
        .select_from(distribution_data)
        .join(distributions, distributions.c.id == data.distribution_id)
        .join(projects, projects.c.id == distributions.c.project_id)
        .outerjoin(read_queue, read_queue.c.distribution_id == data.distribution_id)
        .order_by(projects.c.normalized, distributions.c.filename)
    )
    if kind is not None:
        query = query.where(error_kind == kind)
    return query if normalized is None else query.where(projects.c.normalized == normalized)
