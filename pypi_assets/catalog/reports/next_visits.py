"""The next visits with their reasons: queued visits with their places, and visits that are not queued yet.

Workloads are visited independently of each other, so a place counts within one workload. The memory is limited by the
number of visits that are asked for, and entries are read by index in the order in which workers claim them.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, TypedDict, cast

from sqlalchemy import ColumnElement, Connection, Select, and_, func, select, tuple_

from pypi_assets.catalog.database import at_a_time, catalog_of
from pypi_assets.catalog.ledger.range_ledger import read_state
from pypi_assets.catalog.observed.observations import observed_instance
from pypi_assets.catalog.observed.projects import find_project
from pypi_assets.catalog.observed.visit_statistics import prospects
from pypi_assets.catalog.tables import catalog_state, observed_projects, projects, visit_queue, visit_statistics
from pypi_assets.catalog.work.revisits import abandoned_visits, choose_projects
from pypi_assets.catalog.work.visit_queue import IS_TODO, LISTING, REQUESTED, REVISITS
from pypi_assets.times import utc_text

POLLS = "polls"
"""The name of the polls of an index without serials, in place of a workload."""
_SINGLE = frozenset({REQUESTED, REVISITS, LISTING})
"""The workloads that exist only once. The names of other workloads end with a number."""
_KINDS = (REQUESTED, "range", "crawl", REVISITS, "scope", "audit", LISTING)
_MOST_COUNTED = 1_000_000
_MOST_CHOSEN = 1_000


class VisitState(StrEnum):
    """The state of a next visit. A visit is planned if the next round will queue it."""

    RUNNING = "running"
    DUE = "due"
    LATER = "later"
    PLANNED = "planned"


class VisitReason(StrEnum):
    """Why a project is visited next.

    RETRY: the last attempt failed. ASKED: a person asked for it. EVENTS: events of a range. LISTED: the list of
    projects shows another serial. STALE: the visit policy chose it. POLL: its pause is over, on an index without
    serials.
    """

    RETRY = "retry"
    ASKED = "asked"
    NEVER_VISITED = "never visited"
    EVENTS = "events"
    LISTED = "listed"
    FULL_CRAWL = "full crawl"
    STALE = "stale"
    AUDIT = "audit"
    SCOPE = "scope"
    POLL = "poll"


_OF_KIND = {
    REQUESTED: VisitReason.ASKED,
    "range": VisitReason.EVENTS,
    "crawl": VisitReason.FULL_CRAWL,
    "audit": VisitReason.AUDIT,
    "scope": VisitReason.SCOPE,
    LISTING: VisitReason.LISTED,
    REVISITS: VisitReason.STALE,
}


@dataclass(frozen=True, slots=True)
class NextVisit:
    """One visit that is due next. Times are unix seconds.

    `place` counts from 1 within its workload and state; None if it waits until `due_at`, or if more visits are before
    it than are counted. `nice` is its priority; lower values run first; None if it is not queued. `lag` is the number
    of serials since the first change that no page has shown. `waiting_since` is when it was queued.
    """

    project: str
    workload: str
    state: VisitState
    place: int | None
    reason: VisitReason
    nice: int | None
    waiting_since: float | None
    due_at: float | None
    lag: int | None
    last_visited_at: float | None
    attempts: int
    error: str | None


class NextVisitResult(TypedDict):
    """A next visit in JSON, with the fields of NextVisit. Times are ISO 8601 in UTC."""

    project: str
    workload: str
    state: str
    place: int | None
    reason: str
    nice: int | None
    waiting_since: str | None
    due_at: str | None
    lag: int | None
    last_visited_at: str | None
    attempts: int
    error: str | None


def result_of(visit: NextVisit) -> NextVisitResult:
    """Return the visit for JSON."""
    texts = {name: utc_text(getattr(visit, name)) for name in ("waiting_since", "due_at", "last_visited_at")}
    return cast("NextVisitResult", asdict(visit) | texts | {"state": visit.state.value, "reason": visit.reason.value})


def next_visits(connection: Connection, limit: int) -> list[NextVisit]:
    """Return the next `limit` visits. The first visit of each workload comes first, then the second ones, and so on."""
    if connection.scalar(select(catalog_state.c.events_through)) is None:
        return []
    workloads = list(_workloads(connection, limit))
    groups = [list(_of_workload(connection, workload, limit)) for workload in workloads]
    groups += [
        list(_retries(connection, limit)),
        _choice(connection, workloads, limit),
        list(_polls(connection, limit)),
    ]
    ranked = heapq.merge(
        *([(rank, number, visit) for rank, visit in enumerate(group)] for number, group in enumerate(groups)),
        key=lambda ranked: ranked[:2],
    )
    return [visit for _, (_, _, visit) in zip(range(limit), ranked, strict=False)]


def next_visits_of(connection: Connection, project: str) -> list[NextVisit] | None:
    """Return the next visits of a project, one for each workload that has one; None if the project is unknown.

    If none is queued, the visit that is planned for it is returned, with its place in the next choice if that is among
    the first thousand.
    """
    known = find_project(connection, project)
    if known is None:
        return None
    found: list[NextVisit] = []
    workloads = list(_workloads(connection, None))
    for workload in workloads:
        query = _queued(workload).where(visit_queue.c.project_id == known.id)
        for visit, row in _visits(connection, connection.execute(query).all()):
            place = _place(connection, workload, row) if visit.state != VisitState.LATER else None
            found.append(replace(visit, place=place))
    if not found:
        found += (visit for visit in _retries(connection, None) if visit.project == known.name)
    if not found:
        found += (one for one in _choice(connection, workloads, _MOST_CHOSEN) if one.project == known.name)
    c = observed_projects.c
    for visit, row in _polled(connection, select(observed_projects).where(c.project == known.normalized)):
        before = select(c.project).where(tuple_(c.due_at, c.project) < tuple_(row.due_at, row.project))
        found.append(replace(visit, project=known.name, place=1 + _count(connection, before)))
    return found


def _workloads(connection: Connection, limit: int | None) -> Iterator[str]:
    """Yield the workloads with pending visits in the order of their kinds, at most `limit` of each kind.

    Visits of aborted scopes are paused, so they are skipped.
    """
    for kind in _KINDS:
        if kind in _SINGLE:
            found = [kind] if _next_workload(connection, visit_queue.c.workload == kind) else []
        else:
            found, last = [], f"{kind}:"
            while limit is None or len(found) < limit:
                of_kind = and_(visit_queue.c.workload > last, visit_queue.c.workload < f"{kind};")  # ; follows :
                if (workload := _next_workload(connection, of_kind)) is None:
                    break
                found.append(last := workload)
        yield from sorted(found, key=lambda workload: (len(workload.partition("-")[0]), workload))  # by number


def _next_workload(connection: Connection, condition: ColumnElement[bool]) -> str | None:
    query = select(visit_queue.c.workload).where(condition, IS_TODO)
    workload: str | None = connection.scalar(query.order_by(visit_queue.c.workload).limit(1))
    return workload


def _queued(workload: str) -> Select[Any]:
    c, known = visit_queue.c, visit_statistics.c
    return (
        select(visit_queue, projects.c.name, known.last_visited_at, known.last_outcome)
        .join(projects, projects.c.id == c.project_id)
        .outerjoin(visit_statistics, known.project_id == c.project_id)
        .where(c.workload == workload, IS_TODO)
    )


def _of_workload(connection: Connection, workload: str, limit: int) -> Iterator[NextVisit]:
    """Yield the next visits of a workload: those that are due in the order of their claims, then those that wait."""
    c, now = visit_queue.c, catalog_of(connection).clock()
    due = _queued(workload).where(c.due_at <= now).order_by(c.nice, c.due_at, c.project_id)
    rows = connection.execute(due.limit(limit)).all()
    for place, (visit, _) in enumerate(_visits(connection, rows), start=1):
        yield replace(visit, place=place)
    if len(rows) < limit:
        later = _queued(workload).where(c.due_at > now).order_by(c.due_at, c.project_id)
        for visit, _ in _visits(connection, connection.execute(later.limit(limit - len(rows))).all()):
            yield visit


def _visits(connection: Connection, rows: Iterable[Any]) -> Iterator[tuple[NextVisit, Any]]:
    """Yield a visit without its place for each row of the queue, with the row."""
    rows, now = list(rows), catalog_of(connection).clock()
    facts = prospects(connection, {row.project_id: row.min_serial for row in rows}, _through(connection))
    for row in rows:
        state = VisitState.DUE if row.due_at <= now else VisitState.LATER
        if row.claimed_until > now:
            state = VisitState.RUNNING
        known = facts.get(row.project_id)
        yield (
            NextVisit(
                project=row.name,
                workload=row.workload,
                state=state,
                place=None,
                reason=_reason(row),
                nice=row.nice,
                waiting_since=row.queued_at,
                due_at=row.due_at or None,
                lag=None if known is None else known.lag,
                last_visited_at=row.last_visited_at,
                attempts=row.attempts,
                error=row.error_text,
            ),
            row,
        )


def _reason(row: Any) -> VisitReason:
    kind = row.workload.partition(":")[0]
    if row.first_failed_at is not None or row.attempts:
        return VisitReason.RETRY
    if kind == REQUESTED:
        return VisitReason.ASKED
    if kind == REVISITS and row.last_outcome in {"failed", "partial"}:
        return VisitReason.RETRY
    if row.last_visited_at is None:
        return VisitReason.NEVER_VISITED
    if kind == "range" and (row.listed_at is not None or row.unlisted_at is not None):
        return VisitReason.LISTED
    return _OF_KIND[kind]


def _place(connection: Connection, workload: str, row: Any) -> int | None:
    c, now = visit_queue.c, catalog_of(connection).clock()
    before = select(c.project_id).where(
        c.workload == workload,
        IS_TODO,
        c.due_at <= now,
        tuple_(c.nice, c.due_at, c.project_id) < tuple_(row.nice, row.due_at, row.project_id),
    )
    count = _count(connection, before)
    return None if count >= _MOST_COUNTED else count + 1


def _count(connection: Connection, query: Select[Any]) -> int:
    return connection.scalar(select(func.count()).select_from(query.limit(_MOST_COUNTED).subquery())) or 0


def _through(connection: Connection) -> int:
    through: int = read_state(connection)["events_through"]
    return through


def _retries(connection: Connection, limit: int | None) -> Iterator[NextVisit]:
    """Yield the revisits of projects whose visits were abandoned, by their time."""
    abandoned = abandoned_visits(connection)
    first = heapq.nsmallest(len(abandoned) if limit is None else limit, abandoned, key=lambda one: one.due_at)
    names = dict(_names(connection, [one.project_id for one in first]))
    for place, one in enumerate(first, start=1):
        yield NextVisit(
            project=names[one.project_id],
            workload=REVISITS,
            state=VisitState.PLANNED,
            place=place,
            reason=VisitReason.RETRY,
            nice=None,
            waiting_since=None,
            due_at=one.due_at or None,
            lag=None,
            last_visited_at=one.last_visited_at,
            attempts=0,
            error=one.error_text,
        )


def _names(connection: Connection, project_ids: list[int]) -> Iterator[tuple[int, str]]:
    for ids in at_a_time(project_ids):
        for row in connection.execute(select(projects.c.id, projects.c.name).where(projects.c.id.in_(ids))):
            yield row.id, row.name


def _choice(connection: Connection, workloads: list[str], limit: int) -> list[NextVisit]:
    """Return the projects that the next range or audit will choose. A full crawl visits all projects anyway."""
    if any(workload.startswith("crawl:") for workload in workloads):
        return []
    chosen = choose_projects(connection, limit, excluded_workloads=(*workloads, REVISITS))
    return [
        NextVisit(
            project=one.name,
            workload=REVISITS,
            state=VisitState.PLANNED,
            place=place,
            reason=VisitReason.NEVER_VISITED if one.last_visited_at is None else VisitReason.STALE,
            nice=one.place.nice,
            waiting_since=None,
            due_at=None,
            lag=None,
            last_visited_at=one.last_visited_at,
            attempts=0,
            error=None,
        )
        for place, one in enumerate(chosen, start=1)
    ]


def _polls(connection: Connection, limit: int) -> Iterator[NextVisit]:
    c = observed_projects.c
    query = select(observed_projects).order_by(c.due_at, c.project).limit(limit)
    for place, (visit, _) in enumerate(_polled(connection, query), start=1):
        yield replace(visit, place=place)


def _polled(connection: Connection, query: Select[Any]) -> Iterator[tuple[NextVisit, Any]]:
    if observed_instance(connection) is None:
        return
    for row in connection.execute(query):
        reason = VisitReason.POLL if row.looked_at is not None else VisitReason.NEVER_VISITED
        visit = NextVisit(
            project=row.project,
            workload=POLLS,
            state=VisitState.PLANNED,
            place=None,
            reason=VisitReason.RETRY if row.failures else reason,
            nice=None,
            waiting_since=None,
            due_at=row.due_at,
            lag=None,
            last_visited_at=row.looked_at,
            attempts=row.failures,
            error=row.error_text,
        )
        yield visit, row
