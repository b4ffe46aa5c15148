"""Retries on request: failed reads and exhausted visits become due again."""

from typing import Any

from sqlalchemy import Connection, Select, and_, func, select, update

from pypi_assets.catalog.coordination.claims import WORKER_DIED
from pypi_assets.catalog.database import at_a_time
from pypi_assets.catalog.reads.read_outcomes import FAILED, Outcome
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    projects,
    read_attempts,
    read_queue,
    visit_queue,
)
from pypi_assets.catalog.work.read_queue import queue_reads
from pypi_assets.catalog.work.visit_queue import RESET, TaskState


def retry_failed_reads(connection: Connection, kind: str | None = None, normalized: str | None = None) -> int:
    """Makes failed reads due at once: all, or those of one kind or project. Returns how many.

    Reads that a worker is retrying right now are left to it.
    """
    query = failed_reads(kind, normalized).where(distributions.c.url.is_not(None), read_queue.c.claimed_by.is_(None))
    failed = [(row.id, row.project_id) for row in connection.execute(query)]
    queue_reads(connection, failed)
    for ids in at_a_time(id_ for id_, _ in failed):
        are_failed = distribution_data.c.distribution_id.in_(ids)
        connection.execute(update(distribution_data).where(are_failed).values(outcome=Outcome.PENDING))
    return len(failed)


def retry_failed_visits(connection: Connection, normalized: str | None = None) -> list[str]:
    """Makes exhausted visits due again. Returns their scopes."""
    exhausted = visit_queue.c.state == TaskState.EXHAUSTED
    if normalized is not None:
        named = select(projects.c.id).where(projects.c.normalized == normalized)
        exhausted = and_(exhausted, visit_queue.c.project_id.in_(named))
    scopes = list(connection.scalars(select(visit_queue.c.scope).where(exhausted).distinct().order_by("scope")))
    connection.execute(update(visit_queue).where(exhausted).values(RESET))
    return scopes


def failed_reads(kind: str | None, normalized: str | None) -> Select[Any]:
    """The reads that ended in an error or are exhausted, and queued ones that have failed before."""
    data = distribution_data.c
    error_kind = func.coalesce(data.error_kind, WORKER_DIED)
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
        .where(
            data.outcome.in_((*FAILED, Outcome.PENDING)),
            data.outcome.in_(FAILED) | read_queue.c.first_failed_at.is_not(None),
        )
        .order_by(projects.c.normalized, distributions.c.filename)
    )
    if kind is not None:
        query = query.where(error_kind == kind)
    return query if normalized is None else query.where(projects.c.normalized == normalized)
