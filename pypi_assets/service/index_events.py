"""The index's events for clients that follow this service as an index: XML-RPC and RSS.

They are the records of the journal's stream `index`, up to the serial that all other answers have. So a client never
hears of a change that the project's page here does not show yet.
"""

from collections.abc import Callable
from dataclasses import dataclass

import orjson
from sqlalchemy.exc import SQLAlchemyError

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.ledger.range_ledger import next_inexact_span
from pypi_assets.catalog.reports.journal_format import GAP, TAKEN_DOWN, UNREADABLE, JournalStream, Record
from pypi_assets.errors import ExpectedError
from pypi_assets.journal.cursors import Cursor
from pypi_assets.journal.filters import RecordFilter
from pypi_assets.journal.segment_files import Head
from pypi_assets.journal.tailing import newest_lines
from pypi_assets.service.service import Service

STREAM = JournalStream.INDEX.value
_NO_EVENTS = tuple(b'"kind":' + orjson.dumps(kind) for kind in (GAP, UNREADABLE, TAKEN_DOWN))
_GAP = b'"kind":' + orjson.dumps(GAP)
_BEYOND = 2**63
_RECORDS_AT_ONCE = 5_000
_WANTED = RecordFilter.parse(streams=[STREAM])


class GapError(ExpectedError):
    """No events are known after the serial `since` up to `until`. A client can begin with the list of projects."""

    def __init__(self, since: int, until: int) -> None:
        super().__init__(
            f"no events are known after serial {since} up to {until}: begin with the list of projects (/simple/ or"
            " list_packages_with_serial)"
        )
        self.since, self.until = since, until


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Some events in order, as lines of JSON. The next ones are after `cursor`."""

    lines: list[bytes]
    cursor: Cursor


def offered_through(service: Service) -> int:
    """Return the serial up to which events are offered.

    Raises NoJournalError without a journal, and ProblemError if nothing is published.
    """
    datasets = service.datasets()
    return min(_head(service).through, datasets.serial)


def _head(service: Service) -> Head:
    return service.changes.journal.head(STREAM)


def last_event_serial(service: Service) -> int | None:
    """Return the serial of the last offered event, or None for an empty index.

    If the journal has no event yet, it is the serial after which the journal begins, as for a client that is up to
    date. Raises NoJournalError, JournalDamagedError and ProblemError.
    """
    through = offered_through(service)

    def found() -> int | None:
        newest = newest_lines(service.changes.journal, STREAM, is_event, 1, through)
        return int(orjson.loads(newest[0])["serial"]) if newest else through or None

    return service.changes.remembered(("last event", through), found)


def next_events(
    service: Service,
    after: Cursor,
    limit: int,
    wants_line: Callable[[bytes], bool] | None = None,
    *,
    crosses_gaps: bool = False,
) -> EventBatch:
    """Return the next offered events after a cursor, at most `limit`: all, or those that `wants_line` accepts.

    It is empty only if there are no more. Raises GapError if the next events would follow a gap or the beginning of the
    journal. With `crosses_gaps`, only the beginning counts, with BeginsLaterError. Also raises NoJournalError,
    JournalDamagedError and ProblemError.
    """
    through = offered_through(service)
    if after.whole_serial >= through:
        return EventBatch([], after)
    if not crosses_gaps:
        _require_begun(service, after.whole_serial)
        through = min(through, _known_through(service, after.whole_serial))
    at_once = limit if wants_line is None else _RECORDS_AT_ONCE
    while True:
        batch = service.changes.tail().batch(after, _WANTED, at_once, through=through)
        found: list[bytes] = []
        for cursor, line in batch.lines:
            if not crosses_gaps and (gap := _gap(line)) is not None:
                if found:
                    return EventBatch(found, Cursor.after_serial(gap.since))
                raise gap
            if is_event(line) and (wants_line is None or wants_line(line)):
                found.append(line)
            if len(found) == limit:
                return EventBatch(found, cursor)
        if found or batch.is_last:
            return EventBatch(found, batch.cursor)
        after = batch.cursor


def _require_begun(service: Service, after: int) -> None:
    first = _head(service).readable_from
    if after < first:
        raise GapError(after, first)


def _known_through(service: Service, after: int) -> int:
    """Return the serial before the first gap after `after`, or a serial beyond all if the catalog knows no gap.

    The journal has a record of each longer gap that begins after `after`. The catalog also knows the gap around it, and
    single serials. Raises GapError for a gap around it.
    """
    if service.catalog is None:
        return _BEYOND
    try:
        with service.catalog.read() as connection:
            span = next_inexact_span(connection, after)
    except (CatalogError, SQLAlchemyError):
        return _BEYOND
    if span is not None and span.start <= after:
        raise GapError(span.start, span.end)
    return _BEYOND if span is None else span.start


def newest_events(service: Service, count: int, wants_line: Callable[[bytes], bool]) -> EventBatch:
    """Return the newest offered events that `wants_line` accepts, and the cursor after all offered events."""
    through = offered_through(service)
    journal = service.changes.journal
    lines = newest_lines(journal, STREAM, lambda line: is_event(line) and wants_line(line), count, through)
    return EventBatch(lines, Cursor.after_serial(through))


def is_event(line: bytes) -> bool:
    """Check whether a record of the stream is an event of the index."""
    # a text in a record has its quotation marks escaped, so it never contains a field of this form
    return not any(kind in line for kind in _NO_EVENTS)


def _gap(line: bytes) -> GapError | None:
    if _GAP not in line:
        return None
    record: Record = orjson.loads(line)
    return GapError(record["serial"] - 1, record["until"])
