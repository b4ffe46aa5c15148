"""Visits that people request by name, each with one place in the queue and one answer.

A request is open until the page was visited and the files of the project had their turn to be read. Requesting an open
project again returns the same request. Any process that crawls can make the visits, in the order of the requests. The
answers are in `reports/visit_requests.py`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from packaging.utils import canonicalize_name
from sqlalchemy import Connection, and_, delete, exists, func, insert, or_, select, update

from pypi_assets.catalog.database import CatalogError, at_a_time, lock_name, lock_rows
from pypi_assets.catalog.observed.followed import followed_of
from pypi_assets.catalog.tables import projects, read_queue, requested_visits, visit_queue, visits
from pypi_assets.catalog.work.visit_queue import REQUESTED, RESET, TaskState

MOST_PROJECTS = 100
"""The number of projects that one request can name."""


class UnknownProjectsError(CatalogError):
    """The catalog does not have, or does not follow, some of the named projects."""

    def __init__(self, names: Sequence[str], problem: str) -> None:
        super().__init__(f"{problem}: {', '.join(names)}")
        self.names = tuple(names)


def request_visits(connection: Connection, names: Iterable[str], now: float) -> list[int]:
    """Request visits of these projects. Return the ids of the requests, in the order of the names.

    Raises UnknownProjectsError, and then requests nothing.
    """
    wanted = list(dict.fromkeys(canonicalize_name(name) for name in names))
    known = _known_projects(connection, wanted)
    lock_name(connection, REQUESTED)
    ids = [known[name].id for name in wanted]
    _queue(connection, known, now)
    c = requested_visits.c
    open_ = {
        row.project_id: row.id
        for chunk in at_a_time(sorted(ids))
        for row in connection.execute(select(c.id, c.project_id).where(c.project_id.in_(chunk), c.open == 1))
    }
    for id_ in sorted(ids):  # the queue has visits that are requested together in this order
        if id_ not in open_:
            last = select(func.max(visits.c.visit)).where(visits.c.project_id == id_)
            row = {"project_id": id_, "requested_at": now, "before_visit": connection.scalar(last) or 0, "open": 1}
            open_[id_] = connection.execute(insert(requested_visits).values(row).returning(c.id)).scalar_one()
    return [open_[id_] for id_ in ids]


def _known_projects(connection: Connection, wanted: Sequence[str]) -> dict[str, Any]:
    known: dict[str, Any] = {
        row.normalized: row
        for chunk in at_a_time(wanted)
        for row in connection.execute(
            select(projects.c.id, projects.c.normalized, projects.c.shard).where(projects.c.normalized.in_(chunk))
        )
    }
    if unknown := [name for name in wanted if name not in known]:
        raise UnknownProjectsError(unknown, "the catalog has no such project")
    followed = followed_of(connection, sorted(row.id for row in known.values()))
    if unfollowed := [name for name in wanted if known[name].id not in followed]:
        raise UnknownProjectsError(unfollowed, "no scope follows the project, so a visit would change no answer")
    return known


def _queue(connection: Connection, known: Mapping[str, Any], now: float) -> None:
    """Queue visits of these projects that are not queued yet. A pause after an earlier failure does not apply."""
    for chunk in at_a_time(sorted(row.id for row in known.values())):
        of_these = (visit_queue.c.workload == REQUESTED, visit_queue.c.project_id.in_(chunk))
        lock_rows(connection, visit_queue, *of_these)
        queued = {
            row.project_id: row
            for row in connection.execute(select(visit_queue.c.project_id, visit_queue.c.state).where(*of_these))
        }
        over = sorted(id_ for id_, row in queued.items() if row.state != TaskState.TODO)
        if over:
            is_over = and_(visit_queue.c.workload == REQUESTED, visit_queue.c.project_id.in_(over))
            connection.execute(
                update(visit_queue).where(is_over).values(RESET | {"error_text": None, "due_at": now, "queued_at": now})
            )
        shards = {row.id: row.shard for row in known.values()}
        new = [
            {
                "workload": REQUESTED,
                "project_id": id_,
                "shard": shards[id_],
                "min_serial": 0,
                "state": TaskState.TODO,
                "due_at": now,
                "queued_at": now,
            }
            for id_ in chunk
            if id_ not in queued
        ]
        if new:
            connection.execute(insert(visit_queue), new)


def end_requests(connection: Connection, now: float) -> int:
    """End the requests whose visits are over, and return their number. Visits without pending reads leave the queue."""
    lock_name(connection, REQUESTED)
    is_over = and_(visit_queue.c.workload == REQUESTED, visit_queue.c.state != TaskState.TODO)
    lock_rows(connection, visit_queue, is_over)
    over = connection.scalars(select(visit_queue.c.project_id).where(is_over).order_by(visit_queue.c.project_id)).all()
    c = requested_visits.c
    ended = 0
    for ids in at_a_time(over):
        its = update(requested_visits).where(c.project_id.in_(ids), c.open == 1)
        visit = select(func.max(visits.c.visit)).where(
            visits.c.project_id == c.project_id, visits.c.workload == REQUESTED
        )
        values = {"open": None, "ended_at": now, "visit": visit.scalar_subquery()}
        ended += connection.execute(its.values(values)).rowcount
        is_pending = exists().where(read_queue.c.project_id == visit_queue.c.project_id)
        connection.execute(delete(visit_queue).where(is_over, visit_queue.c.project_id.in_(ids), ~is_pending))
    return ended


def are_requests_due(connection: Connection, now: float) -> bool:
    """Check whether a requested visit can be made now, or has been made and its request must end."""
    q = visit_queue.c
    is_due = or_(q.state != TaskState.TODO, and_(q.due_at <= now, q.claimed_until <= now))
    query = select(requested_visits.c.id).join(visit_queue, q.project_id == requested_visits.c.project_id)
    query = query.where(requested_visits.c.open == 1, q.workload == REQUESTED, is_due)
    return connection.scalar(query.limit(1)) is not None


def open_names(connection: Connection) -> list[str]:
    """Return the normalized names of the projects with open requests, in the order of the requests."""
    c = requested_visits.c
    query = select(projects.c.normalized).join(requested_visits, c.project_id == projects.c.id).where(c.open == 1)
    return list(connection.scalars(query.order_by(c.id)))


def open_requests(connection: Connection, ids: Collection[int]) -> set[int]:
    """Return the subset of these requests that is open."""
    c = requested_visits.c
    return {
        id_
        for chunk in at_a_time(sorted(ids))
        for id_ in connection.scalars(select(c.id).where(c.id.in_(chunk), c.open == 1))
    }
