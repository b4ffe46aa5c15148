"""Sends requests politely: allowed hosts only, one shared rate, retries of transient failures, typed errors.

What to request and what the answers mean does not belong here; see `client.py` and the readers that it uses.
"""

import sys
import threading
import time
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from importlib.metadata import version
from typing import TypeVar
from urllib.parse import urljoin

from tenacity import RetryCallState, Retrying, retry_if_exception_type
from tenacity.wait import wait_exponential, wait_random
from urllib3 import BaseHTTPResponse, Retry
from urllib3.exceptions import HTTPError, InvalidHeader, LocationValueError

from pypi_assets.index.addresses import ForbiddenAddressError, UnknownAddressError
from pypi_assets.index.bounds import BodyDecoder
from pypi_assets.index.connections import Connections, describe_failure, is_proxy_login_wanted, socket_of
from pypi_assets.index.credentials import IndexCredentials, Login, basic_authorization
from pypi_assets.index.deadlines import WATCHDOG
from pypi_assets.index.errors import (
    DeniedError,
    LeadsElsewhereError,
    LoginError,
    NoAnswerError,
    NotOnIndexError,
    PackageIndexError,
    RefusedError,
    TooLargeError,
    TransientError,
    requested_pause_s,
)
from pypi_assets.index.rate import Rate, Unpaced
from pypi_assets.index.rate_headers import pause_of
from pypi_assets.index.urls import HostRule, redact, split_credentials

MAX_REDIRECTS = 5
LONGEST_PAUSE_S = 120.0
"""The longest pause before a retry.

If an index asks for a longer pause, the request is not retried, and the error carries the pause.
"""
SLOWEST_BYTES_PER_S = 1024
CHUNK_BYTES = 256 * 1024
LONGEST_BODY_S = 3600.0
"""The longest wait for one body, plus one second for each 64 KiB that the file may have.

With SLOWEST_BYTES_PER_S as the only limit, a server could hold a connection for days.
"""
HEADS_SHARE = 1.5
"""The answers before the body (redirects, login challenges, interim answers) may take this many timeouts together."""

_FILE_BYTES_PER_S = 64 * 1024
_SMALL_REST_BYTES = 64 * 1024
"""If the unread rest of a body is at most this large, it is received, so that the connection can be reused."""
_REST_S = 1.0
_RETRY_AFTER = Retry()
_RETRY_AFTER.retry_after_max = sys.maxsize  # the default would cap the index's requested pause at six hours
_SLOW = f"comes slower than {SLOWEST_BYTES_PER_S} bytes a second"
_PROXY_LOGIN_WANTED = "HTTP 407: the proxy requires (other) credentials; set them in the proxy's URL"
_GOOD_WITH_HEADER = {206: {"Range"}, 304: {"If-None-Match", "If-Modified-Since"}, 416: {"Range"}}
"""Statuses that are accepted if the request has one of these headers."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds to wait for a connection, and for the start of an answer: its status, headers and first bytes.

    They are wall-clock seconds, however slowly the bytes arrive. While the rest of a body arrives, a pause may not
    exceed `read_s`, and the rate may not stay below SLOWEST_BYTES_PER_S for that long.
    """

    connect_s: float = 10.0
    read_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Retries:
    """The number of attempts for a request, including the first, and the seconds before the second.

    The pause then doubles.
    """

    attempts: int = 4
    pause_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Clock:
    """A monotonic clock in seconds, and how to wait. Tests provide their own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


UNPACED, TIMEOUTS, RETRIES, CLOCK = Unpaced(), Timeouts(), Retries(), Clock()


class WaitAllowance:
    """A budget of seconds for several waits together. Time between the waits does not count."""

    def __init__(self, seconds: float) -> None:
        self.left_s = seconds

    @contextmanager
    def spent(self) -> Iterator[None]:
        """Subtract the duration of the block from the budget."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.left_s -= time.monotonic() - started


class Transport:
    """Sends requests for the threads of a process, at most `max_connections` at the same time.

    All requests share `rate`. A 429 with a Retry-After pauses the rate for all threads. Requests go only to `hosts`.
    `credentials` belong to the index's own origins and are not sent to other hosts.
    """

    def __init__(
        self,
        hosts: HostRule,
        credentials: IndexCredentials,
        connections: Connections,
        *,
        agent: str,
        max_connections: int,
        rate: Rate = UNPACED,
        timeouts: Timeouts = TIMEOUTS,
        retries: Retries = RETRIES,
        clock: Clock = CLOCK,
    ) -> None:
        self.now = clock.now
        self.hosts = hosts
        self._credentials = credentials
        self._connections = connections
        self._headers = {"User-Agent": agent, "Accept": "*/*", "Accept-Encoding": "gzip"}
        self._timeouts = timeouts
        self._sleep = clock.sleep
        self._rate = rate
        self._attempts = retries.attempts
        pause_s = retries.pause_s
        self._backoff = wait_exponential(multiplier=pause_s, max=LONGEST_PAUSE_S) + wait_random(0, pause_s)
        self._slots = threading.Semaphore(max_connections)

    def close(self) -> None:
        """Close all connections. Call it when no thread uses them any more."""
        self._connections.close()

    def check_choice(self, origin: str) -> None:
        """Raise an error unless `origin`, which pages chose, has addresses that may be trusted on that basis."""
        with _typed_errors(origin, self._connections.shown_proxy):
            self._connections.check_choice(origin)

    def choose_file_origin(self, origin: str) -> None:
        """Allow requests to `origin`, which pages chose, from now on. An empty string allows no further origin."""
        self._connections.choose(origin)
        self.hosts = replace(self.hosts, file_origin=origin)

    def retry(self, attempt: Callable[[], _T]) -> _T:
        """Return the result of `attempt`. While it raises TransientError, retry it after growing pauses."""
        retrying = Retrying(
            retry=retry_if_exception_type(TransientError),
            stop=lambda state: state.attempt_number >= self._attempts or _requested_pause_s(state) > LONGEST_PAUSE_S,
            wait=lambda state: max(self._backoff(state), _requested_pause_s(state)),
            sleep=self._sleep,
            reraise=True,
        )
        return retrying(attempt)

    @contextmanager
    def exchange(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        *,
        body: bytes | None = None,
        requested: list[str] | None = None,
        good: Container[int] = (200,),
    ) -> Iterator[BaseHTTPResponse]:
        """Send a request and yield its answer, with an unread body and the final URL as its `url`.

        Accepted statuses are those in `good`, 304 to a conditional request, and 206 and 416 to a range request. Any
        other answer raises a typed error. All requested URLs, including redirects, are appended to `requested`.
        """
        with self._slots:
            allowance = WaitAllowance(HEADS_SHARE * max(self._timeouts.connect_s, self._timeouts.read_s))
            came_from = None
            for _ in range(MAX_REDIRECTS + 1):
                self._check_host(url, came_from)
                url, login = split_credentials(url)
                send = partial(self._send, allowance, method, url, headers, body, requested)
                response = self._answer(send, allowance, url, login)
                try:
                    target = _redirect_target(response, url) if method == "GET" else None
                    if target is None:
                        self._check_status(response, headers, url, good)
                        yield response
                        return
                finally:
                    self._release(response, allowance, url)
                came_from, url = url, target
            raise RefusedError(f"more than {MAX_REDIRECTS} redirects", url)

    def _check_host(self, url: str, came_from: str | None) -> None:
        try:
            self.hosts.check(url)
        except RefusedError as error:
            if came_from is None:
                raise
            raise LeadsElsewhereError(error.message, error.url, redact(url)) from error

    def _answer(
        self, send: Callable[[Login | None], BaseHTTPResponse], allowance: WaitAllowance, url: str, login: Login | None
    ) -> BaseHTTPResponse:
        """Return the answer to `login`, or else to the first login that the origin does not answer with 401."""
        login = login or self._credentials.login(url)
        tried: list[Login] = []
        while True:
            response = send(login)
            if response.status != HTTPStatus.UNAUTHORIZED:
                return response
            self._release(response, allowance, url)
            tried += [login] if login else []
            login = self._credentials.other_login(url, tried)
            if login is None:
                wrong = "does not accept the known credentials" if tried else "requires credentials"
                raise LoginError(
                    f"HTTP 401: it {wrong}; for the index itself, give them in its URL, in netrc or in the keyring", url
                )

    def _send(
        self,
        allowance: WaitAllowance,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        requested: list[str] | None,
        login: Login | None,
    ) -> BaseHTTPResponse:
        authorization = {"Authorization": basic_authorization(login)} if login else {}
        with _typed_errors(url, self._connections.shown_proxy):
            self._rate.wait()
            if requested is not None:
                requested.append(url)
            with allowance.spent():
                response = self._connections.request(
                    method,
                    url,
                    {**self._headers, **headers, **authorization},
                    body,
                    connect_s=self._timeouts.connect_s,
                    read_s=self._timeouts.read_s,
                    total_s=allowance.left_s,
                )
        response.url = url
        return response

    def chunks(self, response: BaseHTTPResponse, limit: int, url: str, *, decode: bool = True) -> Iterator[bytes]:
        """Yield the body in chunks of at most `limit` bytes in total.

        If `decode`, the limit applies to the decoded body. Raises TooLargeError beyond the limit, and if the decoded
        size is far above or below the encoded size. Raises TransientError if the body is cut short, or if it stays
        slower than SLOWEST_BYTES_PER_S for longer than the timeout. Both the encoded and the decoded bytes must keep
        that rate.
        """
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        decoder = BodyDecoder(encoding, redact(url)) if decode and encoding not in {"", "identity"} else None
        longest_s = LONGEST_BODY_S + (0 if decode else limit / _FILE_BYTES_PER_S)
        waited_s, allowed_s = 0.0, self._timeouts.read_s
        received = given = 0
        while True:
            started = self.now()
            chunk = self._receive(response, allowed_s - waited_s, url)
            waited_s += self.now() - started
            if not chunk:
                return
            received += len(chunk)
            for piece in (chunk,) if decoder is None else decoder.decode(chunk):
                given += len(piece)
                if given > limit:
                    raise TooLargeError(f"more than {limit} bytes", redact(url))
                yield piece
            allowed_s = min(self._timeouts.read_s + min(received, given) / SLOWEST_BYTES_PER_S, longest_s)
            if waited_s > allowed_s:
                raise TransientError(_SLOW, redact(url))

    def _receive(self, response: BaseHTTPResponse, left_s: float, url: str) -> bytes:
        """Return the bytes that have arrived, waiting for at least one; empty at the end of the body."""
        started = time.monotonic()
        try:
            with (
                _typed_errors(url, self._connections.shown_proxy),
                WATCHDOG.within(min(left_s, self._timeouts.read_s), lambda: socket_of(response)),
            ):
                # read1 returns the bytes that have arrived, while read would wait for a whole chunk.
                return response.read1(CHUNK_BYTES, decode_content=False)
        except TransientError as error:
            if left_s < self._timeouts.read_s and time.monotonic() - started >= left_s:
                raise TransientError(_SLOW, redact(url)) from error
            raise

    def _release(self, response: BaseHTTPResponse, allowance: WaitAllowance, url: str) -> None:
        """Make the connection available for reuse if little of the body is unread, and close it otherwise."""
        if response.tell() == 0 and (response.length_remaining or 0) <= _SMALL_REST_BYTES and response.status >= 200:
            seconds = min(_REST_S, self._timeouts.read_s / 4, allowance.left_s)
            watched = WATCHDOG.within(seconds, lambda: socket_of(response))
            with suppress(PackageIndexError, TimeoutError), allowance.spent(), watched:
                for _ in self.chunks(response, _SMALL_REST_BYTES, url, decode=False):
                    pass
        response.close()
        response.release_conn()

    def _check_status(
        self, response: BaseHTTPResponse, headers: Mapping[str, str], url: str, good: Container[int]
    ) -> None:
        status = response.status
        if status in good or _GOOD_WITH_HEADER.get(status, set()) & headers.keys():
            return
        text = f"HTTP {status}"
        if status in {404, 410}:
            raise NotOnIndexError(text, url)
        if status < 200 or status >= 500 or status in {408, 425, 429}:
            pause_s = retry_after_s(response.headers.get("Retry-After"))
            if status == HTTPStatus.TOO_MANY_REQUESTS:
                pause_s = pause_s or pause_of(response.headers) or None
            if status == HTTPStatus.TOO_MANY_REQUESTS and pause_s:
                self._rate.hold(min(pause_s, LONGEST_PAUSE_S))  # the index counts all threads as one client
            raise TransientError(text, url, pause_s)
        if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
            raise LoginError(_PROXY_LOGIN_WANTED, url)
        raise (DeniedError if status == HTTPStatus.FORBIDDEN else RefusedError)(text, url)


def user_agent(contact: str | None) -> str:
    """Return the User-Agent header: project, version and contact.

    Raises ValueError if the contact is not one ASCII line.
    """
    if contact and not (contact.isascii() and contact.isprintable()):
        raise ValueError(f"the contact must be plain ASCII on one line: {contact!r}")
    return f"pypi-assets/{version('pypi-assets')}" + (f" (contact: {contact})" if contact else "")


def retry_after_s(value: str | None) -> float | None:
    """Return the pause in seconds of a Retry-After header, given as seconds or as a date; None for any other value."""
    if value is None:
        return None
    try:
        return float(_RETRY_AFTER.parse_retry_after(value))
    except (InvalidHeader, ValueError, OverflowError):  # the last two: numbers too large for a date or an int
        return None


def _requested_pause_s(state: RetryCallState) -> float:
    return requested_pause_s(state.outcome.exception() if state.outcome else None)


@contextmanager
def _typed_errors(url: str, shown_proxy: Callable[[str], str]) -> Iterator[None]:
    """Convert failures of a request to `url` into the errors of `index/errors.py`."""
    try:
        yield
    except ForbiddenAddressError as error:
        raise RefusedError(str(error), redact(url)) from error
    except (LocationValueError, ValueError) as error:
        raise RefusedError(f"cannot be requested: {type(error).__name__}", redact(url)) from error
    except (HTTPError, UnknownAddressError, TimeoutError) as error:
        if is_proxy_login_wanted(error):
            raise LoginError(_PROXY_LOGIN_WANTED, redact(url)) from error
        raise NoAnswerError(describe_failure(error, shown_proxy(url)), redact(url)) from error


def _redirect_target(response: BaseHTTPResponse, url: str) -> str | None:
    location = response.headers.get("Location") if response.status in {301, 302, 303, 307, 308} else None
    try:
        return None if location is None else urljoin(url, location.encode("latin-1").decode())
    except ValueError as error:
        raise RefusedError("redirects to something that is not a URL", url) from error
