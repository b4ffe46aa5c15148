"""Downloads and reads distributions with as few bytes as possible. Each attempt ends in a FinishedRead.

Small files are downloaded whole, and several of them are read together. Larger zips are read by byte ranges, and other
large files as a stream. Ranges cannot be checked against the file's hash. So if a file looks broken, it is read again
from the whole file, whose hash is checked. `reading.py` decides which distributions are read, and when.
"""

import hashlib
import io
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import BinaryIO, TypeVar, cast

from sqlalchemy import Connection

from pypi_assets.catalog.coordination.claims import WORKER_DIED
from pypi_assets.catalog.observed.index_state import first_file_urls, known_file_origin, store_file_origin
from pypi_assets.catalog.reads.read_outcomes import GONE, FinishedRead, ReadOutcome, record_outcome
from pypi_assets.catalog.work.read_queue import PendingRead
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.keeping import ReadKeeping
from pypi_assets.distributions.extract import ServedMetadata
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.reader_pool import FinishedReading, StoredExtract, WholeFile
from pypi_assets.distributions.record import (
    READABLE_KINDS,
    DistributionKind,
    DistributionRecord,
    ErrorKind,
    ReadError,
)
from pypi_assets.distributions.sources import MismatchError, RangeSource
from pypi_assets.distributions.zips import WHOLE_FILE_BYTES
from pypi_assets.index.errors import (
    ContentError,
    NotOnIndexError,
    PackageIndexError,
    RefusedError,
    TooLargeError,
    TransientError,
)
from pypi_assets.index.file_origins import FileOrigin
from pypi_assets.index.models import FetchedBytes
from pypi_assets.index.ranged_files import MAX_SIDECAR_BYTES, RangedFile, sidecar_url
from pypi_assets.index.urls import shown_host

_T = TypeVar("_T")
_NOTHING_FETCHED = FetchedBytes(0, 0, 0.0)
_ERRORS_BY_RANGES = frozenset({ErrorKind.CORRUPT_ARCHIVE, ErrorKind.NO_METADATA, ErrorKind.BAD_METADATA})
"""Errors that wrong bytes in a range may cause, so that the whole file has to confirm them."""
_TOGETHER = 8
"""The most small files that are read together. More would save little, and would wait longer behind a slow file."""


def in_bundles(crawler: Crawler, reads: Sequence[PendingRead]) -> list[list[PendingRead]]:
    """Divide `reads` into bundles, each for one thread: several small files, or one larger file.

    Small files are spread evenly over the connections.
    """
    small: list[PendingRead] = []
    alone: list[list[PendingRead]] = []
    for read in reads:
        if _is_small(crawler, read):
            small.append(read)
        else:
            alone.append([read])
    most = max(1, min(_TOGETHER, -(-len(small) // crawler.connections)))
    return alone + [small[start : start + most] for start in range(0, len(small), most)]


def fetch_and_read(crawler: Crawler, bundle: Iterable[PendingRead], keeping: ReadKeeping) -> list[FinishedRead]:
    """Attempt each distribution of a bundle once. Return the outcomes in order.

    Small files are downloaded one after another, and then read together. The bytes of files that `keeping` wants are
    passed to it. Raises only errors that no file has caused.
    """
    begun = [(attempt := _FetchAttempt(crawler, read, keeping), attempt.begin()) for read in bundle]
    fetched = [(attempt, file) for attempt, file in begun if file is not None]
    started = time.monotonic()
    readings = crawler.readers.read_together([file for _, file in fetched])
    seconds = time.monotonic() - started
    for (attempt, _), reading in zip(fetched, readings, strict=True):
        attempt.take(reading, seconds / len(fetched))
    return [attempt.finished() for attempt, _ in begun]


def _is_small(crawler: Crawler, read: PendingRead) -> bool:
    """Check whether the file is always downloaded whole, and needs little memory."""
    return read.size is not None and read.size <= min(WHOLE_FILE_BYTES, crawler.readers.limits.max_file_bytes)


class _FetchAttempt:
    """An attempt at a distribution. Its cost includes all readings within the attempt, also failed ones."""

    def __init__(self, crawler: Crawler, read: PendingRead, keeping: ReadKeeping) -> None:
        self._crawler = crawler
        self._keeping = keeping
        self._pending = read
        self._file: WholeFile | None = None
        self._result = _without_fetching(crawler, read)
        self._started_at: float | None = None
        self._fetched = _NOTHING_FETCHED
        self._sha256: str | None = None
        self._seconds = 0.0
        self._is_other_served = False

    def begin(self) -> WholeFile | None:
        """Download a small file and return it, to be passed to `take` after reading. Read any other file at once."""
        if self._result is None:
            self._started_at = self._crawler.catalog.clock()
            with self._underway():
                if _is_small(self._crawler, self._pending):
                    self._file = _twice(self._fetch)
                else:
                    self._conclude(self._read())
        return self._file

    def take(self, reading: FinishedReading, seconds: float) -> None:
        """Take the reading of the small file, and its duration in seconds."""
        self._seconds += seconds
        with self._underway():
            self._conclude(reading)

    def finished(self) -> FinishedRead:
        """Return the outcome of the attempt."""
        if self._result is None:
            raise RuntimeError("the small file was not read: call take() first")
        return replace(
            self._result,
            started_at=self._result.started_at or self._started_at,
            bytes_fetched=self._fetched.bytes,
            requests=self._fetched.requests,
            seconds=self._seconds,
        )

    @contextmanager
    def _underway(self) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        except PackageIndexError as error:
            self._result = _failed(self._crawler, self._pending, error)
        finally:
            self._seconds += time.monotonic() - started

    def _conclude(self, reading: FinishedReading) -> None:
        if reading.died:  # maybe not because of this file: a kernel out of memory kills the largest process
            reading = self._read(extract_first=True)
        if reading.extract is not None and self._may_have_other_metadata(reading):
            served = self._served_metadata()
            digest = hashlib.sha256(served.content or b"").hexdigest()
            if not (served.is_as_stated and digest == reading.metadata_sha256):
                stored = StoredExtract(self._pending.filename, self._pending.project, reading.extract)
                reading = self._crawler.readers.amend(stored, served)
        self._result = FinishedRead(
            self._pending.distribution_id,
            record_outcome(reading.record),
            reading.record,
            extract=reading.extract,
            sha256=self._sha256,
        )

    def _read(self, *, extract_first: bool = False) -> FinishedReading:
        """Read the file from its start: from memory, by ranges, or as a stream."""
        have_read = partial(
            self._crawler.readers.read,
            filename=self._pending.filename,
            project=self._pending.project,
            kind=self._pending.kind,
            extract_first=extract_first,
        )
        if self._file is not None:
            return have_read(io.BytesIO(self._file.content))
        if None not in {self._pending.size, self._pending.sha256} and _is_zip(self._pending.filename):
            return _twice(lambda: self._read_in_parts(have_read))
        return _twice(lambda: self._read_whole(have_read))

    def _fetch(self) -> WholeFile:
        with self._opened() as file:
            content = file.whole().read()
        self._keeping.keep(self._pending, io.BytesIO(content))
        if self._pending.sha256 is None:
            self._sha256 = hashlib.sha256(content).hexdigest()
        return WholeFile(self._pending.filename, self._pending.project, content)

    def _read_whole(self, have_read: Callable[[BinaryIO], FinishedReading]) -> FinishedReading:
        """Read the file as a stream."""
        pending, crawler = self._pending, self._crawler
        reading, fetched = crawler.index.stream_file(
            pending.url,
            partial(self._keeping.copy_while_read, pending, have_read),
            sha256=pending.sha256,
            size=pending.size,
            max_bytes=crawler.readers.limits.max_file_bytes,
        )
        self._count(fetched)
        self._sha256 = fetched.sha256 if pending.sha256 is None else None
        return reading

    def _read_in_parts(self, have_read: Callable[[BinaryIO | RangeSource], FinishedReading]) -> FinishedReading:
        """Read a zip by the ranges of its directory and its metadata, or whole if its bytes are kept."""
        with self._opened() as file:
            if self._keeping.wants(self._pending):
                of_whole = have_read(file.whole())
                self._keeping.keep(self._pending, file.whole())
                return of_whole
            try:
                reading = have_read(file)
            except MismatchError:
                reading = None
                self._is_other_served = True  # the metadata file next to the wheel, or a range, did not match
            if reading is None or (reading.record.error and reading.record.error.kind in _ERRORS_BY_RANGES):
                reading = have_read(file.whole())
        return reading

    def _may_have_other_metadata(self, reading: FinishedReading) -> bool:
        """Check whether to download the metadata that the index serves next to a file, and compare it with the file's
        own.

        For a wheel, the page states the hash of the served metadata. If the wheel's METADATA has that hash, no request
        is needed. For an sdist, pip resolves by the served metadata, even if it equals the PKG-INFO, so it is always
        needed.
        """
        if self._pending.kind == DistributionKind.SDIST:
            return self._pending.core_metadata and reading.record.error is None
        own, stated = reading.metadata_sha256, self._pending.core_metadata_sha256
        is_other = self._is_other_served if stated is None else own != stated
        return own is not None and is_other and self._pending.kind == DistributionKind.WHEEL

    def _served_metadata(self) -> ServedMetadata:
        """Download the metadata that is served next to the file, even if it does not match the hash on the page."""
        stated = self._pending.core_metadata_sha256
        try:
            return ServedMetadata(_twice(lambda: self._fetch_sidecar(stated)), is_as_stated=True)
        except ContentError:
            return ServedMetadata(self._fetch_sidecar(None), is_as_stated=False)
        except TooLargeError:
            raise
        except (NotOnIndexError, RefusedError):
            return ServedMetadata(None, is_as_stated=False)

    def _fetch_sidecar(self, sha256: str | None) -> bytes:
        url = sidecar_url(self._pending.url)
        content, fetched = self._crawler.index.stream_file(
            url, lambda stream: stream.read(), sha256=sha256, size=None, max_bytes=MAX_SIDECAR_BYTES
        )
        self._count(fetched)
        return content

    @contextmanager
    def _opened(self) -> Iterator[RangedFile]:
        """Open a file of known size."""
        pending, crawler = self._pending, self._crawler
        with crawler.index.open_ranges(
            pending.url,
            sha256=pending.sha256,
            size=cast("int", pending.size),
            max_bytes=crawler.readers.limits.max_file_bytes,
            metadata_sha256=pending.core_metadata_sha256,
            has_sidecar=pending.core_metadata,
        ) as file:
            try:
                yield file
            finally:
                self._count(file.fetched)

    def _count(self, fetched: FetchedBytes) -> None:
        before = self._fetched
        self._fetched = FetchedBytes(
            before.bytes + fetched.bytes, before.requests + fetched.requests, before.seconds + fetched.seconds
        )


def _twice(fetch: Callable[[], _T]) -> _T:
    """Return the result of `fetch`. Transfers may corrupt content, so ContentError is raised only if it is repeated."""
    try:
        return fetch()
    except ContentError:
        return fetch()


def _without_fetching(crawler: Crawler, read: PendingRead) -> FinishedRead | None:
    """Return the outcome of a distribution that is not downloaded; None for any other distribution."""
    if read.attempts >= crawler.max_attempts:
        text = f"no attempt is left: of {read.attempts}, the last ones ended with their worker"
        return FinishedRead(read.distribution_id, ReadOutcome.EXHAUSTED, error_kind=WORKER_DIED, error_text=text)
    if read.kind not in READABLE_KINDS:
        parts = parse_filename(read.filename, read.project)
        error = ReadError(ErrorKind.UNSUPPORTED_KIND, f"files of kind {parts.kind} are not read")
        record = DistributionRecord(read.filename, parts.kind, parts.project, parts.version, error=error)
        return FinishedRead(read.distribution_id, ReadOutcome.UNSUPPORTED, record, started_at=crawler.catalog.clock())
    return None


def _is_zip(filename: str) -> bool:
    return filename.lower().endswith((".whl", ".egg", ".zip"))


def _failed(crawler: Crawler, read: PendingRead, error: PackageIndexError) -> FinishedRead:
    outcome, kind, due_at = ReadOutcome.ERROR, "refused", 0.0
    if isinstance(error, TransientError | NotOnIndexError):
        next_try = crawler.next_try(error, read.attempts, read.first_failed_at)
        outcome = ReadOutcome.EXHAUSTED if next_try is None else ReadOutcome.PENDING
        kind, due_at = GONE if isinstance(error, NotOnIndexError) else "transient", next_try or 0.0
    elif isinstance(error, TooLargeError):
        kind = ErrorKind.LIMIT_EXCEEDED
    elif isinstance(error, ContentError):
        kind = "wrong content"
    return FinishedRead(
        read.distribution_id,
        outcome,
        error_kind=kind,
        error_text=str(error),
        due_at=due_at,
    )


FIRST_PAGES = 20
"""The number of pages that must agree. If fewer pages were visited before the first read, all of them must agree."""


def choose_file_origin(crawler: Crawler) -> None:
    """Allow downloads from the origin of files that is stored. If none is stored, choose it by the first pages.

    Does nothing if the settings list the hosts, or if no page with files was visited yet. If several processes choose
    at the same time, the first choice counts for all, and is reported once. Raises RefusedError if the pages disagree,
    or name a host that must not be trusted.
    """
    if not crawler.trusts_first_file_host:
        return
    with crawler.catalog.read() as connection:
        origin = known_file_origin(connection)
        urls = first_file_urls(connection, FIRST_PAGES) if origin is None else []
    agreed = crawler.patiently(lambda: crawler.index.agreed_file_origin(urls)) if urls else None
    if agreed is not None:
        origin = _store(crawler, agreed)
    if origin is not None:
        crawler.index.trust_file_origin(origin)


def _store(crawler: Crawler, agreed: FileOrigin) -> str | None:
    """Store the origin, and return the valid one: `agreed`, or another process's earlier choice."""

    def store(connection: Connection) -> tuple[bool, str | None]:
        return store_file_origin(connection, agreed.origin), known_file_origin(connection)

    is_new, origin = crawler.catalog.transact(store)
    if is_new and agreed.origin:
        crawler.notify(
            f"files are downloaded only from {shown_host(agreed.origin)}, which the first pages of the index name;"
            " PYPI_ASSETS_ALLOWED_FILE_HOSTS can list other hosts instead"
        )
    elif is_new and agreed.refused:
        crawler.notify(
            f"files are downloaded only from the index's own host, and not from {', '.join(agreed.refused)}, which the"
            " first pages also name; PYPI_ASSETS_ALLOWED_FILE_HOSTS can list hosts that you trust"
        )
    return origin
