"""Client for one index: changelog, list of projects, project pages and files, with typed errors.

One client serves all threads of a process. It retries transient failures and raises all others. How a request is sent
is decided in `transport.py`, and what an answer means for the catalog in `crawl/`.
"""

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from types import MappingProxyType
from typing import BinaryIO, Self, TypeVar
from urllib.parse import quote, urljoin, urlsplit

from packaging.utils import canonicalize_name
from urllib3 import BaseHTTPResponse

from pypi_assets.index.addresses import AddressRule, is_loopback
from pypi_assets.index.changelog import call_body, read_answer, read_events, read_last_serial
from pypi_assets.index.connections import Connections, Network
from pypi_assets.index.credentials import IndexCredentials
from pypi_assets.index.errors import NotOnIndexError, RefusedError, TransientError
from pypi_assets.index.file_origins import FileOrigin, agreed_file_origin
from pypi_assets.index.models import (
    BrokenEntry,
    ChangelogRow,
    FetchedBytes,
    ListedProject,
    NotModified,
    ProjectListing,
    ProjectPage,
    last_usable_serial,
)
from pypi_assets.index.pages import read_listed_projects, read_listing_serial, read_project_page
from pypi_assets.index.protocol import Observation, Report
from pypi_assets.index.ranged_files import PromisedFile, RangedFile, stream_file
from pypi_assets.index.rate import RateLimit, Rates
from pypi_assets.index.rate_headers import pause_of
from pypi_assets.index.transport import (
    CHUNK_BYTES,
    CLOCK,
    LONGEST_PAUSE_S,
    RETRIES,
    TIMEOUTS,
    Clock,
    Retries,
    Timeouts,
    Transport,
    user_agent,
)
from pypi_assets.index.urls import host_rule, redact

JSON_ACCEPT = "application/vnd.pypi.simple.v1+json"
MAX_ANSWER_BYTES = 256 * 1024**2
"""The most bytes of a project page or an XML-RPC answer (50,000 events are about 16 MB)."""
MAX_LISTING_BYTES = 1024**3

_SERIAL = re.compile(r"[0-9]{1,18}")
_CHARSET = re.compile(r"(?i)(?<![a-z])charset=([^;\s]++)")
_ENVIRONMENT = Network()
_POLITE = Rates()
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class IndexAnswer:
    """A complete answer: its URL after redirects, its body, and values from its headers."""

    url: str
    body: bytes
    media_type: str
    charset: str | None
    etag: str | None
    last_modified: str | None
    serial: int | None
    date: str | None = None


class IndexClient:
    """A client for one index, shared by the threads of a process.

    At most `max_connections` requests run at the same time, and all of them share `rates`. If the index asks for a
    pause, the rate pauses. Methods raise TransientError once `retries` are exhausted, NotOnIndexError for a 404 or 410,
    and RefusedError for permanent failures. Credentials from the index's URLs, netrc and the keyring are sent only to
    the index's own origins and never displayed. Other hosts must have public addresses, unless the index itself has a
    private one.

        with IndexClient("http://127.0.0.1:8080/simple/", changelog_url="http://127.0.0.1:8080/pypi") as client:
            page = client.project_page("demo")
    """

    is_observed = False

    def __init__(
        self,
        index_url: str,
        *,
        changelog_url: str,
        contact: str | None = None,
        max_connections: int = 10,
        rates: Rates = _POLITE,
        allowed_file_hosts: Iterable[str] = (),
        network: Network = _ENVIRONMENT,
        timeouts: Timeouts = TIMEOUTS,
        retries: Retries = RETRIES,
        clock: Clock = CLOCK,
    ) -> None:
        hosts = host_rule(index_url, changelog_url, allowed_file_hosts)
        addresses = AddressRule(index_url, changelog_url)
        index_url = index_url.rstrip("/") + "/"
        self.index_url, self.changelog_url = redact(index_url), redact(changelog_url)
        self._transport = Transport(
            hosts,
            IndexCredentials(index_url, changelog_url),
            Connections(addresses, network, kept=max_connections),
            agent=user_agent(contact),
            max_connections=max_connections,
            rate=rates.requests or RateLimit(20.0, clock=clock.now, sleep=clock.sleep),
            timeouts=timeouts,
            retries=retries,
            clock=clock,
        )
        self._is_here = is_loopback(urlsplit(index_url).hostname)
        self._changelog_rate = rates.changelog or RateLimit(1.0, burst_s=0, clock=clock.now, sleep=clock.sleep)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections. Call it when no thread uses the client any more."""
        self._transport.close()

    def observe(
        self,
        report: Report,  # noqa: ARG002 - there is no progress to report
        *,
        everything: bool = False,  # noqa: ARG002
        with_list: bool = True,  # noqa: ARG002
        only: frozenset[str] | None = None,  # noqa: ARG002
    ) -> Observation:
        """Do nothing: the index reports its own changes."""
        return Observation()

    def last_serial(self) -> int:
        """Return the serial of the index's last event, or 0 for an empty index."""
        return read_last_serial(self._call("changelog_last_serial"), self.changelog_url)

    def changelog_page(self, since: int) -> list[ChangelogRow]:
        """Return the events with serials above `since`, ascending, including broken rows.

        The index limits how many events one page has (PyPI: 50,000).
        """
        return read_events(self._call("changelog_since_serial", since), since, self.changelog_url)

    def changelog(self, since: int, until: int) -> Iterator[list[ChangelogRow]]:
        """Yield pages of events with serials above `since`, until a page reaches `until` or no events are left.

        Pages are not cut: the last page can contain events beyond `until`, which are equally valid. A page without any
        usable serial is the last one.
        """
        last: int | None = since
        while last is not None and last < until and (page := self.changelog_page(last)):
            yield page
            last = last_usable_serial(page)

    def listing(self) -> ProjectListing:
        """Return all projects of the Simple index, in memory. PyPI lists more than 700,000."""
        with self.iter_listing() as (last_serial, projects):
            return ProjectListing(
                last_serial, tuple(project for project in projects if isinstance(project, ListedProject))
            )

    @contextmanager
    def iter_listing(
        self, *, newer_than: int | None = None
    ) -> Iterator[tuple[int | None, Iterator[ListedProject | BrokenEntry]]]:
        """Yield the index's last serial (None if it has none) and an iterator over its projects and broken entries.

        The list is first downloaded completely into a temporary file. So a slow reader does not occupy a connection,
        and a truncated list is fetched again before any project is returned. If the headers state a serial up to
        `newer_than`, the list is not downloaded, and its projects cannot be read.
        """
        with tempfile.TemporaryFile() as body:
            last_serial, is_whole = self._transport.retry(lambda: self._fetch_listing(body, newer_than))
            yield last_serial, read_listed_projects(body, self.index_url) if is_whole else self._not_downloaded()

    def project_page(self, project: str, *, etag: str | None = None) -> ProjectPage | NotModified:
        """Return the current page of `project`, or NotModified if the page still has the given `etag`.

        Raises RefusedError for HTML from the index itself, since the index then does not support JSON. Any other HTML
        with status 200 comes from something in between, such as a proxy, so it raises TransientError.
        """
        normalized = canonicalize_name(project)
        url = urljoin(self.index_url, f"{quote(normalized, safe='')}/")
        if not normalized:
            raise RefusedError(f"not a project name: {project!r}", url)
        return self._transport.retry(lambda: self._fetch_project_page(normalized, url, etag))

    def fetch(
        self, url: str, *, accept: str, headers: Mapping[str, str] = MappingProxyType({}), max_bytes: int
    ) -> IndexAnswer | None:
        """Return the answer to one GET of `url`, with retries of transient failures; None for a 304.

        `headers` can make the request conditional. Other kinds of index use this method to query their servers.
        """
        return self._transport.retry(lambda: self._fetch(url, {"Accept": accept, **headers}, max_bytes))

    def fetch_serial_or_body(self, url: str, *, accept: str, max_bytes: int) -> IndexAnswer:
        """Return the answer to one GET of `url`, with retries as in `fetch`.

        The body is not downloaded if the answer is JSON and a header has the serial. So a request for a large index's
        list transfers only the headers.
        """
        answer = self._transport.retry(lambda: self._fetch(url, {"Accept": accept}, max_bytes, or_serial=True))
        if answer is None:  # cannot happen: the request is not conditional
            raise RefusedError("HTTP 304 to a request without a condition", url)
        return answer

    def _fetch(
        self, url: str, headers: Mapping[str, str], max_bytes: int, *, or_serial: bool = False
    ) -> IndexAnswer | None:
        with self._transport.exchange("GET", url, headers) as response:
            if response.status == HTTPStatus.NOT_MODIFIED:
                return None
            media_type, _, rest = response.headers.get("Content-Type", "").partition(";")
            found = _CHARSET.search(rest[:200])
            serial = _header_serial(response)
            is_enough = or_serial and serial is not None and media_type.strip().lower().endswith("json")
            return IndexAnswer(
                redact(response.url or url),
                b"" if is_enough else b"".join(self._transport.chunks(response, max_bytes, url)),
                media_type.strip().lower(),
                None if found is None else found[1],
                response.headers.get("ETag"),
                response.headers.get("Last-Modified"),
                serial,
                response.headers.get("Date"),
            )

    def agreed_file_origin(self, urls: Iterable[str]) -> FileOrigin | None:
        """Return the origin that the index's first pages agree on, by their files' `urls`; see `index/file_origins.py`.

        Raises RefusedError if the pages disagree or the host must not be trusted, and TransientError if the host's name
        cannot be resolved at the moment and all files are there.
        """
        return agreed_file_origin(
            urls, self._transport.hosts, is_index_here=self._is_here, check=self._transport.check_choice
        )

    def trust_file_origin(self, origin: str) -> None:
        """Allow files from `origin`, which the first pages agreed on, from now on.

        An empty string allows no further origin.
        """
        self._transport.choose_file_origin(origin)

    def stream_file(
        self, url: str, consume: Callable[[BinaryIO], _T], *, sha256: str | None, size: int | None, max_bytes: int
    ) -> tuple[_T, FetchedBytes]:
        """Return the result of `consume` for the file at `url`, and the cost of fetching it.

        `consume` reads the file while it arrives, exactly as stored on the server. The stream can be read only once,
        and only while `consume` runs. Reading it raises typed errors for failed transfers. Each retry calls `consume`
        again. Exceptions of `consume` itself are raised without a retry.

        Raises TooLargeError beyond `max_bytes`, and RefusedError for a host that is not allowed, including after a
        redirect. Raises ContentError if the bytes do not match `sha256` and `size` (each None if the page does not
        state it).
        """
        started = self._transport.now()
        requested: list[str] = []
        promised = PromisedFile(url, sha256, size, max_bytes)
        result, fetched, digest = stream_file(self._transport, promised, consume, requested)
        return result, FetchedBytes(fetched, len(requested), self._transport.now() - started, digest)

    def fetch_file(
        self, url: str, sink: BinaryIO, *, sha256: str | None, size: int | None, max_bytes: int
    ) -> FetchedBytes:
        """Write the file at `url` to the start of `sink`. Raises the same errors as `stream_file`."""

        def consume(stream: BinaryIO) -> None:
            _rewrite(sink, iter(partial(stream.read, CHUNK_BYTES), b""))

        return self.stream_file(url, consume, sha256=sha256, size=size, max_bytes=max_bytes)[1]

    def open_ranges(
        self,
        url: str,
        *,
        sha256: str | None,
        size: int,
        max_bytes: int,
        metadata_sha256: str | None,
        has_sidecar: bool,
    ) -> RangedFile:
        """Return the file at `url`, to be read by byte ranges and closed after use. No request is sent yet.

        `sha256` and `size` come from its page. If `has_sidecar`, the index serves the file's METADATA next to it, and
        `metadata_sha256` is the page's hash of the METADATA. If the whole file has to be fetched, at most `max_bytes`
        are.
        """
        return RangedFile(
            self._transport,
            url,
            sha256=sha256,
            size=size,
            max_bytes=max_bytes,
            metadata_sha256=metadata_sha256,
            has_sidecar=has_sidecar,
        )

    def _call(self, method: str, *params: int) -> object:
        return self._transport.retry(lambda: self._call_once(method, params))

    def _call_once(self, method: str, params: tuple[int, ...]) -> object:
        url = self.changelog_url
        headers = {"Content-Type": "text/xml", "Accept": "text/xml"}
        self._changelog_rate.wait()
        try:
            with self._transport.exchange("POST", url, headers, body=call_body(method, *params)) as response:
                if pause_s := pause_of(response.headers):
                    self._changelog_rate.hold(min(pause_s, LONGEST_PAUSE_S))
                _require_media_type(response, "xml", url)
                return read_answer(self._transport.chunks(response, MAX_ANSWER_BYTES, url), url)
        except NotOnIndexError as error:
            raise RefusedError("there is no changelog at this URL; set PYPI_ASSETS_CHANGELOG_URL", url) from error
        except TransientError as error:
            if error.retry_after_s:
                self._changelog_rate.hold(min(error.retry_after_s, LONGEST_PAUSE_S))
            raise

    def _not_downloaded(self) -> Iterator[ListedProject]:
        raise RefusedError("the list of projects is not newer, so it was not downloaded", self.index_url)
        yield  # so that reading it raises, and not asking for it

    def _fetch_listing(self, body: BinaryIO, newer_than: int | None) -> tuple[int | None, bool]:
        """Return the serial of the list, and whether it was written to `body`."""
        url = self.index_url
        with self._transport.exchange("GET", url, {"Accept": JSON_ACCEPT}) as response:
            _require_media_type(response, "json", url)
            header_serial = _header_serial(response)
            if newer_than is not None and header_serial is not None and header_serial <= newer_than:
                return header_serial, False
            _rewrite(body, self._transport.chunks(response, MAX_LISTING_BYTES, url))
        body_serial = read_listing_serial(body, url)
        return (header_serial if body_serial is None else body_serial), True

    def _fetch_project_page(self, project: str, url: str, etag: str | None) -> ProjectPage | NotModified:
        headers = {"Accept": JSON_ACCEPT} | ({"If-None-Match": etag} if etag else {})
        with self._transport.exchange("GET", url, headers) as response:
            if response.status == HTTPStatus.NOT_MODIFIED:
                return NotModified(_header_serial(response))
            _require_media_type(response, "json", url)
            return read_project_page(
                b"".join(self._transport.chunks(response, MAX_ANSWER_BYTES, url)),
                project=project,
                url=response.url or url,
                header_serial=_header_serial(response),
                etag=response.headers.get("ETag"),
            )


def _require_media_type(response: BaseHTTPResponse, kind: str, url: str) -> None:
    """Raise unless the answer is of type `kind` (json, xml); see `IndexClient.project_page` for which error."""
    media_type = response.headers.get("Content-Type", "nothing named").partition(";")[0].strip().lower()
    if media_type.endswith(kind):
        return
    text = f"answers {media_type}, and {kind} was expected"
    if "html" in media_type and (_header_serial(response) is not None or media_type.startswith("application/vnd.pypi")):
        raise RefusedError(f"{text}: the index does not speak the JSON Simple API", url)
    raise TransientError(text, url)


def _header_serial(response: BaseHTTPResponse) -> int | None:
    value = response.headers.get("X-PyPI-Last-Serial", "")
    return int(value) if _SERIAL.fullmatch(value) else None


def _rewrite(sink: BinaryIO, chunks: Iterable[bytes]) -> None:
    """Replace the content of `sink` with `chunks`."""
    sink.seek(0)
    sink.truncate()
    sink.writelines(chunks)
