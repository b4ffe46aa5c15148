"""Encodes the changelog's XML-RPC calls and decodes the answers. Requests are sent in `client.py`."""

import re
import xmlrpc.client
from collections.abc import Iterable
from xml.parsers.expat import ExpatError

from defusedxml.common import DefusedXmlException
from defusedxml.xmlrpc import DefusedExpatParser

from pypi_assets.index.counts import is_count
from pypi_assets.index.errors import RefusedError, TransientError
from pypi_assets.index.models import LONGEST_NAME, ChangelogEvent

MAX_FAULT_CHARACTERS = 300
_RESET = re.compile(r"reset in (\d{1,6}) second")
_UNAVAILABLE = -32403
_SERVER_ERROR = -32500


def call_body(method: str, *params: int) -> bytes:
    """The body of the request that calls `method`."""
    return xmlrpc.client.dumps(params, method).encode()


def read_answer(chunks: Iterable[bytes], url: str) -> object:
    """The value of an XML-RPC answer that comes in `chunks`.

    Raises TransientError for broken XML and for transient faults (too many requests, unavailable). Raises RefusedError
    for every other fault and for a document type, which no XML-RPC answer has and entity bombs need.
    """
    target = xmlrpc.client.Unmarshaller()
    parser = DefusedExpatParser(target, forbid_dtd=True)
    try:
        for chunk in chunks:
            parser.feed(chunk)
        parser.close()
        values = target.close()
    except xmlrpc.client.Fault as fault:
        raise _fault_error(fault, url) from fault
    except DefusedXmlException as error:
        raise RefusedError("the XML-RPC answer declares a document type or entities", url) from error
    except (ExpatError, xmlrpc.client.Error, ArithmeticError, LookupError, TypeError, ValueError) as error:
        # The unmarshaller lets through whatever a conversion raises on a value that does not fit its tag.
        raise TransientError(f"a broken XML-RPC answer: {type(error).__name__}", url) from error
    if len(values) != 1:
        raise TransientError(f"an XML-RPC answer of {len(values)} values instead of one", url)
    return values[0]


def _fault_error(fault: xmlrpc.client.Fault, url: str) -> TransientError | RefusedError:
    text = str(fault.faultString)[:MAX_FAULT_CHARACTERS]
    if fault.faultCode == _SERVER_ERROR and "HTTPTooManyRequests" in text:
        reset = _RESET.search(text)
        return TransientError(f"too many requests: {text}", url, float(reset[1]) if reset else None)
    if fault.faultCode == _UNAVAILABLE:
        return TransientError(f"unavailable: {text}", url)
    return RefusedError(f"XML-RPC fault {fault.faultCode}: {text}", url)


def read_last_serial(value: object, url: str) -> int:
    """The last serial; 0 for the nil of an empty index. Raises RefusedError for anything else than a number."""
    if value is None:
        return 0
    if not is_count(value):
        raise RefusedError("changelog breaks the protocol: the last serial is not a number", url)
    return value


def read_events(value: object, since: int, url: str) -> list[ChangelogEvent]:
    """The events of one page of the changelog. Raises RefusedError unless types fit and serials ascend from `since`."""
    if not isinstance(value, list):
        raise RefusedError("changelog breaks the protocol: not a list of rows", url)
    events: list[ChangelogEvent] = []
    for row in value:
        event = _read_event(row)
        previous = events[-1].serial if events else since
        if event is None or event.serial <= previous:
            wrong = "is no event" if event is None else "does not ascend"
            raise RefusedError(f"changelog breaks the protocol: the row after serial {previous} {wrong}", url)
        events.append(event)
    return events


def _read_event(row: object) -> ChangelogEvent | None:
    match row:
        case [str(name), None | str() as version, int(timestamp), str(action), int(serial)] if (
            0 < len(name) <= LONGEST_NAME
            and len(version or "") <= LONGEST_NAME
            and not isinstance(timestamp, bool)
            and is_count(serial)
        ):
            return ChangelogEvent(name, version, timestamp, action, serial)
    return None
