"""Files of an index, as a stream or by byte ranges, checked against what their project's page promises.

What is read from a file's content is decided in `distributions/`.
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
"""How much of a whole file is kept in memory; the rest goes to a temporary file."""

# Some servers take a .tar.gz for a compressed .tar: without this they would decompress it on the way.
AS_STORED = {"Accept-Encoding": "identity"}
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class PromisedFile:
    """A file, what its page promises of it (None where it promises nothing), and the most bytes to fetch."""

    url: str
    sha256: str | None
    size: int | None
    max_bytes: int

    def check_size(self) -> None:
        """Raises TooLargeError where the file is larger than wanted."""
        if self.size is not None and self.size > self.max_bytes:
            raise TooLargeError(f"{self.size} bytes, and at most {self.max_bytes} are read", redact(self.url))


def sidecar_url(url: str) -> str:
    """Return the address of the metadata that an index serves next to the file at `url` (PEP 658)."""
    return f"{urldefrag(url).url}.metadata"


class FileBody(io.RawIOBase):
    """The body of an answer as a stream, to be read once. At its end it raises unless it was what was promised.

    `failure` is what went wrong on the way; results that a reader computed from the stream by then are void.
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
        """Receives the rest, and returns the size of the whole body in bytes."""
        while self._receive():
            pass
        return self.received

    @property
    def sha256(self) -> str:
        """The hash of what was received."""
        return self._digest.hexdigest()

    def _receive(self) -> bytes:
        """The next chunk; empty only at the end of what was promised."""
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
            if not self._is_length_known:  # the connection's end is the only sign of the body's end
                raise TransientError(f"{self.received} bytes came, {size} are due", url)
            raise self._wrong_size(f"{self.received} bytes, and its page promises {size}")
        if sha256 is not None and self._digest.hexdigest() != sha256.lower():
            raise ContentError(f"its sha256 is {self._digest.hexdigest()}, and its page promises {sha256}", url)

    def _wrong_size(self, text: str) -> PackageIndexError:
        """An HTML page in the file's place is a maintenance page or the like, whatever its status: so transient."""
        url = redact(self._promised.url)
        return TransientError(f"an HTML page: {text}", url) if self._is_page else ContentError(text, url)


class _ConsumerError(Exception):
    """Carries what a consumer raised past the retries, whatever it is."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def stream_file(
    transport: Transport, promised: PromisedFile, consume: Callable[[BinaryIO], _T], requested: list[str]
) -> tuple[_T, int, str]:
    """What `consume` makes of the file, the file's size and its sha256; see `IndexClient.stream_file`.

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
    """A file that is read by byte ranges; for one thread at a time, and to be closed after use.

    Each `read_at` is one request, and nothing is kept between them. The whole file is fetched, and read from then on,
    where all of it is requested, or where the server does not answer the requested range. Raises TransientError,
    NotOnIndexError and RefusedError as the client's other methods do. Raises TooLargeError where the whole file is
    needed and larger than `max_bytes`.
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
        """Drops the whole file, where it was fetched."""
        if self._whole is not None:
            self._whole.close()

    @property
    def fetched(self) -> FetchedBytes:
        """The cost of this file until now: the bytes of all good answers, and every request, failed ones too."""
        return FetchedBytes(self._bytes, len(self._requested), self._seconds)

    def read_at(self, offset: int, size: int) -> bytes:
        """`size` bytes from `offset`, fewer only where the file ends. Raises ValueError for a negative offset."""
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
        """The METADATA that the index serves next to a wheel (PEP 658), its hash checked where the page names one.

        None where there is none that can be trusted. It is requested once at most, unless TransientError is raised.
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
        """The whole file from its start, checked and seekable; it is fetched once, and closed with this object."""
        if self._whole is None:
            self._whole = self._stream(self._promised, _spooled)
        self._whole.seek(0)
        return self._whole

    def _stream(self, promised: PromisedFile, consume: Callable[[BinaryIO], _T]) -> _T:
        result, received, _ = self._timed(lambda: stream_file(self._transport, promised, consume, self._requested))
        self._bytes += received
        return result

    def _request_range(self, offset: int, end: int) -> bytes | None:
        """The bytes from `offset` to `end`; None where they were not served, so that the whole file is needed."""
        url = self._promised.url
        headers = AS_STORED | {"Range": f"bytes={offset}-{end - 1}"}
        with self._transport.exchange("GET", url, headers, requested=self._requested) as response:
            if response.status == HTTPStatus.OK:  # this server knows no ranges: here is the whole file
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
            raise TransientError(f"{len(part)} bytes of a range came, {end - offset} are due", redact(url))
        self._bytes += len(part)
        return part

    def _timed(self, fetch: Callable[[], _T]) -> _T:
        started = self._transport.now()
        try:
            return fetch()
        finally:
            self._seconds += self._transport.now() - started


def _spooled(stream: BinaryIO) -> BinaryIO:
    """All of `stream` in a temporary file, the first SPOOLED_BYTES in memory."""
    with ExitStack() as closed_on_failure:
        spool = closed_on_failure.enter_context(tempfile.SpooledTemporaryFile(SPOOLED_BYTES))
        copyfileobj(stream, spool, CHUNK_BYTES)
        closed_on_failure.pop_all()
    return cast("BinaryIO", spool)
