"""Retries on request: failed reads and exhausted visits become due again."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, exists, func, select, update

from pypi_assets.catalog.coordination.claims import WORKER_DIED
from pypi_assets.catalog.database import at_a_time, lock_rows
from pypi_assets.catalog.ledger.epochs import note_changed_files
from pypi_assets.catalog.observed.followed import is_followed
from pypi_assets.catalog.reads.file_counts import counting_files
from pypi_assets.catalog.reads.read_outcomes import FAILED, GONE, Outcome
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    live_intervals,
    projects,
    read_attempts,
    read_queue,
    visit_queue,
)
from pypi_assets.catalog.work.read_queue import queue_reads
from pypi_assets.catalog.work.visit_queue import IS_EXHAUSTED, RESET


def retry_failed_reads(connection: Connection, kind: str | None = None, normalized: str | None = None) -> int:
    """Makes failed reads due at once: all, or those of one kind or project. Returns how many.

    What is live and was not read is among them, whatever its outcome. Reads that a worker is retrying right now
    are left to it. What is no longer followed is not read.
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
            connection.execute(update(distribution_data).where(are_failed).values(outcome=Outcome.PENDING))
    note_changed_files(connection, [id_ for id_, _ in failed])
    return len(failed)


def retry_failed_visits(connection: Connection, normalized: str | None = None) -> list[str]:
    """Makes exhausted visits due again. Returns their workloads."""
    exhausted = IS_EXHAUSTED
    if normalized is not None:
        named = select(projects.c.id).where(projects.c.normalized == normalized)
        exhausted = and_(exhausted, visit_queue.c.project_id.in_(named))
    workloads = sorted(set(connection.scalars(select(visit_queue.c.workload).where(exhausted))))
    lock_rows(connection, visit_queue, exhausted)
    connection.execute(update(visit_queue).where(exhausted).values(RESET))
    return workloads


def failed_reads(kind: str | None, normalized: str | None) -> Select[Any]:
    """The reads that ended in an error or are exhausted, and queued ones that have failed before."""
    data = distribution_data.c
    error_kind = func.coalesce(data.error_kind, WORKER_DIED)
    return _reads(error_kind, kind, normalized).where(
        data.outcome.in_((*FAILED, Outcome.PENDING)),
        data.outcome.in_(FAILED) | read_queue.c.first_failed_at.is_not(None),
    )


def unread_live_files(kind: str | None, normalized: str | None) -> Select[Any]:
    """The live files with an address that are neither read nor queued, as `gone`. There should be none."""
    data = distribution_data.c
    is_live = exists().where(live_intervals.c.distribution_id == data.distribution_id, live_intervals.c.end.is_(None))
    return _reads(func.coalesce(data.error_kind, GONE), kind, normalized).where(
        data.outcome.in_((Outcome.PENDING, Outcome.VANISHED)),
        read_queue.c.distribution_id.is_(None),
        distributions.c.url.is_not(None),
        is_live,
    )


def _reads(error_kind: ColumnElement[str], kind: str | None, normalized: str | None) -> Select[Any]:
    """Reads of this kind of error and of this project, by project and filename."""
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
