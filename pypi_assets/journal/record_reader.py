"""Reads the journal from a cursor on: the records of some streams, merged into one order.

It reads only the storage, so it also works on a copy of the storage.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from operator import itemgetter

from pypi_assets.journal.cursors import RANKS, Cursor
from pypi_assets.journal.journal_errors import NoJournalError
from pypi_assets.journal.segment_files import (
    Head,
    JournalDamagedError,
    SegmentManifest,
    SegmentMissingError,
    open_manifest,
    read_blocks,
    read_head,
    read_manifest,
    segment_path,
)
from pypi_assets.journal.takedown_files import ReplacedSegment, as_replaced, replaced_segments
from pypi_assets.storage.store import Storage

_KEPT_MANIFESTS = 4_096
_KEPT_TAKEDOWNS = 8
_BEGIN = re.compile(rb'\{"serial":([0-9]{1,18}),"of_serial":[0-9]{1,18},"ordinal":([0-9]{1,18}),').match
"""Matches the beginning of each record, without parsing the whole line."""
Place = tuple[int, int, int]
"""The parts of a record's cursor: serial, rank of the stream, and ordinal."""
Placed = tuple[Place, bytes]
"""A record as its line of JSON, with its position."""
_place: Callable[[Placed], Place] = itemgetter(0)


def no_journal(storage: Storage) -> NoJournalError:
    """Return the error for a storage without a journal."""
    return NoJournalError(f"there is no journal in {storage.url}: write it first (pypi-assets journal write)")


@dataclass(frozen=True)
class Journal:
    """The journal in a storage. Manifests are cached, since they never change."""

    storage: Storage
    _manifests: Callable[[str, int, int], SegmentManifest] = field(init=False)
    _replaced: Callable[[Head], Mapping[int, ReplacedSegment]] = field(init=False)

    def __post_init__(self) -> None:
        def read(stream: str, generation: int, number: int) -> SegmentManifest:
            return read_manifest(self.storage, stream, generation, number)

        @lru_cache(_KEPT_TAKEDOWNS)
        def replaced(named: Head) -> Mapping[int, ReplacedSegment]:
            return replaced_segments(self.storage, named)

        def replaced_of(head: Head) -> Mapping[int, ReplacedSegment]:
            if head.takedowns is None:
                return {}
            return replaced(Head(head.stream, head.generation, 0, 0, 0, None, takedowns=head.takedowns))

        object.__setattr__(self, "_manifests", lru_cache(_KEPT_MANIFESTS)(read))
        object.__setattr__(self, "_replaced", replaced_of)

    def head(self, stream: str) -> Head:
        """Return the current state of a stream. Raises NoJournalError if there is none."""
        head = read_head(self.storage, stream)
        if head is None:
            raise no_journal(self.storage)
        return head

    def manifest(self, head: Head, number: int) -> SegmentManifest:
        """Return the manifest of a segment in the generation of `head`."""
        return self._manifests(head.stream, head.generation, number)

    def _segment(self, head: Head, number: int) -> SegmentManifest:
        """Return the manifest with the current file, if a takedown has replaced the original file."""
        return as_replaced(self.manifest(head, number), self._replaced(head))

    def segments(self, head: Head, after: int) -> Iterator[SegmentManifest]:
        """Yield the segments that end after the serial `after`, in order, with their current files.

        The open segment is last.
        """
        low, high = head.first_number, head.number + 1
        while low < high:
            middle = (low + high) // 2
            if self.manifest(head, middle).serials.end > after:
                high = middle
            else:
                low = middle + 1
        for number in range(low, head.number + 1):
            yield self._segment(head, number)
        if head.open is not None and head.open.serials.end > after:
            yield open_manifest(head, head.open)

    def heads(self, streams: Collection[str] = tuple(RANKS)) -> list[Head]:
        """Return the current states of these streams, in their order. Raises NoJournalError if one of them has none."""
        return [self.head(stream) for stream in sorted(streams, key=RANKS.__getitem__)]

    def through(self, streams: Collection[str]) -> int:
        """Return the serial up to which all of these streams are published."""
        return min(self.head(stream).through for stream in streams)

    def lines(
        self, after: Cursor, heads: Collection[Head], through: int | None = None, *, with_passed: bool = False
    ) -> Iterator[Placed]:
        """Yield the records after a cursor as lines of JSON with their positions, up to the serial `through`.

        If `through` is None, the end is the serial up to which all these streams are published. A stream that begins
        after the cursor joins at its beginning. With `with_passed`, the records before the cursor in its segment, which
        are read anyway, are yielded too. Raises JournalDamagedError.
        """
        end = min(head.through for head in heads)
        end = end if through is None else min(end, through)
        streams = [self._of_stream(head, after, end, with_passed=with_passed) for head in heads]
        return chain.from_iterable(_merged(streams))

    def _of_stream(self, head: Head, after: Cursor, end: int, *, with_passed: bool) -> Iterator[list[Placed]]:
        """Yield the records of one stream in batches."""
        passed, beyond, rank = (after.serial, after.rank, after.ordinal), (end + 1, -1, 0), RANKS[head.stream]
        # unless the cursor is after all records of its serial, the segment of that serial can have more of them
        for segment in self.segments(head, after.whole_serial):
            if segment.serials.start >= end:
                return
            for lines in self._blocks_of(head, segment):
                placed = _placed(lines, rank, segment)
                first = 0 if with_passed else bisect_right(placed, passed, key=_place)
                last = bisect_right(placed, beyond, key=_place)
                if first < last:
                    yield placed[first:last]
                if last < len(placed):
                    return

    def _blocks_of(self, head: Head, segment: SegmentManifest) -> Iterator[Sequence[bytes]]:
        """Yield the lines of a segment in batches, even if a takedown replaces its file at this moment."""
        try:
            yield from read_blocks(self.storage, segment)
        except SegmentMissingError:
            newer = read_head(self.storage, head.stream)
            if newer is None or newer.generation != head.generation or newer.takedowns == head.takedowns:
                raise
            if segment.number < newer.first_number or segment.number > newer.number:
                raise
            yield from read_blocks(self.storage, self._segment(newer, segment.number))


def _placed(lines: Sequence[bytes], rank: int, segment: SegmentManifest) -> list[Placed]:
    """Return the lines with their positions. Raises JournalDamagedError."""
    begin = _BEGIN
    placed = [((int(match[1]), rank, int(match[2])), line) for line in lines if (match := begin(line)) is not None]
    if len(placed) < len(lines):
        line = next(line for line in lines if begin(line) is None)
        raise JournalDamagedError(f"{segment_path(segment)} has a line that is not a record: {line[:80]!r}")
    return placed


def _merged(streams: Sequence[Iterator[list[Placed]]]) -> Iterator[list[Placed]]:
    """Merge several ordered streams into one order. It works in batches, to keep the cost of a record low."""
    waiting: dict[int, list[Placed]] = {number: [] for number in range(len(streams))}
    while True:
        for number, batch in list(waiting.items()):
            if not batch:
                waiting[number] = next(streams[number], [])
                if not waiting[number]:
                    del waiting[number]
        if not waiting:
            return
        # records after this position could follow records that are not read yet
        end = min(batch[-1][0] for batch in waiting.values())
        merged: list[Placed] = []
        for number, batch in waiting.items():
            cut = bisect_right(batch, end, key=_place)
            merged += batch[:cut]
            waiting[number] = batch[cut:]
        merged.sort(key=_place)
        yield merged


def first_serial(heads: Collection[Head]) -> int:
    """Return the serial after which readers of these streams can begin.

    Streams can begin at different serials. Usually the result is the earliest beginning, since a stream that begins
    later has no earlier records. A pruned stream did have earlier records, so the result is never before the end of a
    pruned part.
    """
    return max(min(head.readable_from for head in heads), *(head.pruned.end for head in heads if head.pruned), 0)
