"""Create the records of the journal from stored rows. docs/formats.md describes their fields.

A record is published at its `serial` and happened at its `of_serial`. Records of a stream are in order of serial and
`ordinal`, and do not depend on how the serials are divided into ranges. `index_records` has the changelog, and
`observed_records` has the changes derived from events and pages; the contents of files are in journal_contents.py.
"""

import heapq
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

from sqlalchemy import Connection, and_, exists, select

from pypi_assets.catalog.database import at_a_time, bare_rows, sent_values
from pypi_assets.catalog.derived.file_history import LISTED
from pypi_assets.catalog.derived.file_updates import REPLACED
from pypi_assets.catalog.derived.project_state import Interval
from pypi_assets.catalog.derived.stored_files import SHOWN_FACTS, intervals_of_files
from pypi_assets.catalog.ledger.epochs import notices_in
from pypi_assets.catalog.ledger.range_ledger import inexact_spans, read_state
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.followed import FOLLOWED, UNFOLLOWED, follows_all
from pypi_assets.catalog.observed.index_state import EntrySource
from pypi_assets.catalog.observed.projects import CORRECTED, QUARANTINED
from pypi_assets.catalog.reads.past_generations import contents_at, has_past_generations
from pypi_assets.catalog.reads.read_outcomes import READ_LATE
from pypi_assets.catalog.reports.journal_format import (
    GAP,
    UNREADABLE,
    FileKind,
    JournalStream,
    Record,
    new_record,
    normalized_name,
    numbered,
)
from pypi_assets.catalog.reports.listed_times import listed_times, looks_at_spans
from pypi_assets.catalog.tables import (
    broken_entries,
    changes,
    distributions,
    events,
    followed_intervals,
    live_intervals,
    projects,
    releases,
    yanked_intervals,
)
from pypi_assets.index.actions import Action, file_change
from pypi_assets.index.models import ChangelogEvent

_AT_A_TIME = 1_000
_BY_CAUSE = {
    CORRECTED: FileKind.CORRECTED,
    REPLACED: FileKind.REPLACED,
    FOLLOWED: FileKind.FOLLOWED,
    UNFOLLOWED: FileKind.UNFOLLOWED,
}
_HIDING = frozenset({Action.QUARANTINE_PROJECT, Action.QUARANTINE_RELEASE})
_SHOWING = frozenset({Action.UNQUARANTINE_PROJECT, Action.UNQUARANTINE_RELEASE})


class LoggedFile(NamedTuple):
    """A logged change of a file. `is_repeated`: it is also logged at its own serial."""

    logged_serial: int
    serial: int
    cause: str
    is_repeated: bool
    distribution_id: int
    project_id: int
    project: str
    normalized: str
    version: str
    filename: str


@dataclass(frozen=True, slots=True)
class Times:
    """The events at some serials, and the time of each serial: the time of the last event up to it."""

    events: dict[int, tuple[int, str]]
    seconds: dict[int, int | None]

    @classmethod
    def of(cls, connection: Connection, serials: Collection[int]) -> "Times":
        """Return the events and times of `serials`. An event is given by the id of its project, and its action."""
        found: dict[int, tuple[int, str]] = {}
        seconds: dict[int, int | None] = {}
        wanted = sorted(serials)
        if wanted:
            c = events.c
            sent = sent_values(connection, c.serial, wanted)
            query = select(c.serial, c.timestamp, c.project_id, c.action)
            query = query.select_from(sent).join(events, c.serial == sent.c.value)
            for serial, timestamp, project_id, action in bare_rows(connection, query):
                found[serial] = project_id, action
                seconds[serial] = timestamp
        for serial in wanted:
            if serial not in found:
                before = select(events.c.timestamp).where(events.c.serial < serial).order_by(events.c.serial.desc())
                seconds[serial] = connection.scalar(before.limit(1))
        return cls(found, seconds)


def index_records(connection: Connection, serials: SerialRange) -> Iterator[Record]:
    """Yield the changelog of a range, whose events must all be stored or known to be missing.

    The records depend only on the index, so every catalog that follows it yields the same ones.
    """
    yield from _numbered(
        JournalStream.INDEX, _gaps(connection, serials), _events(connection, serials), _unreadable(connection, serials)
    )


def observed_records(connection: Connection, serials: SerialRange) -> Iterator[Record]:
    """Yield the changes derived from events and pages, as logged in a sealed range."""
    yield from _numbered(
        JournalStream.OBSERVED,
        _unanswered(connection, serials),
        _gaps(connection, serials, with_looks=True),
        _notices(connection, serials),
        _files(connection, serials),
    )


def _numbered(stream: JournalStream, *sources: Iterable[Record]) -> Iterator[Record]:
    """Yield the records of all sources with ordinals. At the same serial, records of an earlier source come first."""
    ranked = (zip(repeat(rank), source) for rank, source in enumerate(sources))
    merged = heapq.merge(*ranked, key=lambda one: (one[1]["serial"], one[0]))
    yield from numbered(stream, (record for _, record in merged))


def _events(connection: Connection, serials: SerialRange) -> Iterator[Record]:
    within = (events.c.serial > serials.start, events.c.serial <= serials.end)
    c = events.c
    query = select(c.serial, c.name, c.version, c.timestamp, c.action).where(*within).order_by(c.serial)
    for serial, name, version, timestamp, action in connection.execution_options(yield_per=_AT_A_TIME).execute(query):
        event = ChangelogEvent(name, version, timestamp, action, serial)
        change = file_change(event)
        record = new_record(event.serial, event.serial, change.action.value, event.timestamp)
        record["project"], record["normalized"] = event.name, normalized_name(event.name)
        if event.version is not None:
            record["version"] = event.version
        if change.filename is not None:
            record["filename"] = change.filename
        record["action"] = event.action
        yield record


def _unreadable(connection: Connection, serials: SerialRange) -> Iterator[Record]:
    """Yield unreadable rows of the changelog, each after the last usable row before it."""
    c = broken_entries.c
    within = (c.source == EntrySource.CHANGELOG, c.after_serial > serials.start, c.after_serial <= serials.end)
    query = select(broken_entries).where(*within).order_by(c.after_serial, c.digest)
    for row in connection.execute(query):
        record = new_record(row.after_serial, row.after_serial, UNREADABLE, None)
        yield record | {"problem": row.problem, "content": row.content, "digest": row.digest}


def _gaps(connection: Connection, serials: SerialRange, *, with_looks: bool = False) -> Iterator[Record]:
    """Yield a record for each span without known events that begins in the range, at the first serial of the span.

    With `with_looks`, its time is that of the look at the list of projects that the span ends with.
    """
    spans = [span for span in inexact_spans(connection) if span.start + 1 in serials and span.end > span.start + 1]
    looks = looks_at_spans(connection, [span.start for span in spans]) if with_looks else {}
    for span in spans:
        at = None if (look := looks.get(span.start)) is None else int(look)
        yield new_record(span.start + 1, span.start + 1, GAP, at) | {"until": span.end}


def _unanswered(connection: Connection, serials: SerialRange) -> Iterator[Record]:
    """Yield a gap record, at serial 1, for the serials before the first exact answer of the catalog."""
    exact_from = int(read_state(connection)["exact_from"])
    if 1 in serials and exact_from > 1:
        yield new_record(1, 1, GAP, None) | {"until": exact_from}


def _notices(connection: Connection, serials: SerialRange) -> Iterator[Record]:
    for notice in notices_in(connection, serials):
        yield new_record(notice.logged_serial, notice.of_serial, notice.kind.value, None)


def logged_files(connection: Connection, serials: SerialRange) -> Iterator[Sequence[LoggedFile]]:
    """Yield, in batches, the changes of files that are logged in a range.

    They are ordered by logged serial, serial, project and file.
    """
    own = changes.alias()
    is_repeated = and_(
        changes.c.logged_serial != changes.c.serial,
        exists().where(
            own.c.distribution_id == changes.c.distribution_id,
            own.c.serial == changes.c.serial,
            own.c.logged_serial == changes.c.serial,
        ),
    )
    query = (
        select(
            changes.c.logged_serial,
            changes.c.serial,
            changes.c.cause,
            is_repeated.label("is_repeated"),
            distributions.c.id,
            projects.c.id.label("project_id"),
            projects.c.name,
            projects.c.normalized,
            releases.c.version,
            distributions.c.filename,
        )
        .join(distributions, distributions.c.id == changes.c.distribution_id)
        .join(projects, projects.c.id == distributions.c.project_id)
        .join(releases, releases.c.id == distributions.c.release_id)
        .where(changes.c.logged_serial > serials.start, changes.c.logged_serial <= serials.end)
        .order_by(
            changes.c.logged_serial,
            changes.c.serial,
            projects.c.normalized,
            distributions.c.filename,
            changes.c.cause,
        )
    )
    result = connection.execution_options(yield_per=_AT_A_TIME).execute(query)
    for partition in result.partitions():
        yield [LoggedFile._make(row) for row in partition]


def _files(connection: Connection, serials: SerialRange) -> Iterator[Record]:
    is_all = follows_all(connection)
    has_past = has_past_generations(connection)
    for partition in logged_files(connection, serials):
        some = [file for file in partition if file.cause != READ_LATE]
        ids = sorted({file.distribution_id for file in some})
        live = intervals_of_files(connection, live_intervals, ids)
        yanked = intervals_of_files(connection, yanked_intervals, ids)
        facts = _facts(connection, ids)
        times = Times.of(connection, {file.serial for file in some})
        listed = listed_times(connection, {(file.project_id, file.serial) for file in some if file.cause == LISTED})
        followed = {} if is_all else _followed(connection, {file.project_id for file in some})
        for file in some:
            of_live = _until(live.get(file.distribution_id, ()), file.logged_serial)
            of_yanked = _until(yanked.get(file.distribution_id, ()), file.logged_serial)
            kind = _kind(file, of_live, of_yanked)
            record = file_record(file, kind, times.seconds[file.serial])
            record["cause"] = file.cause
            if file.cause == LISTED and (time := listed.get((file.project_id, file.serial))) is not None:
                record["at"] = int(time.at)
                record["not_before"] = None if time.not_before is None else int(time.not_before)
            if (found := times.events.get(file.serial)) is not None and found[0] == file.project_id:
                record["event"] = {"serial": file.serial, "action": found[1]}
            if kind == FileKind.CORRECTED:
                record["corrects"] = file.serial
            shown = facts[file.distribution_id]
            if has_past:
                shown = shown | _past_facts(connection, file)
            record.update(shown)
            record["live"], record["yanked"] = _pairs(of_live), _pairs(of_yanked)
            if not is_all:
                # all intervals, since following is not logged for files that the first dump contains anyway
                record["followed"] = [list(one) for one in followed.get(file.project_id, ())]
            yield record


def file_record(file: LoggedFile, kind: str, at: int | None) -> Record:
    """Return a record of a file with the fields that all such records have."""
    record = new_record(file.logged_serial, file.serial, kind, at)
    record["project"] = file.project
    record["normalized"] = file.normalized
    record["version"] = file.version
    record["filename"] = file.filename
    return record


def is_begun(file: LoggedFile, live: Iterable[Interval]) -> bool:
    """Check whether the file became live by this change."""
    return not file.is_repeated and any(one.start == file.serial for one in live)


def _kind(file: LoggedFile, live: Sequence[Interval], yanked: Sequence[Interval]) -> FileKind:
    if file.is_repeated:
        return FileKind.CORRECTED
    if file.cause in _BY_CAUSE:
        return _BY_CAUSE[file.cause]
    if is_begun(file, live):
        return FileKind.SHOWN if file.cause in _SHOWING else FileKind.ADDED
    if any(one.end == file.serial for one in live):
        return FileKind.HIDDEN if file.cause in _HIDING else FileKind.REMOVED
    if any(one.start == file.serial for one in yanked):
        return FileKind.YANKED
    if any(one.end == file.serial for one in yanked):
        return FileKind.UNYANKED
    return FileKind.CORRECTED  # the logged change has since been corrected


def _facts(connection: Connection, ids: Sequence[int]) -> dict[int, Record]:
    if not ids:
        return {}
    c = distributions.c
    sent = sent_values(connection, c.id, ids)
    query = (
        select(c.id, projects.c.status, c.kind, c.generation, *(c[name] for name in SHOWN_FACTS))
        .select_from(sent)
        .join(distributions, c.id == sent.c.value)
        .join(projects, projects.c.id == c.project_id)
    )
    names = ("distribution_kind", "generation", *SHOWN_FACTS, "project_status")
    # the status at that serial is unknown, but the project of a live file is not quarantined
    return {
        id_: dict(zip(names, (*facts, None if status == QUARANTINED else status), strict=True))
        for id_, status, *facts in bare_rows(connection, query)
    }


def _past_facts(connection: Connection, file: LoggedFile) -> Record:
    """Return the facts of the content that counted when the change was logged, if the file has another content now."""
    past = contents_at(connection, file.logged_serial, [file.distribution_id]).get(file.distribution_id)
    if past is None:
        return {}
    facts = {name: past.facts.get(name) for name in SHOWN_FACTS if name != "sha256"}
    return {"generation": past.generation, "sha256": past.sha256} | facts


def _followed(connection: Connection, project_ids: Collection[int]) -> dict[int, list[tuple[int, int | None, int]]]:
    """Return when these projects are followed: start, end, and first exact serial. Entering projects are skipped."""
    c = followed_intervals.c
    query = select(c.project_id, c.start, c.end, c.exact_from).where(c.exact_from.is_not(None))
    found: dict[int, list[tuple[int, int | None, int]]] = {}
    for chunk in at_a_time(sorted(project_ids)):
        for id_, *interval in connection.execute(query.where(c.project_id.in_(chunk)).order_by(c.start)):
            found.setdefault(id_, []).append((interval[0], interval[1], interval[2]))
    return found


def _until(intervals: Iterable[Interval], serial: int) -> list[Interval]:
    """Return the intervals as they were known at `serial`."""
    return [
        Interval(one.start, one.end if one.end is not None and one.end <= serial else None)
        for one in intervals
        if one.start <= serial
    ]


def _pairs(intervals: Iterable[Interval]) -> list[list[int | None]]:
    return [[one.start, one.end] for one in intervals]
