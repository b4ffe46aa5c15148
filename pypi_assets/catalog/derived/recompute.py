"""Brings the rows of projects in line with what follows from all their events and pages, and logs what changed.

Many projects at once, with as many statements as one project takes. Each project is computed whole from what is stored
of it, by the rules of state.py; only the rows that differ are written.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Table, bindparam, delete, insert, select, update

from pypi_assets.catalog.database import at_a_time, insert_missing, storable, upsert
from pypi_assets.catalog.derived.file_history import FileHistory, Interval, SeenPage, file_histories
from pypi_assets.catalog.ledger.range_ledger import Seals, lock_state, seals
from pypi_assets.catalog.observed.events import events_by_project, events_through
from pypi_assets.catalog.observed.projects import Project
from pypi_assets.catalog.observed.snapshots import read_snapshots
from pypi_assets.catalog.reads.read_outcomes import Outcome
from pypi_assets.catalog.tables import (
    changes,
    distribution_data,
    distributions,
    live_intervals,
    releases,
    visit_statuses,
    visits,
    yanked_intervals,
)
from pypi_assets.catalog.work.read_queue import queue_reads
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.record import FilenameParts
from pypi_assets.index.models import ChangelogEvent, IndexFile, ProjectPage

CORRECTED = "corrected"
_UNREAD = frozenset({Outcome.PENDING, Outcome.EXHAUSTED})
_PAGE_COLUMNS = tuple(
    distributions.c[name]
    for name in (
        "url",
        "sha256",
        "size",
        "uploaded_at",
        "requires_python",
        "yanked_reason",
        "core_metadata",
        "core_metadata_sha256",
    )
)
"""What a page says of a file, under the names that IndexFile gives them."""


def recompute(connection: Connection, projects: Sequence[Project], pages: Mapping[int, ProjectPage]) -> None:
    """Recomputes `projects`. `pages`, by project id, are those that have just been seen; their snapshots are stored.

    What a page says of its files is taken over unless a newer page has spoken; other bytes are to be read anew.
    """
    ids = sorted(project.id for project in projects)
    stored = _Stored(
        events_through=events_through(connection),  # before the events: those up to there are all among them
        events=events_by_project(connection, ids),
        sightings=_sightings(connection, ids),
        files=_files(connection, ids),
        live=intervals_of_projects(connection, live_intervals, ids),
        yanked=intervals_of_projects(connection, yanked_intervals, ids),
    )
    computed = [_compute(project, pages.get(project.id), stored) for project in projects]
    release_ids = _release_ids(connection, computed)
    _enter_files(connection, computed, release_ids)
    queue_reads(
        connection,
        [
            (file.id, one.project.id)
            for one in computed
            for file in one.files
            if file.is_to_be_read or (file.row is None and file.shown is not None)
        ],
    )
    _update_files(connection, computed, release_ids)
    lock_state(connection, exclusive=False)
    insert_missing(connection, changes, list(_changes(computed, seals(connection))))
    for table, old, new in (
        (live_intervals, stored.live, {file.id: file.history.live for one in computed for file in one.files}),
        (yanked_intervals, stored.yanked, {file.id: file.history.yanked for one in computed for file in one.files}),
    ):
        _replace_intervals(connection, table, old, new)


@dataclass(frozen=True, slots=True)
class _Sighting:
    """What a page showed, its own serial, and how far events were stored then.

    Where there is no page, the serial is the one that explains it, if anything does.
    """

    page_serial: int | None
    seen_through: int
    shown: Mapping[str, bool]
    is_page: bool


@dataclass(frozen=True, slots=True)
class _Stored:
    """What is stored of some projects, by project id; intervals by the id of the distribution."""

    events_through: int
    events: Mapping[int, Sequence[ChangelogEvent]]
    sightings: Mapping[int, Sequence[_Sighting]]
    files: Mapping[int, Mapping[str, Any]]
    live: Mapping[int, tuple[Interval, ...]]
    yanked: Mapping[int, tuple[Interval, ...]]


@dataclass(slots=True)
class _File:
    """One file of a project: its row if it has one, what a page says of it anew, and its history."""

    name: str
    row: Any
    shown: dict[str, Any] | None
    page_serial: int | None
    history: FileHistory
    was: tuple[Sequence[Interval], Sequence[Interval]]
    id: int = 0

    @property
    def is_told_anew(self) -> bool:
        """Whether a page says of a known file what no page has said before."""
        return self.row is not None and self.shown is not None and self.shown != _known_columns(self.row)

    @property
    def is_to_be_read(self) -> bool:
        """Whether a page tells of a known file where it lies for the first time, or of other bytes."""
        if self.row is None or self.shown is None:
            return False
        return self.row.url is None or self.row.sha256 not in {None, self.shown["sha256"]}

    def has_vanished(self, newest_page: int | None) -> bool:
        """Whether only events tell of it, and a page as new as its add event does not show it: so it can't be read."""
        url = self.shown["url"] if self.shown else self.row and self.row.url
        if newest_page is None or url is not None or (self.row is not None and self.row.outcome not in _UNREAD):
            return False
        first = self.history.changes[0].serial if self.history.changes else None
        return first is not None and first <= newest_page and not self.history.is_live(newest_page)


@dataclass(frozen=True, slots=True)
class _Computed:
    """What follows for a project."""

    project: Project
    names: "_Names"
    newest_page: int | None
    files: list[_File] = field(default_factory=list)


class _Names:
    """What the filenames of a project say, each parsed once."""

    def __init__(self, project: Project) -> None:
        self._project = project.normalized
        self._parts: dict[str, FilenameParts] = {}

    def parts(self, filename: str) -> FilenameParts:
        if filename not in self._parts:
            self._parts[filename] = parse_filename(filename, self._project)
        return self._parts[filename]

    def version(self, filename: str) -> str:
        return self.parts(filename).version or ""


def _compute(project: Project, page: ProjectPage | None, stored: _Stored) -> _Computed:
    names = _Names(project)
    events = stored.events[project.id]
    seen = list(_seen_pages(stored.sightings[project.id], events, project.known_since))
    histories = file_histories(
        events,
        seen,
        known_since=project.known_since,
        events_through=stored.events_through,
        version_of=names.version,
    )
    known = stored.files[project.id]
    shown = {} if page is None else {file.filename: file for file in page.files}
    computed = _Computed(project, names, max((seen_page.serial for seen_page in seen), default=None))
    for name in dict.fromkeys([*known, *shown, *histories]):
        row = known.get(name)
        history = histories.get(name)
        if history is None:  # shown by a page that another one of the same serial has replaced
            history = FileHistory(name, names.version(name) if row is None else row.version, (), (), ())
        file = _File(name, row, None, None if row is None else row.page_serial, history, ((), ()))
        if page is not None and name in shown and (file.page_serial is None or file.page_serial <= page.last_serial):
            file.shown, file.page_serial = _shown_columns(shown[name]), page.last_serial
        if row is not None:
            file.id = row.id
            file.was = (stored.live.get(row.id, ()), stored.yanked.get(row.id, ()))
        computed.files.append(file)
    return computed


def _seen_pages(
    sightings: Sequence[_Sighting], events: Sequence[ChangelogEvent], known_since: int
) -> Iterator[SeenPage]:
    """What the project's pages showed, and from which serial that is known, in the order in which they were seen.

    A page is true of its own serial, and of all serials up to which events were stored when it was seen, if none of
    them is of the project, nor the serial of a newer page. So what changes without an event (drift, a 404 that nothing
    explains) counts from where it was seen, and what an earlier page of the same serial showed stays true of the past.
    Of what came before the stored events only the newest page up to there tells.
    """
    page_serials = {seen.page_serial for seen in sightings if seen.is_page and seen.page_serial is not None}
    serials = sorted(page_serials.union(event.serial for event in events))
    first = max((serial for serial in page_serials if serial <= known_since), default=0)
    known_pages: set[int] = set()
    for sighting in sightings:
        serial, through = sighting.page_serial, sighting.seen_through
        if serial is not None and serial >= first and serial not in known_pages:
            known_pages.add(serial)
            yield SeenPage(serial, sighting.shown)
        if serial is None or bisect_right(serials, serial) == bisect_right(serials, through):
            yield SeenPage(through, sighting.shown)


def _sightings(connection: Connection, project_ids: Sequence[int]) -> dict[int, list[_Sighting]]:
    """Every sighting of each project's page, in their order."""
    rows = connection.execute(
        select(
            visits.c.project_id,
            visit_statuses.c.page_serial,
            visit_statuses.c.seen_through,
            visit_statuses.c.snapshot_id,
            visit_statuses.c.page_status.is_not(None).label("is_page"),
        )
        .join(visits, visits.c.id == visit_statuses.c.visit_id)
        .where(visits.c.project_id.in_(project_ids), visit_statuses.c.snapshot_id.is_not(None))
        .order_by(visit_statuses.c.id)
    ).all()
    shown = {
        snapshot_id: {filename: yanked for filename, _, yanked in snapshot.files}
        for snapshot_id, snapshot in read_snapshots(connection, {row.snapshot_id for row in rows})
    }
    found: dict[int, list[_Sighting]] = {project_id: [] for project_id in project_ids}
    for row in rows:
        sighting = _Sighting(row.page_serial, row.seen_through, shown[row.snapshot_id], bool(row.is_page))
        found[row.project_id].append(sighting)
    return found


def _files(connection: Connection, project_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {project_id: {} for project_id in project_ids}
    rows = connection.execute(
        select(
            distributions.c.id,
            distributions.c.project_id,
            distributions.c.filename,
            distributions.c.release_id,
            distributions.c.page_serial,
            *_PAGE_COLUMNS,
            releases.c.version,
            distribution_data.c.outcome,
        )
        .join(releases, releases.c.id == distributions.c.release_id)
        .join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
        .where(distributions.c.project_id.in_(project_ids))
        .order_by(distributions.c.id)
    )
    for row in rows:
        found[row.project_id][row.filename] = row
    return found


def intervals_of_projects(
    connection: Connection, table: Table, project_ids: Sequence[int]
) -> dict[int, tuple[Interval, ...]]:
    """The stored intervals of the projects' files, in order, by the id of the distribution."""
    rows = connection.execute(
        select(table.c.distribution_id, table.c.start, table.c.end)
        .join(distributions, distributions.c.id == table.c.distribution_id)
        .where(distributions.c.project_id.in_(project_ids))
        .order_by(table.c.distribution_id, table.c.start)
    )
    found: dict[int, tuple[Interval, ...]] = {}
    for distribution_id, start, end in rows:
        found[distribution_id] = (*found.get(distribution_id, ()), Interval(start, end))
    return found


def _shown_columns(file: IndexFile) -> dict[str, Any]:
    values = ((column.name, getattr(file, column.name)) for column in _PAGE_COLUMNS)
    return {name: storable(value) if isinstance(value, str) else value for name, value in values}


def _known_columns(row: Any) -> dict[str, Any]:
    return {column.name: getattr(row, column.name) for column in _PAGE_COLUMNS}


def _release_ids(connection: Connection, computed: Iterable[_Computed]) -> dict[tuple[int, str], int]:
    """The ids of the releases that the files belong to, by project id and version; those that are new are entered."""
    found: dict[tuple[int, str], int] = {}
    wanted: set[tuple[int, str]] = set()
    for one in computed:
        for file in one.files:
            if file.row is not None and file.row.version == file.history.version:
                found[one.project.id, file.history.version] = file.row.release_id
            wanted.add((one.project.id, file.history.version))
    missing = sorted(wanted - found.keys())
    insert_missing(connection, releases, [{"project_id": id_, "version": version} for id_, version in missing])
    for ids in at_a_time(sorted({project_id for project_id, _ in missing})):
        rows = connection.execute(
            select(releases.c.project_id, releases.c.version, releases.c.id).where(releases.c.project_id.in_(ids))
        )
        found.update(((project_id, version), release_id) for project_id, version, release_id in rows)
    return found


def _enter_files(
    connection: Connection, computed: Iterable[_Computed], release_ids: Mapping[tuple[int, str], int]
) -> None:
    """Enters the files that have no row yet, and gives them the ids of theirs."""
    new: dict[tuple[int, str], tuple[_Computed, _File]] = {
        (one.project.id, file.name): (one, file) for one in computed for file in one.files if file.row is None
    }
    if not new:
        return
    unknown = {column.name: None for column in _PAGE_COLUMNS} | {"core_metadata": False}
    rows = [
        {
            "project_id": project_id,
            "release_id": release_ids[project_id, file.history.version],
            "filename": name,
            "kind": one.names.parts(name).kind,
            "page_serial": file.page_serial,
        }
        | (file.shown or unknown)
        for (project_id, name), (one, file) in new.items()
    ]
    connection.execute(insert(distributions), rows)
    entered = select(distributions.c.id, distributions.c.project_id, distributions.c.filename)
    for ids in at_a_time(sorted({project_id for project_id, _ in new})):
        for id_, project_id, filename in connection.execute(entered.where(distributions.c.project_id.in_(ids))):
            if (project_id, filename) in new:
                new[project_id, filename][1].id = id_
    outcomes = [
        {
            "distribution_id": file.id,
            "outcome": Outcome.VANISHED if file.has_vanished(one.newest_page) else Outcome.PENDING,
        }
        for one, file in new.values()
    ]
    connection.execute(insert(distribution_data), outcomes)


def _update_files(
    connection: Connection, computed: Iterable[_Computed], release_ids: Mapping[tuple[int, str], int]
) -> None:
    """Brings the rows of known files to what pages and events tell of them."""
    known = [(one, file, file.row) for one in computed for file in one.files if file.row is not None]
    _update(
        connection,
        distributions,
        [
            {"of_id": file.id, "page_serial": file.page_serial} | (file.shown or {})
            for _, file, _ in known
            if file.is_told_anew
        ],
    )
    _update(
        connection,
        distributions,
        [
            {"of_id": file.id, "page_serial": file.page_serial}
            for _, file, row in known
            if file.page_serial != row.page_serial and not file.is_told_anew
        ],
    )
    moved = [
        {"of_id": file.id, "release_id": release_ids[one.project.id, file.history.version]}
        for one, file, row in known
        if file.history.version != row.version
    ]
    _update(connection, distributions, moved)
    _update(
        connection,
        distribution_data,
        [
            {"of_id": file.id, "outcome": Outcome.PENDING, "error_kind": None, "error_text": None}
            for _, file, _ in known
            if file.is_to_be_read
        ],
    )
    _update(
        connection,
        distribution_data,
        [
            {"of_id": file.id, "outcome": Outcome.VANISHED, "error_kind": None, "error_text": None}
            for one, file, _ in known
            if file.has_vanished(one.newest_page)
        ],
    )


def _update(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Gives the row with the id `of_id` the other values; `rows` have the same keys."""
    if not rows:
        return
    [key] = table.primary_key
    values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in rows[0] if name != "of_id"}
    connection.execute(
        update(table).where(key == bindparam("of_id")).values(values),
        [
            {name if name == "of_id" else f"new_{name}": value for name, value in row.items()}
            for row in sorted(rows, key=lambda row: row["of_id"])
        ],
    )


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


def _changes(computed: Iterable[_Computed], sealed: Seals) -> Iterator[dict[str, Any]]:
    """What dumps are to tell anew: each change at its own serial, or after what is sealed already."""
    for one in computed:
        for file in one.files:
            causes = {change.serial: change.cause for change in file.history.changes}
            differing = _boundaries(*file.was) ^ _boundaries(file.history.live, file.history.yanked)
            told = dict.fromkeys(((serial, causes.get(serial, CORRECTED)) for _, _, serial in differing))
            if (serial := _corrected_at(file)) is not None:
                told[serial, CORRECTED] = None
            for serial, cause in sorted(told):
                for logged_serial in sealed.logged_serials(max(serial, 1)):
                    yield {
                        "distribution_id": file.id,
                        "serial": serial,
                        "cause": cause,
                        "logged_serial": logged_serial,
                    }


def _corrected_at(file: _File) -> int | None:
    """The serial from which the row of a known file reads otherwise than before, live as it was."""
    if file.row is None:
        return None
    if file.row.version != file.history.version:
        return file.history.changes[-1].serial if file.history.changes else None
    return file.page_serial if file.is_told_anew else None


def _boundaries(live: Sequence[Interval], yanked: Sequence[Interval]) -> set[tuple[str, str, int]]:
    return {
        (flag, edge, serial)
        for flag, intervals in (("live", live), ("yanked", yanked))
        for interval in intervals
        for edge, serial in (("start", interval.start), ("end", interval.end))
        if serial is not None
    }
