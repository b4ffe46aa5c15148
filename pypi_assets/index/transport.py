"""How an index is asked: polite HTTP with checked hosts, a shared rate, retries of what may pass, and typed errors.

What is asked for and what the answers mean is said elsewhere.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from queue import LifoQueue
from typing import TypeVar
from urllib.parse import urljoin

import requests
import urllib3
from requests.adapters import HTTPAdapter
from tenacity import RetryCallState, Retrying, retry_if_exception_type
from tenacity.wait import wait_exponential, wait_random

from pypi_assets.index.errors import GoneError, RefusedError, TooLargeError, TransientError
from pypi_assets.index.rate import Rate
from pypi_assets.index.urls import HostRule, origin, redact, split_credentials

MAX_REDIRECTS = 5
LONGEST_PAUSE_S = 120.0
"""The longest pause before a retry; an index that asks for a longer one is left alone, and the error says how long."""
SLOWEST_BYTES_PER_S = 1024
CHUNK_BYTES = 256 * 1024

_GOOD_IF_ASKED = {206: "Range", 304: "If-None-Match", 416: "Range"}
"""Answers that are good where the request has that header."""
_T = TypeVar("_T")


class IndexSession(requests.Session):
    """A session that leaves redirects to the client, which checks each hop before it asks."""

    def get_redirect_target(self, resp: requests.Response) -> str | None:  # noqa: ARG002
        """None: requests would otherwise read a redirect's whole body, however long, and parse its target."""
        return None


class Transport:
    """Sends requests for the threads of a process, at most `max_connections` at once, each on a session of its own.

    Together they keep to `rate`, which a 429 with a Retry-After holds. `credentials` are sent to the origin that they
    stand for only.
    """

    def __init__(
        self,
        hosts: HostRule,
        credentials: Mapping[str, tuple[str, str] | None],
        *,
        agent: str,
        max_connections: int,
        rate: Rate,
        connect_timeout_s: float,
        read_timeout_s: float,
        attempts: int,
        retry_pause_s: float,
        session_factory: Callable[[], IndexSession],
        sleep: Callable[[float], None],
        clock: Callable[[], float],
    ) -> None:
        self.clock = clock
        self._hosts = hosts
        self._credentials = credentials
        self._timeout_s = (connect_timeout_s, read_timeout_s)
        self._sleep = sleep
        self._rate = rate
        self._attempts = attempts
        self._backoff = wait_exponential(multiplier=retry_pause_s, max=LONGEST_PAUSE_S) + wait_random(0, retry_pause_s)
        self._sessions = [_prepare_session(session_factory(), agent) for _ in range(max_connections)]
        self._idle: LifoQueue[IndexSession] = LifoQueue()
        for session in self._sessions:
            self._idle.put(session)

    def close(self) -> None:
        """Closes all connections; call it when no thread uses them any more."""
        for session in self._sessions:
            session.close()

    def retry(self, attempt: Callable[[], _T]) -> _T:
        """What `attempt` returns, tried again after growing pauses while it raises TransientError."""
        retrying = Retrying(
            retry=retry_if_exception_type(TransientError),
            stop=lambda state: state.attempt_number >= self._attempts or _asked_pause_s(state) > LONGEST_PAUSE_S,
            wait=lambda state: max(self._backoff(state), _asked_pause_s(state)),
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
        asked: list[str] | None = None,
    ) -> Iterator[requests.Response]:
        """One good answer, its body unread; each URL asked for is appended to `asked`.

        Good are 200, 304 to a conditional request, and 206 and 416 to one for a range. Anything else is raised as a
        typed error.
        """
        session = self._idle.get()
        try:
            for _ in range(MAX_REDIRECTS + 1):
                self._hosts.check(url)
                url, credentials = split_credentials(url)
                self._rate.wait()
                if asked is not None:
                    asked.append(url)
                with _typed_errors(url):
                    response = session.request(
                        method,
                        url,
                        headers=headers,
                        data=body,
                        auth=credentials or self._credentials.get(origin(url)),
                        timeout=self._timeout_s,
                        stream=True,
                        allow_redirects=False,
                    )
                with response:
                    target = _redirect_target(response, url) if method == "GET" else None
                    if target is None:
                        self._check_status(response, url)
                        yield response
                        return
                url = target
            raise RefusedError(f"more than {MAX_REDIRECTS} redirects", url)
        finally:
            self._idle.put(session)

    def chunks(self, response: requests.Response, limit: int, url: str, *, decode: bool = True) -> Iterator[bytes]:
        """The body, at most `limit` bytes of it, and never waited for at less than SLOWEST_BYTES_PER_S for long.

        Raises TooLargeError beyond `limit`, TransientError where the body does not come whole or in time.
        """
        waited_s = 0.0
        received = 0
        while True:
            asked_at = self.clock()
            with _typed_errors(url):
                # read1 returns what has come: read would wait for a whole chunk, however slowly it drips.
                chunk = response.raw.read1(CHUNK_BYTES, decode_content=decode)
            waited_s += self.clock() - asked_at
            if not chunk:
                return
            received += len(chunk)
            if received > limit:
                raise TooLargeError(f"more than {limit} bytes", redact(url))
            if waited_s > self._timeout_s[1] + received / SLOWEST_BYTES_PER_S:
                raise TransientError(f"comes slower than {SLOWEST_BYTES_PER_S} bytes a second", redact(url))
            yield chunk

    def _check_status(self, response: requests.Response, url: str) -> None:
        status = response.status_code
        if status == requests.codes.ok or _GOOD_IF_ASKED.get(status, "") in response.request.headers:
            return
        text = f"HTTP {status}"
        if status in {404, 410}:
            raise GoneError(text, url)
        if status >= 500 or status in {408, 425, 429}:
            pause_s = retry_after_s(response.headers.get("Retry-After"), datetime.now(UTC))
            if status == requests.codes.too_many_requests and pause_s:
                self._rate.hold(min(pause_s, LONGEST_PAUSE_S))  # it counts us as one client, whichever thread asked
            raise TransientError(text, url, pause_s)
        raise RefusedError(text, url)


def user_agent(contact: str | None) -> str:
    """What the index is told of us: the project, its version and whom to ask."""
    if contact and not (contact.isascii() and contact.isprintable()):
        raise ValueError(f"the contact must be plain ASCII on one line: {contact!r}")
    return f"pypi-assets/{version('pypi-assets')}" + (f" (contact: {contact})" if contact else "")


def retry_after_s(value: str | None, now: datetime) -> float | None:
    """The pause in seconds that a Retry-After header asks for, as seconds or as a date; None if it says neither."""
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return max(0.0, ((date if date.tzinfo else date.replace(tzinfo=UTC)) - now).total_seconds())


def _asked_pause_s(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    return (error.retry_after_s or 0.0) if isinstance(error, TransientError) else 0.0


def _prepare_session(session: IndexSession, agent: str) -> IndexSession:
    session.headers["User-Agent"] = agent
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(pool_maxsize=1))  # one request at a time, a connection kept for each host
    return session


@contextmanager
def _typed_errors(url: str) -> Iterator[None]:
    """Turns what goes wrong on the way to `url` and back into our errors."""
    try:
        yield
    except (
        requests.ConnectionError,
        requests.Timeout,
        requests.exceptions.ChunkedEncodingError,
        urllib3.exceptions.HTTPError,
    ) as error:
        raise TransientError(_describe_failure(error), redact(url)) from error
    except requests.RequestException as error:
        raise RefusedError(f"cannot be asked for: {type(error).__name__}", redact(url)) from error


def _redirect_target(response: requests.Response, url: str) -> str | None:
    location = response.headers.get("Location") if response.status_code in {301, 302, 303, 307, 308} else None
    try:
        return None if location is None else urljoin(url, location.encode("latin-1").decode())
    except ValueError as error:
        raise RefusedError("redirects to what is no URL", url) from error


def _describe_failure(error: BaseException) -> str:
    """Why no (whole) answer came, without the library's own text, which can hold a proxy's password."""
    cause: BaseException | None = error
    while cause is not None:
        reason = cause.args[0] if cause.args else None
        inner = getattr(reason, "reason", None) or (reason if isinstance(reason, BaseException) else None)
        if isinstance(cause, urllib3.exceptions.NameResolutionError):
            return "the host's name cannot be resolved; check the network and the URL"
        if isinstance(cause, TimeoutError):
            return "timed out"
        if isinstance(cause, OSError) and cause.strerror:
            return f"no whole answer: {cause.strerror}"
        cause = inner or getattr(cause, "reason", None) or cause.__cause__ or cause.__context__
    return f"no whole answer: {type(error).__name__}"
