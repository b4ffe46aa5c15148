"""Fetches one distribution as sparingly as its kind allows, and has it read: what comes of it is a FinishedRead.

Zips are read in parts, everything else as it comes. Parts have no hash of their own: where they show a broken file, it
is read again from the whole, whose hash is checked.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import BinaryIO

from pypi_assets.catalog.claims import WORKER_DIED
from pypi_assets.catalog.read_queue import PendingRead
from pypi_assets.catalog.reads import FinishedRead, Outcome, record_outcome
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.models import (
    READABLE_KINDS,
    DistributionKind,
    DistributionRecord,
    ErrorKind,
    FilenameParts,
    ReadError,
)
from pypi_assets.distributions.sources import MismatchError, RangeSource
from pypi_assets.distributions.workers import FinishedReading
from pypi_assets.index.errors import ContentError, GoneError, PackageIndexError, TooLargeError, TransientError
from pypi_assets.index.models import FetchedBytes

_NOTHING_FETCHED = FetchedBytes(0, 0, 0.0)
_TOLD_BY_BYTES = frozenset({ErrorKind.CORRUPT_ARCHIVE, ErrorKind.NO_METADATA, ErrorKind.BAD_METADATA})
"""What can be wrong with parts that came wrong."""


def fetch_and_read(crawler: Crawler, read: PendingRead) -> FinishedRead:
    """What came of one attempt at a distribution. Raises only what says nothing about the file."""
    started_at = crawler.catalog.clock()
    if read.attempts >= crawler.max_attempts:
        text = f"no attempt is left: of {read.attempts}, the last ones ended with their worker"
        return FinishedRead(read.distribution_id, Outcome.GAVE_UP, error_kind=WORKER_DIED, error_text=text)
    return replace(_fetch_and_read(crawler, read), started_at=started_at)


def _fetch_and_read(crawler: Crawler, read: PendingRead) -> FinishedRead:
    parts = parse_filename(read.filename, read.project)
    if parts.kind not in READABLE_KINDS:
        error = ReadError(ErrorKind.UNSUPPORTED_KIND, f"files of kind {parts.kind} are not read")
        record = DistributionRecord(read.filename, parts.kind, parts.project, parts.version, error=error)
        return FinishedRead(read.distribution_id, Outcome.UNSUPPORTED, record)
    attempt = _Attempt(crawler, read)
    started = time.monotonic()
    try:
        reading = attempt.read(parts)
        if reading.died:  # maybe in this file's stead: who kills for want of memory takes whichever process is largest
            reading = attempt.read(parts, extract_first=True)
    except PackageIndexError as error:
        return _failed(crawler, read, error, attempt.fetched, time.monotonic() - started)
    return FinishedRead(
        read.distribution_id,
        record_outcome(reading.record),
        reading.record,
        extract=reading.extract,
        bytes_fetched=attempt.fetched.bytes,
        requests=attempt.fetched.requests,
        seconds=time.monotonic() - started,
    )


def _is_zip(parts: FilenameParts) -> bool:
    return parts.kind != DistributionKind.SDIST or parts.filename.lower().endswith(".zip")


class _Attempt:
    """One attempt at a distribution; `fetched` is what all its readings took until now, also where one fails."""

    def __init__(self, crawler: Crawler, read: PendingRead) -> None:
        self._crawler = crawler
        self._pending = read
        self.fetched = _NOTHING_FETCHED

    def read(self, parts: FilenameParts, *, extract_first: bool = False) -> FinishedReading:
        """Has the file read from its start, as its kind and size allow."""
        try:
            return self._read_once(parts, extract_first)
        except ContentError:  # maybe spoiled on the way: wrong content is believed once it comes a second time
            return self._read_once(parts, extract_first)

    def _read_once(self, parts: FilenameParts, extract_first: bool) -> FinishedReading:
        pending = self._pending
        have_read = partial(
            self._crawler.readers.read,
            filename=pending.filename,
            project=pending.project,
            extract_first=extract_first,
        )
        if pending.size is not None and _is_zip(parts):
            return self._read_in_parts(have_read, pending.size)
        return self._read_whole(have_read)

    def _read_whole(self, have_read: Callable[[BinaryIO], FinishedReading]) -> FinishedReading:
        """Has the file read as it comes."""
        pending, crawler = self._pending, self._crawler
        reading, fetched = crawler.index.stream_file(
            pending.url,
            have_read,
            sha256=pending.sha256,
            size=pending.size,
            max_bytes=crawler.readers.limits.max_file_bytes,
        )
        self._count(fetched)
        return reading

    def _read_in_parts(
        self, have_read: Callable[[BinaryIO | RangeSource], FinishedReading], size: int
    ) -> FinishedReading:
        """Has a zip of `size` bytes read where its directory and its metadata lie."""
        pending, crawler = self._pending, self._crawler
        with crawler.index.open_ranges(
            pending.url,
            sha256=pending.sha256,
            size=size,
            max_bytes=crawler.readers.limits.max_file_bytes,
            metadata_sha256=pending.core_metadata_sha256,
            has_sidecar=pending.core_metadata,
        ) as file:
            try:
                try:
                    reading = have_read(file)
                except MismatchError:
                    reading = None
                if reading is None or (reading.record.error and reading.record.error.kind in _TOLD_BY_BYTES):
                    reading = have_read(file.whole())
            finally:
                self._count(file.fetched)
        return reading

    def _count(self, fetched: FetchedBytes) -> None:
        before = self.fetched
        self.fetched = FetchedBytes(
            before.bytes + fetched.bytes, before.requests + fetched.requests, before.seconds + fetched.seconds
        )


def _failed(
    crawler: Crawler, read: PendingRead, error: PackageIndexError, fetched: FetchedBytes, seconds: float
) -> FinishedRead:
    outcome, kind, due_at = Outcome.ERROR, "refused", 0.0
    if isinstance(error, GoneError) and not read.is_live:
        outcome, kind = Outcome.VANISHED, "gone"
    elif isinstance(error, TransientError | GoneError):
        next_try = crawler.next_try(error, read.attempts, read.first_failed_at)
        outcome = Outcome.GAVE_UP if next_try is None else Outcome.PENDING
        kind, due_at = "gone" if isinstance(error, GoneError) else "transient", next_try or 0.0
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
        bytes_fetched=fetched.bytes,
        requests=fetched.requests,
        seconds=seconds,
    )
