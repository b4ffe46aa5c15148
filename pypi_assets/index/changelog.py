"""Encodes XML-RPC calls to the changelog and decodes the answers. `client.py` sends the requests."""

import re
import sys
import xmlrpc.client
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from xml.parsers.expat import ExpatError

from defusedxml.common import DefusedXmlException
from defusedxml.xmlrpc import DefusedExpatParser

from pypi_assets.index.errors import RefusedError, TransientError
from pypi_assets.index.models import (
    LONGEST_ACTION,
    LONGEST_NAME,
    ChangelogEvent,
    ChangelogRow,
    broken_entry,
    is_count,
    require_few,
)

MAX_FAULT_CHARACTERS = 300
_RESET = re.compile(r"reset in (\d{1,6}) second")
_NUMBER = re.compile(r"\s*+[-+]?[0-9]++\s*+")
_NUMBER_TAGS = ("int", "i1", "i2", "i4", "i8", "biginteger")
_OUT_OF_BOUNDS = 2**63
_UNAVAILABLE = -32403
_SERVER_ERROR = -32500
_LAST_TIME = 253_402_300_799
"""The end of the year 9999 in unix seconds. Later times cannot be displayed as dates."""


class _Unmarshaller(xmlrpc.client.Unmarshaller):
    """Accepts numbers that are too long for Python to convert, so that one such number breaks only its own row."""

    def __init__(self) -> None:
        super().__init__()
        self.dispatch = {**self.dispatch, **dict.fromkeys(_NUMBER_TAGS, _end_number)}


def _end_number(target: xmlrpc.client.Unmarshaller, data: str) -> None:
    is_long = len(data) > sys.int_info.str_digits_check_threshold and _NUMBER.fullmatch(data)
    target.append(_OUT_OF_BOUNDS if is_long else int(data))
    target._value = False


def call_body(method: str, *params: int) -> bytes:
    """Return the body of a request that calls `method`."""
    return xmlrpc.client.dumps(params, method).encode()


UNMARSHAL_ERRORS = (ExpatError, xmlrpc.client.Error, ArithmeticError, LookupError, TypeError, ValueError)
"""The errors of broken XML-RPC. If a value does not fit its tag, the error is the same as of the value's conversion."""


def unmarshal(chunks: Iterable[bytes]) -> tuple[Sequence[object], str | None]:
    """Return the values of an XML-RPC call or answer that arrives in `chunks`, and the method of a call.

    Raises a Fault of the answer, DefusedXmlException for a document type declaration, and UNMARSHAL_ERRORS.
    """
    target = _Unmarshaller()
    parser = DefusedExpatParser(target, forbid_dtd=True)
    for chunk in chunks:
        parser.feed(chunk)
    parser.close()
    return target.close(), target.getmethodname()


def read_answer(chunks: Iterable[bytes], url: str) -> object:
    """Return the value of an XML-RPC answer that arrives in `chunks`.

    Raises TransientError for broken XML and for transient faults (too many requests, unavailable). Raises RefusedError
    for any other fault, and for a document type declaration: entity bombs need one, and valid XML-RPC answers have
    none.
    """
    try:
        values, _ = unmarshal(chunks)
    except xmlrpc.client.Fault as fault:
        raise _fault_error(fault, url) from fault
    except DefusedXmlException as error:
        raise RefusedError("the XML-RPC answer declares a document type or entities", url) from error
    except UNMARSHAL_ERRORS as error:
        raise TransientError(f"a broken XML-RPC answer: {type(error).__name__}", url) from error
    if len(values) != 1:
        raise TransientError(f"an XML-RPC answer of {len(values)} values instead of one", url)
    return values[0]


def _fault_error(fault: xmlrpc.client.Fault, url: str) -> TransientError | RefusedError:
    text = fault.faultString[:MAX_FAULT_CHARACTERS] if isinstance(fault.faultString, str) else "without a text"
    if fault.faultCode == _SERVER_ERROR and "HTTPTooManyRequests" in text:
        reset = _RESET.search(text)
        return TransientError(f"too many requests: {text}", url, float(reset[1]) if reset else None)
    if fault.faultCode == _UNAVAILABLE:
        return TransientError(f"unavailable: {text}", url)
    code = fault.faultCode if isinstance(fault.faultCode, int) and abs(fault.faultCode) < _OUT_OF_BOUNDS else "?"
    return RefusedError(f"XML-RPC fault {code}: {text}", url)


def read_last_serial(value: object, url: str) -> int:
    """Return the last serial, or 0 for the nil of an empty index. Raises RefusedError for anything but a number."""
    if value is None:
        return 0
    if not is_count(value):
        raise RefusedError("changelog breaks the protocol: the last serial is not a number", url)
    return value


def read_events(value: object, since: int, url: str) -> list[ChangelogRow]:
    """Return the rows of one changelog page in order: events with serials ascending from `since`, and broken rows.

    A row is broken if its types are wrong or if its serial does not ascend. Raises RefusedError if `value` is not a
    list, or if too many rows are broken.
    """
    if not isinstance(value, list):
        raise RefusedError("changelog breaks the protocol: not a list of rows", url)
    ascending = _ascending([_usable_serial(row) for row in value], since)
    rows: list[ChangelogRow] = []
    broken, previous = 0, since
    for position, row in enumerate(value):
        serial = ascending.get(position)
        event = None if serial is None else read_event(row)
        if event is None:
            problem = "it does not ascend" if serial is None and read_event(row) else "it is no event"
            rows.append(broken_entry(problem, row, name=_name_of(row), serial=serial, after=previous))
            broken += 1
        else:
            rows.append(event)
        previous = previous if serial is None else serial
    require_few(broken, len(rows) - broken, "changelog", url)
    return rows


def read_event(row: object) -> ChangelogEvent | None:
    """Return the event of a row `[name, version, timestamp, action, serial]`, or None if the row is broken."""
    match row:
        case [str(name), None | str() as version, int(timestamp), str(action), int(serial)] if (
            0 < len(name) <= LONGEST_NAME
            and len(version or "") <= LONGEST_NAME
            and len(action) <= LONGEST_ACTION
            and is_count(timestamp)
            and timestamp <= _LAST_TIME
            and is_count(serial)
        ):
            return ChangelogEvent(name, version, timestamp, action, serial)
    return None


def _name_of(row: object) -> str | None:
    match row:
        case [str(name), *_] if 0 < len(name) <= LONGEST_NAME:
            return name
    return None


def _usable_serial(row: object) -> int | None:
    match row:
        case [_, _, _, _, serial] if is_count(serial):
            return serial
    return None


def _ascending(serials: Sequence[int | None], since: int) -> dict[int, int]:
    """Return the longest ascending sequence of serials above `since`, as a map from position to serial.

    So if one serial is far too large, only its own row is broken, and not the rows after it.
    """
    # for each length of a sequence, the position at which the sequence with the smallest last serial ends
    ends: list[int] = []
    least: list[int] = []
    before: dict[int, int] = {}
    for position, serial in enumerate(serials):
        if serial is None or serial <= since:
            continue
        length = bisect_left(least, serial)
        if length < len(least) and least[length] == serial:
            continue  # of two equal serials, the first counts
        if length:
            before[position] = ends[length - 1]
        ends[length : length + 1] = [position]
        least[length : length + 1] = [serial]
    found: dict[int, int] = {}
    end = ends[-1] if ends else None
    while end is not None:
        found[end] = serials[end] or 0
        end = before.get(end)
    return found
