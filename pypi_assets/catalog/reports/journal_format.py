"""The format of journal records, for code that writes or reads them. docs/formats.md describes the fields.

It does not import the database, so that reading a journal does not need to load it.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import lru_cache
from typing import Any

from packaging.utils import canonicalize_name


class JournalStream(StrEnum):
    """The streams of the journal: announcements of the index, changes of files observed here, contents of files, and
    visits of pages.
    """

    INDEX = "index"
    OBSERVED = "observed"
    CONTENT = "content"
    VISITS = "visits"


Record = dict[str, Any]
GAP = "gap"
UNREADABLE = "unreadable"
TAKEN_DOWN = "taken down"
"""The kind of a record that replaces a redacted one."""


class FileKind(StrEnum):
    """The kinds of records about files in the observed stream."""

    ADDED = "file added"
    SHOWN = "file shown"
    REMOVED = "file removed"
    HIDDEN = "file hidden"
    YANKED = "file yanked"
    UNYANKED = "file unyanked"
    REPLACED = "file replaced"
    CORRECTED = "file corrected"
    FOLLOWED = "file followed"
    UNFOLLOWED = "file unfollowed"


class VisitKind(StrEnum):
    """The kinds of records in the visits stream: the status in which the visit ended."""

    FULL = "visit full"
    PARTIAL = "visit partial"
    NOT_FOUND = "visit not found"
    FAILED = "visit failed"


normalized_name = lru_cache(65_536)(canonicalize_name)
"""A cached `canonicalize_name`, since many names repeat."""


def new_record(serial: int, of_serial: int, kind: str, at: int | None) -> Record:
    """Return a record with the fields that all records have, in their order. Its place is not set yet."""
    return {
        "serial": serial,
        "of_serial": of_serial,
        "ordinal": 0,
        "stream": "",
        "kind": kind,
        "at": at,
        "project": None,
        "normalized": None,
    }


class Numbering:
    """Gives the records of a stream their ordinals, which start at 0 for each serial."""

    def __init__(self, stream: JournalStream) -> None:
        self._stream = stream.value
        self._serial, self._ordinal = -1, 0

    def of(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield the next records with their stream and ordinals. They must be in order of serial."""
        stream, last, ordinal = self._stream, self._serial, self._ordinal
        for record in records:
            ordinal = ordinal + 1 if record["serial"] == last else 0
            last = record["serial"]
            record["ordinal"], record["stream"] = ordinal, stream
            yield record
        self._serial, self._ordinal = last, ordinal


def numbered(stream: JournalStream, records: Iterable[Record]) -> Iterator[Record]:
    """Yield `records`, which are the whole stream, with their stream and ordinals."""
    return Numbering(stream).of(records)
