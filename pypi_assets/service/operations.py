"""Operations of the API: the types of their parameters and answers, and the handlers that answer.

The types parse requests and generate the OpenAPI document. A handler is a plain function. It runs in a thread, so it
may read LevelDBs and the catalog.
"""

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Generic

import msgspec
from sqlalchemy.exc import DBAPIError
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from pypi_assets.questions.addresses import names_in
from pypi_assets.service.client_limits import client_of
from pypi_assets.service.parameters import (
    AnyParameters,
    NoParameters,
    OperationParameters,
    convert_parameters,
    query_fields,
    wrong_value,
)
from pypi_assets.service.pins import GONE, Pinned, answer_at, parse_pin
from pypi_assets.service.problems import ProblemError, bad_parameter, unavailable
from pypi_assets.service.responses import (
    CROSS_ORIGIN,
    JSON,
    StreamedAnswer,
    WholeAnswer,
    best_encoding,
    compressed_chunks,
    serial_header,
)
from pypi_assets.service.service import Service

PAGES = "pages"
"""The tag of pages for people, which are not part of the API."""
_CATALOG_PATIENCE_S, _PAUSE_S = 5.0, 0.25
_TOO_MANY = re.compile(r"Expected `array` of length <= (\d+)")


class Call(msgspec.Struct, Generic[AnyParameters], frozen=True):
    """One parsed request.

    `body` has the operation's `body` type, or is None. `headers` have lower-case names. `pinned` is the requested
    serial; None: the latest. `client` is the client as `client_limits.py` distinguishes them.
    """

    parameters: AnyParameters
    headers: Mapping[str, str]
    body: Any = None
    pinned: Pinned | None = None
    client: str = ""


Handler = Callable[[Service, Call[Any]], WholeAnswer | StreamedAnswer]
LatestLookup = Callable[[Service, Call[Any]], WholeAnswer | None]


@dataclass(frozen=True)
class Operation:
    """One route of the API.

    - `answer` is the type of its JSON. None: the answer is not JSON, and has one of the `media_types`.
    - `line` is the type of one line, if the route can also answer with JSON lines.
    - `body` is the type of the request's JSON. With another `body_media_type`, the `endpoint` reads it.
    - `at_serial`: the route also exists below `/at/{at}`, where the handler gets a `pinned` serial. `options` may
      follow this serial after commas.
    - `problems` are its error and redirect statuses, besides the ones that every route has.
    - `few` returns the latest answer if that takes only a few reads of LevelDBs, else None. It runs in the event loop,
      because a thread would cost more.
    - `when_over` answers if the epoch in the path has expired, provided that the answer depends on the path alone. It
      returns None otherwise.
    - `endpoint` is the class of the ASGI endpoint, if one call of the handler is not enough.
    """

    path: str
    handler: Handler
    summary: str
    parameters: type[OperationParameters] = NoParameters
    answer: Any = None
    method: str = "GET"
    body: Any = None
    body_media_type: str = JSON
    line: Any = None
    media_types: tuple[str, ...] = (JSON,)
    problems: tuple[int, ...] = ()
    description: str = ""
    tag: str = "lookup"
    at_serial: bool = True
    options: tuple[str, ...] = ()
    few: LatestLookup | None = None
    when_over: Callable[[Service, Call[Any]], WholeAnswer | StreamedAnswer | None] | None = None
    endpoint: "type[Endpoint] | None" = None

    @cached_property
    def path_parameters(self) -> frozenset[str]:
        """Return the names of the parameters in the path."""
        return names_in(self.path)


def require_plain_body(scope: Scope, form: str, media_type: str, *others: str) -> None:
    """Raise a ProblemError if the body has another media type than these, or is compressed. `form` is its format."""
    headers: Mapping[str, str] = scope["pypi_assets.headers"]
    given = headers.get("content-type", media_type).partition(";")[0].strip().lower()
    if given not in {media_type, *others}:
        raise ProblemError(415, "bad-request", f"the body must be {media_type}, not {given:.100}")
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise ProblemError(415, "bad-request", f"the body is compressed; it must be plain {form}")


def cut_off() -> ProblemError:
    """Return the problem of a request that ends before its body."""
    return ProblemError(400, "bad-request", "the request ended before its body")


async def read_body(scope: Scope, receive: Receive, kind: Any) -> Any:
    """Return the JSON body as `kind`. Raises a ProblemError if it is not JSON, not of `kind`, or has too many items."""
    require_plain_body(scope, "JSON", JSON)
    try:
        return msgspec.json.decode(await Request(scope, receive).body(), type=kind)
    except ClientDisconnect:
        raise cut_off() from None
    except msgspec.ValidationError as error:
        if match := _TOO_MANY.match(str(error)):
            raise ProblemError(
                413,
                "too-large",
                f"the body has more than {int(match[1]):,} items",
                parameter="body",
                accepts=f"at most {int(match[1]):,} items",
            ) from None
        raise wrong_value(kind, str(error), "body") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_parameter("body", f"the body is not JSON: {error}") from None


_NOT_MODIFIED = frozenset(
    {b"etag", b"cache-control", b"vary", b"last-modified", b"x-pypi-last-serial", *(name for name, _ in CROSS_ORIGIN)}
)
"""The headers of a 304 response: a cache updates them."""
_LONG_BODY = 16 * 1024
"""A longer body is compressed in a thread, because it would block the event loop."""


class Endpoint:
    """The ASGI endpoint of one operation."""

    def __init__(self, service: Service, operation: Operation, route: str) -> None:
        self.service, self.operation, self.route = service, operation, route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: Mapping[str, str] = scope["pypi_assets.headers"]
        scope["pypi_assets.route"] = self.route
        answer = await self._answer(scope, receive, headers)
        await respond(self.service, scope, receive, send, answer, headers)

    async def _answer(self, scope: Scope, receive: Receive, headers: Mapping[str, str]) -> WholeAnswer | StreamedAnswer:
        """Return the answer: from the cache, from a few reads in the event loop, or from the handler in a thread."""
        target, known = None, None
        path: dict[str, Any] = scope["path_params"]
        pin = path.pop("at", None)
        if self.operation.method == "GET":
            target = scope["raw_path"], scope["query_string"], headers.get("accept", "")
            known = self.service.cache.get(target)
            present = self.service.present
            if pin is None and known is not None and present is not None and known.set_id == present.id:
                return known
        query = query_fields(scope["query_string"].decode("latin-1"))
        parameters = convert_parameters(self.operation.parameters, path, query)
        body = None if self.operation.body is None else await self.read_body(scope, receive)
        call = Call(parameters, headers, body, client=client_of(scope["client"][0] if scope.get("client") else ""))
        answer = self._quick_answer(call) if pin is None and self.operation.few is not None else None
        if answer is None:
            answer = await self._patiently(partial(self._make_answer, scope, pin, call, known))
        if target is not None and isinstance(answer, WholeAnswer):
            self.service.cache.keep(target, answer)
        return answer

    async def read_body(self, scope: Scope, receive: Receive) -> Any:
        """Return the parsed body. Raises a ProblemError."""
        return await read_body(scope, receive, self.operation.body)

    def _quick_answer(self, call: Call[Any]) -> WholeAnswer | StreamedAnswer | None:
        """Return the answer if it takes a few reads. None: it takes more, or fails, which the handler will report."""
        try:
            return None if self.operation.few is None else self.operation.few(self.service, call)
        except Exception:  # noqa: BLE001 - the handler fails too, or reads another version
            return None

    async def _patiently(self, work: Callable[[], WholeAnswer | StreamedAnswer]) -> WholeAnswer | StreamedAnswer:
        """Return the result of `work` in a thread. Retry if the catalog does not answer: its server may be restarting.

        No thread is held between retries. Raises a ProblemError if too many calls wait, or if this one takes too long.
        """
        threads, settings = self.service.threads, self.service.settings
        ends = 0.0
        while True:
            if threads.waiting >= settings.service_max_requests:
                raise ProblemError(503, "busy", "too many requests are being answered", headers=[("Retry-After", "1")])
            try:
                return await threads.run(work)
            except TimeoutError:
                raise unavailable(
                    f"the answer took more than {settings.service_timeout_s:g} s: request less", "too-slow"
                ) from None
            except DBAPIError:
                ends = ends or time.monotonic() + _CATALOG_PATIENCE_S
                if time.monotonic() > ends:
                    raise
            await asyncio.sleep(_PAUSE_S)

    def _make_answer(
        self, scope: Scope, pin: str | None, call: Call[Any], known: WholeAnswer | None
    ) -> WholeAnswer | StreamedAnswer:
        answer = self.operation.handler(self.service, call) if pin is None else self._answer_at(scope, pin, call, known)
        if isinstance(answer, WholeAnswer):  # compress here, because a large answer would block the event loop
            answer.form(answer.encoding_for(call.headers.get("accept-encoding", "")))
        return answer

    def _answer_at(
        self, scope: Scope, pin: str, call: Call[Any], cached: WholeAnswer | None
    ) -> WholeAnswer | StreamedAnswer:
        def answer(pinned: Pinned) -> WholeAnswer | StreamedAnswer:
            return self.operation.handler(self.service, msgspec.structs.replace(call, pinned=pinned))

        parsed = parse_pin(pin)
        known = self.operation.options
        if unknown := [option for option in parsed.options if option not in known]:
            accepts = f"after a comma: {' or '.join(known)}" if known else "no option"
            raise bad_parameter("at", f"this route has no option {unknown[0]!r:.100}", accepts)
        try:
            return answer_at(self.service, parsed, scope["raw_path"], scope["query_string"], answer, cached)
        except ProblemError as error:
            when_over = self.operation.when_over if error.problem.status == GONE else None
            lasting = None if when_over is None else when_over(self.service, call)
            if lasting is None:
                raise
            return lasting


def operation_routes(service: Service, operations: Iterable[Operation]) -> Iterator[Route]:
    """Yield the routes of operations."""
    for operation in operations:
        prefixes = ("", "/at/{at}") if operation.at_serial else ("",)
        for prefix in prefixes:
            path = prefix + operation.path
            endpoint = (operation.endpoint or Endpoint)(service, operation, path)
            yield Route(path, endpoint, methods=[operation.method], name=path)


async def respond(
    service: Service,
    scope: Scope,
    receive: Receive,
    send: Send,
    answer: WholeAnswer | StreamedAnswer,
    headers: Mapping[str, str],
) -> None:
    """Send the answer to a request. `headers` are the headers of the request, with lower-case names."""
    accept_encoding = headers.get("accept-encoding", "")
    if isinstance(answer, StreamedAnswer):
        if answer.is_known(headers.get("if-none-match"), headers.get("if-modified-since")):
            await _respond_as_known(service, send, answer, best_encoding(accept_encoding))
            return
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            await _respond_with_stream(service, scope, send, answer, accept_encoding, gone)
        finally:
            gone.cancel()
        return
    encoding = answer.encoding_for(accept_encoding)
    if len(answer.body) > _LONG_BODY and not answer.has_form(encoding):
        await service.threads.run(partial(answer.form, encoding))
    body, found = answer.form(encoding)
    status = answer.status
    if answer.is_known(headers.get("if-none-match"), headers.get("if-modified-since")):
        status, body = 304, b""
        found = tuple(header for header in found if header[0] in _NOT_MODIFIED)
    if answer.serial is None:
        found = (*found, serial_header(service.serial))
    await send({"type": "http.response.start", "status": status, "headers": found})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


async def _respond_with_stream(
    service: Service,
    scope: Scope,
    send: Send,
    answer: StreamedAnswer,
    accept_encoding: str,
    gone: "asyncio.Future[None]",
) -> None:
    """Send a stream: make each chunk once the client has taken the previous one. Stop if the client disconnects."""
    encoding = answer.encoding_for(accept_encoding)
    chunks = compressed_chunks(answer.chunks, encoding)
    is_wanted = scope["method"] != "HEAD"
    try:
        chunk = await service.threads.run_part(_next_chunk, chunks) if is_wanted else None
        head = answer.head(encoding)
        if answer.serial is None:
            head.append(serial_header(service.serial))
        await send({"type": "http.response.start", "status": answer.status, "headers": head})
        while chunk is not None and not gone.done():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            chunk = await service.threads.run_part(_next_chunk, chunks)
    finally:
        await service.threads.run_part(_close, chunks, answer.chunks)
    await send({"type": "http.response.body", "body": b""})


async def _respond_as_known(service: Service, send: Send, answer: StreamedAnswer, encoding: str) -> None:
    """Send that the client has this stream already, which is then never begun."""
    head = [header for header in answer.head(encoding) if header[0] in _NOT_MODIFIED]
    await service.threads.run_part(_close, answer.chunks)
    await send({"type": "http.response.start", "status": 304, "headers": head})
    await send({"type": "http.response.body", "body": b""})


async def _disconnected(receive: Receive) -> None:
    """Return when the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _next_chunk(chunks: Iterator[bytes]) -> bytes | None:
    """Return the next non-empty chunk, or None at the end."""
    return next((chunk for chunk in chunks if chunk), None)


def _close(*iterators: Iterator[bytes]) -> None:
    for iterator in iterators:
        close = getattr(iterator, "close", None)
        if close is not None:
            close()
