"""The queue of visits: the projects that a full crawl, a serial range, an audit or a scope still has to visit.

A *workload* is the set of visits of one of them: `crawl:7`, `range:1200-1350`, `audit:3`, `scope:2`, or `revisits`,
which regularly visits a few projects that the visit policy chooses (`revisits.py`). Workloads are stored, so they
continue after any stop.

The queue contains pending and exhausted visits, and finished visits of incomplete workloads. `finished_workloads.py`
removes finished visits.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    and_,
    bindparam,
    delete,
    exists,
    func,
    literal_column,
    select,
    update,
)

from pypi_assets.catalog.coordination.claims import RELEASED, claim_values, failures_at_claim, is_claimable, ready_at
from pypi_assets.catalog.database import at_a_time, catalog_of, insert_missing, lock_rows, storable
from pypi_assets.catalog.ledger.range_ledger import read_state
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.projects import PROJECT_COLUMNS, CatalogProject
from pypi_assets.catalog.observed.visit_statistics import prospects
from pypi_assets.catalog.tables import (
    full_crawls,
    projects,
    scope_projects,
    scopes,
    serial_ranges,
    visit_queue,
)
from pypi_assets.visit_policies import LEAST_NICE, MOST_NICE, NEVER_VISITED

REVISITS = "revisits"
REQUESTED = "requested"
"""The workload of visits that people request: see `requested_visits.py`."""
LISTING = "listing"
"""The workload of visits from the list of projects that no range has taken yet. They are not made before."""


class TaskState(StrEnum):
    """The stored state of a visit in the queue."""

    TODO = "todo"
    DONE = "done"
    EXHAUSTED = "gave up"


IS_TODO: ColumnElement[bool] = literal_column(f"visit_queue.state = '{TaskState.TODO}'")
IS_EXHAUSTED: ColumnElement[bool] = literal_column(f"visit_queue.state = '{TaskState.EXHAUSTED}'")
"""They have no parameter, so that the partial indexes are used."""
RESET: dict[str, Any] = {
    "state": TaskState.TODO,
    "attempts": 0,
    "first_failed_at": None,
    "due_at": 0,
    "was_gone": False,
}
"""The columns of a visit that is due, as if it had never been tried."""


@dataclass(frozen=True, slots=True)
class VisitTask:
    """One project that `worker` has claimed to visit. A page older than `min_serial` is stale.

    The list of projects with the serial `listed_at` shows the project with `min_serial` as its last serial; the list
    with the serial `unlisted_at` lacks it. Both are None if the visit comes from no list. `was_gone`: the last answer
    was a 404. `taken_from` is the dead worker whose expired claim this one replaces.
    """

    workload: str
    project: CatalogProject
    shard: int
    min_serial: int
    attempts: int
    first_failed_at: float | None
    worker: str
    listed_at: int | None = None
    unlisted_at: int | None = None
    was_gone: bool = False
    taken_from: str | None = None


@dataclass(frozen=True, slots=True)
class WorkloadProgress:
    """The number of projects of a workload in each state.

    `lost` counts visits of one call that another worker has taken over because their claims were not renewed.
    """

    todo: int
    done: int
    exhausted: int
    lost: int = 0

    @property
    def total(self) -> int:
        return self.todo + self.done + self.exhausted

    def __add__(self, other: "WorkloadProgress") -> "WorkloadProgress":
        return WorkloadProgress(
            self.todo + other.todo, self.done + other.done, self.exhausted + other.exhausted, self.lost + other.lost
        )


def crawl_workload(crawl_id: int) -> str:
    return f"crawl:{crawl_id}"


def range_workload(serials: SerialRange) -> str:
    """Return the workload of a serial range, `range:START-END`."""
    return f"range:{serials.key}"


def audit_workload(audit_id: int) -> str:
    return f"audit:{audit_id}"


def scope_workload(scope_id: int, *, is_aborted: bool = False) -> str:
    """Return the workload of a scope: its projects that no range visits. It changes while the scope is aborted."""
    return f"{'aborted' if is_aborted else 'scope'}:{scope_id}"


class WorkloadOwner(NamedTuple):
    """The table and the row that a workload belongs to. The row counts the visits that have left the queue."""

    table: Table
    is_it: ColumnElement[bool]


def owner_of(workload: str) -> WorkloadOwner | None:
    """Return the owner of a workload; None for audits and for workloads without an end."""
    kind, _, key = workload.partition(":")
    if kind == "crawl":
        return WorkloadOwner(full_crawls, full_crawls.c.id == int(key))
    if kind == "range":
        start, _, end = key.partition("-")
        return WorkloadOwner(serial_ranges, and_(serial_ranges.c.start == int(start), serial_ranges.c.end == int(end)))
    if kind in {"scope", "aborted"}:
        return WorkloadOwner(scopes, scopes.c.id == int(key))
    return None


def visit_kind(workload: str) -> str:
    """Return the kind of the visits of `workload`: full, incremental, audit, scope or requested."""
    kinds = {
        "crawl": "full",
        "range": "incremental",
        "audit": "audit",
        "scope": "scope",
        REVISITS: "audit",
        REQUESTED: REQUESTED,
    }
    return kinds[workload.partition(":")[0]]


def queue_visits(
    connection: Connection,
    workload: str,
    tasks: Collection[tuple[int, int, int]],
    *,
    listed_at: int | None = None,
    unlisted_at: int | None = None,
    nice: Mapping[int, int] = MappingProxyType({}),
) -> int:
    """Add visits, given as (project id, shard, least serial), to `workload`. Return how many are new.

    The visit policy of the catalog places them, and `nice` adds a value to priorities by project id. `listed_at` and
    `unlisted_at` are as in VisitTask.
    """
    common = {"workload": workload, "state": TaskState.TODO, "listed_at": listed_at, "unlisted_at": unlisted_at}
    turns = turns_of(connection, {project_id: serial for project_id, _, serial in tasks})
    for project_id, more in nice.items():
        turns[project_id]["nice"] = max(LEAST_NICE, min(turns[project_id]["nice"] + more, MOST_NICE))
    return insert_missing(
        connection,
        visit_queue,
        [
            common | {"project_id": project_id, "shard": shard, "min_serial": serial} | turns[project_id]
            for project_id, shard, serial in sorted(tasks)  # in a fixed order, so that transactions do not deadlock
        ],
    )


def turns_of(connection: Connection, min_serials: Mapping[int, int]) -> dict[int, dict[str, float]]:
    """Return the queue columns of new visits of these projects by project id: their places, and when they are queued.

    The visit policy of the catalog places them.
    """
    catalog = catalog_of(connection)
    now, place = catalog.clock(), catalog.visit_policy.place
    facts = prospects(connection, min_serials, read_state(connection)["events_through"])
    return {
        project_id: place(facts.get(project_id, NEVER_VISITED), now)._asdict() | {"queued_at": now}
        for project_id in min_serials
    }


def move_projects(
    connection: Connection, workload: str, project_ids: Sequence[int], scopes: Mapping[int, str]
) -> list[int]:
    """Move visits of these projects to other scopes that lead to them. Return the ids of these scopes.

    `scopes` maps ids of scopes to their workloads. A visit goes to the scope with the least id that leads to the
    project.
    """
    c = scope_projects.c
    got: set[int] = set()
    for ids in at_a_time(sorted(project_ids)):
        its = select(visit_queue.c.project_id).where(
            visit_queue.c.workload == workload, visit_queue.c.project_id.in_(ids)
        )
        leads = (c.project_id.in_(its), c.scope_id.in_(list(scopes)), c.is_beyond.is_(False))
        query = select(c.project_id, func.min(c.scope_id)).where(*leads).group_by(c.project_id)
        for project_id, scope_id in connection.execute(query.order_by(c.project_id)).all():
            if _move(connection, project_id, workload, scopes[scope_id]):
                got.add(scope_id)
    return sorted(got)


def _move(connection: Connection, project_id: int, workload: str, into: str) -> bool:
    """Move a visit, even if it is claimed. If both workloads have a visit, a pending one counts."""
    is_its, there = visit_queue.c.project_id == project_id, visit_queue.alias()
    is_todo = exists().where(
        there.c.workload == workload, there.c.project_id == project_id, there.c.state == TaskState.TODO
    )
    connection.execute(delete(visit_queue).where(is_its, visit_queue.c.workload == into, is_todo))
    is_there = exists().where(there.c.workload == into, there.c.project_id == project_id)
    values = {"workload": into, "claimed_by": None, "claimed_until": 0.0}
    moved = update(visit_queue).where(is_its, visit_queue.c.workload == workload, ~is_there)
    return connection.execute(moved.values(values)).rowcount == 1


def requeue_visits(connection: Connection, workload: str, shards: Sequence[int] | None = None) -> None:
    """Make finished and exhausted visits of `workload` due again."""
    is_over = and_(_in_workload(workload, shards), visit_queue.c.state != TaskState.TODO)
    lock_rows(connection, visit_queue, is_over)
    values = RESET | {"error_text": None, "queued_at": catalog_of(connection).clock()}
    connection.execute(update(visit_queue).where(is_over).values(values))


def unqueue_visits(connection: Connection, workload: str, count: int | None = None) -> int:
    """Remove visits of `workload` from the queue. Return how many were removed.

    By default these are all its visits. With a `count`, they are at most that many pending visits that no worker has
    claimed, those with the smallest serials first.
    """
    if count is not None and count <= 0:
        return 0
    these = visit_queue.c.workload == workload
    if count is not None:
        last = (
            select(visit_queue.c.project_id)
            .where(_todo(workload, None), visit_queue.c.claimed_by.is_(None))
            .order_by(visit_queue.c.min_serial, visit_queue.c.project_id.desc())
            .limit(count)
        )
        these = and_(these, visit_queue.c.project_id.in_(list(connection.scalars(last))))
    lock_rows(connection, visit_queue, these)
    return connection.execute(delete(visit_queue).where(these)).rowcount


def queued_names(connection: Connection, workload: str) -> list[str]:
    """Return the normalized names of all projects that the queue has for `workload`."""
    query = select(projects.c.normalized).join(visit_queue, visit_queue.c.project_id == projects.c.id)
    return list(connection.scalars(query.where(visit_queue.c.workload == workload)))


def claim_visits(
    connection: Connection,
    workload: str,
    shards: Sequence[int] | None,
    *,
    worker: str,
    now: float,
    until: float,
    limit: int,
) -> list[VisitTask]:
    """Claim the next visits of `workload` within `shards` (None: all) for `worker`.

    Lower nice values come first; among equal ones, the visits that have been due for longest.
    """
    query = (
        select(*PROJECT_COLUMNS, visit_queue)
        .join(projects, projects.c.id == visit_queue.c.project_id)
        .where(_todo(workload, shards), is_claimable(visit_queue, worker, now))
        .order_by(visit_queue.c.nice, visit_queue.c.due_at, visit_queue.c.project_id)
        .limit(limit)
        .with_for_update(of=visit_queue, skip_locked=True)
    )
    rows = connection.execute(query).all()
    for ids in at_a_time(row.project_id for row in rows):
        of_these = and_(visit_queue.c.workload == workload, visit_queue.c.project_id.in_(ids))
        connection.execute(update(visit_queue).where(of_these).values(claim_values(visit_queue, worker, now, until)))
    tasks = []
    for row in rows:
        attempts, first_failed_at = failures_at_claim(row, now)
        task = VisitTask(
            workload=row.workload,
            project=CatalogProject(*row[: len(PROJECT_COLUMNS)]),
            shard=row.shard,
            min_serial=row.min_serial,
            attempts=attempts,
            first_failed_at=first_failed_at,
            worker=worker,
            listed_at=row.listed_at,
            unlisted_at=row.unlisted_at,
            was_gone=row.was_gone,
            taken_from=row.claimed_by,
        )
        tasks.append(task)
    return tasks


def still_claimed(connection: Connection, tasks: Sequence[VisitTask]) -> set[int]:
    """Return the projects of those `tasks` that are still claimed, and lock their claims until the transaction ends.

    All tasks must have the same workload and worker.
    """
    if not tasks:
        return set()
    mine = (
        select(visit_queue.c.project_id)
        .where(
            visit_queue.c.workload == tasks[0].workload,
            visit_queue.c.project_id.in_([task.project.id for task in tasks]),
            visit_queue.c.claimed_by == tasks[0].worker,
        )
        .order_by(visit_queue.c.project_id)
        .with_for_update()
    )
    return set(connection.scalars(mine))


def visits_ready_at(connection: Connection, workload: str, shards: Sequence[int] | None) -> float | None:
    """Return when the next visit can be claimed, unless its worker finishes it first; None if none is left."""
    return connection.scalar(select(func.min(ready_at(visit_queue))).where(_todo(workload, shards)))


def is_visit_pending(connection: Connection, workload: str) -> bool:
    """Check whether `workload` has pending visits."""
    return connection.scalar(select(visit_queue.c.project_id).where(_todo(workload, None)).limit(1)) is not None


def finish_visits(connection: Connection, finished: Iterable[tuple[VisitTask, TaskState, str | None]]) -> None:
    """Set the state of each task, and the text of its error, if it had one."""
    rows = [
        {
            "of_workload": task.workload,
            "of_project": task.project.id,
            "new_state": state,
            "text": text and storable(text),
        }
        for task, state, text in finished
    ]
    _update(connection, rows, state=bindparam("new_state"), error_text=bindparam("text"))


def postpone_visits(
    connection: Connection, now: float, postponed: Iterable[tuple[VisitTask, float, str, bool]]
) -> None:
    """Postpone each visit to a time (unix seconds), with the text of the error and whether it was a 404.

    `first_failed_at` is set at the first failure.
    """
    rows = [
        {
            "of_workload": task.workload,
            "of_project": task.project.id,
            "later": due_at,
            "text": storable(text),
            "is_gone": is_gone,
        }
        for task, due_at, text, is_gone in postponed
    ]
    _update(
        connection,
        rows,
        first_failed_at=func.coalesce(visit_queue.c.first_failed_at, now),
        due_at=bindparam("later"),
        error_text=bindparam("text"),
        was_gone=bindparam("is_gone"),
    )


def clear_exhausted(connection: Connection, reached: Mapping[int, int | None]) -> set[str]:
    """Finish exhausted visits of these projects in all workloads, since a later visit has succeeded.

    Return the workloads of these visits. `reached` has the serial that the later visit reached, by project id; None if
    it satisfies any exhausted visit. Visits that need a newer page stay exhausted.
    """
    columns = (visit_queue.c.workload, visit_queue.c.project_id, visit_queue.c.min_serial)
    workloads: set[str] = set()
    for ids in at_a_time(sorted(reached)):
        exhausted = select(*columns).where(visit_queue.c.project_id.in_(ids), IS_EXHAUSTED)
        over = [
            {"of_workload": row.workload, "of_project": row.project_id}
            for row in connection.execute(exhausted.order_by(visit_queue.c.project_id, visit_queue.c.workload))
            if (serial := reached[row.project_id]) is None or row.min_serial <= serial
        ]
        if over:
            is_row = (
                visit_queue.c.workload == bindparam("of_workload"),
                visit_queue.c.project_id == bindparam("of_project"),
            )
            done = update(visit_queue).where(*is_row, IS_EXHAUSTED).values(state=TaskState.DONE, error_text=None)
            connection.execute(done, over)
            workloads.update(row["of_workload"] for row in over)
    return workloads


def exhausted_visits(connection: Connection) -> list[tuple[int, int]]:
    """Return, in order, (project id, shard) of the projects with exhausted visits in any workload."""
    columns = (visit_queue.c.project_id, visit_queue.c.shard)
    rows = connection.execute(select(*columns).where(IS_EXHAUSTED).distinct().order_by(visit_queue.c.project_id))
    return [(project_id, shard) for project_id, shard in rows]


def abandoned_projects(connection: Connection, workload: str, limit: int = 20) -> tuple[str, ...]:
    """Return the first `limit` normalized names of the projects whose visits in a workload were abandoned."""
    of_projects = select(projects.c.normalized).join(visit_queue, visit_queue.c.project_id == projects.c.id)
    query = of_projects.where(visit_queue.c.workload == workload, IS_EXHAUSTED)
    return tuple(connection.scalars(query.order_by(projects.c.normalized).limit(limit)))


def workload_progress(connection: Connection, workload: str, shards: Sequence[int] | None = None) -> WorkloadProgress:
    """Return the number of projects of `workload` in each state, within `shards` (None: all).

    Without `shards`, finished visits that have left the queue of a complete workload are included.
    """
    counts: dict[str, int] = {
        state: count
        for state, count in connection.execute(
            select(visit_queue.c.state, func.count())
            .where(_in_workload(workload, shards))
            .group_by(visit_queue.c.state)
        )
    }
    if shards is None and (owner := owner_of(workload)) is not None:
        visited = connection.scalar(select(owner.table.c.visited).where(owner.is_it)) or 0
        counts[TaskState.DONE] = counts.get(TaskState.DONE, 0) + visited
    return _progress(counts)


def _progress(counts: Mapping[str, int]) -> WorkloadProgress:
    return WorkloadProgress(
        todo=counts.get(TaskState.TODO, 0),
        done=counts.get(TaskState.DONE, 0),
        exhausted=counts.get(TaskState.EXHAUSTED, 0),
    )


def shards_with_projects(connection: Connection, workload: str) -> dict[int, int]:
    """Return the number of projects that `workload` visits, by shard. Shards without projects are omitted."""
    return {
        shard: count
        for shard, count in connection.execute(
            select(visit_queue.c.shard, func.count())
            .where(visit_queue.c.workload == workload)
            .group_by(visit_queue.c.shard)
        )
    }


def progress_by_shard(
    connection: Connection, workload: str, shards: Sequence[int] | None = None
) -> dict[int, WorkloadProgress]:
    """Return the progress of `workload` by shard: in each of `shards`, even if it is empty, or in all its shards."""
    counts: dict[int, dict[str, int]] = {shard: {} for shard in shards or ()}
    query = (
        select(visit_queue.c.shard, visit_queue.c.state, func.count())
        .where(_in_workload(workload, shards))
        .group_by(visit_queue.c.shard, visit_queue.c.state)
    )
    for shard, state, count in connection.execute(query):
        counts.setdefault(shard, {})[state] = count
    return {shard: _progress(states) for shard, states in counts.items()}


def projects_to_visit(connection: Connection, workload: str) -> list[int]:
    """Return, in order, the ids of the projects that the queue has for `workload`: all of them until it is complete."""
    query = (
        select(visit_queue.c.project_id).where(visit_queue.c.workload == workload).order_by(visit_queue.c.project_id)
    )
    return list(connection.scalars(query))


def workloads_to_visit(connection: Connection) -> list[str]:
    """Return the workloads with pending visits."""
    todo = select(visit_queue.c.workload).where(
        IS_TODO, visit_queue.c.workload != LISTING, visit_queue.c.workload.not_like("aborted:%")
    )
    return list(connection.scalars(todo.distinct().order_by(visit_queue.c.workload)))


def _update(connection: Connection, rows: Sequence[Mapping[str, object]], **values: object) -> None:
    if not rows:
        return
    connection.execute(
        update(visit_queue)
        .where(visit_queue.c.workload == bindparam("of_workload"), visit_queue.c.project_id == bindparam("of_project"))
        .values(attempts=visit_queue.c.attempts + 1, **RELEASED, **values),
        rows,
    )


def _in_workload(workload: str, shards: Sequence[int] | None) -> ColumnElement[bool]:
    if shards is None:
        return visit_queue.c.workload == workload
    return and_(visit_queue.c.workload == workload, visit_queue.c.shard.in_(shards))


def _todo(workload: str, shards: Sequence[int] | None) -> ColumnElement[bool]:
    return and_(_in_workload(workload, shards), IS_TODO)
