"""Middleware for every request: request ids, checks of its form, limits, problem documents, metrics and the access log.

Some limits are left to a proxy in front, such as the time in which the head of a request must arrive; docs/service.md
lists them.
"""

import asyncio
import logging
import random
import re
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from urllib.parse import unquote_to_bytes

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pypi_assets.service import monitoring
from pypi_assets.service.client_limits import BodyRoom, client_of
from pypi_assets.service.monitoring import AccessLog
from pypi_assets.service.operations import respond
from pypi_assets.service.pages.problems import answer_problem
from pypi_assets.service.problems import ProblemError, defect, problem_of
from pypi_assets.service.responses import CROSS_ORIGIN, serial_header
from pypi_assets.service.service import Service

_log = logging.getLogger(__name__)
_LONGEST_TARGET_BYTES = 60_000
_READ_METHODS = frozenset({"GET", "HEAD"})
_PREFLIGHT = [
    *CROSS_ORIGIN,
    (b"access-control-allow-methods", b"GET, HEAD, POST"),
    (b"access-control-allow-headers", b"content-type, if-none-match, if-modified-since, last-event-id"),
    (b"access-control-max-age", b"86400"),
    (b"content-length", b"0"),
]
_OTHER_ROUTE = "other"
_ID_HEADER = b"x-request-id"
_ACCEPTED_ID = re.compile(r"[A-Za-z0-9._~+/=:@-]{1,128}")
"""Accepts ids of common proxies and tracers: UUIDs, hex, Base64. No terminal, header or page treats them specially."""
BODY_S = 30.0
"""The time in which a body must arrive."""
_MOST_HEAD_BYTES = 64 * 1024
_WITHOUT_CHUNKS = frozenset({"0.9", "1.0"})
_WITHOUT_BODY = frozenset({204, 304})


class RequestMiddleware:
    """Assigns an id to each request, checks its form, turns errors into problems, and measures and logs the request.

    It is the outermost middleware, because it also answers errors raised by `LimitMiddleware`.
    """

    def __init__(self, app: ASGIApp, service: Service, log: AccessLog | None = None) -> None:
        self.app, self.service, self.log = app, service, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = _Request(scope, send)
        monitoring.OPEN.inc()
        try:
            await self._answer(request, scope, receive)
        finally:
            monitoring.OPEN.dec()
            request.measure(self.log)

    async def _answer(self, request: "_Request", scope: Scope, receive: Receive) -> None:
        headers = scope["pypi_assets.headers"] = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        scope["pypi_assets.route"] = _OTHER_ROUTE
        request.id = scope["pypi_assets.request_id"] = request_id(headers.get("x-request-id"))
        try:
            check_form(scope)
            if scope["method"] == "OPTIONS":
                await _answer_preflight(self.service, request.send)
            else:
                await self.app(scope, receive, request.send)
        except Exception as error:  # noqa: BLE001 - no text of an error may reach a client
            problem = _problem(error, request.id)
            if request.status:  # the closed connection tells the client that the answer is incomplete
                return
            answer = answer_problem(problem, headers, scope["raw_path"], request.id)
            await respond(self.service, scope, receive, request.send, answer, headers)


class LimitMiddleware:
    """Limits the size of bodies, the time for receiving them, and the time in which clients must read answers."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service, self._bodies = app, service, BodyRoom()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        timeout_s = self.service.settings.service_timeout_s

        async def send_in_time(message: Message) -> None:
            if not message.get("more_body", False):
                await send(message)
                return
            try:
                async with asyncio.timeout(timeout_s):
                    await send(message)
            except TimeoutError:
                raise ClientTooSlowError from None

        if scope["method"] in _READ_METHODS:
            await self.app(scope, receive, send_in_time)
            return
        client = client_of(scope["client"][0] if scope.get("client") else "")
        most_bytes = self.service.settings.service_max_body_bytes
        with self._bodies.held_by(client, most_bytes) as hold:
            limited = _limited(receive, scope["pypi_assets.headers"], most_bytes, hold)
            await self.app(scope, limited, send_in_time)


class ClientTooSlowError(Exception):
    """A client does not read its answer."""


def _limited(receive: Receive, headers: Mapping[str, str], most_bytes: int, hold: Callable[[int], None]) -> Receive:
    """Return a `receive` that accepts a body of up to `most_bytes` and only for a limited time.

    `hold` is called with the size of each part. A ProblemError closes the connection, because the rest of the body is
    not read.
    """
    announced = headers.get("content-length", "0")
    size, ends, is_whole = 0, time.monotonic() + BODY_S, False

    async def receive_limited() -> Message:
        nonlocal size, is_whole
        if is_whole:
            return await receive()  # the client disconnects
        if int(announced) > most_bytes:
            raise too_large(most_bytes)
        try:
            async with asyncio.timeout(ends - time.monotonic()):
                message = await receive()
        except TimeoutError:
            raise _refused("the body did not arrive in time", 408, "too-slow") from None
        part_bytes = len(message.get("body", b""))
        size += part_bytes
        if size > most_bytes:
            raise too_large(most_bytes)
        hold(part_bytes)
        is_whole = not message.get("more_body", False)
        return message

    return receive_limited


def too_large(most_bytes: int) -> ProblemError:
    """Return the problem of a body above the limit."""
    return ProblemError(
        413,
        "too-large",
        f"the body has more than {most_bytes} bytes",
        parameter="body",
        accepts=f"at most {most_bytes} bytes",
        headers=[("Connection", "close")],
    )


class _Request:
    """Forwards the messages of a response, and measures them."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.status = self.sent_bytes = 0
        self.id = ""
        self._scope, self._send = scope, send
        self._began = time.perf_counter()

    async def send(self, message: Message) -> None:
        """Send a message, and record its status and size."""
        if message["type"] == "http.response.start":
            self._require_framing(message)
            self.status = message["status"]
            message["headers"] = [*message["headers"], (_ID_HEADER, self.id.encode())]
        else:
            self.sent_bytes += len(message.get("body", b""))
        await self._send(message)

    def _require_framing(self, start: Message) -> None:
        """Raise a ProblemError if a body of unknown length would go to a client without chunked encoding (RFC 9112).

        Such a client would take the chunk headers for data, and could not detect a truncated body.
        """
        if self._scope["http_version"] not in _WITHOUT_CHUNKS or start["status"] in _WITHOUT_BODY:
            return
        if all(name.lower() != b"content-length" for name, _ in start["headers"]):
            raise ProblemError(
                505,
                "http-version",
                "this answer is a stream, which needs HTTP/1.1: a client of HTTP/1.0 cannot detect a truncated stream."
                " A proxy in front of this service must use HTTP/1.1 (nginx: proxy_http_version 1.1)",
            )

    def measure(self, log: AccessLog | None) -> None:
        """Count and log the request, which has ended."""
        seconds = time.perf_counter() - self._began
        route = self._scope["pypi_assets.route"]
        monitoring.count(route, self.status, seconds)
        if log is not None:
            log.add(self._scope, self.status, self.sent_bytes, seconds)


async def _answer_preflight(service: Service, send: Send) -> None:
    headers = [*_PREFLIGHT, serial_header(service.serial)]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def request_id(sent: str | None) -> str:
    """Return the id that the client sent if it is valid, else a new one.

    The id is in the answer, in the problem document, and in each log line about the request.

    >>> request_id("4f7a-1"), len(request_id("no ID"))
    ('4f7a-1', 16)
    """
    return sent if sent and _ACCEPTED_ID.fullmatch(sent) else f"{random.getrandbits(64):016x}"


def _problem(error: Exception, of_request: str) -> ProblemError:
    """Return the problem for an error. If the error is a defect, log it."""
    if isinstance(error, ClientTooSlowError):
        monitoring.CLIENTS_LEFT.inc()
        return defect()
    found = problem_of(error)
    if found is None:
        _log.error("the request %s failed", of_request, exc_info=error, extra={"request_id": of_request})
        return defect()
    return found


async def answer_routing_error(_request: Request, error: Exception) -> Response:
    """Raise the problem for a routing error: an unknown path, or a method that the route lacks."""
    if not isinstance(error, HTTPException):
        raise error
    headers = [(name.title(), value) for name, value in (error.headers or {}).items()]
    if error.status_code == HTTPStatus.NOT_FOUND:
        raise ProblemError(404, "not-found", "there is nothing at this address; /docs lists the routes of the API")
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        raise ProblemError(405, "no-method", "this route has other methods: see the header Allow", headers=headers)
    raise ProblemError(error.status_code, "bad-request", error.detail, headers=headers)


def check_form(scope: Scope) -> None:
    """Raise a ProblemError if servers could parse the request differently, or if its target is not valid text.

    Rejected are more than one length or host, a length together with a transfer encoding, and a path that is not
    percent-encoded UTF-8, contains a NUL, or is too long. The connection is then closed.
    """
    _check_framing(scope["headers"], scope["http_version"])
    raw_path: bytes = scope["raw_path"]
    if len(raw_path) + len(scope["query_string"]) > _LONGEST_TARGET_BYTES:
        raise _refused(f"the target has more than {_LONGEST_TARGET_BYTES} bytes", 414, "too-large")
    if b"%" in raw_path:
        _check_encoded(raw_path)


def _check_framing(headers: list[tuple[bytes, bytes]], version: str) -> None:
    size = lengths = hosts = encodings = 0
    for name, value in headers:
        size += len(name) + len(value)
        if name == b"host":
            hosts += 1
        elif name == b"content-length":
            lengths += 1
            if not value.isdigit():
                raise _refused("the length of the body is not a number")
        elif name == b"transfer-encoding":
            encodings += 1
            if value.lower() != b"chunked":
                raise _refused("the body has a transfer encoding other than chunked")
    if size > _MOST_HEAD_BYTES:
        raise _refused(f"the headers have more than {_MOST_HEAD_BYTES} bytes", 431, "too-large")
    if lengths + encodings > 1:
        raise _refused("the body has more than one length")
    if hosts > 1 or (not hosts and version == "1.1"):
        raise _refused("the request has no host, or more than one")


def _check_encoded(raw_path: bytes) -> None:
    try:
        path = unquote_to_bytes(raw_path).decode()
    except UnicodeDecodeError:
        raise _refused("the path is not UTF-8") from None
    if "\0" in path:
        raise _refused("the path contains a NUL")
    if any(not _is_hex(part[:2]) for part in raw_path.split(b"%")[1:]):
        raise _refused("the path contains a % without two hex digits: encode it as %25")


def _is_hex(text: bytes) -> bool:
    return len(text) == 2 and all(digit in b"0123456789abcdefABCDEF" for digit in text)


def _refused(detail: str, status: int = 400, kind: str = "bad-request") -> ProblemError:
    return ProblemError(status, kind, detail, headers=[("Connection", "close")])
