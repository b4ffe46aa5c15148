"""The ledger of serial ranges: how far the catalog is complete, and what dumps have sealed.

A range is born here with a unique start, at the end of the greatest one, so ranges never overlap and leave no gap.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, func, insert, or_, select, update

from pypi_assets.catalog.database import CatalogError, storable
from pypi_assets.catalog.ledger.serial_range import RangeError, SerialRange
from pypi_assets.catalog.tables import catalog_state, serial_ranges

XMLRPC = "xmlrpc"
SIMPLE = "simple"
"""The listers that bring ranges: of those of `simple` the projects are known that changed, and no events."""


class RangeState(StrEnum):
    REQUESTED = "asked"
    COMPLETE = "complete"


class UnknownRangeError(RangeError):
    """The key names no range of the ledger."""


@dataclass(frozen=True, slots=True)
class LedgerRange:
    """One range of the ledger. Times are unix seconds. `error_text` says what ended the last worker's work on it.

    `begun_at` is None until work has begun, and again after each step that ended well without completing the range.

    `lister` is who brought it, None where that was a full crawl. No event is known of the serials between the range's
    start and `exact_from`, if that is not None, so nothing can be told of them.
    """

    serials: SerialRange
    state: RangeState
    sealed: bool
    requested_at: float
    begun_at: float | None
    error_text: str | None
    completed_at: float | None
    lister: str | None
    exact_from: int | None


def lock_state(connection: Connection, *, exclusive: bool) -> RowMapping:
    """The catalog's one row of state, locked until the transaction ends.

    Whoever logs a change shares the lock, whoever seals takes it alone, so no change slips behind a seal. SQLite has
    one writer at a time anyway. Raises CatalogError on a catalog that no full crawl has been opened on.
    """
    query = select(catalog_state)
    if connection.dialect.name != "sqlite":
        query = query.with_for_update(read=not exclusive)
    return _state(connection, query)


def read_state(connection: Connection) -> RowMapping:
    """The catalog's one row of state, not locked. Raises CatalogError as `lock_state` does."""
    return _state(connection, select(catalog_state))


def _state(connection: Connection, query: Select[Any]) -> RowMapping:
    row = connection.execute(query).mappings().first()
    if row is None:
        raise CatalogError("the catalog is empty: run a full crawl first (pypi-assets crawl full)")
    return row


def complete_serial(connection: Connection) -> int:
    """The serial up to which every range is complete, without a gap from 0."""
    open_start = connection.scalar(
        select(func.min(serial_ranges.c.start)).where(serial_ranges.c.state == RangeState.REQUESTED)
    )
    return last_allocated_serial(connection) if open_start is None else int(open_start)


def last_allocated_serial(connection: Connection) -> int:
    """The end of the greatest range that was ever asked for; the next one starts there."""
    return int(connection.scalar(select(func.max(serial_ranges.c.end))) or 0)


def last_allocated_at(connection: Connection) -> float:
    """When the greatest range was asked for, in unix seconds; 0 where there is none."""
    greatest = select(func.max(serial_ranges.c.end)).scalar_subquery()
    return float(connection.scalar(select(serial_ranges.c.requested_at).where(serial_ranges.c.end == greatest)) or 0)


def allocate_range(connection: Connection, end: int, now: float, lister: str | None = None) -> SerialRange | None:
    """Brings the next range into being, from the end of the last one to `end`; None where `end` is not beyond it."""
    return next(iter(allocate_ranges(connection, [end], now, lister)), None)


def allocate_ranges(
    connection: Connection, ends: Iterable[int], now: float, lister: str | None = XMLRPC
) -> list[SerialRange]:
    """Brings the next ranges into being, from the end of the last one to each of `ends`, which ascend."""
    lock_state(connection, exclusive=True)
    start = last_allocated_serial(connection)
    asked = []
    for end in ends:
        if end > start:
            asked.append(SerialRange(start, end))
            start = end
    if asked:
        rows = [{"start": serials.start, "end": serials.end} for serials in asked]
        born = insert(serial_ranges).values(state=RangeState.REQUESTED, sealed=False, requested_at=now, lister=lister)
        connection.execute(born, rows)
    return asked


def require_range(connection: Connection, key: str) -> LedgerRange:
    """The range that `key` names. Raises RangeError where it is no key, UnknownRangeError where the ledger has none."""
    serials = SerialRange.parse(key)
    row = connection.execute(
        select(serial_ranges).where(serial_ranges.c.start == serials.start, serial_ranges.c.end == serials.end)
    ).first()
    if row is None:
        raise UnknownRangeError(
            f"{key} is not a range of the ledger; ranges are born there (pypi-assets crawl incremental, or the sensor)"
        )
    return _ledger_range(row._mapping)


def ledger(connection: Connection) -> list[LedgerRange]:
    """All ranges, in order of their start. There are 52,560 a year where one is asked for every ten minutes."""
    return _selected(connection, select(serial_ranges))


def unfinished_ranges(connection: Connection) -> list[LedgerRange]:
    """The ranges that are not complete, in order of their start."""
    return _selected(connection, select(serial_ranges).where(serial_ranges.c.state == RangeState.REQUESTED))


def recent_ranges(connection: Connection, *, beyond: int) -> list[LedgerRange]:
    """The ranges that end beyond the serial `beyond`, and those that are not complete, in order of their start."""
    recent = or_(serial_ranges.c.end > beyond, serial_ranges.c.state == RangeState.REQUESTED)
    return _selected(connection, select(serial_ranges).where(recent))


def _selected(connection: Connection, query: Select[Any]) -> list[LedgerRange]:
    entries = (_ledger_range(row._mapping) for row in connection.execute(query))
    # not by the database: to find a few in order, SQLite would read all
    return sorted(entries, key=lambda entry: entry.serials)


def gaps(entries: Iterable[LedgerRange], until: int = 0) -> list[SerialRange]:
    """What none of `entries`, which are in order of their start, holds, from serial 0 to their end or to `until`."""
    found = []
    end = 0
    for entry in entries:
        if entry.serials.start > end:
            found.append(SerialRange(end, entry.serials.start))
        end = max(end, entry.serials.end)
    if until > end:
        found.append(SerialRange(end, until))
    return found


def begin_range(connection: Connection, serials: SerialRange, now: float) -> None:
    """A worker begins on the range: what ended another one's work is forgotten."""
    connection.execute(
        update(serial_ranges).where(serial_ranges.c.start == serials.start).values(begun_at=now, error_text=None)
    )


def leave_range(connection: Connection, serials: SerialRange) -> None:
    """A worker has brought its step of the range to an end: what is left of it, if anything, waits for the next one."""
    connection.execute(
        update(serial_ranges)
        .where(serial_ranges.c.start == serials.start, serial_ranges.c.state != RangeState.COMPLETE)
        .values(begun_at=None)
    )


def fail_range(connection: Connection, serials: SerialRange, error_text: str) -> None:
    """A worker's work on the range has ended in an error, which is shown until somebody begins again."""
    connection.execute(
        update(serial_ranges).where(serial_ranges.c.start == serials.start).values(error_text=storable(error_text))
    )


def complete_range(connection: Connection, serials: SerialRange, now: float, exact_from: int | None = None) -> None:
    connection.execute(
        update(serial_ranges)
        .where(serial_ranges.c.start == serials.start, serial_ranges.c.state != RangeState.COMPLETE)
        .values(state=RangeState.COMPLETE, completed_at=now, error_text=None, exact_from=exact_from)
    )


def inexact_spans(connection: Connection, *, around: int | None = None) -> list[SerialRange]:
    """Of which serials nothing can be told, since no events are known of them: those above the start of each span and
    below its end. With `around` only the spans that this serial lies in."""
    spans = select(serial_ranges.c.start, serial_ranges.c.exact_from).where(serial_ranges.c.exact_from.is_not(None))
    if around is not None:
        spans = spans.where(serial_ranges.c.exact_from > around, serial_ranges.c.start < around)
    return [SerialRange(start, end) for start, end in connection.execute(spans.order_by(serial_ranges.c.start))]


def end_inexact_span(connection: Connection, start: int) -> None:
    """The events of the span that starts there are known now, and so is what follows from them."""
    connection.execute(update(serial_ranges).where(serial_ranges.c.start == start).values(exact_from=None))


def seal(connection: Connection, serials: SerialRange) -> None:
    """From now on a change at a serial in `serials` is logged after it. The caller holds the state's exclusive lock."""
    connection.execute(
        update(serial_ranges)
        .where(serial_ranges.c.start >= serials.start, serial_ranges.c.end <= serials.end)
        .values(sealed=True)
    )


def sealed_end(connection: Connection) -> int:
    """The greatest serial that a dump has sealed, 0 where none has."""
    return int(connection.scalar(select(func.max(serial_ranges.c.end)).where(serial_ranges.c.sealed)) or 0)


@dataclass(frozen=True, slots=True)
class Seals:
    """What dumps have sealed: all up to the serial `end`, but for the ranges `unsealed` below it."""

    end: int
    unsealed: tuple[SerialRange, ...]

    def logged_serials(self, serial: int) -> list[int]:
        """Where a change at `serial` is to be logged so that the dumps still to come tell of it.

        At `serial` itself where its range is not sealed; and after everything sealed where a later range is, since the
        dump of that one may have told the contrary.
        """
        if serial > self.end:
            return [serial]
        own_is_sealed = not any(serials.start < serial <= serials.end for serials in self.unsealed)
        return [self.end + 1] if own_is_sealed else [serial, self.end + 1]


def seals(connection: Connection) -> Seals:
    """What is sealed now. Whoever goes by it holds the state's lock, shared."""
    end = sealed_end(connection)
    rows = connection.execute(
        select(serial_ranges.c.start, serial_ranges.c.end).where(
            serial_ranges.c.start < end, serial_ranges.c.sealed.is_(False)
        )
    )
    return Seals(end, tuple(SerialRange(start, stop) for start, stop in rows))


def _ledger_range(row: RowMapping) -> LedgerRange:
    return LedgerRange(
        serials=SerialRange(row["start"], row["end"]),
        state=RangeState(row["state"]),
        sealed=row["sealed"],
        requested_at=row["requested_at"],
        begun_at=row["begun_at"],
        error_text=row["error_text"],
        completed_at=row["completed_at"],
        lister=row["lister"],
        exact_from=row["exact_from"],
    )
