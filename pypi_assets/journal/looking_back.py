"""The newest records of a stream that a filter wants, within a bounded distance from its end.

It reads whole segments from the end backwards until they have LOOK_BACK_BYTES, so what it costs does not depend on how
long the journal is. What it does not reach is not there: the answer has the serial after which it looked.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pypi_assets.journal.cursors import Cursor
from pypi_assets.journal.filters import RecordFilter
from pypi_assets.journal.reading import Journal
from pypi_assets.journal.segment_files import Head, Manifest

LOOK_BACK_BYTES = 32 * 1024**2
"""Of records before compression, of one stream: some tens of thousands of files."""
LOOK_BACK_SEGMENTS = 200


@dataclass(frozen=True, slots=True)
class LookBack:
    """What is wanted of a stream's newest records, as lines in order, of the serials above `since` up to `through`."""

    since: int
    through: int
    lines: Iterator[bytes]


def look_back(journal: Journal, stream: str, wanted: RecordFilter, most_bytes: int = LOOK_BACK_BYTES) -> LookBack:
    """The newest records of a stream. Raises NoJournalError and, while lines are read, JournalDamagedError."""
    head = journal.head(stream)
    since = _reached(journal, head, most_bytes)
    lines = journal.lines(Cursor.after_serial(since), [head])
    return LookBack(since, head.through, (line for _, line in lines if wanted.wants_line(line)))


def _reached(journal: Journal, head: Head, most_bytes: int) -> int:
    """The serial after which the newest segments begin that have `most_bytes` together."""
    size, since = 0, head.through
    for count, segment in enumerate(_backwards(journal, head)):
        size += segment.content_bytes
        if size > most_bytes or count >= LOOK_BACK_SEGMENTS:
            break
        since = segment.serials.start
    return since


def _backwards(journal: Journal, head: Head) -> Iterator[Manifest]:
    yield from (segment for segment in journal.segments(head, head.end) if segment.serials.start >= head.end)
    for number in range(head.number, head.first_number - 1, -1):
        yield journal.manifest(head, number)
