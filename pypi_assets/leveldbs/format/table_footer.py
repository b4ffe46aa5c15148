"""The footer of a LevelDB table: where its index lies. LevelDB believes it, and aborts the process for some that cannot
be, so it is checked before LevelDB opens what others have written.
"""

import os
from typing import BinaryIO

FOOTER_BYTES = 48
_HANDLES_BYTES = 40
_MAGIC = bytes.fromhex("57fb808b247547db")
_BLOCK_TRAILER_BYTES = 5
_MOST_VARINT_BYTES = 10


def check_table(table: BinaryIO) -> None:
    """Raise ValueError if the footer of an open table names blocks that do not lie within it."""
    size = table.seek(0, os.SEEK_END)
    if size < FOOTER_BYTES:
        raise ValueError(f"it has {size} bytes, and a table at least {FOOTER_BYTES}")
    table.seek(size - FOOTER_BYTES)
    footer = table.read(FOOTER_BYTES)
    if footer[_HANDLES_BYTES:] != _MAGIC:
        raise ValueError("it does not end as a table does")
    place, end = 0, size - FOOTER_BYTES
    for block in ("metaindex", "index"):
        offset, place = _varint(footer, place)
        length, place = _varint(footer, place)
        if offset + length + _BLOCK_TRAILER_BYTES > end:
            raise ValueError(f"its {block} of {length} bytes at {offset} does not lie before its footer at {end}")


def _varint(footer: bytes, place: int) -> tuple[int, int]:
    """The number at a place, and the place after it."""
    number = 0
    for count in range(_MOST_VARINT_BYTES):
        if place + count >= _HANDLES_BYTES:
            break
        byte = footer[place + count]
        number |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return number, place + count + 1
    raise ValueError("its footer has no number where a place belongs")
