"""Files of an index, as a stream or by byte ranges, checked against the size and hash on their project's page.

How the content of a file is read is decided in `distributions/`.
"""

import hashlib
import io
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from http import HTTPStatus
from shutil import copyfileobj
from typing import TYPE_CHECKING, BinaryIO, TypeVar, cast
from urllib.parse import urldefrag

from urllib3 import BaseHTTPResponse

from pypi_assets.index.errors import (
    ContentError,
    NotOnIndexError,
    PackageIndexError,
    RefusedError,
    TooLargeError,
    TransientError,
)
from pypi_assets.index.models import FetchedBytes
from pypi_assets.index.transport import CHUNK_BYTES, Transport
from pypi_assets.index.urls import redact

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_SIDECAR_BYTES = 8 * 1024**2
SPOOLED_BYTES = 16 * 1024**2
"""How much of a whole file is kept in memory; larger files go to a temporary file."""

# Some servers serve a .tar.gz as a gzip-encoded .tar. Without this header, the file would be decompressed in transfer.
AS_STORED = {"Accept-Encoding": "identity"}
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class PromisedFile:
    """A file, the hash and size that its page states (None if not stated), and the most bytes to fetch."""

    url: str
    sha256: str | None
    size: int | None
    max_bytes: int

    def check_size(self) -> None:
        """Raise TooLargeError if the file is larger than `max_bytes`."""
        if self.size is not None and self.size > self.max_bytes:
            raise TooLargeError(f"{self.size} bytes, and at most {self.max_bytes} are read", redact(self.url))


def sidecar_url(url: str) -> str:
    """Return the URL of the metadata that an index serves next to the file at `url` (PEP 658)."""
    return f"{urldefrag(url).url}.metadata"


class FileBody(io.RawIOBase):
    """The body of an answer as a stream, to be read once. It is checked against the promised size and hash at its end.

    `failure` is the error that occurred while reading. After a failure, results computed from the stream are invalid.
    """

    def __init__(self, transport: Transport, response: BaseHTTPResponse, promised: PromisedFile) -> None:
        self.failure: PackageIndexError | None = None
        self.received = 0
        self._promised = promised
        self._is_page = response.headers.get("Content-Type", "").strip().lower().startswith("text/html")
        is_chunked = response.headers.get("Transfer-Encoding", "").strip().lower() == "chunked"
        self._is_length_known = is_chunked or "Content-Length" in response.headers
        limit = promised.max_bytes if promised.size is None else promised.size
        self._chunks = transport.chunks(response, limit, promised.url, decode=False)
        self._digest = hashlib.sha256()
        self._unread = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        target = memoryview(buffer).cast("B")
        self._unread = self._unread or memoryview(self._receive())
        size = min(len(target), len(self._unread))
        target[:size] = self._unread[:size]
        self._unread = self._unread[size:]
        return size

    def drain(self) -> int:
        """Receive the rest, and return the size of the whole body in bytes."""
        while self._receive():
            pass
        return self.received

    @property
    def sha256(self) -> str:
        """The hash of the received bytes."""
        return self._digest.hexdigest()

    def _receive(self) -> bytes:
        """Return the next chunk. It is empty only at the end of a body that passed all checks."""
        if self.failure is not None:
            raise self.failure
        try:
            chunk = next(self._chunks, b"")
            self.received += len(chunk)
            self._digest.update(chunk)
            if not chunk:
                self._check()
        except PackageIndexError as error:
            self.failure = error
            if isinstance(error, TooLargeError) and self._promised.size is not None:
                self.failure = self._wrong_size(f"more bytes than the {self._promised.size} that its page promises")
            raise self.failure from error.__cause__
        return chunk

    def _check(self) -> None:
        url, size, sha256 = redact(self._promised.url), self._promised.size, self._promised.sha256
        if size is not None and self.received != size:
            if not self._is_length_known:  # the end of the connection is the only sign that the body has ended
                raise TransientError(f"received {self.received} bytes, expected {size}", url)
            raise self._wrong_size(f"{self.received} bytes, and its page promises {size}")
        if sha256 is not None and self._digest.hexdigest() != sha256.lower():
            raise ContentError(f"its sha256 is {self._digest.hexdigest()}, and its page promises {sha256}", url)

    def _wrong_size(self, text: str) -> PackageIndexError:
        """Return the error for a body of the wrong size.

        An HTML page in place of the file is likely a maintenance page, whatever its status, so this error is transient.
        """
        url = redact(self._promised.url)
        return TransientError(f"an HTML page: {text}", url) if self._is_page else ContentError(text, url)


class _ConsumerError(Exception):
    """Carries an exception of a consumer past the retries."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def stream_file(
    transport: Transport, promised: PromisedFile, consume: Callable[[BinaryIO], _T], requested: list[str]
) -> tuple[_T, int, str]:
    """Return the result of `consume`, the file's size and its sha256; see `IndexClient.stream_file`.

    Each requested URL is appended to `requested`.
    """
    promised.check_size()

    def attempt() -> tuple[_T, int, str]:
        with transport.exchange("GET", promised.url, AS_STORED, requested=requested) as response:
            body = FileBody(transport, response, promised)
            try:
                result = consume(io.BufferedReader(body, CHUNK_BYTES))
            except Exception as error:
                if error is body.failure:
                    raise
                raise body.failure or _ConsumerError(error) from error
            return result, body.drain(), body.sha256

    try:
        return transport.retry(attempt)
    except _ConsumerError as carrier:
        raise carrier.error from carrier.error.__cause__


class RangedFile:
    """A file that is read by byte ranges. Use it from one thread at a time, and close it after use.

    Each `read_at` sends one request, and ranges are not cached. The whole file is fetched, and used from then on, if
    all of it is requested, or if the server does not support ranges. Raises TransientError, NotOnIndexError and
    RefusedError like the client's other methods. Raises TooLargeError if the whole file is needed and larger than
    `max_bytes`.
    """

    def __init__(
        self,
        transport: Transport,
        url: str,
        *,
        sha256: str | None,
        size: int,
        max_bytes: int,
        metadata_sha256: str | None,
        has_sidecar: bool,
    ) -> None:
        self.size = size
        self.metadata_sha256 = metadata_sha256
        self._transport = transport
        self._promised = PromisedFile(url, sha256, size, max_bytes)
        self._may_have_sidecar = has_sidecar
        self._sidecar: bytes | None = None
        self._whole: BinaryIO | None = None
        self._requested: list[str] = []
        self._bytes = 0
        self._seconds = 0.0

    def __enter__(self) -> "RangedFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete the whole file, if it was fetched."""
        if self._whole is not None:
            self._whole.close()

    @property
    def fetched(self) -> FetchedBytes:
        """The cost of this file so far: the bytes of all good answers, and all requests, including failed ones."""
        return FetchedBytes(self._bytes, len(self._requested), self._seconds)

    def read_at(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset`, or fewer at the end of the file.

        Raises ValueError for a negative offset.
        """
        if offset < 0:
            raise ValueError(f"an offset before the start of the file: {offset}")
        end = min(offset + size, self.size)
        if end <= offset:
            return b""
        is_all = end - offset == self.size <= self._promised.max_bytes
        if self._whole is None and not is_all:
            part = self._timed(lambda: self._transport.retry(lambda: self._request_range(offset, end)))
            if part is not None:
                return part
        whole = self.whole()
        whole.seek(offset)
        return whole.read(end - offset)

    def sidecar(self) -> bytes | None:
        """Return the METADATA that the index serves next to a wheel (PEP 658).

        Its hash is checked if the page states one. Returns None if there is no METADATA or it cannot be trusted. It is
        requested only once, unless TransientError was raised.
        """
        if self._may_have_sidecar:
            promised = PromisedFile(sidecar_url(self._promised.url), self.metadata_sha256, None, MAX_SIDECAR_BYTES)
            try:
                self._sidecar = self._stream(promised, lambda stream: stream.read())
            except (NotOnIndexError, RefusedError):
                self._sidecar = None
            self._may_have_sidecar = False
        return self._sidecar

    def whole(self) -> BinaryIO:
        """Return the whole file from its start, checked and seekable.

        It is fetched once, and closed with this object.
        """
        if self._whole is None:
            self._whole = self._stream(self._promised, _spooled)
        self._whole.seek(0)
        return self._whole

    def _stream(self, promised: PromisedFile, consume: Callable[[BinaryIO], _T]) -> _T:
        result, received, _ = self._timed(lambda: stream_file(self._transport, promised, consume, self._requested))
        self._bytes += received
        return result

    def _request_range(self, offset: int, end: int) -> bytes | None:
        """Return the bytes from `offset` to `end`, or None if the server did not serve them as a range.

        The whole file is needed then. If the server has sent it already, it is stored.
        """
        url = self._promised.url
        headers = AS_STORED | {"Range": f"bytes={offset}-{end - 1}"}
        with self._transport.exchange("GET", url, headers, requested=self._requested) as response:
            if response.status == HTTPStatus.OK:  # the server does not support ranges and sends the whole file
                self._promised.check_size()
                body = FileBody(self._transport, response, self._promised)
                self._whole = _spooled(cast("BinaryIO", body))
                self._bytes += body.received
                return None
            content_range = response.headers.get("Content-Range", "").strip().lower()
            is_partial = response.status == HTTPStatus.PARTIAL_CONTENT
            if not is_partial or content_range != f"bytes {offset}-{end - 1}/{self.size}":
                return None
            try:
                part = b"".join(self._transport.chunks(response, end - offset, url, decode=False))
            except TooLargeError:
                return None
        if len(part) < end - offset:
            raise TransientError(f"received {len(part)} bytes of a range, expected {end - offset}", redact(url))
        self._bytes += len(part)
        return part

    def _timed(self, fetch: Callable[[], _T]) -> _T:
        started = self._transport.now()
        try:
            return fetch()
        finally:
            self._seconds += self._transport.now() - started


def _spooled(stream: BinaryIO) -> BinaryIO:
    """Copy `stream` into a temporary file, which stays in memory up to SPOOLED_BYTES."""
    with ExitStack() as closed_on_failure:
        spool = closed_on_failure.enter_context(tempfile.SpooledTemporaryFile(SPOOLED_BYTES))
        copyfileobj(stream, spool, CHUNK_BYTES)
        closed_on_failure.pop_all()
    return cast("BinaryIO", spool)
