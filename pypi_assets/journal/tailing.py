"""Reads the records that match a filter, forwards from a cursor or backwards from a stream's end.

All readers of the journal use `Scan`: the command `journal tail`, the service, clients, webhooks, Kafka and replays.
"""

import re
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.reports.moments import MOMENT_ACCEPTS, NoMomentError, parse_moment, serial_at
from pypi_assets.journal.cursors import RANKS, Cursor, JournalCursorError
from pypi_assets.journal.filters import RecordFilter
from pypi_assets.journal.journal_errors import BeginsLaterError, SinceError
from pypi_assets.journal.record_reader import Journal, Place, first_serial
from pypi_assets.journal.segment_files import Head, SegmentManifest

NOW = "now"
EVERY = RecordFilter()
SINCE_ACCEPTS = f"a cursor of an answer, {MOMENT_ACCEPTS}, or {NOW}"
MOST_LOOKED_AT = 200_000
"""The most records that are read for one batch."""
MOST_SECONDS = 5.0
MOST_BATCH_BYTES = 8 * 1024**2
_MOST_KEPT, _KEPT_S = 16, 60.0
_LOOKS_BETWEEN_CLOCKS = 1_000
_DIGITS = re.compile(r"[0-9]{1,18}")


def cursor_since(text: str, journal: Journal, catalog: Catalog | None, wanted: RecordFilter = EVERY) -> Cursor:
    """Return the position to begin at for a user's text: a cursor, a serial, a time in UTC, or `now`.

    A serial or a time stands for the position after it. A time needs the catalog, and a time before all known serials
    stands for the beginning of the `wanted` streams. Raises SinceError.
    """
    if text == NOW:
        return Cursor.after_serial(min(head.through for head in journal.heads()))
    try:
        moment = parse_moment(text)
    except NoMomentError as error:
        if error.is_time:
            raise SinceError(f"{error}; it accepts {SINCE_ACCEPTS}") from None
        return _parsed(text)
    if isinstance(moment, int):
        return Cursor.after_serial(moment)
    if catalog is None:
        raise SinceError(f"{text} is a time, and without a catalog its serial is unknown; give a serial or a cursor")
    if moment.timestamp() > catalog.clock():
        raise SinceError(f"{text} is in the future")
    with catalog.read() as connection:
        serial = serial_at(connection, moment, complete_serial(connection))
    return beginning(journal, wanted) if serial is None else Cursor.after_serial(serial)


def beginning(journal: Journal, wanted: RecordFilter = EVERY) -> Cursor:
    """Return the position before the first record of the streams that can have wanted records.

    One stream can begin later than the others. Raises NoJournalError if there is no journal.
    """
    return Cursor.after_serial(first_serial(_heads(journal, wanted)))


def _heads(journal: Journal, wanted: RecordFilter) -> list[Head]:
    """Return the heads of the streams that can have wanted records, or of all streams if none can."""
    return journal.heads(wanted.read_streams or tuple(RANKS))


def _parsed(text: str) -> Cursor:
    try:
        return Cursor.parse(text)
    except JournalCursorError:
        raise SinceError(f"{text[:100]!r} is not a position in the journal; give {SINCE_ACCEPTS}") from None


class Scan:
    """Iterates over the published records after a cursor, up to the serial `through`.

    By default, `through` is the serial up to which all streams with wanted records are published. It is taken from
    `heads`, which are read from the storage by default.

    Yields the position of every record. The record's line is yielded with it if the filter matches, and None otherwise.
    If the cursor is in the middle of a segment, the records before it are read too; for each of them, the cursor's own
    position is yielded with None.
    """

    def __init__(
        self,
        journal: Journal,
        after: Cursor,
        wanted: RecordFilter = EVERY,
        *,
        heads: Sequence[Head] | None = None,
        through: int | None = None,
    ) -> None:
        heads = _heads(journal, wanted) if heads is None else heads
        end = min(head.through for head in heads)
        self.through = end if through is None else min(end, through)
        first = first_serial(heads)
        if after.whole_serial < first:
            raise BeginsLaterError(
                f"the journal begins after serial {first}, not at {after.serial}: begin again, with the newest"
                f" full dump, or from serial {first} on"
            )
        self.cursor = after
        self.is_at_end = False
        self._lines = journal.lines(after, heads, self.through, with_passed=True) if wanted.read_streams else iter(())
        self._wanted = wanted

    def __iter__(self) -> Iterator[tuple[Place, bytes | None]]:
        passed = (self.cursor.serial, self.cursor.rank, self.cursor.ordinal)
        for placed in self._lines:
            if placed[0] > passed:
                self._lines = chain([placed], self._lines)
                break
            yield passed, None
        if self._wanted.wants_all:
            yield from self._lines
        else:
            wants_line = self._wanted.wants_line
            for place, line in self._lines:
                yield place, line if wants_line(line) else None
        self.is_at_end = True

    @property
    def end(self) -> Cursor:
        """The position after all records that the scan reads."""
        return max(self.cursor, Cursor.after_serial(self.through))


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """The next records for a reader, as lines of JSON with the cursors after them. The reader continues from `cursor`.

    `through` is the serial up to which there are records. `is_last` is true if there are no more records now.
    """

    lines: list[tuple[Cursor, bytes]]
    cursor: Cursor
    through: int
    is_last: bool


@dataclass
class Tail:
    """Serves the journal to many readers at the same time. Thread-safe.

    A reader that returns with the cursor of its last batch gets the same scan again, so that a large segment is not
    read from its beginning for each batch. A few scans are kept for a short time.
    """

    journal: Journal
    _kept: "OrderedDict[tuple[Cursor, object, int | None], tuple[float, _Running]]" = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def batch(
        self,
        after: Cursor,
        wanted: RecordFilter,
        limit: int,
        *,
        through: int | None = None,
        most_looked_at: int = MOST_LOOKED_AT,
        most_seconds: float = MOST_SECONDS,
        most_bytes: int = MOST_BATCH_BYTES,
    ) -> RecordBatch:
        """Return at most `limit` records after a cursor, up to the serial `through` (None: to the end).

        Raises NoJournalError if there is no journal, BeginsLaterError and JournalDamagedError.
        """
        key = after, wanted.question, through
        running = self._taken(key) or _Running(Scan(self.journal, after, wanted, through=through))
        found = running.batch(limit, most_looked_at, most_bytes, time.monotonic() + most_seconds)
        if not found.is_last:
            self._keep((found.cursor, wanted.question, through), running)
        return found

    def _taken(self, key: tuple[Cursor, object, int | None]) -> "_Running | None":
        with self._lock:
            _, running = self._kept.pop(key, (0.0, None))
            return running

    def _keep(self, key: tuple[Cursor, object, int | None], running: "_Running") -> None:
        now = time.monotonic()
        with self._lock:
            self._kept[key] = now, running
            while self._kept and (len(self._kept) > _MOST_KEPT or next(iter(self._kept.values()))[0] < now - _KEPT_S):
                self._kept.popitem(last=False)


class _Running:
    """A scan that is read in batches."""

    def __init__(self, scan: Scan) -> None:
        self._scan, self._items, self._cursor = scan, iter(scan), scan.cursor

    def batch(self, limit: int, most_looked_at: int, most_bytes: int, ends: float) -> RecordBatch:
        lines: list[tuple[Cursor, bytes]] = []
        size = 0
        for looked_at, (place, line) in enumerate(self._items, 1):
            self._cursor = Cursor(*place)
            if line is not None:
                lines.append((self._cursor, line))
                size += len(line)
            is_full = len(lines) >= limit or size > most_bytes or looked_at >= most_looked_at
            if is_full or (looked_at % _LOOKS_BETWEEN_CLOCKS == 0 and time.monotonic() > ends):
                return RecordBatch(lines, self._cursor, self._scan.through, is_last=False)
        self._cursor = self._scan.end
        return RecordBatch(lines, self._cursor, self._scan.through, is_last=True)


LOOK_BACK_BYTES = 32 * 1024**2
"""The most bytes of one stream's records before compression: some tens of thousands of files."""
LOOK_BACK_SEGMENTS = 200


@dataclass(frozen=True, slots=True)
class LookBack:
    """The matching lines among a stream's newest records, in order, for the serials above `since` up to `through`."""

    since: int
    through: int
    lines: Iterator[bytes]


def look_back(journal: Journal, stream: str, wanted: RecordFilter, most_bytes: int = LOOK_BACK_BYTES) -> LookBack:
    """Return the newest records of a stream. Raises NoJournalError, and JournalDamagedError while lines are read."""
    head = journal.head(stream)
    since = _reached(journal, head, most_bytes)
    lines = journal.lines(Cursor.after_serial(since), [head])
    return LookBack(since, head.through, (line for _, line in lines if wanted.wants_line(line)))


def newest_lines(
    journal: Journal, stream: str, wants_line: Callable[[bytes], bool], count: int, through: int | None = None
) -> list[bytes]:
    """Return the `count` newest records of a stream that `wants_line` accepts, in order, up to the serial `through`.

    It reads whole segments, the newest first, and at most LOOK_BACK_SEGMENTS of them. Raises NoJournalError and
    JournalDamagedError.
    """
    head = journal.head(stream)
    end = head.through if through is None else min(head.through, through)
    found: deque[bytes] = deque()
    for segment in islice(_backwards(journal, head), LOOK_BACK_SEGMENTS):
        if segment.serials.start >= end:
            continue
        lines = journal.lines(Cursor.after_serial(segment.serials.start), [head], min(segment.serials.end, end))
        newest = deque((line for _, line in lines if wants_line(line)), maxlen=count - len(found))
        found.extendleft(reversed(newest))
        if len(found) >= count:
            break
    return list(found)


def _reached(journal: Journal, head: Head, most_bytes: int) -> int:
    """Return the serial after which the newest segments with a total of `most_bytes` begin."""
    size, since = 0, head.through
    for count, segment in enumerate(_backwards(journal, head)):
        size += segment.content_bytes
        if size > most_bytes or count >= LOOK_BACK_SEGMENTS:
            break
        since = segment.serials.start
    return since


def _backwards(journal: Journal, head: Head) -> Iterator[SegmentManifest]:
    yield from (segment for segment in journal.segments(head, head.end) if segment.serials.start >= head.end)
    for number in range(head.number, head.first_number - 1, -1):
        yield journal.manifest(head, number)
