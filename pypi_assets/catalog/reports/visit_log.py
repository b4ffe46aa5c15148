"""Queries of the log of visits: one project's visits with all their statuses, and projects by the state of visits."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, literal_column, select

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.observed.events import events_through
from pypi_assets.catalog.observed.followed import is_followed
from pypi_assets.catalog.observed.projects import CatalogProject
from pypi_assets.catalog.observed.snapshots import SnapshotSummary, find_snapshots, read_snapshots, summarize_snapshots
from pypi_assets.catalog.observed.visit_statistics import prospects
from pypi_assets.catalog.tables import projects, visit_statistics, visit_statuses, visits


@dataclass(frozen=True, slots=True)
class LoggedStatus:
    """A status of a visit, with `at` in unix seconds.

    If it saw a page: the page's own serial, the serial up to which events were stored, and the project-status.
    """

    at: float
    status: str
    page_serial: int | None
    seen_through: int | None
    page_status: str | None
    text: str | None


@dataclass(frozen=True, slots=True)
class LoggedVisit:
    """A visit with all its statuses, the oldest first. `outcome` is the last one.

    `snapshot` is the sha256 of the page's files, and `files` is their number; None if no page was seen.
    """

    visit: int
    kind: str
    workload: str
    started_at: float
    outcome: str
    statuses: tuple[LoggedStatus, ...]
    snapshot: str | None
    files: int | None


@dataclass(frozen=True, slots=True)
class VisitFilter:
    """The visits that a reader wants: by outcome, kind and workload, the newest first unless `is_ascending`.

    `after` is the number of the last visit that the reader has, in that order.
    """

    outcome: str | None = None
    kind: str | None = None
    workload: str | None = None
    is_ascending: bool = False
    after: int | None = None
    limit: int = 100


def logged_visits(connection: Connection, project: CatalogProject, wanted: VisitFilter) -> list[LoggedVisit]:
    """Return up to `wanted.limit` matching visits that are in the log."""
    c = visits.c
    last = (
        select(visit_statuses.c.status)
        .where(visit_statuses.c.visit_id == c.id)
        .order_by(visit_statuses.c.id.desc())
        .limit(1)
        .correlate(visits)
        .scalar_subquery()
    )
    where: list[ColumnElement[bool]] = [c.project_id == project.id]
    where += [c[name] == value for name in ("kind", "workload") if (value := getattr(wanted, name)) is not None]
    if wanted.outcome is not None:
        where.append(last == wanted.outcome)
    if wanted.after is not None:
        where.append(c.visit > wanted.after if wanted.is_ascending else c.visit < wanted.after)
    order = c.visit.asc() if wanted.is_ascending else c.visit.desc()
    return _with_statuses(
        connection, connection.execute(select(visits).where(*where).order_by(order).limit(wanted.limit)).all()
    )


def logged_visit(connection: Connection, project: CatalogProject, visit: int) -> LoggedVisit:
    """Return one visit. Raises CatalogError if it is not in the log."""
    rows = connection.execute(select(visits).where(visits.c.project_id == project.id, visits.c.visit == visit)).all()
    if not rows:
        raise CatalogError(f"the log has no visit {visit} of {project.name}")
    return _with_statuses(connection, rows)[0]


def shown_files(connection: Connection, snapshot: str) -> list[list[str | bool | None]]:
    """Return the files of a snapshot as [filename, sha256, yanked], by filename. Raises CatalogError without them."""
    ids = find_snapshots(connection, [snapshot]).values()
    return next((found.files for _, found in read_snapshots(connection, ids)), [])


def _with_statuses(connection: Connection, rows: Sequence[Row[Any]]) -> list[LoggedVisit]:
    c = visit_statuses.c
    statuses: dict[int, list[Row[Any]]] = defaultdict(list)
    query = select(visit_statuses).where(c.visit_id.in_([row.id for row in rows])).order_by(c.id)
    for status in connection.execute(query):
        statuses[status.visit_id].append(status)
    seen = {
        id_: status.snapshot_id for id_, its in statuses.items() for status in its if status.snapshot_id is not None
    }
    shown = summarize_snapshots(connection, set(seen.values()))
    return [_logged(row, statuses[row.id], shown.get(seen.get(row.id, 0))) for row in rows]


def _logged(row: Row[Any], statuses: Sequence[Row[Any]], snapshot: SnapshotSummary | None) -> LoggedVisit:
    fields = LoggedStatus.__dataclass_fields__
    return LoggedVisit(
        visit=row.visit,
        kind=row.kind,
        workload=row.workload,
        started_at=row.started_at,
        outcome=statuses[-1].status,
        statuses=tuple(LoggedStatus(**{name: getattr(status, name) for name in fields}) for status in statuses),
        snapshot=None if snapshot is None else snapshot.sha256,
        files=None if snapshot is None else snapshot.files,
    )


class VisitedState(StrEnum):
    """A state by which projects are listed.

    FAILING: the last visit failed, or saw only a page that was too old. NEVER: no visit has ended. STALE: the project
    was visited, and its last visit is longest ago.
    """

    FAILING = "failing"
    NEVER = "never"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class VisitedProject:
    """The statistics of a project's visits. Times are unix seconds.

    `lag` is the number of serials since its first change that no page has shown; None if no such change is known.
    """

    project: str
    last_visited_at: float | None
    last_successful_at: float | None
    outcome: str | None
    successive: int
    next_due_at: float | None
    lag: int | None


_KNOWN = visit_statistics.c
_FAILING: ColumnElement[bool] = literal_column("visit_statistics.last_outcome IN ('failed', 'partial')")
"""It has no parameter, so that the partial index is used."""
_STATES: dict[VisitedState, tuple[ColumnElement[bool], tuple[ColumnElement[Any], ...]]] = {
    VisitedState.FAILING: (_FAILING, (_KNOWN.project_id,)),
    VisitedState.NEVER: (_KNOWN.last_visited_at.is_(None), (_KNOWN.project_id,)),
    VisitedState.STALE: (_KNOWN.last_visited_at.is_not(None), (_KNOWN.last_visited_at, _KNOWN.project_id)),
}
"""The condition and the order of each state. Each has an index, so the cost depends on the limit alone."""


def projects_in_state(connection: Connection, state: VisitedState, limit: int) -> list[VisitedProject]:
    """Return the first `limit` followed projects in a state: the longest unvisited ones first if it is STALE."""
    condition, order = _STATES[state]
    names = ("last_visited_at", "last_successful_at", "last_outcome", "successive_outcomes", "next_due_at")
    query = (
        select(projects.c.id, projects.c.name, *(_KNOWN[name] for name in names))
        .join(visit_statistics, _KNOWN.project_id == projects.c.id)
        .where(condition, is_followed(connection, _KNOWN.project_id))
        .order_by(*order)
        .limit(limit)
    )
    rows = connection.execute(query).all()
    known = prospects(connection, {row.id: 0 for row in rows}, events_through(connection))
    return [
        VisitedProject(
            project=row.name,
            last_visited_at=row.last_visited_at,
            last_successful_at=row.last_successful_at,
            outcome=row.last_outcome,
            successive=row.successive_outcomes,
            next_due_at=row.next_due_at,
            lag=known[row.id].lag if row.id in known else None,
        )
        for row in rows
    ]
