"""Verifies the journal in a storage: follows the chain of each stream and reports its first fault.

All files are read as streams, so only one record is in memory at a time. Two journals are compared in `comparing.py`.
"""

import hashlib
import io
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import orjson
import zstandard

from pypi_assets.catalog.reports.journal_format import JournalStream, Record
from pypi_assets.journal.segment_files import (
    MOST_LINE_BYTES,
    Head,
    JournalDamagedError,
    SegmentManifest,
    head_path,
    manifest_path,
    open_manifest,
    read_head,
    read_manifest,
    segment_path,
)
from pypi_assets.journal.takedown_files import as_replaced, replaced_segments
from pypi_assets.storage.store import ObjectNotFoundError, Storage

Progress = Callable[[int], None]
_PLACE = re.compile(rb'\{"serial":([0-9]{1,18}),"of_serial":([0-9]{1,18}),"ordinal":([0-9]{1,18}),"stream":"([a-z]+)",')
"""Matches the beginning of each record."""
_BUFFER_BYTES = 1024**2
_PROGRESS_RECORDS = 100_000


@dataclass(frozen=True, slots=True)
class JournalFault:
    """A difference from the expected content.

    `record` is the number of the record from 1, and `offset` the position of its first byte before compression. Both
    are None if the fault is not in one record.
    """

    file: str
    problem: str
    record: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        place = "" if self.record is None else f", record {self.record}"
        place += "" if self.offset is None else f" at byte {self.offset}"
        return f"{self.file}{place}: {self.problem}"


@dataclass(frozen=True, slots=True)
class VerifiedStream:
    """The result of verifying a stream: its head, the segments and records without a fault, and its first fault.

    `head` is None if there is no journal or its head cannot be read.
    """

    stream: str
    head: Head | None
    segments: int
    records: int
    fault: JournalFault | None

    @property
    def is_sound(self) -> bool:
        return self.fault is None


class _FaultError(Exception):
    def __init__(self, fault: JournalFault) -> None:
        self.fault = fault


def verify_stream(storage: Storage, stream: JournalStream, progress: Progress | None = None) -> VerifiedStream:
    """Verify the chain of a stream up to its first fault. `progress` receives the number of records."""
    segments = records = 0
    try:
        head = read_head(storage, stream.value)
    except JournalDamagedError as error:
        return VerifiedStream(stream.value, None, 0, 0, JournalFault(head_path(stream.value), str(error)))
    if head is None:
        return VerifiedStream(stream.value, None, 0, 0, JournalFault(head_path(stream.value), "there is no such file"))
    try:
        for segment in _chain(storage, head):
            for _ in checked_lines(storage, segment):
                records += 1
                if progress is not None and records % _PROGRESS_RECORDS == 0:
                    progress(records)
            segments += 1
    except _FaultError as error:
        return VerifiedStream(stream.value, head, segments, records, error.fault)
    return VerifiedStream(stream.value, head, segments, records, None)


def _chain(storage: Storage, head: Head) -> Iterator[SegmentManifest]:
    """Yield the segments of a chain, and last the open segment. Each manifest must continue the previous one."""
    end, digest = head.start, None
    try:
        replaced = replaced_segments(storage, head)
    except JournalDamagedError as error:
        raise _FaultError(JournalFault(head_path(head.stream), str(error))) from error
    for number in range(1, head.number + 1):
        path = manifest_path(head.stream, head.generation, number)
        try:
            manifest = read_manifest(storage, head.stream, head.generation, number)
        except JournalDamagedError as error:
            raise _FaultError(JournalFault(path, str(error))) from error
        if manifest.previous != digest:
            raise _FaultError(
                JournalFault(path, f"the manifest before it has the hash {digest}, not {manifest.previous}")
            )
        if manifest.serials.start != end:
            what = "skips" if manifest.serials.start > end else "repeats"
            raise _FaultError(
                JournalFault(path, f"it begins after serial {manifest.serials.start} and {what} some: {end}")
            )
        end, digest = manifest.serials.end, manifest.digest
        if number >= head.first_number:
            yield as_replaced(manifest, replaced)
        elif number == head.first_number - 1 and head.readable_from != end:
            raise _FaultError(
                JournalFault(
                    head_path(head.stream), f"the pruned segments end at serial {end}, not at {head.readable_from}"
                )
            )
    if (head.end, head.digest) != (end, digest):
        found = f"the chain ends at serial {end} with the hash {digest}"
        raise _FaultError(JournalFault(head_path(head.stream), f"{found}, not at {head.end} with {head.digest}"))
    if head.open is not None:
        if head.open.serials.start != end:
            raise _FaultError(
                JournalFault(head_path(head.stream), f"its open segment does not begin after serial {end}")
            )
        yield open_manifest(head, head.open)


def checked_lines(storage: Storage, segment: SegmentManifest) -> Iterator[bytes]:
    """Yield the records of a segment as lines, each once its position was checked.

    Raises _FaultError with the first fault. A wrong hash of the whole segment is detected only after the last record.
    """
    path = segment_path(segment)
    digest, number, offset = hashlib.sha256(), 0, 0
    place = (segment.serials.start, 0)
    try:
        with storage.open(path) as source:
            reader = zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True)
            lines = io.BufferedReader(reader, _BUFFER_BYTES)
            while line := lines.readline(MOST_LINE_BYTES):
                number += 1
                problem, place = next_place(segment, place, line)
                if problem is not None:
                    raise _FaultError(JournalFault(path, problem, number, offset))
                digest.update(line)
                offset += len(line)
                yield line
    except ObjectNotFoundError as error:
        raise _FaultError(JournalFault(path, "there is no such file")) from error
    except zstandard.ZstdError as error:
        problem = f"it cannot be decompressed from there on: {error}"
        place = _first_unparsable(storage, segment) or (number + 1, offset)
        raise _FaultError(JournalFault(path, problem, *place)) from error
    if digest.hexdigest() != segment.sha256:
        problem = f"its records have the sha256 {digest.hexdigest()}, not {segment.sha256}"
        raise _FaultError(JournalFault(path, problem, *(_first_unparsable(storage, segment) or (None, None))))
    if (number, offset) != (segment.records, segment.content_bytes):
        found = f"it has {number} records of {offset} bytes"
        raise _FaultError(JournalFault(path, f"{found}, not {segment.records} of {segment.content_bytes}"))


def next_place(segment: SegmentManifest, last: tuple[int, int], line: bytes) -> tuple[str | None, tuple[int, int]]:
    """Check a line that follows a record at the position `last`. Return its problem, or None, and its position.

    The position is the record's serial, and the ordinal that the next record of that serial must have.
    """
    match = _PLACE.match(line)
    if match is None or not line.endswith(b"}\n"):
        return "it is not a record", last
    serial, of_serial, ordinal = int(match[1]), int(match[2]), int(match[3])
    stream = match[4].decode()
    if stream != segment.stream:
        return f"it belongs to the stream {stream}", last
    if serial not in segment.serials:
        return f"its serial {serial} is not in {segment.serials}", last
    if serial < last[0]:
        return f"its serial {serial} comes after {last[0]}", last
    expected = last[1] if serial == last[0] else 0
    if ordinal != expected:
        return f"its ordinal is {ordinal}, not {expected}", last
    if of_serial > serial:
        return f"it happened at serial {of_serial}, after it was published at {serial}", last
    return None, (serial, ordinal + 1)


def _first_unparsable(storage: Storage, segment: SegmentManifest) -> tuple[int, int] | None:
    """Return the number of the first record that is not JSON, and the offset of the invalid byte, or None."""
    offset = 0
    with storage.open(segment_path(segment)) as source:
        reader = zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True)
        lines = io.BufferedReader(reader, _BUFFER_BYTES)
        with suppress(zstandard.ZstdError):
            for number, line in enumerate(iter(lambda: lines.readline(MOST_LINE_BYTES), b""), 1):
                try:
                    orjson.loads(line)
                except orjson.JSONDecodeError as error:
                    return number, offset + error.pos
                offset += len(line)
    return None


def decoded(line: bytes) -> Record:
    record: Record = orjson.loads(line)
    return record
