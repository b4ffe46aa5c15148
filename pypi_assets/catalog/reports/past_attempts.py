"""All attempts of one file or page that the log has: reads of a file, and visits of a project's page.

The failures of all files and projects are in failures.py.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name, canonicalize_version
from sqlalchemy import ColumnElement, Connection, Row, Select, func, literal_column, or_, select

from pypi_assets.catalog.database import storable
from pypi_assets.catalog.derived.visits import SUCCESSFUL, VisitStatus
from pypi_assets.catalog.observed.projects import CatalogProject, find_project
from pypi_assets.catalog.reads.read_outcomes import FAILED, ReadOutcome
from pypi_assets.catalog.reports.failures import VISIT, WAITING
from pypi_assets.catalog.reports.past_visits import deleted_visits, past_visits
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    past_generations,
    projects,
    read_attempts,
    read_queue,
    releases,
    visit_queue,
    visit_statuses,
    visits,
)
from pypi_assets.catalog.work.read_queue import ABANDONED
from pypi_assets.catalog.work.visit_queue import TaskState

READ = "read"
"""The kind of a file's attempts."""
_MOST_PARTS = 50
"""A project's name has at most this many parts between hyphens."""
_SHA256 = re.compile(r"(?:sha256[:=])?([0-9a-f]{64})", re.IGNORECASE)
_SUCCESSFUL = frozenset({ReadOutcome.DATA, *SUCCESSFUL})
_FAILED = frozenset({*FAILED, ABANDONED, VisitStatus.FAILED, VisitStatus.PARTIAL})
_UNENDED = frozenset({VisitStatus.CREATED, VisitStatus.ONGOING})


@dataclass(frozen=True, slots=True)
class LoggedAttempt:
    """One attempt to read a file, or to visit a page.

    `started_at` (unix seconds), `seconds` and `worker` are None if they are unknown: if a worker died while it read a
    file, nobody knows when it began. `worker` is also None for most visits that succeeded at once. `scope` is the
    range, crawl or audit of a visit.

    `outcome` is *ongoing* while a worker has claimed it, *failed* if another attempt follows, and *abandoned* if the
    worker died.
    """

    attempt: int
    started_at: float | None
    seconds: float | None
    outcome: str
    kind: str | None
    text: str | None
    worker: str | None
    scope: str | None = None
    bytes_fetched: int | None = None
    requests: int | None = None


@dataclass(frozen=True, slots=True)
class AttemptedItem:
    """A file, or the page of a project, with all its attempts in the log, the oldest first.

    `kind` is *read* for a file, and *visit* for a page, whose `filename` is empty. `outcome` is the file's or the last
    visit's; *waiting* if a further attempt follows at `next_due` (unix seconds) after a failure. `succeeded_at` is the
    time of the last success, also if its attempt is no longer in the log. `deleted` attempts are known to be missing.
    """

    kind: str
    project: str
    filename: str
    version: str | None
    sha256: str | None
    outcome: str
    attempts_remaining: int
    next_due: float | None
    succeeded_at: float | None
    deleted: int
    attempts: tuple[LoggedAttempt, ...]

    @property
    def has_succeeded(self) -> bool:
        """Whether the last attempt succeeded."""
        return self.outcome in _SUCCESSFUL

    @property
    def failed(self) -> int:
        """The number of attempts that failed."""
        return sum(one.outcome in _FAILED for one in self.attempts)


def attempted_items(
    connection: Connection, subject: str, max_attempts: int, project: str | None = None
) -> list[AttemptedItem]:
    """Return the files and pages that `subject` names, by project and filename; none if the catalog has no such thing.

    `subject` is a file's name, path, URL or sha256, a release as NAME==VERSION, or the name of a project, which means
    its page. A file is searched in `project`, or in each project whose name its own name begins with. Reads and visits
    are exhausted after `max_attempts`.

        >>> [item.kind for item in attempted_items(connection, "demo-1.0.tar.gz", 50)]
        ['read']
    """
    subject = storable(subject.strip())
    if rows := _named_files(connection, subject, project):
        return [_attempted_file(connection, row, max_attempts) for row in rows]
    page = find_project(connection, subject)
    return [] if page is None else [_attempted_page(connection, page, max_attempts)]


def _named_files(connection: Connection, subject: str, project: str | None) -> Sequence[Row[Any]]:
    """Return the rows of the files that `subject` names."""
    of_project = [] if project is None else [_is_of_projects(connection, {canonicalize_name(project)})]
    if match := _SHA256.fullmatch(subject):
        return _files(connection, [_has_hash(connection, match[1].lower()), *of_project])
    name, is_release, version = subject.partition("==")
    if is_release:
        is_named = _is_of_projects(connection, {canonicalize_name(name.strip())})
        if rows := _files(connection, [is_named, releases.c.version == version.strip()]):
            return rows
        canonical = canonicalize_version(version.strip())  # `1.0.0` also names the release `1.0`
        return [row for row in _files(connection, [is_named]) if canonicalize_version(row.version) == canonical]
    filename = _filename(subject)
    if not of_project:  # names are indexed within projects only
        parts = filename.split("-", _MOST_PARTS)[:_MOST_PARTS]
        prefixes = {canonicalize_name("-".join(parts[:length])) for length in range(1, len(parts) + 1)}
        of_project = [_is_of_projects(connection, prefixes)]
    return _files(connection, [distributions.c.filename == filename, *of_project])


def _is_of_projects(connection: Connection, names: Collection[str]) -> ColumnElement[bool]:
    """Return the condition that a file belongs to one of the projects with these normalized names.

    The projects are looked up first: otherwise a database without statistics may begin with all files.
    """
    ids = connection.scalars(select(projects.c.id).where(projects.c.normalized.in_(names))).all()
    return distributions.c.project_id.in_(ids)


def _has_hash(connection: Connection, sha256: str) -> ColumnElement[bool]:
    """Return the condition that a file has these bytes, or had them before the index overwrote it."""
    had = select(past_generations.c.distribution_id).where(past_generations.c.sha256 == sha256)
    overwritten = sorted(connection.scalars(had))
    has = distributions.c.sha256 == sha256
    return or_(has, distributions.c.id.in_(overwritten)) if overwritten else has


def _filename(subject: str) -> str:
    """Return the filename at the end of a path or URL, without the hash of a link."""
    path = unquote(urlsplit(subject).path) if "://" in subject else subject
    return path.rpartition("/")[2]


def _files(connection: Connection, conditions: Iterable[Any]) -> Sequence[Row[Any]]:
    data, queue = distribution_data.c, read_queue.c
    query: Select[Any] = (
        select(
            distributions.c.id,
            projects.c.name,
            distributions.c.filename,
            releases.c.version,
            distributions.c.sha256,
            data.outcome,
            data.read_at,
            queue.attempts,
            queue.first_failed_at,
            queue.due_at,
            queue.claimed_by,
        )
        .select_from(distributions)
        .join(projects, projects.c.id == distributions.c.project_id)
        .join(releases, releases.c.id == distributions.c.release_id)
        .join(distribution_data, data.distribution_id == distributions.c.id)
        .outerjoin(read_queue, queue.distribution_id == distributions.c.id)
        .where(*conditions)
        .order_by(projects.c.normalized, distributions.c.filename)
    )
    return connection.execute(query).all()


def _attempted_file(connection: Connection, row: Row[Any], max_attempts: int) -> AttemptedItem:
    c = read_attempts.c
    logged = connection.execute(select(read_attempts).where(c.distribution_id == row.id).order_by(c.id)).all()
    attempts = [
        LoggedAttempt(
            attempt=one.attempt,
            started_at=one.started_at,
            seconds=None if one.started_at is None else one.seconds,
            outcome=VisitStatus.FAILED if one.outcome == ReadOutcome.PENDING else one.outcome,
            kind=one.error_kind,
            text=one.error_text,
            worker=one.worker,
            bytes_fetched=one.bytes_fetched,
            requests=one.requests,
        )
        for one in logged
    ]
    if row.claimed_by is not None:
        ongoing = LoggedAttempt(row.attempts + 1, None, None, VisitStatus.ONGOING, None, None, row.claimed_by)
        attempts.append(ongoing)
    is_waiting = row.first_failed_at is not None
    has_succeeded = row.outcome in _SUCCESSFUL
    return AttemptedItem(
        kind=READ,
        project=row.name,
        filename=row.filename,
        version=row.version,
        sha256=row.sha256,
        outcome=WAITING if is_waiting else row.outcome,
        attempts_remaining=max(max_attempts - row.attempts, 0) if is_waiting else 0,
        next_due=row.due_at if is_waiting else None,
        succeeded_at=row.read_at if has_succeeded else None,
        deleted=attempts[0].attempt - 1 if attempts else int(has_succeeded),
        attempts=tuple(attempts),
    )


def _attempted_page(connection: Connection, project: CatalogProject, max_attempts: int) -> AttemptedItem:
    workers = _workers(connection, project)
    found = past_visits(connection, project)
    attempts = [
        LoggedAttempt(
            attempt=one.attempt,
            started_at=one.started_at,
            seconds=None if one.ended_at is None else one.ended_at - one.started_at,
            outcome=one.outcome,
            kind=None if one.outcome in SUCCESSFUL else VISIT,
            text=one.text,
            worker=workers.get(one.visit),
            scope=one.scope,
        )
        for one in found
    ]
    queued = _queued_visits(connection, project)
    claims = {row.workload: row.claimed_by for row in queued}
    attempts = [
        replace(one, kind=None, worker=claims.get(str(one.scope))) if one.outcome in _UNENDED else one
        for one in attempts
    ]
    waiting = next((row for row in queued if row.first_failed_at is not None), None)
    ended = [one for one in found if one.ended_at is not None]
    succeeded = [one.ended_at for one in ended if one.outcome in SUCCESSFUL]
    return AttemptedItem(
        kind=VISIT,
        project=project.name,
        filename="",
        version=None,
        sha256=None,
        outcome=WAITING if waiting is not None else ended[-1].outcome if ended else ReadOutcome.PENDING,
        attempts_remaining=0 if waiting is None else max(max_attempts - waiting.attempts, 0),
        next_due=None if waiting is None else waiting.due_at,
        succeeded_at=succeeded[-1] if succeeded else None,
        deleted=deleted_visits([one.visit for one in found]),
        attempts=tuple(attempts),
    )


def _workers(connection: Connection, project: CatalogProject) -> dict[int, str]:
    """Return the recorded workers of a project's visits, by the number of the visit."""
    query = (
        select(visits.c.visit, func.max(visit_statuses.c.worker))
        .join(visit_statuses, visit_statuses.c.visit_id == visits.c.id)
        .where(visits.c.project_id == project.id, visit_statuses.c.worker.is_not(None))
        .group_by(visits.c.visit)
    )
    return {visit: worker for visit, worker in connection.execute(query)}


def _queued_visits(connection: Connection, project: CatalogProject) -> Sequence[Row[Any]]:
    """Return the pending visits of a project, the next one first."""
    c = visit_queue.c
    # without a parameter, so that the partial index is used
    is_pending: ColumnElement[bool] = literal_column(f"visit_queue.state = '{TaskState.TODO}'")
    columns = (c.workload, c.attempts, c.first_failed_at, c.due_at, c.claimed_by)
    query: Select[Any] = select(*columns).where(c.project_id == project.id, is_pending)
    return connection.execute(query.order_by(c.due_at, c.workload)).all()
