"""Revisits: the projects that are visited again although no event names them.

The visit policy of the catalog chooses them for ranges and audits. Abandoned visits are repeated after growing pauses.
"""

import heapq
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, or_, select, update

from pypi_assets.catalog.database import at_a_time, catalog_of, lock_rows
from pypi_assets.catalog.observed.followed import is_followed
from pypi_assets.catalog.tables import projects, read_queue, visit_queue, visit_statistics
from pypi_assets.catalog.work.visit_queue import IS_EXHAUSTED, RESET, REVISITS, TaskState, queue_visits
from pypi_assets.visit_policies import PACES, VisitPlace

_REVISIT_FAILED_S = 600.0
_LONGEST_PAUSE_S = 86_400.0


@dataclass(frozen=True, slots=True)
class ChosenProject:
    """A project that the visit policy chooses, with the key of its choice. Without a time, it was never visited."""

    project_id: int
    name: str
    shard: int
    last_visited_at: float | None
    key: tuple[bool, VisitPlace, float]

    @property
    def place(self) -> VisitPlace:
        """The place of its visit."""
        return self.key[1]


def choose_projects(
    connection: Connection,
    count: int,
    *,
    excluded_workloads: Sequence[str] = (),
    is_wanted: Callable[[int], bool] | None = None,
) -> list[ChosenProject]:
    """Return the `count` projects that the visit policy of the catalog visits next, in its order.

    A project is skipped if one of `excluded_workloads` visits or has visited it, unless that is an exhausted revisit.
    It is also skipped if `is_wanted` returns False for its id.

    Projects of one pace are read by index, in the order of their last visits, and no more of them than are needed.
    """
    catalog = catalog_of(connection)
    now, policy = catalog.clock(), catalog.visit_policy
    known = visit_statistics.c
    is_queued = exists().where(
        visit_queue.c.workload.in_(excluded_workloads),
        visit_queue.c.project_id == known.project_id,
        or_(visit_queue.c.workload != REVISITS, visit_queue.c.state != TaskState.EXHAUSTED),
    )

    def placed(row: Any) -> ChosenProject:
        key = policy.choice_key(row.last_visited_at, row.pace, now)
        return ChosenProject(row.project_id, row.name, row.shard, row.last_visited_at, key)

    with ExitStack() as stack:

        def in_order(*of_these: ColumnElement[bool], limit: int) -> Iterator[ChosenProject]:
            query = (
                select(known.project_id, projects.c.name, projects.c.shard, known.last_visited_at, known.pace)
                .join(projects, projects.c.id == known.project_id)
                .where(*of_these, ~is_queued, is_followed(connection, known.project_id))
                .order_by(known.last_visited_at, known.project_id)
                .limit(limit if is_wanted is None else None)
            )
            rows = stack.enter_context(connection.execute(query, execution_options={"yield_per": 1_000}))
            return (placed(row) for row in rows if is_wanted is None or is_wanted(row.project_id))

        found = list(islice(in_order(known.last_visited_at.is_(None), limit=count), count))
        left, is_visited = count - len(found), known.last_visited_at.is_not(None)
        if left > 0:
            parts = [known.pace == pace for pace in PACES] if policy.uses_pace else [and_(True)]
            streams = [in_order(is_visited, part, limit=left) for part in parts]
            found += islice(heapq.merge(*streams, key=lambda one: (one.key, one.project_id)), left)
    return found


def queue_revisits(connection: Connection, count: int, excluded_workload: str) -> int:
    """Queue visits of the `count` projects that the visit policy chooses. Return how many are new.

    Projects that `excluded_workload` visits anyway are skipped. Completed revisits are removed from the queue, and
    exhausted ones are retried when they are chosen again.
    """
    if not count:
        return 0
    is_pending = exists().where(read_queue.c.project_id == visit_queue.c.project_id)
    is_over = and_(visit_queue.c.workload == REVISITS, visit_queue.c.state == TaskState.DONE, ~is_pending)
    lock_rows(connection, visit_queue, is_over)
    connection.execute(delete(visit_queue).where(is_over))
    chosen = choose_projects(connection, count, excluded_workloads=(REVISITS, excluded_workload))
    again, now = 0, catalog_of(connection).clock()
    for ids in at_a_time(sorted(one.project_id for one in chosen)):
        of_these = (visit_queue.c.workload == REVISITS, visit_queue.c.project_id.in_(ids), IS_EXHAUSTED)
        lock_rows(connection, visit_queue, *of_these)
        values = RESET | {"error_text": None, "queued_at": now}
        again += connection.execute(update(visit_queue).where(*of_these).values(values)).rowcount
    return again + queue_visits(connection, REVISITS, [(one.project_id, one.shard, 0) for one in chosen])


def revisit_soon(connection: Connection, tasks: Collection[tuple[int, int, int]]) -> None:
    """Queue revisits, given as (project id, shard, least serial), even of projects that were revisited before."""
    for ids in at_a_time(sorted(project_id for project_id, _, _ in tasks)):
        is_over = (visit_queue.c.workload == REVISITS, visit_queue.c.project_id.in_(ids))
        connection.execute(delete(visit_queue).where(*is_over, visit_queue.c.state != TaskState.TODO))
    queue_visits(connection, REVISITS, tasks)


class AbandonedVisit(NamedTuple):
    """A project whose visit was abandoned. Times are unix seconds; `due_at` is the time of its next revisit."""

    project_id: int
    shard: int
    min_serial: int
    due_at: float
    last_visited_at: float | None
    error_text: str | None


def abandoned_visits(connection: Connection) -> list[AbandonedVisit]:
    """Return the projects whose visits were abandoned, for `revisit_soon`.

    A project is due after a pause that doubles with each failure, up to a day. Projects with a queued revisit are
    skipped.
    """
    known = visit_statistics.c
    columns = (visit_queue.c.project_id, visit_queue.c.shard, visit_queue.c.min_serial, visit_queue.c.error_text)
    query = (
        select(*columns, known.last_visited_at, known.successive_outcomes)
        .join(visit_statistics, known.project_id == visit_queue.c.project_id)
        .where(IS_EXHAUSTED, is_followed(connection, visit_queue.c.project_id))
    )
    found: dict[int, AbandonedVisit] = {}
    for row in connection.execute(query):
        pause = min(_REVISIT_FAILED_S * 2.0 ** min(row.successive_outcomes - 1, 20), _LONGEST_PAUSE_S)
        due_at = 0.0 if row.last_visited_at is None else row.last_visited_at + pause
        serial = max(row.min_serial, found[row.project_id].min_serial if row.project_id in found else 0)
        found[row.project_id] = AbandonedVisit(
            row.project_id, row.shard, serial, due_at, row.last_visited_at, row.error_text
        )
    if not found:
        return []
    queued = select(visit_queue.c.project_id).where(
        visit_queue.c.workload == REVISITS, visit_queue.c.state == TaskState.TODO
    )
    for project_id in connection.scalars(queued):
        found.pop(project_id, None)
    return list(found.values())
