"""Find the serial of a moment, which people name by a serial or a time, and the serials that have answers."""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from sqlalchemy import ColumnElement, Connection, Table, exists, func, select

from pypi_assets.catalog.database import Catalog, CatalogError, storable
from pypi_assets.catalog.ledger.epochs import epoch_of
from pypi_assets.catalog.ledger.range_ledger import complete_serial, inexact_spans
from pypi_assets.catalog.reports.listed_times import crawled_at, first_look_after, look_before
from pypi_assets.catalog.tables import (
    catalog_state,
    distributions,
    events,
    full_crawls,
    live_intervals,
    projects,
    yanked_intervals,
)
from pypi_assets.catalog.work.full_crawls import has_baseline
from pypi_assets.errors import InexactMomentError

_T = TypeVar("_T")


class InexactSerialError(CatalogError, InexactMomentError):
    """The catalog has no exact answer at a serial. The message names the serials that have one."""


def pinned_answer(catalog: Catalog, serial: int, answer: Callable[[], _T]) -> tuple[_T, int]:
    """Return the result of `answer` about `serial`, and the epoch to which it belongs.

    `answer` is called again if something visible at the serial changed in the meantime.
    """
    before = _epoch(catalog, serial)
    while True:
        found = answer()
        after = _epoch(catalog, serial)
        if after == before:
            return found, after
        before = after


def _epoch(catalog: Catalog, serial: int) -> int:
    with catalog.read() as connection:
        return epoch_of(connection, serial)


def first_exact_serial(connection: Connection) -> int | None:
    """Return the least serial with an answer; None before a full crawl is complete."""
    if not has_baseline(connection):
        return None
    return connection.scalar(select(catalog_state.c.exact_from)) or 0


def answerable_serial(catalog: Catalog, serial: int | None = None) -> int:
    """Return the serial at which a question about `serial` (None: the complete serial) is answered.

    Raises InexactSerialError, with the answerable serials, if the catalog is not exact at `serial`, and CatalogError if
    no full crawl is complete.
    """
    with catalog.read() as connection:
        exact_from = first_exact_serial(connection)
        if exact_from is None:
            raise CatalogError(
                "no full crawl is complete, so there are no answers yet: run `pypi-assets crawl full`, or"
                " `pypi-assets scope run` if you have created a scope"
            )
        complete = complete_serial(connection)
        spans = [] if serial is None else inexact_spans(connection, around=serial)
    if serial is None:
        return complete
    if exact_from <= serial <= complete and spans:
        raise InexactSerialError(
            f"there is no answer for serial {serial}: between serials {spans[0].start} and {spans[-1].end}, only the"
            " list of projects showed changes, and no events are known; use one of these two serials, or"
            " follow the changelog once it works again (`pypi-assets crawl incremental`)"
        )
    if exact_from <= serial <= complete:
        return serial
    if exact_from > complete:
        raise InexactSerialError(
            f"there is no answer for serial {serial} yet: the catalog is exact from serial {exact_from} on, and"
            f" complete up to {complete}; run `pypi-assets crawl incremental`"
        )
    answerable = f"serial {complete}" if exact_from == complete else f"serials {exact_from} to {complete}"
    raise InexactSerialError(f"there is no answer for serial {serial}, only for {answerable}")


_DISORDER = 100_000
"""The number of serials within which times may be out of order: some days of the largest index."""


def serial_at(connection: Connection, moment: datetime, complete: int) -> int | None:
    """Return the greatest serial up to `complete` such that no event up to it is later than `moment`.

    Where only the list of projects was followed, the serial is that of the last list that was compared by then, since
    later changes may be of a later time. Return None if the first known event is later, or if no event is known and no
    full crawl had begun by then. It takes about twenty statements.
    """
    seconds = moment.timestamp()
    look = first_look_after(connection, seconds, complete)
    complete = complete if look is None else look
    later = _some_later(connection, seconds, complete)
    around = events.c.serial.between(later - _DISORDER, later)
    first = connection.scalar(select(func.min(events.c.serial)).where(around, events.c.timestamp > seconds))
    found = complete if first is None else int(first) - 1
    if connection.scalar(select(events.c.serial).where(events.c.serial <= found).limit(1)) is not None:
        return found
    crawled_before = select(full_crawls.c.id).where(full_crawls.c.opened_at <= seconds).limit(1)
    return found if first is None and connection.scalar(crawled_before) is not None else None


def time_of(connection: Connection, serial: int) -> datetime | None:
    """Return the time of the last event up to `serial`; None if no event is known.

    Where only the list of projects was followed, it is the time of the look that showed the serial: the last event was
    not later. Without any events, the first look is the full crawl.
    """
    query = select(events.c.timestamp).where(events.c.serial <= serial).order_by(events.c.serial.desc()).limit(1)
    seconds = connection.scalar(query)
    look = look_before(connection, serial)
    if seconds is None and look is None and not connection.scalar(select(exists(select(events.c.serial)))):
        look = crawled_at(connection, serial)
    known = [float(one) for one in (seconds, look) if one is not None]
    return datetime.fromtimestamp(max(known), UTC) if known else None


def first_answered_time(connection: Connection, exact_from: int) -> datetime | None:
    """Return the first whole second that means a serial of at least `exact_from`; None if no time is known."""
    query = select(events.c.timestamp).order_by(events.c.serial).limit(1)
    first = time_of(connection, exact_from)
    seconds = connection.scalar(query) if first is None else first.timestamp()
    return None if seconds is None else datetime.fromtimestamp(math.ceil(seconds), UTC)


def _some_later(connection: Connection, seconds: float, complete: int) -> int:
    """Find by binary search the serial of the first event later than `seconds`, if times are in order.

    Return the complete serial if there is no such event.
    """
    least, greatest, later = 0, complete, complete
    while least <= greatest:
        middle = (least + greatest) // 2
        query = select(events.c.serial, events.c.timestamp).where(events.c.serial.between(middle, greatest))
        row = connection.execute(query.order_by(events.c.serial).limit(1)).first()
        if row is None:
            greatest = middle - 1
        elif row.timestamp > seconds:
            later, greatest = int(row.serial), middle - 1
        else:
            least = int(row.serial) + 1
    return later


Moment = int | datetime
"""A serial, or an aware time."""
TIME_PATTERN = r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}(:[0-9]{2})?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
MOMENT_ACCEPTS = "a serial (1350), or a time in UTC (2026-03-03, 2026-03-03T12:00:00Z)"
_SERIAL, _TIME = re.compile(r"[0-9]{1,18}"), re.compile(TIME_PATTERN)


class NoMomentError(ValueError):
    """A text is neither a serial nor a time. `is_time`: it looks like a time, such as 2026-02-30."""

    def __init__(self, text: str, *, is_time: bool) -> None:
        super().__init__(f"{text} is not a valid time" if is_time else f"{text!r:.100} is neither a serial nor a time")
        self.is_time = is_time


def parse_moment(text: str) -> Moment:
    """Return the moment that `text` names. A time without a zone is in UTC. Raises NoMomentError.

    >>> parse_moment("2026-03-03")
    datetime.datetime(2026, 3, 3, 0, 0, tzinfo=datetime.timezone.utc)
    """
    if _SERIAL.fullmatch(text):
        return int(text)
    if not _TIME.fullmatch(text):
        raise NoMomentError(text, is_time=False)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise NoMomentError(text, is_time=True) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def moment_text(moment: datetime) -> str:
    """Return an aware time in ISO 8601, in a form that `parse_moment` reads.

    >>> moment_text(datetime(2026, 3, 3, tzinfo=UTC))
    '2026-03-03T00:00:00Z'
    """
    return moment.isoformat().replace("+00:00", "Z")


def serial_of(catalog: Catalog, moment: Moment | None) -> int:
    """Return the serial at which a question about `moment` is answered; None means the complete serial.

    A time means the greatest serial such that no event up to it is later. Raises InexactSerialError if the catalog is
    not exact there, or if the time is in the future or before the first known event. For a span that only the list of
    projects showed, a time means the last list before it.
    """
    if moment is None or isinstance(moment, int):
        return answerable_serial(catalog, moment)
    complete = answerable_serial(catalog)
    if moment.timestamp() > catalog.clock():
        raise InexactSerialError(f"{moment_text(moment)} is in the future")
    with catalog.read() as connection:
        serial = serial_at(connection, moment, complete)
        first = first_answered_time(connection, first_exact_serial(connection) or 0) if serial is None else None
    if serial is None:
        since = "" if first is None else f"; the first time with an answer is {moment_text(first)}"
        raise InexactSerialError(f"{moment_text(moment)} is before the first known event of the index{since}")
    return answerable_serial(catalog, serial)


def first_and_last_serial(connection: Connection, normalized: str, serial: int) -> tuple[int | None, int | None]:
    """Return the serials of the first and the last change of a project's files up to `serial`; None if there is none.

    A change is that a file was added, removed, yanked or unyanked.
    """
    found = [
        _ends_of(connection, intervals, end, normalized, serial)
        for intervals in (live_intervals, yanked_intervals)
        for end in (intervals.c.start, intervals.c.end)
    ]
    serials = [one for ends in found for one in ends if one is not None]
    return min(serials, default=None), max(serials, default=None)


def _ends_of(
    connection: Connection, intervals: Table, end: ColumnElement[int], normalized: str, serial: int
) -> tuple[int | None, ...]:
    """Return the least and the greatest of these ends up to `serial`."""
    query = (
        select(func.min(end), func.max(end))
        .select_from(intervals)
        .join(distributions, distributions.c.id == intervals.c.distribution_id)
        .join(projects, projects.c.id == distributions.c.project_id)
        .where(projects.c.normalized == storable(normalized), end <= serial)
    )
    return tuple(connection.execute(query).one())
