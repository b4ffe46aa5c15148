"""Cursors: positions between two records of the journal, as opaque texts.

The records of all streams have one order: by serial, then by stream (`index`, `observed`, `content`, `visits`), then
by ordinal. A reader that continues from the cursor of its last record misses no record. After an error it may receive a
record twice, with the same position.
"""

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Self

from pypi_assets.catalog.reports.journal_format import JournalStream, Record
from pypi_assets.errors import ExpectedError

RANKS = {stream.value: rank for rank, stream in enumerate(JournalStream)}
_PLACE = re.compile(r"1\.([0-9]{1,18})\.([0-9])\.([0-9]{1,18})")
LONGEST = 80


class JournalCursorError(ExpectedError, ValueError):
    """The text is not a cursor of the journal."""


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """The position after the record with this serial, stream rank and ordinal.

    For example:

        Cursor.after_serial(1350)  # after all records of 1350, before all records of 1351
        Cursor.parse(str(cursor)) == cursor
    """

    serial: int
    rank: int
    ordinal: int

    @classmethod
    def after_serial(cls, serial: int) -> Self:
        """Return the position after all records of a serial."""
        return cls(serial, len(RANKS), 0)

    @property
    def whole_serial(self) -> int:
        """The greatest serial whose records are all before the cursor."""
        return self.serial if self.rank == len(RANKS) else max(self.serial - 1, 0)

    @classmethod
    def of(cls, record: Record) -> Self:
        """Return the position after `record`."""
        return cls(record["serial"], RANKS[record["stream"]], record["ordinal"])

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the cursor with this text. Raises JournalCursorError."""
        try:
            padded = text + "=" * (-len(text) % 4)
            place = base64.b64decode(padded, altchars=b"-_", validate=True).decode() if len(text) <= LONGEST else ""
        except (binascii.Error, ValueError):
            place = ""
        match = _PLACE.fullmatch(place)
        if match is None or int(match[2]) > len(RANKS):
            raise JournalCursorError(f"not a cursor of the journal: {text[:LONGEST]!r}; take one from an answer")
        return cls(int(match[1]), int(match[2]), int(match[3]))

    def __str__(self) -> str:
        return cursor_text(self.serial, self.rank, self.ordinal).decode()


def cursor_text(serial: int, rank: int, ordinal: int) -> bytes:
    """Return the text of a cursor: the base64 form of digits and dots, which never has `+` or `/`."""
    return binascii.b2a_base64(b"1.%d.%d.%d" % (serial, rank, ordinal), newline=False).rstrip(b"=")
