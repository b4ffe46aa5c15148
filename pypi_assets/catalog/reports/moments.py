"""Moments as people name them, and the serial that each means: a serial itself, or a time."""

import re
from datetime import UTC, datetime

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reports.answerable_serials import NotExactError, answerable_serial, first_exact_serial
from pypi_assets.catalog.reports.serials_of_times import first_answered_time, serial_at

Moment = int | datetime
"""A serial, or an aware time."""
TIME_PATTERN = r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}(:[0-9]{2})?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
MOMENT_ACCEPTS = "a serial (1350), or a time in UTC (2026-03-03, 2026-03-03T12:00:00Z)"
_SERIAL, _TIME = re.compile(r"[0-9]{1,18}"), re.compile(TIME_PATTERN)


class NoMomentError(ValueError):
    """A text that is neither a serial nor a time. `is_time`: it looks like a time, such as 2026-02-30."""

    def __init__(self, text: str, *, is_time: bool) -> None:
        super().__init__(f"{text} is no time" if is_time else f"{text!r:.100} is neither a serial nor a time")
        self.is_time = is_time


def parse_moment(text: str) -> Moment:
    """The moment that `text` names. A time without a zone is in UTC. Raises NoMomentError.

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
    """Return an aware time in ISO 8601, as `parse_moment` reads it.

    >>> moment_text(datetime(2026, 3, 3, tzinfo=UTC))
    '2026-03-03T00:00:00Z'
    """
    return moment.isoformat().replace("+00:00", "Z")


def serial_of(catalog: Catalog, moment: Moment | None) -> int:
    """The serial at which a question about `moment` is answered; None: the complete serial.

    A time means the greatest serial all of whose predecessors are not later. Raises NotExactError where the catalog is
    not exact there: also for a time in the future, and for one before the first known event.
    """
    if moment is None or isinstance(moment, int):
        return answerable_serial(catalog, moment)
    complete = answerable_serial(catalog)
    if moment.timestamp() > catalog.clock():
        raise NotExactError(f"{moment_text(moment)} is in the future")
    with catalog.read() as connection:
        serial = serial_at(connection, moment, complete)
        first = first_answered_time(connection, first_exact_serial(connection) or 0) if serial is None else None
    if serial is None:
        since = "" if first is None else f"; the first time with an answer is {moment_text(first)}"
        raise NotExactError(f"{moment_text(moment)} is before the first known event of the index{since}")
    return answerable_serial(catalog, serial)
