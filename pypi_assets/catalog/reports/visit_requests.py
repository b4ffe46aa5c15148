"""The state of requested visits, and their answers: the files that came, went or were yanked."""

from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TypedDict

from sqlalchemy import Connection, func, select

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.observed.projects import PROJECT_COLUMNS, CatalogProject
from pypi_assets.catalog.reports.past_visits import FileDifference, differences_since
from pypi_assets.catalog.reports.visit_log import logged_visit
from pypi_assets.catalog.tables import projects, requested_visits, visit_queue
from pypi_assets.catalog.work.visit_queue import REQUESTED, TaskState
from pypi_assets.times import utc_text


class RequestState(StrEnum):
    """The state of a requested visit. RUNNING: a process visits the page, or reads its new files."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class RequestedVisit:
    """A requested visit and its answer. Times are unix seconds.

    `place` is its place among the open requests, from 1; None if it is done. If the last attempt failed, `error`
    describes the failure, and `retry_at` is the time of the next one. `outcome` is the status in which the visit of the
    number `visit` ended, and `changed` has the files that differ from the page as it was known before the request.
    """

    id: int
    project: str
    state: RequestState
    place: int | None
    requested_at: float
    ended_at: float | None
    error: str | None = None
    retry_at: float | None = None
    visit: int | None = None
    outcome: str | None = None
    changed: tuple[FileDifference, ...] = ()


class ChangedFile(TypedDict):
    """A file that differs. `change` is one of came, went, other hash, yanked, unyanked."""

    filename: str
    change: str
    sha256_before: str | None
    sha256_after: str | None


class VisitAnswer(TypedDict):
    """A requested visit and its answer. `state` is queued, running or done.

    `place` is its place among the open requests, from 1. `error` is the last failure, and `retry_at` the time of the
    next attempt. When it is done, `outcome` is the status of the `visit`, and `changed` has the files that differ.
    """

    id: int
    project: str
    state: str
    place: int | None
    requested_at: str | None
    ended_at: str | None
    error: str | None
    retry_at: str | None
    visit: int | None
    outcome: str | None
    changed: list[ChangedFile]


def answer_of(request: RequestedVisit) -> VisitAnswer:
    """Return a requested visit as commands and the service answer it, with times in ISO 8601."""
    return VisitAnswer(
        id=request.id,
        project=request.project,
        state=request.state.value,
        place=request.place,
        requested_at=utc_text(request.requested_at),
        ended_at=utc_text(request.ended_at),
        error=request.error,
        retry_at=utc_text(request.retry_at),
        visit=request.visit,
        outcome=request.outcome,
        changed=[ChangedFile(**asdict(one)) for one in request.changed],  # type: ignore[typeddict-item]
    )


def find_request(connection: Connection, id_: int, now: float) -> RequestedVisit | None:
    """Return a requested visit with its present state; None if there is none with this id."""
    c = requested_visits.c
    columns = (c.requested_at, c.before_visit, c.ended_at, c.visit, c.open)
    query = select(*PROJECT_COLUMNS, *columns).join(requested_visits, c.project_id == projects.c.id).where(c.id == id_)
    row = connection.execute(query).first()
    if row is None:
        return None
    project = CatalogProject(*row[: len(PROJECT_COLUMNS)])
    if row.open is not None:
        return _open_request(connection, project, id_, row.requested_at, now)
    found = None
    with suppress(CatalogError):  # it is no longer in the log
        found = logged_visit(connection, project, row.visit)
    changed = () if found is None else differences_since(connection, project, row.before_visit, found.visit)
    return RequestedVisit(
        id=id_,
        project=project.name,
        state=RequestState.DONE,
        place=None,
        requested_at=row.requested_at,
        ended_at=row.ended_at,
        error=None if found is None else found.statuses[-1].text,
        visit=None if found is None else found.visit,
        outcome=None if found is None else found.outcome,
        changed=tuple(changed),
    )


def _open_request(
    connection: Connection, project: CatalogProject, id_: int, requested_at: float, now: float
) -> RequestedVisit:
    q, c = visit_queue.c, requested_visits.c
    columns = (q.state, q.claimed_by, q.claimed_until, q.error_text, q.due_at)
    task = connection.execute(select(*columns).where(q.workload == REQUESTED, q.project_id == project.id)).first()
    is_claimed = task is not None and task.claimed_by is not None and task.claimed_until > now
    is_queued = task is not None and task.state == TaskState.TODO and not is_claimed
    before = select(func.count()).select_from(requested_visits).where(c.open == 1, c.id < id_)
    failed = task.error_text if task is not None and is_queued else None
    return RequestedVisit(
        id=id_,
        project=project.name,
        state=RequestState.QUEUED if is_queued else RequestState.RUNNING,
        place=(connection.scalar(before) or 0) + 1,
        requested_at=requested_at,
        ended_at=None,
        error=failed,
        retry_at=task.due_at if task is not None and failed is not None else None,
    )
