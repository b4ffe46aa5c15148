"""Create the records of the journal from stored rows. docs/formats.md describes their fields.

A record is published at its `serial` and happened at its `of_serial`. Records of a stream are in order of serial and
`ordinal`, and do not depend on how the serials are divided into ranges. `index_records` has the changelog, and
`ObservedRecords` has the changes derived from events and pages; the contents of files are in journal_contents.py.
"""

import heapq
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from itertools import repeat
from operator import itemgetter

from sqlalchemy import Connection, select

from pypi_assets.catalog.database import at_a_time
from pypi_assets.catalog.derived.file_history import LISTED
from pypi_assets.catalog.derived.file_updates import REPLACED
from pypi_assets.catalog.ledger.epochs import notices_in
from pypi_assets.catalog.ledger.range_ledger import inexact_spans, read_state
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.followed import FOLLOWED, UNFOLLOWED, follows_all
from pypi_assets.catalog.observed.index_state import EntrySource
from pypi_assets.catalog.observed.projects import CORRECTED
from pypi_assets.catalog.publications.dump_rows import status_when_live
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
from pypi_assets.catalog.reports.logged_changes import LoggedBatch, LoggedFile, Span, is_begun
from pypi_assets.catalog.tables import broken_entries, events, followed_intervals
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


def index_records(connection: Connection, serials: SerialRange) -> Iterator[Record]:
    """Yield the changelog of a range, whose events must all be stored or known to be missing.

    The records depend only on the index, so every catalog that follows it yields the same ones.
    """
    sources = (_gaps(connection, serials), _events(connection, serials), _unreadable(connection, serials))
    ranked = (zip(repeat(rank), source) for rank, source in enumerate(sources))
    # at the same serial, records of an earlier source come first
    merged = heapq.merge(*ranked, key=lambda one: (one[1]["serial"], one[0]))
    yield from numbered(JournalStream.INDEX, (record for _, record in merged))


class ObservedRecords:
    """The changes derived from events and pages, as logged in a sealed range. Batches must be given in order."""

    def __init__(self, connection: Connection, serials: SerialRange) -> None:
        self._connection = connection
        self._follows_all = follows_all(connection)
        # few records of other things than files, which come before the files of their serial
        others = (
            *_unanswered(connection, serials),
            *_gaps(connection, serials, with_looks=True),
            *_notices(connection, serials),
        )
        self._others = deque(sorted(others, key=itemgetter("serial")))

    def of(self, batch: LoggedBatch) -> Iterator[Record]:
        """Yield the records of a batch."""
        for record in self._files(batch):
            while self._others and self._others[0]["serial"] <= record["serial"]:
                yield self._others.popleft()
            yield record

    def rest(self) -> Iterator[Record]:
        """Yield the records after the last batch."""
        yield from self._others

    def _files(self, batch: LoggedBatch) -> Iterator[Record]:
        files = [file for file in batch.files if file.cause != READ_LATE]
        listed_files = {(file.project_id, file.serial) for file in files if file.cause == LISTED}
        listed = listed_times(self._connection, listed_files) if listed_files else {}
        followed = {} if self._follows_all else _followed(self._connection, {file.project_id for file in files})
        times, live, yanked = batch.times, batch.live, batch.yanked
        for file in files:
            of_live = _until(live.get(file.distribution_id, ()), file.logged_serial)
            of_yanked = _until(yanked.get(file.distribution_id, ()), file.logged_serial)
            kind = _kind(file, of_live, of_yanked)
            record = file_record(file, kind.value, times.seconds[file.serial])
            if file.cause == LISTED and (time := listed.get((file.project_id, file.serial))) is not None:
                record["at"] = int(time.at)
                record["not_before"] = None if time.not_before is None else int(time.not_before)
            if (found := times.events.get(file.serial)) is not None and found[0] == file.project_id:
                record["event"] = {"serial": file.serial, "action": found[1]}
            if kind is FileKind.CORRECTED:
                record["corrects"] = file.serial
            facts = batch.facts(file)
            record |= {
                "distribution_kind": facts.kind,
                "generation": facts.generation,
                "url": facts.url,
                "sha256": facts.sha256,
                "size": facts.size,
                "uploaded_at": facts.uploaded_at,
                "requires_python": facts.shown_requires_python,
                "yanked_reason": facts.yanked_reason,
                "core_metadata_sha256": facts.core_metadata_sha256,
                "first_seen_at": facts.first_seen_at,
                "project_status": status_when_live(facts.project_status),
                "live": of_live,
                "yanked": of_yanked,
            }
            if not self._follows_all:
                # all intervals, since following is not logged for files that the first dump contains anyway
                record["followed"] = followed.get(file.project_id, [])
            yield record


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


def file_record(file: LoggedFile, kind: str, at: int | None) -> Record:
    """Return a record of a file with the fields that all such records have. Its place is not set yet."""
    return {
        "serial": file.logged_serial,
        "of_serial": file.serial,
        "ordinal": 0,
        "stream": "",
        "kind": kind,
        "at": at,
        "project": file.project,
        "normalized": file.normalized,
        "version": file.version,
        "filename": file.filename,
        "cause": file.cause,
    }


def _kind(file: LoggedFile, live: Sequence[Span], yanked: Sequence[Span]) -> FileKind:
    if file.is_repeated:
        return FileKind.CORRECTED
    if file.cause in _BY_CAUSE:
        return _BY_CAUSE[file.cause]
    if is_begun(file, live):
        return FileKind.SHOWN if file.cause in _SHOWING else FileKind.ADDED
    if any(end == file.serial for _, end in live):
        return FileKind.HIDDEN if file.cause in _HIDING else FileKind.REMOVED
    if any(start == file.serial for start, _ in yanked):
        return FileKind.YANKED
    if any(end == file.serial for _, end in yanked):
        return FileKind.UNYANKED
    return FileKind.CORRECTED  # the logged change has since been corrected


def _followed(connection: Connection, project_ids: Collection[int]) -> dict[int, list[tuple[int, int | None, int]]]:
    """Return when these projects are followed: start, end, and first exact serial. Entering projects are skipped."""
    c = followed_intervals.c
    query = select(c.project_id, c.start, c.end, c.exact_from).where(c.exact_from.is_not(None))
    found: dict[int, list[tuple[int, int | None, int]]] = {}
    for chunk in at_a_time(sorted(project_ids)):
        for id_, *interval in connection.execute(query.where(c.project_id.in_(chunk)).order_by(c.start)):
            found.setdefault(id_, []).append((interval[0], interval[1], interval[2]))
    return found


def _until(spans: Sequence[Span], serial: int) -> list[Span]:
    """Return the intervals as they were known at `serial`."""
    return [(start, end if end is not None and end <= serial else None) for start, end in spans if start <= serial]
