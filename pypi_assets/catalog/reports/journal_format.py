"""What a record of the journal is, for those that write them and those that read them: docs/formats.md has the fields.

It imports nothing of the database, so that reading a journal waits for none.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any

from packaging.utils import canonicalize_name


class JournalStream(StrEnum):
    """The journal's streams: what the index announced, what became of files here, and what they contain."""

    INDEX = "index"
    OBSERVED = "observed"
    CONTENT = "content"


Record = dict[str, Any]
GAP = "gap"
UNREADABLE = "unreadable"
TAKEN_DOWN = "taken down"
"""The kind of a record that replaces another one."""


class FileKind(StrEnum):
    """What a record of the observed stream reports of a file."""

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


normalized_name = lru_cache(65_536)(canonicalize_name)
"""As `canonicalize_name`, for names of which many come again."""


def new_record(serial: int, of_serial: int, kind: str, at: int | None) -> Record:
    """A record with the fields that all have, in their order; its place is unknown yet."""
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


def numbered(stream: JournalStream, records: Iterable[Record]) -> Iterator[Record]:
    """`records`, which come in order of serial, with their stream and the ordinals that their serials give them."""
    for _, of_serial in groupby(records, key=itemgetter("serial")):
        for ordinal, record in enumerate(of_serial):
            record["ordinal"], record["stream"] = ordinal, stream.value
            yield record
