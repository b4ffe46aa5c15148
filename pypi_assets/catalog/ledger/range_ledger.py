"""The ledger of serial ranges: how far the catalog is complete, and what dumps have sealed.

The ledger allocates each range with a unique start, at the end of the greatest one. So ranges never overlap and leave
no gap.

A change to a file is logged at its serial. A late change, at a serial that a dump has sealed, is logged after the
sealed serials.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    and_,
    bindparam,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from pypi_assets.catalog.database import CatalogError, insert_missing, lock_name, storable
from pypi_assets.catalog.ledger.serial_range import RangeError, SerialRange
from pypi_assets.catalog.tables import catalog_state, changes, serial_ranges

CHECKED_RANGES = 1_000
"""How many of the newest ranges a check reads: about a week of ten-minute ranges."""
XMLRPC = "xmlrpc"
SIMPLE = "simple"
"""The listers that bring ranges. A range of `simple` has no events: only its changed projects are known."""


class RangeState(StrEnum):
    """The stored state of a range."""

    REQUESTED = "asked"
    COMPLETE = "complete"


class UnknownRangeError(RangeError):
    """The ledger has no such range."""


@dataclass(frozen=True, slots=True)
class LedgerRange:
    """One range of the ledger. Times are unix seconds.

    `error_text` describes the error that ended the last worker's work. `begun_at` is None before work began, and after
    each step that ended well without completing the range.

    `lister` is the lister that requested the range; None for a full crawl. No event is known between the range's start
    and `exact_from`, so the catalog has no answer for the serials between; None without such a gap. `visited` counts
    its finished visits that have left the queue.
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
    visited: int


def lock_state(connection: Connection, *, exclusive: bool) -> RowMapping:
    """Return the catalog's single row of state, locked until the transaction ends.

    Logging a change takes a shared lock and sealing takes an exclusive one, so no change is logged at a serial after it
    was sealed. SQLite has one writer at a time anyway. Raises CatalogError if no full crawl was ever opened on the
    catalog.
    """
    query = select(catalog_state)
    if connection.dialect.name != "sqlite":
        query = query.with_for_update(read=not exclusive)
    return _state(connection, query)


def read_state(connection: Connection) -> RowMapping:
    """Return the catalog's single row of state without a lock. Raises CatalogError as `lock_state` does."""
    return _state(connection, select(catalog_state))


def _state(connection: Connection, query: Select[Any]) -> RowMapping:
    row = connection.execute(query).mappings().first()
    if row is None:
        raise CatalogError("the catalog is empty: run a full crawl first (pypi-assets crawl full)")
    return row


def complete_serial(connection: Connection) -> int:
    """Return the serial up to which all ranges from 0 are complete, without a gap."""
    return int(connection.scalar(select(_complete_serial())) or 0)


def _complete_serial() -> ColumnElement[int]:
    first_open = select(func.min(serial_ranges.c.start)).where(serial_ranges.c.state == RangeState.REQUESTED)
    last = select(func.max(serial_ranges.c.end))
    return func.coalesce(first_open.scalar_subquery(), last.scalar_subquery(), 0)


def last_allocated_serial(connection: Connection) -> int:
    """Return the end of the greatest range, where the next range starts; 0 before the first range."""
    return int(connection.scalar(select(func.max(serial_ranges.c.end))) or 0)


def last_allocated_at(connection: Connection) -> float:
    """Return the time at which the greatest range was allocated, in unix seconds; 0 before the first range."""
    greatest = select(func.max(serial_ranges.c.end)).scalar_subquery()
    return float(connection.scalar(select(serial_ranges.c.requested_at).where(serial_ranges.c.end == greatest)) or 0)


def allocate_range(connection: Connection, end: int, now: float, lister: str | None = None) -> SerialRange | None:
    """Allocate the next range, from the end of the last range to `end`. Return None if `end` is not beyond it."""
    return next(iter(allocate_ranges(connection, [end], now, lister)), None)


def allocate_ranges(
    connection: Connection, ends: Iterable[int], now: float, lister: str | None = XMLRPC
) -> list[SerialRange]:
    """Allocate the next ranges, from the end of the last range to each of the ascending `ends`.

    For example:

        allocate_ranges(connection, [1350, 1500], now)  # after 0-1200: 1200-1350 and 1350-1500
    """
    lock_state(connection, exclusive=True)
    start = last_allocated_serial(connection)
    allocated = []
    for end in ends:
        if end > start:
            allocated.append(SerialRange(start, end))
            start = end
    if allocated:
        rows = [{"start": serials.start, "end": serials.end} for serials in allocated]
        born = insert(serial_ranges).values(state=RangeState.REQUESTED, sealed=False, requested_at=now, lister=lister)
        connection.execute(born, rows)
    return allocated


def require_range(connection: Connection, serials: SerialRange, *, lock: bool = False) -> LedgerRange:
    """Return the ledger's entry of `serials`.

    With `lock`, no other process completes the range until the transaction ends. Raises UnknownRangeError if the ledger
    has no range with exactly this start and end.
    """
    if lock:  # not its row, which is locked while it is sealed
        lock_name(connection, f"range:{serials.key}")
    query = select(serial_ranges).where(serial_ranges.c.start == serials.start, serial_ranges.c.end == serials.end)
    row = connection.execute(query).first()
    if row is None:
        raise UnknownRangeError(
            f"{serials} is not a range of the ledger; `pypi-assets crawl incremental` and the sensor allocate ranges"
        )
    return _ledger_range(row._mapping)


def ledger(connection: Connection) -> list[LedgerRange]:
    """Return all ranges, in order of their start. Ten-minute ranges add 52,560 rows a year, so call it rarely."""
    return _selected(connection, select(serial_ranges))


def unfinished_ranges(connection: Connection) -> list[LedgerRange]:
    """Return the incomplete ranges, in order of their start."""
    return _selected(connection, select(serial_ranges).where(serial_ranges.c.state == RangeState.REQUESTED))


def first_range(connection: Connection) -> SerialRange | None:
    """Return the incomplete first range, from 0 to the serial at which the catalog began; None if there is none.

    It belongs to the first full crawl or scope. A catalog of an index that was empty then has none: its first range has
    events.
    """
    c = serial_ranges.c
    unfinished = c.start == 0, c.state == RangeState.REQUESTED, c.lister.is_(None)
    end = connection.scalar(select(c.end).where(*unfinished))
    return None if end is None else SerialRange(0, end)


def complete_ranges(connection: Connection, count: int) -> list[LedgerRange]:
    """Return the last `count` complete ranges, in order of their start."""
    complete = select(serial_ranges).where(serial_ranges.c.state == RangeState.COMPLETE)
    return _selected(connection, complete.order_by(serial_ranges.c.start.desc()).limit(count))


def past_range_keys(connection: Connection, *, through: int, before: float) -> list[str]:
    """Return the keys of complete ranges that end at or below `through` and were completed by `before` (unix seconds).

    Complete ranges that begin at 0 are always included. Reads two columns of nearly all ranges.
    """
    is_past = and_(
        serial_ranges.c.end <= through,
        or_(serial_ranges.c.completed_at.is_(None), serial_ranges.c.completed_at <= before),
    )
    columns = select(serial_ranges.c.start, serial_ranges.c.end)
    past = columns.where(serial_ranges.c.state == RangeState.COMPLETE, or_(is_past, serial_ranges.c.start == 0))
    return [SerialRange(start, end).key for start, end in connection.execute(past)]


def recent_ranges(connection: Connection, *, beyond: int) -> list[LedgerRange]:
    """Return the ranges that end beyond the serial `beyond` and all incomplete ranges, in order of their start."""
    recent = or_(serial_ranges.c.end > beyond, serial_ranges.c.state == RangeState.REQUESTED)
    return _selected(connection, select(serial_ranges).where(recent))


def _selected(connection: Connection, query: Select[Any]) -> list[LedgerRange]:
    entries = (_ledger_range(row._mapping) for row in connection.execute(query))
    # sorted here, since SQLite would read all ranges to find a few in order
    return sorted(entries, key=lambda entry: entry.serials)


def faulty_ranges(connection: Connection, *, only_newest: bool = True) -> list[tuple[SerialRange, int]]:
    """Return each range whose start differs from the greatest end of all earlier ranges, with that end, in order.

    A sound ledger has no such range. With `only_newest`, only the last CHECKED_RANGES are checked: the serials of a
    checked range never change.
    """
    backwards = select(serial_ranges.c.start, serial_ranges.c.end).order_by(serial_ranges.c.start.desc())
    checked = (backwards.limit(CHECKED_RANGES) if only_newest else backwards).subquery()
    older = connection.execute(backwards.offset(CHECKED_RANGES).limit(1)).first() if only_newest else None
    furthest = func.max(checked.c.end).over(order_by=checked.c.start, rows=(None, -1))
    before = func.coalesce(furthest, 0 if older is None else older.end).label("before")
    joints = select(checked.c.start, checked.c.end, before).subquery()
    faulty = select(joints).where(joints.c.start != joints.c.before).order_by(joints.c.start)
    return [(SerialRange(start, end), before) for start, end, before in connection.execute(faulty)]


def missing_spans(connection: Connection, until: int = 0) -> list[SerialRange]:
    """Return the spans of serials that no range contains, up to the end of the newest range or `until`."""
    found = [
        SerialRange(before, serials.start) for serials, before in faulty_ranges(connection) if serials.start > before
    ]
    end = last_allocated_serial(connection)
    return [*found, SerialRange(end, until)] if until > end else found


def begin_range(connection: Connection, serials: SerialRange, now: float) -> None:
    """Record that a worker begins on the range, and clear the error of an earlier worker."""
    connection.execute(
        update(serial_ranges).where(serial_ranges.c.start == serials.start).values(begun_at=now, error_text=None)
    )


def leave_range(connection: Connection, serials: SerialRange) -> None:
    """Record that a worker ended its step without an error. An incomplete range waits for the next step."""
    connection.execute(
        update(serial_ranges)
        .where(serial_ranges.c.start == serials.start, serial_ranges.c.state != RangeState.COMPLETE)
        .values(begun_at=None)
    )


def fail_range(connection: Connection, serials: SerialRange, error_text: str) -> None:
    """Record the error that ended a worker's work on the range. It is shown until work begins again."""
    connection.execute(
        update(serial_ranges).where(serial_ranges.c.start == serials.start).values(error_text=storable(error_text))
    )


def complete_range(connection: Connection, serials: SerialRange, now: float, exact_from: int | None = None) -> None:
    """Complete the range, with its `exact_from` as in LedgerRange. A complete range does not change.

    The state is locked until the transaction ends: any other change at these serials is either committed before, or
    late.
    """
    lock_state(connection, exclusive=True)
    connection.execute(
        update(serial_ranges)
        .where(serial_ranges.c.start == serials.start, serial_ranges.c.state != RangeState.COMPLETE)
        .values(state=RangeState.COMPLETE, completed_at=now, error_text=None, exact_from=exact_from)
    )


def inexact_spans(connection: Connection, *, around: int | None = None, until: int | None = None) -> list[SerialRange]:
    """Return spans without known events: the catalog has no answer for serials above a span's start and below its end.

    With `around`, return only the spans with this serial inside. With `until`, return only spans that end at or
    below it.
    """
    return [SerialRange(start, end) for start, end in connection.execute(_inexact_spans(around, until))]


def next_inexact_span(connection: Connection, after: int) -> SerialRange | None:
    """Return the first span without known events that ends above the serial `after`; None if there is none."""
    query = _inexact_spans().where(serial_ranges.c.exact_from > after).limit(1)
    return next((SerialRange(start, end) for start, end in connection.execute(query)), None)


def newest_inexact_spans(connection: Connection, count: int) -> list[SerialRange]:
    """Return at most `count` of the newest inexact spans, in order.

    Without a changelog every range is inexact, so there are many.
    """
    newest = _inexact_spans().order_by(None).order_by(serial_ranges.c.start.desc()).limit(count)
    return [SerialRange(start, end) for start, end in connection.execute(newest)][::-1]


def ranges_to_explain(connection: Connection, through: int) -> list[tuple[SerialRange, SerialRange]]:
    """Return the inexact ranges that the events up to the serial `through` explain, each with its inexact span."""
    query = _inexact_spans(until=through).add_columns(serial_ranges.c.end)
    return [(SerialRange(start, end), SerialRange(start, until)) for start, until, end in connection.execute(query)]


def _inexact_spans(around: int | None = None, until: int | None = None) -> Select[Any]:
    spans = select(serial_ranges.c.start, serial_ranges.c.exact_from).where(serial_ranges.c.exact_from.is_not(None))
    if around is not None:
        spans = spans.where(serial_ranges.c.exact_from > around, serial_ranges.c.start < around)
    if until is not None:
        spans = spans.where(serial_ranges.c.exact_from <= until)
    return spans.order_by(serial_ranges.c.start)


def end_inexact_span(connection: Connection, start: int) -> None:
    """Mark the span with this start as exact. Call it when its events and the changes derived from them are stored."""
    connection.execute(update(serial_ranges).where(serial_ranges.c.start == start).values(exact_from=None))


def seal(connection: Connection, serials: SerialRange) -> None:
    """Seal the ranges inside `serials`: later changes at these serials are logged after them.

    The caller holds the state's exclusive lock.
    """
    connection.execute(
        update(serial_ranges)
        # both limits of the start, or the databases may search by the end from the first range on
        .where(serial_ranges.c.start.between(serials.start, serials.end), serial_ranges.c.end <= serials.end)
        .values(sealed=True)
    )


def sealed_end(connection: Connection) -> int:
    """Return the greatest serial that a dump has sealed; 0 if no dump has."""
    return int(connection.scalar(select(sealed_end_column())) or 0)


def sealed_end_column() -> ColumnElement[int]:
    """Return `sealed_end` as an expression for a larger SQL statement."""
    greatest = select(func.max(serial_ranges.c.end)).where(serial_ranges.c.sealed.is_(True))
    return func.coalesce(greatest.scalar_subquery(), 0)


@dataclass(frozen=True, slots=True)
class Seals:
    """The serials that dumps have sealed: all up to `end`, except the ranges `unsealed` below it.

    `complete` is the serial up to which all ranges are complete.
    """

    end: int
    unsealed: tuple[SerialRange, ...]
    complete: int = 0

    def logged_serials(self, serial: int) -> list[int]:
        """Return the serials at which a change at `serial` is logged, so that a future dump contains it.

        If its range is sealed, the change is logged only after all sealed serials. If not, it is logged at `serial`
        itself; if a later range is sealed, it is also logged after all sealed serials, since the dump of that range may
        contradict it.
        """
        if serial > self.end:
            return [serial]
        own_is_sealed = not any(serials.start < serial <= serials.end for serials in self.unsealed)
        return [self.end + 1] if own_is_sealed else [serial, self.end + 1]


def seals(connection: Connection) -> Seals:
    """Return the current seals. They hold as long as the caller has the state's shared lock."""
    is_unsealed = and_(serial_ranges.c.start < sealed_end_column(), serial_ranges.c.sealed.is_(False))
    query = select(sealed_end_column(), _complete_serial(), serial_ranges.c.start, serial_ranges.c.end)
    one_row = select(literal(1).label("number")).subquery("sent")  # a row even if no range is unsealed
    rows = connection.execute(query.select_from(one_row.outerjoin(serial_ranges, is_unsealed))).all()
    end, complete = rows[0][:2]
    return Seals(end, tuple(SerialRange(start, stop) for _, _, start, stop in rows if start is not None), complete)


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
        visited=row["visited"],
    )


def log_changes(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> int:
    """Log changes, given as rows of the table without a sequence. Return how many were not logged before.

    Dumps that are opened from now on contain a late change. A late change that is logged again also gets the newest
    dump sequence, since its data may differ. The caller has the state's shared lock, and opening a dump takes
    the exclusive lock.
    """
    new = insert_missing(connection, changes, rows)
    if late := [row for row in rows if row["logged_serial"] > max(row["serial"], 1)]:
        key = ("distribution_id", "serial", "cause", "logged_serial")
        sequence = select(catalog_state.c.next_dump_sequence).scalar_subquery()
        known = update(changes).where(*(changes.c[name] == bindparam(f"of_{name}") for name in key))
        connection.execute(
            known.values(dump_sequence=sequence), [{f"of_{name}": row[name] for name in key} for row in late]
        )
    return new
