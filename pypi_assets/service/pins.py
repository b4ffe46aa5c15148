"""Answers at a serial: `/at/SERIAL/...` leads to `/at/SERIAL.EPOCH/...`, which never changes.

The epoch of a serial is that of the last change of anything visible there (docs/design.md, rule 13).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.ledger.epochs import epoch_of
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.reports.moments import (
    TIME_PATTERN,
    InexactSerialError,
    Moment,
    NoMomentError,
    first_answered_time,
    first_exact_serial,
    moment_text,
    parse_moment,
    serial_of,
    time_of,
)
from pypi_assets.service.problems import ProblemError, bad_parameter, unavailable
from pypi_assets.service.responses import Lasting, StreamedAnswer, WholeAnswer, redirect
from pypi_assets.service.service import Service
from pypi_assets.times import utc_text

PIN_ACCEPTS = (
    "a serial (1350), a serial with its epoch (1350.1350), or a time in UTC (2026-03-03, 2026-03-03T12:00:00Z)"
)
NOT_EXACT = 409
"""The status where a moment has no exact answer. Installers print the text of a problem with it. Of a 404 they say that
there is no such project, whatever its text."""
GONE = 410
"""The status where the epoch that is named is over."""
_SERIAL_PATTERN = r"([0-9]{1,18})(?:\.([0-9]{1,18}))?"
PIN_PATTERN = f"^({_SERIAL_PATTERN}|{TIME_PATTERN})$"
_SERIAL = re.compile(_SERIAL_PATTERN)
_AT = re.compile(rb"/at/[^/]*/")


@dataclass(frozen=True, slots=True)
class PinnedMoment:
    """What `/at/...` names: a serial or a time; the serial's epoch, if that is named; and options after commas."""

    moment: Moment
    epoch: int | None
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pinned:
    """An exact serial of the catalog, with its epoch and its time, for handlers of answers there."""

    catalog: Catalog
    serial: int
    epoch: int
    at: datetime | None
    options: tuple[str, ...] = ()

    @property
    def time(self) -> str | None:
        """The time of the serial in ISO 8601; None if none is known."""
        return None if self.at is None else utc_text(self.at.timestamp())


def parse_pin(text: str) -> PinnedMoment:
    """What the text between `/at/` and the next slash means. Raises a ProblemError."""
    pinned, *options = text.split(",")
    if match := _SERIAL.fullmatch(pinned):
        return PinnedMoment(int(match[1]), None if match[2] is None else int(match[2]), tuple(options))
    try:
        return PinnedMoment(parse_moment(pinned), None, tuple(options))
    except NoMomentError as error:
        if error.is_time:
            raise ProblemError(NOT_EXACT, "not-exact", str(error), parameter="at", accepts=PIN_ACCEPTS) from None
        raise bad_parameter("at", str(error), PIN_ACCEPTS) from None


def answer_at(
    service: Service,
    pin: PinnedMoment,
    raw_path: bytes,
    query: bytes,
    answer: Callable[[Pinned], WholeAnswer | StreamedAnswer],
    known: WholeAnswer | None = None,
) -> WholeAnswer | StreamedAnswer:
    """What `answer` returns at the pinned serial: immutable. Without an epoch in the pin, a redirect to the one there.
    `known` is the answer of before, which still holds if the epoch of its serial is the one in the pin.

    Raises a ProblemError: 409 where the catalog is not exact at the serial, or it never had this epoch; 410 where the
    epoch is over; 503 where a mirror has not replayed it yet.
    """
    catalog = service.require_catalog()
    if known is not None and known.serial is not None:  # which was exact then
        with catalog.read() as connection:
            if epoch_of(connection, known.serial) == pin.epoch:
                return known
    serial = exact_serial(service, catalog, pin.moment)
    with catalog.read() as connection:
        epoch, at = epoch_of(connection, serial), time_of(connection, serial)
    if pin.epoch is None:
        return _redirect(
            pin, raw_path, query, f"{serial}.{epoch}" if isinstance(pin.moment, int) else f"{serial}", serial
        )
    _require_epoch(pin, serial, epoch)
    found = answer(Pinned(catalog, serial, epoch, at, pin.options))
    with catalog.read() as connection:
        _require_epoch(pin, serial, epoch_of(connection, serial))  # nothing changed while it was made
    found.serial = serial
    if found.status == 200 and found.lasting == Lasting.SHORT:
        found.lasting, found.modified = Lasting.IMMUTABLE, at
    return found


def _redirect(pin: PinnedMoment, raw_path: bytes, query: bytes, to: str, serial: int) -> WholeAnswer:
    """A redirect to the same path below `to`. It is relative, so it holds behind any prefix."""
    below = _AT.sub(b"", raw_path, count=1)
    up = b"../" * (below.count(b"/") + 1)
    place = up + ",".join((to, *pin.options)).encode() + b"/" + below
    found = redirect((place + (b"?" + query if query else b"")).decode("latin-1"))
    found.serial = serial
    return found


def _require_epoch(pin: PinnedMoment, serial: int, epoch: int) -> None:
    if pin.epoch is None or pin.epoch == epoch:
        return
    if serial <= pin.epoch < epoch:
        raise ProblemError(
            GONE,
            "gone",
            f"the epoch {pin.epoch} of serial {serial} is over: what is known of it has changed, and /at/{serial}/"
            " leads to the epoch that it has now",
            parameter="at",
        )
    raise ProblemError(
        NOT_EXACT,
        "not-exact",
        f"serial {serial} has no epoch {pin.epoch}: /at/{serial}/ leads to the one that it has",
        parameter="at",
    )


def exact_serial(service: Service, catalog: Catalog, moment: Moment, parameter: str = "at") -> int:
    """The serial at which a question about `moment`, the value of `parameter`, is answered.

    Raises a ProblemError: NOT_EXACT where the catalog is not exact there, 503 where a mirror has not replayed it yet.
    """
    reached, end = _replayed(service, catalog)
    if isinstance(moment, int) and reached < moment <= end:
        raise _not_replayed(f"serial {moment}", reached, end)
    try:
        serial = serial_of(catalog, moment)
    except InexactSerialError as error:
        raise _not_exact(catalog, str(error), parameter) from None
    except CatalogError:
        if end:
            raise _not_replayed(str(moment), reached, end) from None
        raise
    if not isinstance(moment, int) and serial == reached < end:  # what is not replayed yet can be of that time
        raise _not_replayed(moment_text(moment), reached, end)
    return serial


def _not_exact(catalog: Catalog, detail: str, parameter: str) -> ProblemError:
    """The problem of a moment without an exact answer, which names the first one that has one."""
    with catalog.read() as connection:
        serial = first_exact_serial(connection)
        at = None if serial is None else first_answered_time(connection, serial)
    first_time = None if at is None else utc_text(at.timestamp())
    if serial is not None:
        detail += f". The first moment with an answer is /at/{serial}/" + (
            f", or /at/{first_time}/" if first_time else ""
        )
    return ProblemError(NOT_EXACT, "not-exact", detail, parameter=parameter, first_serial=serial, first_time=first_time)


def _replayed(service: Service, catalog: Catalog) -> tuple[int, int]:
    """How far a mirror has replayed the journal, and how far it will; 0 and 0 where this is no mirror."""
    if service.journal_end is None:
        return 0, 0
    with catalog.read() as connection:
        return complete_serial(connection), service.journal_end


def _not_replayed(what: str, reached: int, end: int) -> ProblemError:
    return unavailable(
        f"this mirror has replayed the journal up to serial {reached} of {end}: the answer at {what} is there once it"
        " has come that far",
        "not-replayed-yet",
    )
