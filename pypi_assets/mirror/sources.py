"""Reads from the source that a mirror copies: static files over http(s), or an object store.

Nothing is listed, and bodies are bounded. Each error names the source's file and what is wrong with it.
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
from pypi_assets.index.files import AS_STORED
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


SOURCE_ACCEPTS = "https://HOST/PATH, http://..., s3://BUCKET/PREFIX, gs://..., az://... or file:///PATH"


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
        except ObjectNotFoundError as error:
            raise VanishedError(f"the source has no {path}: {error}") from error
        except (StorageError, OSError) as error:
            raise SourceError(f"the source cannot be read: {error}") from error


class HttpSource:
    """The source as static files below a URL, requested as an index's files are: see `index/transport.py`."""

    def __init__(self, url: str, *, connections: int, network: Network, timeouts: Timeouts = TIMEOUTS) -> None:
        self.name = redact(url.rstrip("/"))
        try:
            scheme, _, _ = split_fetchable(self.name)
        except PackageIndexError as error:
            raise RefusedSourceError(f"not the URL of a source: {self.name!r}; it is {SOURCE_ACCEPTS}") from error
        if urlsplit(self.name).query or urlsplit(self.name).fragment:
            raise RefusedSourceError(f"the URL of a source ends with its path: {self.name!r}")
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
        """The content of a file."""
        url = f"{self.name}/{quote(path)}"
        with ExitStack() as opened:
            with self._translated(url):
                response = opened.enter_context(self._transport.exchange("GET", url, AS_STORED))
            yield self._received(url, response)

    def close(self) -> None:
        """Closes its connections; call it when no thread uses them any more."""
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
            raise RefusedSourceError(f"the source does not give {url}: {error}") from error
