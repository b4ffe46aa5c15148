"""Reads the journal from a cursor on: the records of some streams, merged in their one order.

It reads the storage alone, so that it works on a copy of it too.
"""

import heapq
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import orjson

from pypi_assets.catalog.reports.journal_records import Record
from pypi_assets.errors import ExpectedError
from pypi_assets.journal.cursors import RANKS, Cursor
from pypi_assets.journal.segment_files import Head, Manifest, read_head, read_lines, read_manifest
from pypi_assets.storage.store import Storage

_KEPT_MANIFESTS = 4_096


class NoJournalError(ExpectedError):
    """There is no journal, or none at the serial that a reader is at."""


@dataclass(frozen=True)
class Journal:
    """The journal in a storage. What it has read of manifests it keeps: they never change."""

    storage: Storage
    _manifests: Callable[[str, int, int], Manifest] = field(init=False)

    def __post_init__(self) -> None:
        def read(stream: str, generation: int, number: int) -> Manifest:
            return read_manifest(self.storage, stream, generation, number)

        object.__setattr__(self, "_manifests", lru_cache(_KEPT_MANIFESTS)(read))

    def head(self, stream: str) -> Head:
        """The present state of a stream. Raises NoJournalError where there is none."""
        head = read_head(self.storage, stream)
        if head is None:
            raise NoJournalError(
                f"there is no journal in {self.storage.url}: write it first (pypi-assets journal write)"
            )
        return head

    def manifest(self, head: Head, number: int) -> Manifest:
        """The manifest of a segment of the generation of `head`."""
        return self._manifests(head.stream, head.generation, number)

    def segments(self, head: Head, after: int) -> Iterator[Manifest]:
        """The segments that end after the serial `after`, in order; last the one that is not whole yet."""
        low, high = 1, head.number + 1
        while low < high:
            middle = (low + high) // 2
            if self.manifest(head, middle).serials.end > after:
                high = middle
            else:
                low = middle + 1
        for number in range(low, head.number + 1):
            yield self.manifest(head, number)
        if head.open is not None and head.open.serials.end > after:
            found = head.open
            yield Manifest(
                head.stream,
                head.generation,
                head.number + 1,
                found.serials,
                found.name,
                found.records,
                found.content_bytes,
                found.sha256,
                head.digest,
            )

    def through(self, streams: Collection[str]) -> int:
        """The serial up to which all of these streams are published."""
        return min(self.head(stream).through for stream in streams)

    def records(
        self, after: Cursor, streams: Collection[str] = tuple(RANKS), through: int | None = None
    ) -> Iterator[Record]:
        """The records after a cursor, up to the serial `through` (None: as far as all of `streams` are published).

        Raises NoJournalError where the journal begins later than the cursor, JournalDamagedError.
        """
        heads = [self.head(stream) for stream in sorted(streams, key=RANKS.__getitem__)]
        end = min(head.through for head in heads)
        end = end if through is None else min(end, through)
        for head in heads:
            if after.serial < head.start and end > head.start:
                raise NoJournalError(
                    f"the stream {head.stream} of the journal begins after serial {head.start}, not at {after.serial}"
                )
        merged = heapq.merge(*(self._of_stream(head, after, end) for head in heads), key=Cursor.of)
        return iter(merged)

    def _of_stream(self, head: Head, after: Cursor, end: int) -> Iterator[Record]:
        # the segment in which the cursor's serial lies can have more records of it
        for segment in self.segments(head, max(after.serial - 1, 0)):
            if segment.serials.start >= end:
                return
            for line in read_lines(self.storage, segment):
                record: Record = orjson.loads(line)
                if record["serial"] > end:
                    return
                if Cursor.of(record) > after:
                    yield record
