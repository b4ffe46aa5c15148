"""The history of a project in order of serial, and the most recent events of the index.

A history has events, changes without an event, and visits. `build_history` is a pure function of stored rows;
`read_history` loads them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Any, TypedDict

from sqlalchemy import Connection, select

from pypi_assets.catalog.derived.file_history import BASELINE, LISTED, UNEXPLAINED
from pypi_assets.catalog.derived.file_updates import REPLACED
from pypi_assets.catalog.derived.project_state import Interval
from pypi_assets.catalog.derived.stored_files import intervals_of_projects
from pypi_assets.catalog.ledger.epochs import epochs_of
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.observed.events import events_by_project
from pypi_assets.catalog.observed.followed import FOLLOWED, UNFOLLOWED, answered_at
from pypi_assets.catalog.observed.observations import seen_without
from pypi_assets.catalog.observed.projects import CORRECTED, CatalogProject
from pypi_assets.catalog.reads.read_outcomes import READ_LATE
from pypi_assets.catalog.reports.listed_times import listed_times
from pypi_assets.catalog.reports.past_visits import PastVisit, past_visits
from pypi_assets.catalog.tables import (
    changes,
    distribution_data,
    distributions,
    events,
    live_intervals,
    projects,
    yanked_intervals,
)
from pypi_assets.index.actions import NO_FILE_CHANGE, Action, FileChange, file_change
from pypi_assets.index.models import ChangelogEvent

VISIT = "visit"
IGNORED = Action.IGNORED
"""The kind of events that change no files."""
# by serial and cause: the filenames for each field of HistoryItem
_Touched = defaultdict[tuple[int, str], defaultdict[str, list[str]]]
_NAMED = 5
_CAUSES = {
    BASELINE: "existed before the first known event",
    UNEXPLAINED: "changed on the page, although no event explains it",
    LISTED: "changed between two looks at the list of projects, at the latest at this serial",
    CORRECTED: "was recorded differently before",
    READ_LATE: "read after this serial had been dumped",
    FOLLOWED: "followed from here on: dumps contain it",
    UNFOLLOWED: "no longer followed: dumps do not contain it any more",
    REPLACED: "replaced by other content under the same name",
}
_ONCE = frozenset({BASELINE, UNEXPLAINED, LISTED})
_NEXT_TO_AN_EVENT = frozenset({UNEXPLAINED, LISTED, CORRECTED})
_ACTIONS = frozenset(action.value for action in Action)


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """One entry of the log of changes."""

    serial: int
    filename: str
    cause: str


@dataclass(frozen=True, slots=True)
class FileLife:
    """The intervals in which a file was live and yanked, and the result of reading it: outcome and kind of error."""

    filename: str
    outcome: str
    error: str | None
    live: tuple[Interval, ...]
    yanked: tuple[Interval, ...]


@dataclass(frozen=True, slots=True)
class HistoryItem:
    """One item of a history, at `serial`; `at` is in unix seconds, or None without an event.

    `kind` is the Action of an event, the cause of a change without one, or VISIT. `filenames` are the files that the
    event or the log names. `live` and `away` are the files that became live or ceased to be; `yanked` and `unyanked`
    are files that were live before and after. An upload has the `outcome` of reading the file, and the kind of its
    `error`; a visit has its number, its `outcome` and the text of its `error`. `epoch` is the epoch of the serial; None
    beyond the complete serial, which has no answers yet. `not_before` is for events of observed indexes, and for the
    kind `listed`: the change happened after this time (unix seconds) and before `at`; None if `at` is its own time, or
    if nothing was seen before. `possible_kinds` are the actions that explain a change of the kind `listed`, if it was a
    single one.
    """

    serial: int
    at: float | None
    kind: str
    text: str
    version: str | None = None
    filenames: tuple[str, ...] = ()
    visit: int | None = None
    outcome: str | None = None
    error: str | None = None
    live: tuple[str, ...] = ()
    away: tuple[str, ...] = ()
    yanked: tuple[str, ...] = ()
    unyanked: tuple[str, ...] = ()
    epoch: int | None = None
    not_before: float | None = None
    possible_kinds: tuple[str, ...] = ()


def build_history(
    events: Sequence[ChangelogEvent],
    logged: Iterable[LoggedChange],
    files: Sequence[FileLife],
    visits: Sequence[PastVisit],
    found: Collection[int] = (),
) -> list[HistoryItem]:
    """Return the history in order of serial: at each serial its event, then changes without events, then visits.

    `events` are in order of serial, `visits` in order of their beginning. `found` are the serials of events for what
    was there at the first look at the project. A visit is placed at the serial up to which events were stored when its
    page was judged. A visit that saw no page is placed with the next visit that did, or at the end. Intervals that
    begin or end at the serial of an event belong to the event, unless the event changes no files or the log has only
    another cause.
    """
    causes: defaultdict[tuple[int, str], set[str]] = defaultdict(set)
    for change in logged:
        causes[change.serial, change.filename].add(change.cause)
    kinds = {event.serial: file_change(event).action for event in events}
    touched: _Touched = defaultdict(lambda: defaultdict(list))
    for serial, filename, what in _boundaries(files):
        cause = _cause(causes.get((serial, filename), set()), kinds.get(serial))
        touched[serial, cause][what].append(filename)
    entries = [
        *_event_entries(events, {file.filename: file for file in files}, touched, found),
        *_change_entries(causes, touched, {event.serial: event.timestamp for event in events}),
    ]
    entries += _visit_entries(visits, max((entry.serial for entry in entries), default=0))
    return sorted(entries, key=lambda entry: entry.serial)


def read_history(connection: Connection, project: CatalogProject) -> list[HistoryItem]:
    """Return the history of `project` from stored rows."""
    ids = [project.id]
    live = intervals_of_projects(connection, live_intervals, ids)
    yanked = intervals_of_projects(connection, yanked_intervals, ids)
    files = connection.execute(
        select(
            distributions.c.id, distributions.c.filename, distribution_data.c.outcome, distribution_data.c.error_kind
        )
        .join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
        .where(distributions.c.project_id == project.id)
    )
    logged = connection.execute(
        select(changes.c.serial, distributions.c.filename, changes.c.cause)
        .join(distributions, distributions.c.id == changes.c.distribution_id)
        .where(distributions.c.project_id == project.id)
    )
    stored = events_by_project(connection, ids)[project.id]
    without = seen_without(connection, {event.serial for event in stored})
    entries = build_history(
        stored,
        [LoggedChange(serial, filename, cause) for serial, filename, cause in logged],
        [
            FileLife(row.filename, row.outcome, row.error_kind, live.get(row.id, ()), yanked.get(row.id, ()))
            for row in files
        ],
        past_visits(connection, project),
        {serial for serial, at in without.items() if at is None},
    )
    complete = complete_serial(connection)
    known = epochs_of(connection, {entry.serial for entry in entries if entry.serial <= complete})
    listed = listed_times(connection, {(project.id, entry.serial) for entry in entries if entry.kind == LISTED})
    history = []
    for entry in entries:
        entry = replace(entry, epoch=known.get(entry.serial))
        if entry.kind == LISTED and (times := listed.get((project.id, entry.serial))) is not None:
            kinds = times.possible_kinds(entry.live, entry.away, entry.yanked, entry.unyanked)
            entry = replace(entry, at=times.at, not_before=times.not_before, possible_kinds=kinds)
        elif entry.kind != VISIT and entry.at is not None:
            entry = replace(entry, not_before=without.get(entry.serial))
        history.append(entry)
    return history


def _boundaries(files: Iterable[FileLife]) -> Iterator[tuple[int, str, str]]:
    """Yield for each beginning or end: its serial, the filename, and the field of HistoryItem for it."""
    for file in files:
        starts, ends = {one.start for one in file.live}, {one.end for one in file.live}
        for interval in file.live:
            yield interval.start, file.filename, "live"
            if interval.end is not None:
                yield interval.end, file.filename, "away"
        for interval in file.yanked:
            if interval.start not in starts:
                yield interval.start, file.filename, "yanked"
            if interval.end is not None and interval.end not in ends:
                yield interval.end, file.filename, "unyanked"


def _cause(causes: set[str], event: Action | None) -> str:
    """Return why an interval of a file began or ended, from the file's log at the serial and the event there."""
    if event is not None and event not in NO_FILE_CHANGE and (event.value in causes or not causes & _NEXT_TO_AN_EVENT):
        return event.value
    return next((cause for cause in (UNEXPLAINED, LISTED, BASELINE, CORRECTED) if cause in causes), UNEXPLAINED)


def _event_entries(
    events: Iterable[ChangelogEvent], files: Mapping[str, FileLife], touched: _Touched, found: Collection[int]
) -> Iterator[HistoryItem]:
    was_removed = False
    for event in events:
        change = file_change(event)
        kind = change.action
        file = files.get(change.filename or "") if kind == Action.ADD_FILE else None
        entry = HistoryItem(
            event.serial,
            event.timestamp,
            kind.value,
            describe_event(event, change, was_removed, is_found=event.serial in found),
            event.version,
            () if change.filename is None else (change.filename,),
            outcome=None if file is None else file.outcome,
            error=None if file is None else file.error,
        )
        yield _with(entry, touched[event.serial, kind.value])
        if kind in {Action.REMOVE_PROJECT, Action.CREATE_PROJECT, Action.ADD_FILE}:
            was_removed = kind == Action.REMOVE_PROJECT


def describe_event(
    event: ChangelogEvent, change: FileChange, was_removed: bool = False, *, is_found: bool = False
) -> str:
    """Describe an event in words.

    `was_removed`: the project had been removed before it. `is_found`: a first look found what the event adds.
    """
    release = f"release {event.version}"
    match change.action:
        case Action.ADD_FILE | Action.CREATE_PROJECT if is_found:
            return f"{change.filename or event.name} first seen"
        case Action.ADD_FILE:
            return f"{change.filename} uploaded{', to a project that had been removed' if was_removed else ''}"
        case Action.REMOVE_FILE:
            return f"{change.filename} removed"
        case Action.REMOVE_RELEASE:
            return f"{release} removed"
        case Action.REMOVE_PROJECT:
            return "project removed"
        case Action.QUARANTINE_PROJECT:
            return "project quarantined"
        case Action.UNQUARANTINE_PROJECT:
            return "quarantine of the project cleared"
        case Action.QUARANTINE_RELEASE:
            return f"{release} quarantined"
        case Action.UNQUARANTINE_RELEASE:
            return f"quarantine of {release} cleared"
        case Action.YANK_RELEASE:
            return f"{release} yanked"
        case Action.UNYANK_RELEASE:
            return f"{release} unyanked"
        case Action.YANK_FILE:
            return f"{change.filename} yanked"
        case Action.UNYANK_FILE:
            return f"{change.filename} unyanked"
        case Action.CREATE_PROJECT:
            return f"name registered again: {event.name}" if was_removed else f"registered as {event.name}"
        case Action.IGNORED:
            return event.action
        case Action.UNKNOWN:
            return f"unknown action: {event.action}"


def _change_entries(
    causes: Mapping[tuple[int, str], set[str]],
    touched: _Touched,
    times: Mapping[int, float],
) -> Iterator[HistoryItem]:
    """Yield an item for each serial and cause without an event, even if no interval begins or ends there any more."""
    named: defaultdict[tuple[int, str], set[str]] = defaultdict(set)
    for (serial, filename), found in causes.items():
        for cause in found - _ACTIONS:
            named[serial, cause].add(filename)
    for serial, cause in sorted(named.keys() | {key for key in touched if key[1] not in _ACTIONS}):
        what = touched[serial, cause]
        filenames = tuple(sorted(named[serial, cause].union(*what.values())))
        text = f"{_CAUSES.get(cause, cause)}: {_shortened(filenames)}"
        if cause in _ONCE and not what:
            text += "; later information does not confirm this"
        yield _with(HistoryItem(serial, times.get(serial), cause, text, filenames=filenames), what)


def _with(entry: HistoryItem, touched: Mapping[str, Iterable[str]]) -> HistoryItem:
    files: dict[str, Any] = {what: tuple(sorted(filenames)) for what, filenames in touched.items()}
    return replace(entry, **files)


def _shortened(names: Sequence[str]) -> str:
    more = [] if len(names) <= _NAMED else [f"{len(names) - _NAMED} more"]
    return ", ".join([*names[:_NAMED], *more])


def _visit_entries(visits: Sequence[PastVisit], last: int) -> list[HistoryItem]:
    entries = []
    place = max([last, *(visit.seen_through or 0 for visit in visits)])
    for visit in reversed(visits):
        place = place if visit.seen_through is None else visit.seen_through
        entries.append(
            HistoryItem(
                place,
                visit.started_at,
                VISIT,
                _describe_visit(visit),
                visit=visit.visit,
                outcome=visit.outcome,
                error=visit.text,
            )
        )
    return entries[::-1]


def _describe_visit(visit: PastVisit) -> str:
    again = f", attempt {visit.attempt}" if visit.attempt > 1 else ""
    page = "" if visit.page_serial is None else f", page of serial {visit.page_serial}"
    files = "" if visit.files is None else f", {visit.files} {'file' if visit.files == 1 else 'files'}"
    return f"visit {visit.visit} ({visit.scope}{again}): {visit.outcome.replace('_', ' ')}{page}{files}"


_LOOKED_AT = 500
"""The greatest number of events that are read. Events about roles, which are skipped, can be numerous."""
_Found = tuple[str, ChangelogEvent, FileChange]


class RecentEvent(TypedDict):
    """An event of a project (normalized), or consecutive uploads to one release.

    The uploads are at `first_serial` to `serial`. `at` (unix seconds) is the time of the latter; `kind` is an Action.
    """

    serial: int
    first_serial: int
    at: int
    project: str
    kind: str
    text: str


def recent_events(connection: Connection, serial: int, most: int) -> list[RecentEvent]:
    """Return the newest `most` events up to `serial`, the newest first. The cost does not depend on their number."""
    grouped = groupby(_newest(connection, serial), key=_group_of)
    return [_summarize(list(some)) for _, some in islice(grouped, most)]


def _newest(connection: Connection, serial: int) -> Iterator[_Found]:
    newest = select(events).where(events.c.serial <= serial).order_by(events.c.serial.desc()).limit(_LOOKED_AT)
    some = newest.subquery()
    rows = connection.execute(
        select(some, projects.c.normalized)
        .join(projects, projects.c.id == some.c.project_id)
        .where(answered_at(connection, projects.c.id, serial))
        .order_by(some.c.serial.desc())
    )
    for row in rows:
        event = ChangelogEvent(row.name, row.version, row.timestamp, row.action, row.serial)
        change = file_change(event)
        if change.action not in NO_FILE_CHANGE:
            yield row.normalized, event, change


def _group_of(found: _Found) -> tuple[object, ...]:
    project, event, change = found
    return (project, event.version) if change.action == Action.ADD_FILE else (event.serial,)


def _summarize(some: list[_Found]) -> RecentEvent:
    project, event, change = some[0]
    is_one = len(some) == 1
    return RecentEvent(
        serial=event.serial,
        first_serial=some[-1][1].serial,
        at=event.timestamp,
        project=project,
        kind=change.action.value,
        text=describe_event(event, change) if is_one else f"{len(some)} files of release {event.version} uploaded",
    )
