"""Visits of project pages: begin them, and record their verdicts.

A visit is never updated. Statuses are appended to it, and the latest status is its outcome. A visit that has ended is
logged at a serial, at which the journal publishes it. `recompute` derives the changes to the project.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, Select, Text, bindparam, case, exists, func, insert, select, update

from pypi_assets.catalog.database import at_a_time, lock_rows, storable
from pypi_assets.catalog.derived.checkpoint import discard_checkpoints
from pypi_assets.catalog.derived.recompute import recompute
from pypi_assets.catalog.ledger.epochs import note_changed_files
from pypi_assets.catalog.ledger.range_ledger import lock_state, sealed_end
from pypi_assets.catalog.observed.events import events_through
from pypi_assets.catalog.observed.followed import versions_in_force
from pypi_assets.catalog.observed.looks import changed_after
from pypi_assets.catalog.observed.projects import (
    CatalogProject,
    ShownName,
    load_projects,
    log_renamed,
    note_statuses,
    rename_projects,
)
from pypi_assets.catalog.observed.sightings import SeenNow, StoredSighting, bound_sightings, store_sightings
from pypi_assets.catalog.observed.snapshots import snapshot_content
from pypi_assets.catalog.observed.visit_statistics import EndedVisit, is_failing, note_ended
from pypi_assets.catalog.reads.file_counts import counting_files
from pypi_assets.catalog.reads.read_outcomes import NO_PAGE, ReadOutcome
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    events,
    projects,
    scope_projects,
    visit_statuses,
    visits,
)
from pypi_assets.index.models import BrokenEntry, ProjectPage


class VisitStatus(StrEnum):
    """The status of a visit.

    FULL: the page was judged. PARTIAL: no page was new enough in time, so only events were judged. FAILED: no attempt
    is left, or the verdict is not conclusive.
    """

    CREATED = "created"
    ONGOING = "ongoing"
    FULL = "full"
    PARTIAL = "partial"
    NOT_FOUND = "not_found"
    FAILED = "failed"


ABANDONED_VISIT = "its worker died or was stopped"
SUCCESSFUL = frozenset({VisitStatus.FULL, VisitStatus.NOT_FOUND})
_WORK_AT_ONCE = 10_000
"""The number of files and events of the projects in one transaction, which on SQLite holds the only write lock."""
_WITHOUT_PAGE = frozenset({VisitStatus.PARTIAL, VisitStatus.FAILED})


def begin_visits(
    connection: Connection,
    project_ids: Sequence[int],
    kind: str,
    workload: str,
    now: float,
    dead_workers: Mapping[int, str] | None = None,
) -> dict[int, int]:
    """Insert one visit for each project, with the status ONGOING. Return the visits' ids by project id.

    The caller has claimed these projects for `workload`. If such a project has an ongoing visit, its worker has died,
    and that visit fails. `dead_workers` has the worker by project id, if it is known.
    """
    if not project_ids:
        return {}
    lock_rows(connection, projects, projects.c.id.in_(project_ids))
    _end_abandoned(connection, project_ids, workload, now, dead_workers or {})
    last = _last_visits(connection, project_ids)
    rulesets = versions_in_force(connection, project_ids)
    rows = connection.execute(
        insert(visits).returning(visits.c.project_id, visits.c.id),
        [
            {
                "project_id": id_,
                "visit": last.get(id_, 0) + 1,
                "kind": kind,
                "workload": workload,
                "started_at": now,
                "rulesets": rulesets.get(id_),
            }
            for id_ in project_ids
        ],
    )
    entered = {project_id: visit_id for project_id, visit_id in rows}
    connection.execute(
        insert(visit_statuses),
        [{"visit_id": visit_id, "at": now, "status": VisitStatus.ONGOING} for visit_id in entered.values()],
    )
    return entered


def _end_abandoned(
    connection: Connection, project_ids: Sequence[int], workload: str, now: float, workers: Mapping[int, str]
) -> None:
    has_ended = exists().where(visit_statuses.c.visit_id == visits.c.id, visit_statuses.c.status != VisitStatus.ONGOING)
    for ids in at_a_time(project_ids):
        abandoned = connection.execute(
            select(visits.c.id, visits.c.project_id).where(
                visits.c.project_id.in_(ids), visits.c.workload == workload, ~has_ended
            )
        ).all()
        if abandoned:
            failure = {
                "at": now,
                "status": VisitStatus.FAILED,
                "text": ABANDONED_VISIT,
                "logged_serial": _logged_serial(connection),
            }
            rows = [failure | {"visit_id": row.id, "worker": workers.get(row.project_id)} for row in abandoned]
            connection.execute(insert(visit_statuses), rows)
            note_ended(connection, [EndedVisit(row.project_id, VisitStatus.FAILED, False) for row in abandoned], now)


def _logged_serial(connection: Connection) -> int:
    """Return the serial at which visits that end now are logged: the last known one, or one after the sealed serials.

    Lock the state, so that no range is sealed before the transaction ends.
    """
    state = lock_state(connection, exclusive=False)
    return max(int(state["events_through"]), sealed_end(connection) + 1)


def _last_visits(connection: Connection, project_ids: Iterable[int]) -> dict[int, int]:
    """Return the number of the last visit of each project that has one."""
    last = select(func.max(visits.c.visit)).where(visits.c.project_id == projects.c.id).scalar_subquery()
    found: dict[int, int] = {}
    for ids in at_a_time(project_ids):
        rows = connection.execute(select(projects.c.id, last).where(projects.c.id.in_(ids)))
        found.update((project_id, visit) for project_id, visit in rows if visit is not None)
    return found


@dataclass(frozen=True, slots=True)
class VisitVerdict:
    """The result of one visit.

    `page` is the page that was seen: new enough if the status is FULL, older than the events if it is PARTIAL.
    `explained_at` is the serial of the event that explains a 404. The visit shows all events of the project up to
    `true_through`, including events that are not stored yet; None if this is unknown.

    `shows_all` is False if a list has shown a change of the project that the page does not show.

    If the verdict is not `is_conclusive`, the visit failed, and the state of the project does not change. The visit is
    repeated at `due_at` (unix seconds) if it is not None.

    `worker` is recorded if this visit or the one before it failed. Most visits succeed at once, so the log stays small.
    """

    visit_id: int
    project: CatalogProject
    status: VisitStatus
    page: ProjectPage | None = None
    explained_at: int | None = None
    true_through: int | None = None
    text: str | None = None
    is_conclusive: bool = True
    due_at: float | None = None
    worker: str | None = None
    shows_all: bool = True

    @property
    def page_serial(self) -> int | None:
        """Return the serial of the page; for a 404, the serial of the event or the list that explains it."""
        return self.explained_at if self.page is None else self.page.last_serial

    @property
    def is_seen(self) -> bool:
        """Check whether the visit saw the project's page, or that it has none."""
        return self.page is not None or (self.status == VisitStatus.NOT_FOUND and self.is_conclusive)


class UnexplainedPageError(Exception):
    """Pages show changes that no stored event explains.

    They can come from events beyond the stored ones. So store the events up to the index's last serial, and record the
    verdicts again.
    """

    def __init__(self, project_ids: Collection[int]) -> None:
        super().__init__(f"no stored event explains what the pages of {len(project_ids)} projects show")
        self.project_ids = frozenset(project_ids)


def record_verdicts(
    connection: Connection,
    verdicts: Sequence[VisitVerdict],
    now: float,
    *,
    is_explained: bool = True,
    shows_through: int | None = None,
) -> None:
    """Store the results of visits, at most one for each project, and recompute these projects.

    Unless the changelog is off, events up to the serials of the pages are already stored. If there is no page that is
    new enough, the project is judged by its events. Files that only events name cannot be read until a page shows them.

    With `is_explained=False`, raises UnexplainedPageError if a page shows changes that no stored event explains; the
    caller must then roll the transaction back. `shows_through` is the last serial of the index, up to which events were
    stored since the pages were fetched.
    """
    conclusive = [verdict for verdict in verdicts if verdict.is_conclusive]
    pages = {verdict.project.id: verdict.page for verdict in conclusive if verdict.page is not None}
    lock_rows(connection, projects, projects.c.id.in_([verdict.project.id for verdict in verdicts]))
    shown = [ShownName(page.name, page.last_serial) for page in pages.values() if page.name is not None]
    renamed = rename_projects(connection, shown) if shown else {}
    through = events_through(connection)
    beyond = [one.project.id for one in verdicts if one.is_seen and _reaches(one) > through]
    since = changed_after(connection, beyond)
    statuses, seen = _statuses(connection, verdicts, now, through, shows_through, since)
    if conclusive:
        unexplained = recompute(connection, [verdict.project for verdict in conclusive], pages, seen) & pages.keys()
        if unexplained and not is_explained:
            raise UnexplainedPageError(unexplained)
    log_renamed(connection, renamed)
    note_statuses(connection, [verdict.project for verdict in conclusive], pages, seen)
    _append_statuses(connection, statuses)
    _exhaust_unseen(connection, [verdict for verdict in conclusive if verdict.status in _WITHOUT_PAGE])
    ended = [
        EndedVisit(
            verdict.project.id,
            verdict.status,
            verdict.status in SUCCESSFUL,
            verdict.due_at,
            shows_all=verdict.project.id in beyond and verdict.status in SUCCESSFUL and verdict.shows_all,
        )
        for verdict in verdicts
    ]
    note_ended(connection, ended, now)  # after the state is locked, in the same order as when events are stored


def parts_of_work(connection: Connection, project_ids: Sequence[int]) -> list[list[int]]:
    """Split the projects into parts with a limited number of files and events. Each part is for one transaction."""
    work = dict.fromkeys(project_ids, 1)
    for table in (distributions, events):
        for ids in at_a_time(project_ids):
            counts = select(table.c.project_id, func.count()).where(table.c.project_id.in_(ids))
            for project_id, count in connection.execute(counts.group_by(table.c.project_id)):
                work[project_id] += count
    parts: list[list[int]] = []
    left = 0
    for project_id, cost in work.items():
        if cost > left or not parts:
            parts.append([])
            left = _WORK_AT_ONCE
        parts[-1].append(project_id)
        left -= cost
    return parts


def recompute_stored(connection: Connection, project_ids: Sequence[int]) -> None:
    """Recompute these projects from stored pages and events, after more of their events were stored."""
    lock_rows(connection, projects, projects.c.id.in_(project_ids))
    recompute(connection, load_projects(connection, project_ids), {})


def recompute_explained(connection: Connection, project_ids: Sequence[int], since: float, through: int) -> None:
    """Recompute these projects from stored pages and events, now that the events are stored up to `through`.

    `through` is the last serial of the index after the fetch of the pages that were seen since `since` (unix seconds).
    """
    lock_rows(connection, projects, projects.c.id.in_(project_ids))
    bound_sightings(connection, project_ids, since, through)
    discard_checkpoints(connection, project_ids)
    recompute(connection, load_projects(connection, project_ids), {})


def explain_entering(connection: Connection, project_ids: Sequence[int], through: int) -> None:
    """Recompute entering projects, now that the events are stored up to `through`.

    `through` is the last serial of the index after their first pages were fetched.
    """
    since: dict[int, float] = {}
    for ids in at_a_time(project_ids):
        c = scope_projects.c
        query = select(c.project_id, func.min(c.entered_at)).where(c.project_id.in_(ids)).group_by(c.project_id)
        since.update((project_id, at) for project_id, at in connection.execute(query))
    recompute_explained(connection, project_ids, min(since.values(), default=0.0), through)


def _statuses(
    connection: Connection,
    verdicts: Sequence[VisitVerdict],
    now: float,
    through: int,
    shows_through: int | None,
    since: Mapping[int, float],
) -> tuple[list[dict[str, Any]], dict[int, StoredSighting]]:
    """Return the rows of one status for each visit, or of two if the page that was seen is too old.

    Store the new sightings, and return them by project id. Events are stored up to `through`. `since` has the times of
    `changed_after`.
    """
    seen: list[SeenNow] = []
    failed: list[dict[str, Any]] = []
    for verdict in verdicts:
        if verdict.is_seen:
            page, page_serial = verdict.page, verdict.page_serial
            seen.append(
                SeenNow(
                    project_id=verdict.project.id,
                    visit_id=verdict.visit_id,
                    page_serial=page_serial,
                    seen_through=max(through, _reaches(verdict)),
                    content=snapshot_content(() if page is None else page.files),
                    page_status=None if page is None else storable(page.status),
                    shows_through=shows_through,
                    not_before=since.get(verdict.project.id),
                )
            )
        if verdict.status in _WITHOUT_PAGE or not verdict.is_conclusive:
            text = None if verdict.text is None else storable(verdict.text)
            failed.append(
                {
                    "visit_id": verdict.visit_id,
                    "at": now,
                    "status": verdict.status,
                    "text": text,
                    "worker_of_failure": verdict.worker,
                }
            )
    snapshot_ids, new = store_sightings(connection, seen, now)
    workers = {verdict.visit_id: verdict.worker for verdict in verdicts}
    rows = [
        {
            "visit_id": one.visit_id,
            "at": now,
            "status": VisitStatus.NOT_FOUND if one.page_status is None else VisitStatus.FULL,
            "page_serial": one.page_serial,
            "seen_through": one.seen_through,
            "snapshot_id": snapshot_ids[one.project_id],
            "page_status": one.page_status,
            "of_project": one.project_id,
            "worker_if_failing": workers[one.visit_id],
        }
        for one in seen
    ]
    return [*rows, *failed], new


def _append_statuses(connection: Connection, statuses: Sequence[Mapping[str, Any]]) -> None:
    """Append these statuses, which end their visits. Each visit is logged at a serial that covers what it has seen.

    A success has its worker only if the visit before it failed.
    """
    if not statuses:
        return
    serial = _logged_serial(connection)
    seen_through = {status["visit_id"]: status["seen_through"] for status in statuses if "seen_through" in status}
    columns = (
        "page_serial",
        "seen_through",
        "snapshot_id",
        "page_status",
        "text",
        "worker_if_failing",
        "worker_of_failure",
    )
    rows = [
        {
            **dict.fromkeys(columns),
            "of_project": 0,
            **status,
            "logged_serial": max(serial, seen_through.get(status["visit_id"], 0)),
        }
        for status in statuses
    ]
    recovers = is_failing(bindparam("of_project"))
    worker = case(
        (recovers, bindparam("worker_if_failing", type_=Text)), else_=bindparam("worker_of_failure", type_=Text)
    )
    connection.execute(insert(visit_statuses).values(worker=worker), rows)


def _reaches(verdict: VisitVerdict) -> int:
    """Return the serial up to which the visit shows the project."""
    return max(verdict.page_serial or 0, verdict.true_through or 0)


def _exhaust_unseen(connection: Connection, verdicts: Sequence[VisitVerdict]) -> None:
    """Mark files of these projects that no page has shown as exhausted, since they cannot be read."""
    why = {verdict.project.id: verdict.text or "" for verdict in verdicts}
    pending = _without_address(connection, why)
    _exhaust(connection, {row.id: why[row.project_id] for row in pending})


def exhaust_broken(connection: Connection, broken: Mapping[int, Sequence[BrokenEntry]]) -> None:
    """Mark files as exhausted if their entries on the page are broken, since they cannot be read.

    `broken` has the broken entries by project id.
    """
    problems = {(project_id, entry.name): entry.problem for project_id, found in broken.items() for entry in found}
    pending = _without_address(connection, sorted({project_id for project_id, _ in problems}))
    _exhaust(
        connection,
        {
            row.id: f"its entry on the page is broken: {problems[row.project_id, row.filename]}"
            for row in pending
            if (row.project_id, row.filename) in problems
        },
    )


def _without_address(connection: Connection, project_ids: Collection[int]) -> Sequence[Row[Any]]:
    """Return the pending files of these projects that have no URL."""
    if not project_ids:
        return []
    query: Select[Any] = (
        select(distributions.c.id, distributions.c.project_id, distributions.c.filename)
        .join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
        .where(
            distributions.c.project_id.in_(project_ids),
            distributions.c.url.is_(None),
            distribution_data.c.outcome == ReadOutcome.PENDING,
        )
        .order_by(distributions.c.id)
    )
    return connection.execute(query).all()


def _exhaust(connection: Connection, why: Mapping[int, str]) -> None:
    """Mark these distributions as exhausted, each with the reason."""
    if not why:
        return
    with counting_files(connection, list(why)):
        connection.execute(
            update(distribution_data)
            .where(distribution_data.c.distribution_id == bindparam("of_id"))
            .values(outcome=ReadOutcome.EXHAUSTED, error_kind=NO_PAGE, error_text=bindparam("why")),
            [{"of_id": id_, "why": storable(text)} for id_, text in why.items()],
        )
    note_changed_files(connection, why)
