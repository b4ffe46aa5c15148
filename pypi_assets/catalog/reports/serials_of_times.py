"""Which serial the index was at, at a time, and when a serial was."""

import math
from datetime import UTC, datetime

from sqlalchemy import Connection, func, select

from pypi_assets.catalog.tables import events, full_crawls

_DISORDER = 100_000
"""Over how many serials times may run backwards: it is some days of the largest index."""


def serial_at(connection: Connection, moment: datetime, complete: int) -> int | None:
    """The greatest serial up to `complete` all of whose predecessors are not later than `moment`; None where the first
    known event is later, and where none is known and no full crawl had begun by then.

    It takes some twenty statements, and one over the serials before.
    """
    seconds = moment.timestamp()
    later = _some_later(connection, seconds, complete)
    around = events.c.serial.between(later - _DISORDER, later)
    first = connection.scalar(select(func.min(events.c.serial)).where(around, events.c.timestamp > seconds))
    found = complete if first is None else int(first) - 1
    if connection.scalar(select(events.c.serial).where(events.c.serial <= found).limit(1)) is not None:
        return found
    crawled_before = select(full_crawls.c.id).where(full_crawls.c.opened_at <= seconds).limit(1)
    return found if first is None and connection.scalar(crawled_before) is not None else None


def time_of(connection: Connection, serial: int) -> datetime | None:
    """The time of the last event up to `serial`; None where none is known."""
    query = select(events.c.timestamp).where(events.c.serial <= serial).order_by(events.c.serial.desc()).limit(1)
    seconds = connection.scalar(query)
    return None if seconds is None else datetime.fromtimestamp(float(seconds), UTC)


def first_answered_time(connection: Connection, exact_from: int) -> datetime | None:
    """The first whole second that means a serial from `exact_from` on; None where no event is known."""
    query = select(events.c.timestamp).order_by(events.c.serial).limit(1)
    first = time_of(connection, exact_from)
    seconds = connection.scalar(query) if first is None else first.timestamp()
    return None if seconds is None else datetime.fromtimestamp(math.ceil(seconds), UTC)


def _some_later(connection: Connection, seconds: float, complete: int) -> int:
    """The serial of the first event later than `seconds`, as far as times run forwards; else the complete serial."""
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
