"""Visits of project pages, and what follows from them: files, their releases, intervals and changes.

A visit is never updated: statuses are appended to it, and the latest one tells its outcome.
"""

import hashlib
import json
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Table, bindparam, delete, func, insert, or_, select, update

from pypi_assets.catalog.database import insert_missing, storable, upsert
from pypi_assets.catalog.events import events_through, project_events
from pypi_assets.catalog.ledger import lock_state, logged_serials
from pypi_assets.catalog.projects import Project
from pypi_assets.catalog.reads import Outcome
from pypi_assets.catalog.state import FileHistory, Interval, SeenPage, file_histories
from pypi_assets.catalog.tables import (
    changes,
    distribution_data,
    distributions,
    live_intervals,
    projects,
    releases,
    snapshots,
    visit_statuses,
    visits,
    yanked_intervals,
)
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.index.models import ChangelogEvent, IndexFile, ProjectPage

CORRECTED = "corrected"


class VisitStatus(StrEnum):
    """FULL: the page was judged. PARTIAL: no page new enough came in time, so events alone were. FAILED: given up."""

    CREATED = "created"
    ONGOING = "ongoing"
    FULL = "full"
    PARTIAL = "partial"
    NOT_FOUND = "not_found"
    FAILED = "failed"


def begin_visits(
    connection: Connection, project_ids: Sequence[int], kind: str, scope: str, now: float
) -> dict[int, int]:
    """Enters one visit a project, with the status ONGOING; returns their ids by project id."""
    if not project_ids:
        return {}
    _lock_projects(connection, project_ids)
    last = {
        project_id: visit
        for project_id, visit in connection.execute(
            select(visits.c.project_id, func.max(visits.c.visit))
            .where(visits.c.project_id.in_(project_ids))
            .group_by(visits.c.project_id)
        )
    }
    rows = [
        {
            "project_id": project_id,
            "visit": last.get(project_id, 0) + 1,
            "kind": kind,
            "scope": scope,
            "started_at": now,
        }
        for project_id in project_ids
    ]
    entered = {
        row.project_id: row.id
        for row in connection.execute(insert(visits).returning(visits.c.id, visits.c.project_id), rows)
    }
    connection.execute(
        insert(visit_statuses),
        [{"visit_id": visit_id, "at": now, "status": VisitStatus.ONGOING} for visit_id in entered.values()],
    )
    return entered


def end_visit(
    connection: Connection,
    visit_id: int,
    status: VisitStatus,
    now: float,
    *,
    page_serial: int | None = None,
    seen_through: int | None = None,
    snapshot_id: int | None = None,
    text: str | None = None,
) -> None:
    """Appends the visit's outcome."""
    connection.execute(
        insert(visit_statuses).values(
            visit_id=visit_id,
            at=now,
            status=status,
            page_serial=page_serial,
            seen_through=seen_through,
            snapshot_id=snapshot_id,
            text=None if text is None else storable(text),
        )
    )


def record_page(connection: Connection, visit_id: int, project: Project, page: ProjectPage, now: float) -> None:
    """Stores what `page` showed and recomputes the project. The events up to the page's serial are stored already."""
    _lock_projects(connection, [project.id])
    snapshot_id = _store_snapshot(connection, [(file.filename, file.sha256, file.yanked) for file in page.files])
    end_visit(
        connection,
        visit_id,
        VisitStatus.FULL,
        now,
        page_serial=page.last_serial,
        seen_through=events_through(connection),
        snapshot_id=snapshot_id,
    )
    told_anew = _store_files(connection, project, page)
    connection.execute(
        update(projects)
        .where(
            projects.c.id == project.id,
            or_(projects.c.page_serial.is_(None), projects.c.page_serial <= page.last_serial),
        )
        .values(page_serial=page.last_serial, status=storable(page.status))
    )
    recompute(connection, project, told_anew)


def record_absence(
    connection: Connection, visit_id: int, project: Project, explained_at: int | None, now: float
) -> None:
    """Stores that the project had no page, and recomputes it. `explained_at` is the event that explains it, if any."""
    _lock_projects(connection, [project.id])
    snapshot_id = _store_snapshot(connection, [])
    end_visit(
        connection,
        visit_id,
        VisitStatus.NOT_FOUND,
        now,
        page_serial=explained_at,
        seen_through=events_through(connection),
        snapshot_id=snapshot_id,
    )
    recompute(connection, project)


def record_failure(
    connection: Connection, visit_id: int, project: Project, status: VisitStatus, text: str, now: float
) -> None:
    """Stores that no page new enough came. The project is judged by its events alone, and what only they tell of cannot
    be read until a page does."""
    _lock_projects(connection, [project.id])
    end_visit(connection, visit_id, status, now, text=text)
    recompute(connection, project)
    connection.execute(
        update(distribution_data)
        .where(
            distribution_data.c.outcome == Outcome.PENDING,
            distribution_data.c.distribution_id.in_(
                select(distributions.c.id).where(
                    distributions.c.project_id == project.id, distributions.c.url.is_(None)
                )
            ),
        )
        .values(outcome=Outcome.GAVE_UP, error_kind="no page", error_text=storable(text))
    )


def _lock_projects(connection: Connection, project_ids: Sequence[int]) -> None:
    """One writer at a time per project. Rows that only point to a project are not held up."""
    if connection.dialect.name != "sqlite":
        locked = select(projects.c.id).where(projects.c.id.in_(project_ids)).order_by(projects.c.id)
        connection.execute(locked.with_for_update(key_share=True))


def _store_snapshot(connection: Connection, shown: Iterable[tuple[str, str | None, bool]]) -> int:
    content = json.dumps(sorted(shown, key=lambda entry: entry[0]), separators=(",", ":")).encode()
    sha256 = hashlib.sha256(content).hexdigest()
    insert_missing(connection, snapshots, [{"sha256": sha256, "content": zlib.compress(content)}])
    return int(connection.execute(select(snapshots.c.id).where(snapshots.c.sha256 == sha256)).scalar_one())


def _store_files(connection: Connection, project: Project, page: ProjectPage) -> dict[int, int]:
    """Takes over what the page says of its files, unless a newer page has spoken; other bytes are to be read anew.

    Returns the files of which it says something new, each with the page's serial.
    """
    known = {
        row.filename: row
        for row in connection.execute(select(distributions).where(distributions.c.project_id == project.id))
    }
    release_ids = _release_ids(
        connection,
        project,
        {_version_of(file.filename, project) for file in page.files if file.filename not in known},
    )
    new: list[dict[str, Any]] = []
    confirmed: list[int] = []
    told_anew: dict[int, int] = {}
    for file in page.files:
        row = known.get(file.filename)
        if row is None:
            release_id = release_ids[_version_of(file.filename, project)]
            columns = _page_columns(file) | {"page_serial": page.last_serial}
            new.append(_new_distribution(project, release_id, file.filename) | columns)
            continue
        if row.page_serial is not None and row.page_serial > page.last_serial:
            continue
        columns = _page_columns(file)
        confirmed.append(row.id)
        if any(getattr(row, name) != value for name, value in columns.items()):
            connection.execute(update(distributions).where(distributions.c.id == row.id).values(**columns))
            told_anew[row.id] = page.last_serial
        if row.url is None or (row.sha256 is not None and row.sha256 != file.sha256):
            connection.execute(
                update(distribution_data)
                .where(distribution_data.c.distribution_id == row.id)
                .values(
                    outcome=Outcome.PENDING,
                    attempts=0,
                    first_failed_at=None,
                    due_at=0,
                    error_kind=None,
                    error_text=None,
                )
            )
    for start in range(0, len(confirmed), 1_000):
        connection.execute(
            update(distributions)
            .where(distributions.c.id.in_(confirmed[start : start + 1_000]))
            .values(page_serial=page.last_serial)
        )
    _insert_distributions(connection, new)
    return told_anew


def _page_columns(file: IndexFile) -> dict[str, Any]:
    columns = {
        "url": file.url,
        "sha256": file.sha256,
        "size": file.size,
        "uploaded_at": file.uploaded_at,
        "requires_python": file.requires_python,
        "yanked_reason": file.yanked_reason,
        "core_metadata": file.core_metadata,
        "core_metadata_sha256": file.core_metadata_sha256,
    }
    return {name: storable(value) if isinstance(value, str) else value for name, value in columns.items()}


def _new_distribution(project: Project, release_id: int, filename: str) -> dict[str, Any]:
    kind = parse_filename(filename, project.normalized).kind
    return {"project_id": project.id, "release_id": release_id, "filename": filename, "kind": kind}


def _insert_distributions(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    if not rows:
        return
    ids = connection.scalars(insert(distributions).returning(distributions.c.id), list(rows)).all()
    connection.execute(
        insert(distribution_data),
        [{"distribution_id": distribution_id, "outcome": Outcome.PENDING} for distribution_id in ids],
    )


def _version_of(filename: str, project: Project) -> str:
    return parse_filename(filename, project.normalized).version or ""


def _release_ids(connection: Connection, project: Project, versions: Iterable[str]) -> dict[str, int]:
    wanted = sorted(set(versions))
    insert_missing(connection, releases, [{"project_id": project.id, "version": version} for version in wanted])
    return {
        version: release_id
        for version, release_id in connection.execute(
            select(releases.c.version, releases.c.id).where(releases.c.project_id == project.id)
        )
    }


def _seen_pages(connection: Connection, project: Project, events: Sequence[ChangelogEvent]) -> list[SeenPage]:
    """What the project's pages showed, and from which serial that is known, in the order in which they were seen.

    A page is true of its own serial, and of all serials up to which events were stored when it was seen, if none of
    them is of the project. So what changes without an event (drift, a 404 that nothing explains) counts from where it
    was seen, and what an earlier page of the same serial showed stays true of the past.
    """
    rows = connection.execute(
        select(visit_statuses.c.page_serial, visit_statuses.c.seen_through, snapshots.c.content)
        .join(visits, visits.c.id == visit_statuses.c.visit_id)
        .join(snapshots, snapshots.c.id == visit_statuses.c.snapshot_id)
        .where(visits.c.project_id == project.id)
        .order_by(visit_statuses.c.id)
    )
    serials = [event.serial for event in events]
    seen: list[SeenPage] = []
    known_pages: set[int] = set()
    for page_serial, seen_through, content in rows:
        shown = {filename: yanked for filename, _, yanked in json.loads(zlib.decompress(content))}
        if page_serial is not None and page_serial not in known_pages:
            known_pages.add(page_serial)
            seen.append(SeenPage(page_serial, shown))
        is_newest = page_serial is None or bisect_right(serials, page_serial) == bisect_right(serials, seen_through)
        if is_newest:
            seen.append(SeenPage(seen_through, shown))
    return seen


def recompute(connection: Connection, project: Project, told_anew: Mapping[int, int] | None = None) -> None:
    """Brings the project's rows in line with what follows from all its events and pages, and logs what changed.

    `told_anew` are the files of which a page says something new besides, each with the page's serial.
    """
    events = project_events(connection, project.id)
    pages = _seen_pages(connection, project, events)
    histories = file_histories(
        events,
        pages,
        known_since=project.known_since,
        version_of=lambda filename: _version_of(filename, project),
    )
    release_ids = _release_ids(connection, project, {history.version for history in histories.values()})
    known = _known_files(connection, project)
    for filename, file in known.items():  # shown by a page that another one of the same serial has replaced
        if filename not in histories:
            histories[filename] = FileHistory(filename, file.version, (), (), ())
    _insert_distributions(
        connection,
        [
            _new_distribution(project, release_ids[history.version], filename)
            for filename, history in histories.items()
            if filename not in known
        ],
    )
    if len(known) < len(histories):
        known = _known_files(connection, project)
    live = _intervals(connection, live_intervals, project)
    yanked = _intervals(connection, yanked_intervals, project)
    newest_page = max((page.serial for page in pages), default=None)
    log = _ChangeLog(connection)
    for filename, history in histories.items():
        file = known[filename]
        if file.release_id != release_ids[history.version]:
            connection.execute(
                update(distributions)
                .where(distributions.c.id == file.id)
                .values(release_id=release_ids[history.version])
            )
            if history.changes:
                log.correct(file.id, history.changes[-1].serial)
        elif told_anew and file.id in told_anew:
            log.correct(file.id, told_anew[file.id])
        was_live, was_yanked = live.get(file.id, ()), yanked.get(file.id, ())
        log.record(file.id, history, (was_live, was_yanked))
        _settle_unseen(connection, file, history, newest_page)
    now = {known[filename].id: history for filename, history in histories.items()}
    _replace_intervals(connection, live_intervals, live, {id_: history.live for id_, history in now.items()})
    _replace_intervals(connection, yanked_intervals, yanked, {id_: history.yanked for id_, history in now.items()})
    log.write()


def _known_files(connection: Connection, project: Project) -> dict[str, Any]:
    rows = connection.execute(
        select(
            distributions.c.id,
            distributions.c.filename,
            distributions.c.release_id,
            releases.c.version,
            distributions.c.url,
            distribution_data.c.outcome,
        )
        .join(releases, releases.c.id == distributions.c.release_id)
        .join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
        .where(distributions.c.project_id == project.id)
    )
    return {row.filename: row for row in rows}


def _intervals(connection: Connection, table: Table, project: Project) -> dict[int, tuple[Interval, ...]]:
    rows = connection.execute(
        select(table)
        .join(distributions, distributions.c.id == table.c.distribution_id)
        .where(distributions.c.project_id == project.id)
        .order_by(table.c.distribution_id, table.c.start)
    )
    found: dict[int, tuple[Interval, ...]] = {}
    for row in rows:
        found[row.distribution_id] = (*found.get(row.distribution_id, ()), Interval(row.start, row.end))
    return found


def _replace_intervals(
    connection: Connection,
    table: Table,
    old: Mapping[int, Sequence[Interval]],
    new: Mapping[int, Sequence[Interval]],
) -> None:
    """Makes `new` of `old`, both by the id of the distribution, touching only the rows that differ."""
    starts = {(id_, interval.start) for id_, intervals in new.items() for interval in intervals}
    gone = [
        {"gone_id": id_, "gone_start": interval.start}
        for id_, intervals in old.items()
        for interval in intervals
        if (id_, interval.start) not in starts
    ]
    if gone:
        matches = (table.c.distribution_id == bindparam("gone_id"), table.c.start == bindparam("gone_start"))
        connection.execute(delete(table).where(*matches), gone)
    rows = [
        {"distribution_id": id_, "start": interval.start, "end": interval.end}
        for id_, intervals in new.items()
        for interval in intervals
        if interval not in old.get(id_, ())
    ]
    upsert(connection, table, rows, key=("distribution_id", "start"), update=("end",))


def _settle_unseen(connection: Connection, file: Any, history: FileHistory, newest_page: int | None) -> None:
    """A file that only events tell of, and that a page as new as its add event does not show, can never be read."""
    if file.url is not None or file.outcome not in {Outcome.PENDING, Outcome.GAVE_UP} or newest_page is None:
        return
    if history.changes and not history.is_live(newest_page) and history.changes[0].serial <= newest_page:
        connection.execute(
            update(distribution_data)
            .where(distribution_data.c.distribution_id == file.id)
            .values(outcome=Outcome.VANISHED, error_kind=None, error_text=None)
        )


class _ChangeLog:
    """What a recomputation changed, each at its own serial, or after what is sealed already."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._rows: list[dict[str, Any]] = []
        self._logged_serials: dict[int, list[int]] = {}
        lock_state(connection, exclusive=False)

    def record(
        self, distribution_id: int, history: FileHistory, was: tuple[Sequence[Interval], Sequence[Interval]]
    ) -> None:
        """Logs each serial at which `history` tells of the file what its former intervals did not."""
        causes = {change.serial: change.cause for change in history.changes}
        differing = _boundaries(*was) ^ _boundaries(history.live, history.yanked)
        for serial in sorted({serial for _, _, serial in differing}):
            self._log(distribution_id, serial, causes.get(serial, CORRECTED))

    def correct(self, distribution_id: int, serial: int) -> None:
        """Logs that the file's row reads otherwise than before, live as it was."""
        self._log(distribution_id, serial, CORRECTED)

    def _log(self, distribution_id: int, serial: int, cause: str) -> None:
        if serial not in self._logged_serials:  # the files of a project change at few serials
            self._logged_serials[serial] = logged_serials(self._connection, max(serial, 1))
        for logged_serial in self._logged_serials[serial]:
            self._rows.append(
                {"distribution_id": distribution_id, "serial": serial, "cause": cause, "logged_serial": logged_serial}
            )

    def write(self) -> None:
        insert_missing(self._connection, changes, self._rows)


def _boundaries(live: Sequence[Interval], yanked: Sequence[Interval]) -> set[tuple[str, str, int]]:
    return {
        (flag, edge, serial)
        for flag, intervals in (("live", live), ("yanked", yanked))
        for interval in intervals
        for edge, serial in (("start", interval.start), ("end", interval.end))
        if serial is not None
    }
