"""Reads the files of the source that a mirror copies, from a web server over http(s) or from an object store.

No listing is needed, and the size of each body is limited. Errors name the source's file and the problem.
"""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import BinaryIO, Protocol
from urllib.parse import quote, urlsplit

from urllib3 import BaseHTTPResponse

from pypi_assets.errors import ExpectedError
from pypi_assets.index.addresses import AddressRule
from pypi_assets.index.connections import Connections, Network
from pypi_assets.index.credentials import IndexCredentials
from pypi_assets.index.errors import DeniedError, NotOnIndexError, PackageIndexError, TransientError
from pypi_assets.index.ranged_files import AS_STORED
from pypi_assets.index.transport import TIMEOUTS, Timeouts, Transport, user_agent
from pypi_assets.index.urls import HostRule, redact, split_fetchable
from pypi_assets.storage.store import (
    READ_BUFFER_BYTES,
    SCHEMES,
    NoFolderError,
    ObjectNotFoundError,
    Storage,
    StorageError,
    open_storage,
)


class MirrorError(ExpectedError):
    """A mirror cannot follow its source now. Local files are kept."""


class SourceError(MirrorError):
    """The source did not answer, or not in time. This can be transient."""


class VanishedError(SourceError):
    """The source does not have the file: it was deleted in the meantime, or nothing is published there."""


class RefusedSourceError(MirrorError):
    """The source has an invalid file. It is rejected and not copied."""


class WrongContentError(RefusedSourceError):
    """A file of the source does not match its manifest."""


class ForkError(RefusedSourceError):
    """The source's history differs from the local history."""


class OtherHomeError(MirrorError):
    """The storage belongs to a mirror with another home."""


class BehindError(MirrorError):
    """The source lags: it has the same history as the mirror, but less of it."""


SOURCE_ACCEPTS = "https://HOST/PATH, http://..., s3://BUCKET/PREFIX, gs://..., az://... or file:///PATH"


class Source(Protocol):
    """Reads files by their paths in the source's storage. `name` is the source's URL without credentials."""

    name: str

    def chunks(self, path: str) -> AbstractContextManager[Iterator[bytes]]:
        """Yield the content of a file. Raises VanishedError, SourceError and RefusedSourceError."""

    def close(self) -> None:
        """Close all connections."""


def small_file(source: Source, path: str, most_bytes: int) -> bytes:
    """Return the content of a file. Raises RefusedSourceError if it has more than `most_bytes`."""
    found = bytearray()
    with source.chunks(path) as chunks:
        for chunk in chunks:
            found += chunk
            if len(found) > most_bytes:
                raise RefusedSourceError(f"{source.name}/{path} has more than the allowed {most_bytes:,} bytes")
    return bytes(found)


def open_source(url: str, *, connections: int = 4, network: Network | None = None) -> Source:
    """Open the source at `url`. Raises RefusedSourceError if the URL cannot be a source."""
    scheme = url.partition("://")[0].lower()
    if scheme in {"http", "https"}:
        return HttpSource(url, connections=connections, network=network or Network())
    if scheme not in SCHEMES:
        raise RefusedSourceError(f"not the URL of a source: {redact(url)!r}; use {SOURCE_ACCEPTS}")
    try:
        return StoredSource(open_storage(url, read_only=True))
    except NoFolderError as error:
        raise RefusedSourceError(f"there is no folder at {url}: use the folder `storage` of the other home") from error


class StoredSource:
    """A source in an object store or in a folder."""

    def __init__(self, storage: Storage) -> None:
        self.name = redact(storage.url.removesuffix("/"))
        self._storage = storage

    @contextmanager
    def chunks(self, path: str) -> Iterator[Iterator[bytes]]:
        """Yield the content of a file."""
        with ExitStack() as opened:
            with self._translated(path):
                stream = opened.enter_context(self._storage.open(path))
            yield self._received(path, stream)

    def close(self) -> None:
        """Do nothing: no connection stays open."""

    def _received(self, path: str, stream: BinaryIO) -> Iterator[bytes]:
        with self._translated(path):
            while chunk := stream.read(READ_BUFFER_BYTES):
                yield chunk

    @contextmanager
    def _translated(self, path: str) -> Iterator[None]:
        try:
            yield
        except ObjectNotFoundError as error:
            raise VanishedError(f"the source has no {path}: {error}") from error
        except (StorageError, OSError) as error:
            raise SourceError(f"the source cannot be read: {error}") from error


class HttpSource:
    """A source of static files below a URL, requested in the same way as an index's files; see `index/transport.py`."""

    def __init__(self, url: str, *, connections: int, network: Network, timeouts: Timeouts = TIMEOUTS) -> None:
        self.name = redact(url.rstrip("/"))
        try:
            scheme, _, _ = split_fetchable(self.name)
        except PackageIndexError as error:
            raise RefusedSourceError(f"not the URL of a source: {self.name!r}; use {SOURCE_ACCEPTS}") from error
        if urlsplit(self.name).query or urlsplit(self.name).fragment:
            raise RefusedSourceError(f"the URL of a source must not have a query or a fragment: {self.name!r}")
        self._transport = Transport(
            HostRule(None, allow_http=scheme == "http"),
            IndexCredentials(url),
            Connections(AddressRule(self.name), network, kept=connections),
            agent=user_agent(None),
            max_connections=connections,
            timeouts=timeouts,
        )

    @contextmanager
    def chunks(self, path: str) -> Iterator[Iterator[bytes]]:
        """Yield the content of a file."""
        url = f"{self.name}/{quote(path)}"
        with ExitStack() as opened:
            with self._translated(url):
                response = opened.enter_context(self._transport.exchange("GET", url, AS_STORED))
            yield self._received(url, response)

    def close(self) -> None:
        """Close all connections. Call it when no thread uses them any more."""
        self._transport.close()

    def _received(self, url: str, response: BaseHTTPResponse) -> Iterator[bytes]:
        with self._translated(url):
            yield from self._transport.chunks(response, sys.maxsize, url, decode=False)

    @contextmanager
    def _translated(self, url: str) -> Iterator[None]:
        try:
            yield
        except (NotOnIndexError, DeniedError) as error:
            raise VanishedError(f"the source has no {url}: {error}") from error
        except TransientError as error:
            raise SourceError(f"the source does not answer at {url}: {error}") from error
        except PackageIndexError as error:
            raise RefusedSourceError(f"the source does not serve {url}: {error}") from error
