"""Reads from the source that a mirror copies: static files over http(s), or an object store.

Nothing is listed, and bodies are bounded. Each error names the source's file and what is wrong with it.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib.metadata import version
from typing import BinaryIO, Protocol
from urllib.parse import quote, urljoin, urlsplit

from urllib3 import BaseHTTPResponse, Timeout
from urllib3.exceptions import HTTPError

from pypi_assets.errors import ExpectedError
from pypi_assets.index.addresses import AddressRule, ForbiddenAddressError, UnknownAddressError
from pypi_assets.index.connections import Connections, Network
from pypi_assets.index.credentials import basic_authorization
from pypi_assets.index.deadlines import within
from pypi_assets.index.errors import PackageIndexError
from pypi_assets.index.urls import origin, redact, split_credentials, split_fetchable
from pypi_assets.storage.store import (
    READ_BUFFER_BYTES,
    SCHEMES,
    NoFolderError,
    NotFoundError,
    Storage,
    StorageError,
    open_storage,
)


class MirrorError(ExpectedError):
    """A mirror cannot follow its source now. What is held stays as it is."""


class SourceError(MirrorError):
    """The source did not answer, or not in time. That can be transient."""


class VanishedError(SourceError):
    """The source has no such file: it was deleted meanwhile, or nothing is published there."""


class RefusedSourceError(MirrorError):
    """What the source has is not what it may be: it is not taken over."""


class WrongContentError(RefusedSourceError):
    """A file of the source is not what its manifest names."""


class ForkError(RefusedSourceError):
    """The source's history is another one than what is held."""


class OtherHomeError(MirrorError):
    """The storage belongs to a mirror with another home."""


class BehindError(MirrorError):
    """The source lags: it has less than what is held, of the same history."""


CHUNK_BYTES = 256 * 1024
MAX_REDIRECTS = 5
SOURCE_ACCEPTS = "https://HOST/PATH, http://..., s3://BUCKET/PREFIX, gs://..., az://... or file:///PATH"
_MISSING = {403, 404, 410}
"""A store that may not be listed answers 403 for what it does not have."""
_REDIRECTS = {301, 302, 303, 307, 308}
_CONNECT_S = 10.0
_CHUNK_S = 60.0
"""The longest wait for a chunk, so a body comes at 4 KiB a second at least."""


class Source(Protocol):
    """Files under the paths that they have in the storage of the source. `name` is its URL without credentials."""

    name: str

    def chunks(self, path: str) -> AbstractContextManager[Iterator[bytes]]:
        """The content of a file. Raises VanishedError, SourceError, RefusedSourceError."""

    def close(self) -> None:
        """Closes its connections."""


def small_file(source: Source, path: str, most_bytes: int) -> bytes:
    """A file that is read whole. Raises RefusedSourceError where it has more than `most_bytes`."""
    found = bytearray()
    with source.chunks(path) as chunks:
        for chunk in chunks:
            found += chunk
            if len(found) > most_bytes:
                raise RefusedSourceError(
                    f"{source.name}/{path} has more than the {most_bytes:,} bytes that it may have"
                )
    return bytes(found)


def open_source(url: str, *, connections: int = 4, network: Network | None = None) -> Source:
    """The source at `url`. Raises RefusedSourceError where it is not the URL of one."""
    scheme = url.partition("://")[0].lower()
    if scheme in {"http", "https"}:
        return HttpSource(url, connections=connections, network=network or Network())
    if scheme not in SCHEMES:
        raise RefusedSourceError(f"not the URL of a source: {redact(url)!r}; it is {SOURCE_ACCEPTS}")
    try:
        return StoredSource(open_storage(url, read_only=True))
    except NoFolderError as error:
        raise RefusedSourceError(f"there is no folder at {url}: name the folder storage of the other home") from error


class StoredSource:
    """The source in an object store, or in a folder."""

    def __init__(self, storage: Storage) -> None:
        self.name = redact(storage.url.removesuffix("/"))
        self._storage = storage

    @contextmanager
    def chunks(self, path: str) -> Iterator[Iterator[bytes]]:
        """The content of a file."""
        with ExitStack() as opened:
            with self._translated(path):
                stream = opened.enter_context(self._storage.open(path))
            yield self._received(path, stream)

    def close(self) -> None:
        """Nothing stays open."""

    def _received(self, path: str, stream: BinaryIO) -> Iterator[bytes]:
        with self._translated(path):
            while chunk := stream.read(READ_BUFFER_BYTES):
                yield chunk

    @contextmanager
    def _translated(self, path: str) -> Iterator[None]:
        try:
            yield
        except NotFoundError as error:
            raise VanishedError(f"the source has no {path}: {error}") from error
        except (StorageError, OSError) as error:
            raise SourceError(f"the source cannot be read: {error}") from error


class HttpSource:
    """The source as static files below a URL, which may have credentials: they go to its own origin alone."""

    def __init__(self, url: str, *, connections: int, network: Network) -> None:
        plain, login = split_credentials(url.rstrip("/"))
        try:
            scheme, host, port = split_fetchable(plain)
        except PackageIndexError as error:
            raise RefusedSourceError(f"not the URL of a source: {plain!r}; it is {SOURCE_ACCEPTS}") from error
        if urlsplit(plain).query or urlsplit(plain).fragment:
            raise RefusedSourceError(f"the URL of a source ends with its path: {plain!r}")
        self.name = plain
        self._origin = origin(f"{scheme}://{host}{port}")
        self._is_plain = scheme == "http"
        self._authorization = basic_authorization(login) if login else None
        self._connections = Connections(AddressRule(plain, plain), network, kept=connections)
        self._agent = f"pypi-assets/{version('pypi-assets')}"

    @contextmanager
    def chunks(self, path: str) -> Iterator[Iterator[bytes]]:
        """The content of a file."""
        response = self._opened(f"{self.name}/{quote(path)}")
        is_whole = False
        try:
            yield self._received(response)
            is_whole = True
        finally:
            (response.release_conn if is_whole else response.close)()

    def close(self) -> None:
        """Closes its connections; call it when no thread uses them any more."""
        self._connections.close()

    def _opened(self, url: str) -> BaseHTTPResponse:
        """The answer of status 200, after redirects."""
        for _ in range(MAX_REDIRECTS + 1):
            response = self._requested(url)
            if response.status == 200:
                return response
            status, location = response.status, response.headers.get("Location")
            response.close()
            if status in _MISSING:
                raise VanishedError(f"the source has no {redact(url)} (HTTP {status})")
            if status not in _REDIRECTS or not location:
                is_transient = status == 429 or status >= 500
                kind = SourceError if is_transient else RefusedSourceError
                raise kind(f"the source answers HTTP {status} to {redact(url)}")
            url = self._next(url, location)
        raise RefusedSourceError(f"the source redirects more than {MAX_REDIRECTS} times, last to {redact(url)}")

    def _next(self, url: str, location: str) -> str:
        """Where a redirect leads to. Raises RefusedSourceError where nothing may be requested."""
        following = urljoin(url, location)
        try:
            scheme, _, _ = split_fetchable(following)
        except (PackageIndexError, ValueError) as error:
            raise RefusedSourceError(f"the source redirects {redact(url)} to what is no http(s) URL") from error
        if scheme == "http" and not self._is_plain:
            raise RefusedSourceError(f"the source redirects {redact(url)} to {redact(following)}, not over https")
        return following

    def _requested(self, url: str) -> BaseHTTPResponse:
        headers = {"User-Agent": self._agent, "Accept": "*/*", "Accept-Encoding": "identity"}
        if self._authorization and origin(url) == self._origin:
            headers["Authorization"] = self._authorization
        with self._translated(url):
            route = self._connections.route(url)
            return route.pool.urlopen(
                "GET",
                route.target(redact(url)),
                headers=headers,
                redirect=False,
                retries=False,
                assert_same_host=False,
                preload_content=False,
                timeout=Timeout(_CONNECT_S, _CHUNK_S),
            )

    def _received(self, response: BaseHTTPResponse) -> Iterator[bytes]:
        with self._translated(self.name):
            while True:
                with within(_CHUNK_S):
                    chunk = response.read(CHUNK_BYTES, decode_content=False)
                if not chunk:
                    return
                yield chunk

    @contextmanager
    def _translated(self, url: str) -> Iterator[None]:
        try:
            yield
        except ForbiddenAddressError as error:
            raise RefusedSourceError(f"{redact(url)} leads away from the source: {error}") from error
        except PackageIndexError as error:
            raise RefusedSourceError(str(error)) from error
        except (HTTPError, OSError, UnknownAddressError) as error:
            raise SourceError(f"the source does not answer at {redact(url)}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    text = str(error.__cause__ or error) or type(error).__name__
    return text.splitlines()[0][:300]
