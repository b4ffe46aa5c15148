"""Answers at a serial: `/at/SERIAL/...` redirects to `/at/SERIAL.EPOCH/...`, whose answers never change.

The epoch of a serial changes whenever anything visible at the serial changes (docs/design.md, rule 13).
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
"""The status if a moment has no exact answer.

Installers print the detail of a problem with this status. For a 404, they always report a missing project instead.
"""
GONE = 410
"""The status if the epoch in the path has expired."""
_SERIAL_PATTERN = r"([0-9]{1,18})(?:\.([0-9]{1,18}))?"
PIN_PATTERN = f"^({_SERIAL_PATTERN}|{TIME_PATTERN})$"
_SERIAL = re.compile(_SERIAL_PATTERN)
_AT = re.compile(rb"/at/[^/]*/")


@dataclass(frozen=True, slots=True)
class PinnedMoment:
    """The content of the path segment after `/at/`: a serial or a time, an epoch if given, and options after commas."""

    moment: Moment
    epoch: int | None
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pinned:
    """An exact serial of the catalog with its epoch and time, for handlers that answer at this serial."""

    catalog: Catalog
    serial: int
    epoch: int
    at: datetime | None
    options: tuple[str, ...] = ()

    @property
    def time(self) -> str | None:
        """Return the time of the serial in ISO 8601, or None if it is unknown."""
        return None if self.at is None else utc_text(self.at.timestamp())


def parse_pin(text: str) -> PinnedMoment:
    """Parse the text between `/at/` and the next slash. Raises a ProblemError."""
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
    """Return the result of `answer` at the pinned serial, marked immutable, or a redirect if the pin has no epoch.

    `known` is a cached answer. It is still valid if the epoch of its serial is the epoch in the pin. Raises a
    ProblemError: 409 if the catalog is not exact at the serial or the serial never had this epoch, 410 if the epoch has
    expired, 503 if a mirror has not replayed the serial yet.
    """
    catalog = service.require_catalog()
    if known is not None and known.serial is not None:  # the serial was exact when the answer was cached
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
        _require_epoch(pin, serial, epoch_of(connection, serial))  # nothing changed in the meantime
    found.serial = serial
    if found.status == 200 and found.lasting == Lasting.SHORT:
        found.lasting, found.modified = Lasting.IMMUTABLE, at
    return found


def _redirect(pin: PinnedMoment, raw_path: bytes, query: bytes, to: str, serial: int) -> WholeAnswer:
    """Return a redirect to the same path below `to`. It is relative, so it works behind any prefix."""
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
            f"the epoch {pin.epoch} of serial {serial} has expired, because the data at this serial have changed:"
            f" /at/{serial}/ leads to the current epoch",
            parameter="at",
        )
    raise ProblemError(
        NOT_EXACT,
        "not-exact",
        f"serial {serial} has no epoch {pin.epoch}: /at/{serial}/ leads to its current epoch",
        parameter="at",
    )


def exact_serial(service: Service, catalog: Catalog, moment: Moment, parameter: str = "at") -> int:
    """Return the serial that answers a question about `moment`, the value of `parameter`.

    Raises a ProblemError: NOT_EXACT if the catalog is not exact there, 503 if a mirror has not replayed the serial yet.
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
    if not isinstance(moment, int) and serial == reached < end:  # later changes can be of that time
        raise _not_replayed(moment_text(moment), reached, end)
    return serial


def _not_exact(catalog: Catalog, detail: str, parameter: str) -> ProblemError:
    """Return the problem of a moment without an exact answer. It names the first moment that has one."""
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
    """Return how far a mirror has replayed the journal, and how far it will; (0, 0) if this is not a mirror."""
    if service.journal_end is None:
        return 0, 0
    with catalog.read() as connection:
        return complete_serial(connection), service.journal_end


def _not_replayed(what: str, reached: int, end: int) -> ProblemError:
    return unavailable(
        f"this mirror has replayed the journal up to serial {reached} of {end}: try the answer at {what} again once"
        " it is replayed",
        "not-replayed-yet",
    )
