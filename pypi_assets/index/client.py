"""Asks an index: its changelog, its list of projects, a project's page, a file. Politely, and with typed errors.

One client serves all threads of a process. It retries what may pass and reports the rest; what an answer means for
anyone is decided elsewhere.
"""

import hashlib
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from queue import LifoQueue
from typing import BinaryIO, TypeVar
from urllib.parse import quote, urljoin

import requests
import urllib3
from packaging.utils import canonicalize_name
from requests.adapters import HTTPAdapter
from tenacity import RetryCallState, Retrying, retry_if_exception_type
from tenacity.wait import wait_exponential, wait_random

from pypi_assets.index.changelog import call_body, read_answer, read_events, read_last_serial
from pypi_assets.index.errors import (
    ContentError,
    GoneError,
    RefusedError,
    TooLargeError,
    TransientError,
)
from pypi_assets.index.listing import read_listed_projects, read_listing_serial
from pypi_assets.index.models import (
    ChangelogEvent,
    FetchedBytes,
    ListedProject,
    NotModified,
    ProjectListing,
    ProjectPage,
)
from pypi_assets.index.pages import read_project_page
from pypi_assets.index.rate import RateLimit
from pypi_assets.index.urls import host_rule, origin, redact, split_credentials

JSON_ACCEPT = "application/vnd.pypi.simple.v1+json"
MAX_REDIRECTS = 5
MAX_ANSWER_BYTES = 256 * 1024**2
"""The most bytes of a project page or of an XML-RPC answer (50,000 events are about 16 MB)."""
MAX_LISTING_BYTES = 4 * 1024**3
LONGEST_PAUSE_S = 120.0
"""The longest pause before a retry; an index that asks for a longer one is left alone, and the error says how long."""
SLOWEST_BYTES_PER_S = 1024
CHUNK_BYTES = 256 * 1024

_T = TypeVar("_T")


class IndexSession(requests.Session):
    """A session that leaves redirects to the client, which checks each hop before it asks."""

    def get_redirect_target(self, resp: requests.Response) -> str | None:  # noqa: ARG002
        """None: requests would otherwise read a redirect's whole body, however long, and parse its target."""
        return None


class IndexClient:
    """A client of one index, shared by the threads of a process.

    At most `max_connections` requests are under way at once, each on a session of its own, and together they keep to
    `requests_per_second`. The changelog is asked at most once in `changelog_pause_s`, as PyPI wishes. Methods raise
    TransientError after `attempts` tries, GoneError for a 404 or 410, RefusedError for what asking again won't help.
    Credentials in the index's URLs are sent to their origin only and shown nowhere.
    """

    def __init__(
        self,
        index_url: str,
        *,
        changelog_url: str,
        contact: str | None = None,
        max_connections: int = 10,
        requests_per_second: float = 20.0,
        changelog_pause_s: float = 1.0,
        allowed_file_hosts: Iterable[str] = (),
        connect_timeout_s: float = 10.0,
        read_timeout_s: float = 60.0,
        attempts: int = 4,
        retry_pause_s: float = 1.0,
        session_factory: Callable[[], IndexSession] = IndexSession,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hosts = host_rule(index_url, changelog_url, allowed_file_hosts)
        self.index_url, index_credentials = split_credentials(index_url.rstrip("/") + "/")
        self.changelog_url, changelog_credentials = split_credentials(changelog_url)
        self._credentials = {
            origin(self.changelog_url): changelog_credentials,
            origin(self.index_url): index_credentials or changelog_credentials,
        }
        self._timeout_s = (connect_timeout_s, read_timeout_s)
        self._sleep = sleep
        self._clock = clock
        self._rate = RateLimit(requests_per_second, clock=clock, sleep=sleep)
        self._changelog_rate = (
            RateLimit(1 / changelog_pause_s, burst_s=0, clock=clock, sleep=sleep) if changelog_pause_s else None
        )
        self._attempts = attempts
        self._backoff = wait_exponential(multiplier=retry_pause_s, max=LONGEST_PAUSE_S) + wait_random(0, retry_pause_s)
        agent = user_agent(contact)
        self._sessions = [_prepare_session(session_factory(), agent) for _ in range(max_connections)]
        self._idle: LifoQueue[IndexSession] = LifoQueue()
        for session in self._sessions:
            self._idle.put(session)

    def __enter__(self) -> "IndexClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes all connections; call it when no thread uses the client any more."""
        for session in self._sessions:
            session.close()

    def last_serial(self) -> int:
        """The serial of the index's last event, 0 on an empty index."""
        return read_last_serial(self._call("changelog_last_serial"), self.changelog_url)

    def changelog_page(self, since: int) -> list[ChangelogEvent]:
        """The events with serials above `since`, ascending, as many as the index gives at once (PyPI: 50,000)."""
        return read_events(self._call("changelog_since_serial", since), since, self.changelog_url)

    def changelog(self, since: int, until: int) -> Iterator[list[ChangelogEvent]]:
        """The pages of events with serials above `since`, up to the page that reaches `until` or the last one.

        Pages are given whole: the last one can hold events beyond `until`, which are as true as the others.
        """
        while since < until and (page := self.changelog_page(since)):
            yield page
            since = page[-1].serial

    def listing(self) -> ProjectListing:
        """All projects of the Simple index, in memory; PyPI lists about 800,000."""
        with self.iter_listing() as (last_serial, projects):
            return ProjectListing(last_serial, tuple(projects))

    @contextmanager
    def iter_listing(self) -> Iterator[tuple[int | None, Iterator[ListedProject]]]:
        """The index's last serial at that time (None if it tells none), and its projects, one at a time.

        The list is fetched whole into a temporary file first, so that a slow reader holds no connection and a list
        cut short on the way is fetched again before anything of it is seen.
        """
        with tempfile.TemporaryFile() as body:
            last_serial = self._retry(lambda: self._fetch_listing(body))
            yield last_serial, read_listed_projects(body, self.index_url)

    def project_page(self, project: str, *, etag: str | None = None) -> ProjectPage | NotModified:
        """What the index shows of `project` now, or NotModified if the page still has that `etag`.

        A page in HTML is refused where the index itself made it: it can't speak JSON. Any other HTML with status 200
        comes from something in between and may pass, so it counts as transient.
        """
        normalized = canonicalize_name(project)
        url = urljoin(self.index_url, f"{quote(normalized, safe='')}/")
        if not normalized:
            raise RefusedError(f"not a project name: {project!r}", url)
        return self._retry(lambda: self._fetch_project_page(normalized, url, etag))

    def fetch_file(
        self, url: str, sink: BinaryIO, *, sha256: str | None, size: int | None, max_bytes: int
    ) -> FetchedBytes:
        """Writes the file at `url` to `sink` from its start, exactly as stored there, and checks it.

        Raises TooLargeError beyond `max_bytes`, ContentError where the bytes are not those of `sha256` and `size`
        (each None where the page gives none), RefusedError for a host that is not allowed, also behind a redirect.
        """
        if size is not None and size > max_bytes:
            raise TooLargeError(f"{size} bytes, and at most {max_bytes} are read", redact(url))
        started = self._clock()
        asked: list[str] = []
        fetched = self._retry(lambda: self._fetch_file(url, sink, sha256, size, max_bytes, asked))
        return FetchedBytes(fetched, len(asked), self._clock() - started)

    def _call(self, method: str, *params: int) -> object:
        return self._retry(lambda: self._call_once(method, params))

    def _call_once(self, method: str, params: tuple[int, ...]) -> object:
        url = self.changelog_url
        headers = {"Content-Type": "text/xml", "Accept": "text/xml"}
        if self._changelog_rate:
            self._changelog_rate.wait()
        try:
            with self._exchange("POST", url, headers, body=call_body(method, *params)) as response:
                _require_media_type(response, "xml", url)
                return read_answer(self._chunks(response, MAX_ANSWER_BYTES, url), url)
        except GoneError as error:
            raise RefusedError("no changelog is served here; set the changelog's URL", url) from error

    def _fetch_listing(self, body: BinaryIO) -> int | None:
        url = self.index_url
        with self._exchange("GET", url, {"Accept": JSON_ACCEPT}) as response:
            _require_media_type(response, "json", url)
            _rewrite(body, self._chunks(response, MAX_LISTING_BYTES, url))
            header_serial = _header_serial(response)
        body_serial = read_listing_serial(body, url)
        return header_serial if body_serial is None else body_serial

    def _fetch_project_page(self, project: str, url: str, etag: str | None) -> ProjectPage | NotModified:
        headers = {"Accept": JSON_ACCEPT} | ({"If-None-Match": etag} if etag else {})
        with self._exchange("GET", url, headers) as response:
            if response.status_code == requests.codes.not_modified:
                return NotModified(_header_serial(response))
            _require_media_type(response, "json", url)
            return read_project_page(
                b"".join(self._chunks(response, MAX_ANSWER_BYTES, url)),
                project=project,
                url=response.url,
                header_serial=_header_serial(response),
                etag=response.headers.get("ETag"),
            )

    def _fetch_file(
        self, url: str, sink: BinaryIO, sha256: str | None, size: int | None, max_bytes: int, asked: list[str]
    ) -> int:
        limit = max_bytes if size is None else size
        digest = hashlib.sha256()

        def chunks(response: requests.Response) -> Iterator[bytes]:
            for chunk in self._chunks(response, limit, url, decode=False):
                digest.update(chunk)
                yield chunk

        try:
            # Servers that take a .tar.gz for a compressed .tar must not be asked to compress, nor must it be undone.
            with self._exchange("GET", url, {"Accept-Encoding": "identity"}, asked=asked) as response:
                is_length_known = "Content-Length" in response.headers or response.raw.chunked
                fetched = _rewrite(sink, chunks(response))
        except TooLargeError as error:
            if size is None:
                raise
            raise ContentError(f"more bytes than the {size} that its page promises", redact(url)) from error
        if size is not None and fetched != size:
            if not is_length_known:  # the connection's end is the only sign of the body's end
                raise TransientError(f"{fetched} bytes came, {size} are due", redact(url))
            raise ContentError(f"{fetched} bytes, and its page promises {size}", redact(url))
        if sha256 is not None and digest.hexdigest() != sha256.lower():
            raise ContentError(f"its sha256 is {digest.hexdigest()}, and its page promises {sha256}", redact(url))
        return fetched

    def _retry(self, attempt: Callable[[], _T]) -> _T:
        retrying = Retrying(
            retry=retry_if_exception_type(TransientError),
            stop=lambda state: state.attempt_number >= self._attempts or _asked_pause_s(state) > LONGEST_PAUSE_S,
            wait=lambda state: max(self._backoff(state), _asked_pause_s(state)),
            sleep=self._sleep,
            reraise=True,
        )
        return retrying(attempt)

    @contextmanager
    def _exchange(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        *,
        body: bytes | None = None,
        asked: list[str] | None = None,
    ) -> Iterator[requests.Response]:
        """One good answer (200, 304), its body unread; each URL asked for is appended to `asked`.

        Whatever goes wrong, also while the body is read inside the block, comes out as a typed error.
        """
        session = self._idle.get()
        try:
            for _ in range(MAX_REDIRECTS + 1):
                self._hosts.check(url)
                url, credentials = split_credentials(url)
                self._rate.wait()
                if asked is not None:
                    asked.append(url)
                with session.request(
                    method,
                    url,
                    headers=headers,
                    data=body,
                    auth=credentials or self._credentials.get(origin(url)),
                    timeout=self._timeout_s,
                    stream=True,
                    allow_redirects=False,
                ) as response:
                    target = _redirect_target(response, url) if method == "GET" else None
                    if target is None:
                        self._check_status(response, url)
                        yield response
                        return
                url = target
            raise RefusedError(f"more than {MAX_REDIRECTS} redirects", url)
        except (
            requests.ConnectionError,
            requests.Timeout,
            requests.exceptions.ChunkedEncodingError,
            urllib3.exceptions.HTTPError,
        ) as error:
            raise TransientError(_describe_failure(error), redact(url)) from error
        except requests.RequestException as error:
            raise RefusedError(f"cannot be asked for: {type(error).__name__}", redact(url)) from error
        finally:
            self._idle.put(session)

    def _check_status(self, response: requests.Response, url: str) -> None:
        status = response.status_code
        if status == requests.codes.ok or (
            status == requests.codes.not_modified and "If-None-Match" in response.request.headers
        ):
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

    def _chunks(self, response: requests.Response, limit: int, url: str, *, decode: bool = True) -> Iterator[bytes]:
        """The body, at most `limit` bytes of it, and never slower than SLOWEST_BYTES_PER_S for long."""
        started = self._clock()
        received = 0
        # read1 returns what has come: read would wait for a whole chunk, however slowly it drips.
        while chunk := response.raw.read1(CHUNK_BYTES, decode_content=decode):
            received += len(chunk)
            if received > limit:
                raise TooLargeError(f"more than {limit} bytes", redact(url))
            if self._clock() - started > self._timeout_s[1] + received / SLOWEST_BYTES_PER_S:
                raise TransientError(f"comes slower than {SLOWEST_BYTES_PER_S} bytes a second", redact(url))
            yield chunk


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


def _require_media_type(response: requests.Response, kind: str, url: str) -> None:
    """Raises unless the answer is `kind` (json, xml); see `IndexClient.project_page` for which error."""
    media_type = response.headers.get("Content-Type", "nothing named").partition(";")[0].strip().lower()
    if media_type.endswith(kind):
        return
    text = f"answers {media_type} where {kind} is due"
    if "html" in media_type and (_header_serial(response) is not None or media_type.startswith("application/vnd.pypi")):
        raise RefusedError(f"{text}: the index does not speak the JSON Simple API", url)
    raise TransientError(text, url)


def _header_serial(response: requests.Response) -> int | None:
    value = response.headers.get("X-PyPI-Last-Serial", "")
    return int(value) if re.fullmatch(r"[0-9]{1,18}", value) else None


def _redirect_target(response: requests.Response, url: str) -> str | None:
    location = response.headers.get("Location") if response.status_code in {301, 302, 303, 307, 308} else None
    try:
        return None if location is None else urljoin(url, location.encode("latin-1").decode())
    except ValueError as error:
        raise RefusedError("redirects to what is no URL", url) from error


def _rewrite(sink: BinaryIO, chunks: Iterable[bytes]) -> int:
    """Replaces what `sink` holds by `chunks`; the number of bytes written."""
    sink.seek(0)
    sink.truncate()
    written = 0
    for chunk in chunks:
        written += sink.write(chunk)
    return written


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
