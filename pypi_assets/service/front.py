"""What every request passes, before and after its route: checks of its form, problem documents for all errors, headers
that each answer has, measures and the access log."""

import logging
import time
from http import HTTPStatus
from urllib.parse import unquote_to_bytes

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pypi_assets.service import measures
from pypi_assets.service.access_log import AccessLog
from pypi_assets.service.answers import CROSS_ORIGIN, serial_header
from pypi_assets.service.at_once import AtOnce
from pypi_assets.service.pages.problems import answer_problem
from pypi_assets.service.problems import ProblemError, defect, problem_of
from pypi_assets.service.request_ids import HEADER, request_id
from pypi_assets.service.responses import ClientTooSlowError, respond
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
_ID_HEADER = HEADER.lower().encode()
_WITHOUT_CHUNKS = frozenset({"0.9", "1.0"})
_WITHOUT_BODY = frozenset({204, 304})


class Front:
    """The outermost ASGI application. Connections of `at_once` give it what that does not answer."""

    def __init__(
        self, service: Service, app: ASGIApp, log: AccessLog | None = None, at_once: AtOnce | None = None
    ) -> None:
        self.service, self.app, self.log, self.at_once = service, app, log, at_once

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self  # so that the router raises what it does not find
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = _Request(scope, send)
        measures.OPEN.inc()
        try:
            await self._answer(request, scope, receive)
        finally:
            measures.OPEN.dec()
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
                return
            present = self.service.present
            target = (scope["raw_path"], scope["query_string"], headers.get("accept", ""))
            known = self.service.remembered.get(present.id if present else None, target)
            if known is not None and scope["method"] in _READ_METHODS:
                answer, scope["pypi_assets.route"] = known
                await respond(self.service, scope, receive, request.send, answer, headers)
                return
            await self.app(scope, receive, request.send)
        except Exception as error:  # noqa: BLE001 - no error reaches a client, whatever it is
            problem = _problem(error, request.id)
            if request.status:  # the connection ends, and so the client sees that the answer is not whole
                return
            answer = answer_problem(problem, headers, scope["raw_path"], request.id)
            await respond(self.service, scope, receive, request.send, answer, headers)


class _Request:
    """How a request is answered: what is sent, and what is measured of it."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.status = self.sent_bytes = 0
        self.id = ""
        self._scope, self._send = scope, send
        self._began = time.perf_counter()

    async def send(self, message: Message) -> None:
        """Sends a message, and notes what it is."""
        if message["type"] == "http.response.start":
            self._require_framing(message)
            self.status = message["status"]
            message["headers"] = [*message["headers"], (_ID_HEADER, self.id.encode())]
        else:
            self.sent_bytes += len(message.get("body", b""))
        await self._send(message)

    def _require_framing(self, start: Message) -> None:
        """Raises a ProblemError where a body of unknown length is to be sent to a client that knows no chunks (RFC
        9112): it would take what is around them for data, and a part of the body for all of it.
        """
        is_chunked = start["status"] not in _WITHOUT_BODY and all(
            name.lower() != b"content-length" for name, _ in start["headers"]
        )
        if is_chunked and self._scope["http_version"] in _WITHOUT_CHUNKS:
            raise ProblemError(
                505,
                "http-version",
                "this answer is a stream, which needs HTTP/1.1: a client of HTTP/1.0 could not see whether it is whole."
                " A proxy in between has to speak HTTP/1.1 to this service (nginx: proxy_http_version 1.1)",
            )

    def measure(self, log: AccessLog | None) -> None:
        """Counts and logs the request, which has ended."""
        seconds = time.perf_counter() - self._began
        route = self._scope["pypi_assets.route"]
        measures.count(route, self.status, seconds)
        if log is not None:
            log.add(self._scope, self.status, self.sent_bytes, seconds)


async def _answer_preflight(service: Service, send: Send) -> None:
    headers = [*_PREFLIGHT, serial_header(service.serial)]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _problem(error: Exception, of_request: str) -> ProblemError:
    """The problem that an error means; a defect is logged."""
    if isinstance(error, HTTPException):
        return _of_routing(error)
    if isinstance(error, ClientTooSlowError):
        measures.CLIENTS_LEFT.inc()
        return defect()
    found = problem_of(error)
    if found is None:
        _log.error("the request %s failed", of_request, exc_info=error, extra={"request_id": of_request})
        return defect()
    return found


def _of_routing(error: HTTPException) -> ProblemError:
    headers = [(name.title(), value) for name, value in (error.headers or {}).items()]
    if error.status_code == HTTPStatus.NOT_FOUND:
        return ProblemError(404, "not-found", "nothing is at this address; /docs lists the routes of the API")
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return ProblemError(405, "no-method", "this route has other methods: see the header Allow", headers=headers)
    return ProblemError(error.status_code, "bad-request", error.detail, headers=headers)


def check_form(scope: Scope) -> None:
    """Raises a ProblemError where servers could read a request in different ways, or its target is not text.

    That is: more than one length or host, a length next to another transfer encoding, a path that is not
    percent-encoded UTF-8, or has a NUL, or is too long. The connection ends then.
    """
    _check_framing(scope["headers"], scope["http_version"])
    raw_path: bytes = scope["raw_path"]
    if len(raw_path) + len(scope["query_string"]) > _LONGEST_TARGET_BYTES:
        raise _refused(f"the target has more than {_LONGEST_TARGET_BYTES} bytes", 414, "too-large")
    if b"%" in raw_path:
        _check_encoded(raw_path)


def _check_framing(headers: list[tuple[bytes, bytes]], version: str) -> None:
    lengths = hosts = encodings = 0
    for name, value in headers:
        if name == b"host":
            hosts += 1
        elif name == b"content-length":
            lengths += 1
            if not value.isdigit():
                raise _refused("the length of the body is no number")
        elif name == b"transfer-encoding":
            encodings += 1
            if value.lower() != b"chunked":
                raise _refused("the body comes in a transfer encoding other than chunked")
    if lengths + encodings > 1:
        raise _refused("the body has more than one length")
    if hosts > 1 or (not hosts and version == "1.1"):
        raise _refused("the request names no host, or several")


def _check_encoded(raw_path: bytes) -> None:
    try:
        path = unquote_to_bytes(raw_path).decode()
    except UnicodeDecodeError:
        raise _refused("the path is not UTF-8") from None
    if "\0" in path:
        raise _refused("the path has a NUL")
    if any(not _is_hex(part[:2]) for part in raw_path.split(b"%")[1:]):
        raise _refused("the path has a % without two hex digits: encode it as %25")


def _is_hex(text: bytes) -> bool:
    return len(text) == 2 and all(digit in b"0123456789abcdefABCDEF" for digit in text)


def _refused(detail: str, status: int = 400, kind: str = "bad-request") -> ProblemError:
    return ProblemError(status, kind, detail, headers=[("Connection", "close")])
