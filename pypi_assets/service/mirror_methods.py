"""The route of XML-RPC, with the methods that mirrors of an index call.

Faults have the codes of PyPI, and the status 200. Long answers are streamed.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import orjson
from msgspec import Meta
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.reports.moments import answerable_serial
from pypi_assets.catalog.reports.project_list import projects_at
from pypi_assets.journal.cursors import Cursor
from pypi_assets.journal.journal_errors import NoJournalError
from pypi_assets.service.changes import NO_JOURNAL, journal_problems
from pypi_assets.service.index_events import GapError, last_event_serial, next_events
from pypi_assets.service.operations import Call, Endpoint, Operation, cut_off, require_plain_body
from pypi_assets.service.parameters import NoParameters
from pypi_assets.service.problems import ProblemError
from pypi_assets.service.responses import Lasting, StreamedAnswer, WholeAnswer
from pypi_assets.service.service import Service
from pypi_assets.service.xmlrpc_messages import (
    MEDIA_TYPE,
    UNAVAILABLE,
    UNKNOWN_METHOD,
    WRONG_ARGUMENT,
    FaultError,
    MethodCall,
    Value,
    parse_call,
    render_fault,
    render_members,
    render_rows,
    render_texts,
    render_value,
)
from pypi_assets.storage.store import StorageError

PAGE_ROWS = 50_000
"""The most events in one answer, as on PyPI."""
_MOST_CALL_BYTES = 64 * 1024
_CONTENT_TYPE = f"{MEDIA_TYPE}; charset=utf-8"
Answer = WholeAnswer | StreamedAnswer
CallText = Annotated[str, Meta(description=f"a methodCall of XML-RPC, up to {_MOST_CALL_BYTES} bytes")]


def _last_serial(service: Service, call: MethodCall) -> Answer:
    call.integers()
    return _whole(render_value(last_event_serial(service)))


def _since_serial(service: Service, call: MethodCall) -> Answer:
    [serial] = call.integers("serial")
    since = max(serial, 0)
    try:
        batch = next_events(service, Cursor.after_serial(since), PAGE_ROWS)
    except GapError as error:
        raise FaultError(WRONG_ARGUMENT, f"client error; serial: {error}") from None
    return _streamed(render_rows(map(_row, batch.lines)))


def _row(line: bytes) -> Sequence[Value]:
    """Return the row `[name, version, unix seconds, action, serial]` of an event."""
    record = orjson.loads(line)
    return record["project"], record.get("version"), record["at"], record["action"], record["serial"]


def _projects(service: Service, call: MethodCall) -> Answer:
    call.integers()
    catalog, serial = service.require_catalog(), service.datasets().serial
    answerable_serial(catalog, serial)
    # a project without a known event is as new as the list
    return _streamed(render_members((one.name, one.serial or serial) for one in projects_at(catalog, serial)))


def _methods(_service: Service, call: MethodCall) -> Answer:
    call.integers()
    return _whole(render_texts(sorted(_METHODS)))


_METHODS: dict[str, Callable[[Service, MethodCall], Answer]] = {
    "changelog_last_serial": _last_serial,
    "changelog_since_serial": _since_serial,
    "list_packages_with_serial": _projects,
    "system.listMethods": _methods,
}


def _whole(body: bytes) -> WholeAnswer:
    return WholeAnswer(body, _CONTENT_TYPE, lasting=Lasting.NO_STORE)


def _streamed(chunks: Iterator[bytes]) -> StreamedAnswer:
    return StreamedAnswer(chunks, _CONTENT_TYPE, lasting=Lasting.NO_STORE)


def _call(service: Service, call: Call[NoParameters]) -> Answer:
    try:
        return _answer(service, parse_call(call.body))
    except FaultError as fault:
        return _whole(render_fault(fault))


def _answer(service: Service, call: MethodCall) -> Answer:
    method = _METHODS.get(call.method)
    if method is None:
        raise FaultError(UNKNOWN_METHOD, "server error; requested method not found")
    try:
        with journal_problems():
            try:
                return method(service, call)
            except NoJournalError:
                # permanent for followers, which then follow the list of projects at once
                raise FaultError(UNKNOWN_METHOD, f"server error; requested method not found: {NO_JOURNAL}") from None
    except ProblemError as error:
        raise _unavailable(error.problem.detail) from None
    except (CatalogError, StorageError) as error:
        raise _unavailable(str(error)) from None


def _unavailable(text: str) -> FaultError:
    return FaultError(UNAVAILABLE, f"server error; service unavailable: {text}")


class XmlRpcEndpoint(Endpoint):
    """Reads calls of XML-RPC."""

    async def read_body(self, scope: Scope, receive: Receive) -> Any:
        """Return the bytes of the call. Raises a ProblemError if they are not XML, or too many."""
        require_plain_body(scope, "XML", MEDIA_TYPE, "application/xml")
        body = bytearray()
        try:
            async for part in Request(scope, receive).stream():
                body += part
                if len(body) > _MOST_CALL_BYTES:
                    raise ProblemError(
                        413,
                        "too-large",
                        f"a call has at most {_MOST_CALL_BYTES} bytes",
                        parameter="body",
                        accepts=f"at most {_MOST_CALL_BYTES} bytes",
                        headers=[("Connection", "close")],
                    )
        except ClientDisconnect:
            raise cut_off() from None
        return bytes(body)


CALL = Operation(
    path="/pypi",
    handler=_call,
    method="POST",
    body=CallText,
    body_media_type=MEDIA_TYPE,
    summary="Call a method of the index by XML-RPC",
    description=(
        f"For mirrors: {', '.join(f'`{name}`' for name in sorted(_METHODS))}. Rows of `changelog_since_serial` are"
        f" events above a serial, at most {PAGE_ROWS:,} in one answer: continue with the last serial until an answer is"
        " empty. Faults have the status 200, as on PyPI."
    ),
    media_types=(MEDIA_TYPE,),
    tag="simple",
    at_serial=False,
    endpoint=XmlRpcEndpoint,
)
OPERATIONS = (CALL,)
