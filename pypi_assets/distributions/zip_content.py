"""The content of one member of a zip, as Python's zipfile gives it: what the directory claims counts, not more of it.

zipfile cuts the content at the size that the directory claims, accepts less of it, and compares the CRC of that. It
takes nothing but the name and two lengths from a member's local header; where others would, a note is due.
"""

import bz2
import lzma
import struct
import zlib
from typing import cast

import msgspec
from isal import isal_zlib

from pypi_assets.distributions.limits import Budget
from pypi_assets.distributions.record import AMBIGUOUS
from pypi_assets.distributions.zip_directory import BadZipError
from pypi_assets.distributions.zip_entries import BZIP2, DEFLATED, LOCAL_SIZE, STORED, UTF8, decoded_name

_LOCAL = struct.Struct("<4s2xHH4xLLLHH")
_LOCAL_SIGNATURE = b"PK\x03\x04"
_DESCRIPTOR = 0x8
_UNSET = 0xFFFFFFFF
_INFLATE_ERROR = cast("type[Exception]", isal_zlib.error)
_LZMA_PROPERTIES = 5
_MIN_DICTIONARY = 4096
_SMALL_BYTES = 512
"""Compressed: up to here zlib is the quicker one, since isal's state is larger."""
_LOOKED_FURTHER = 64 * 1024
"""How much more than the directory claims is looked at: zipfile refuses what is broken behind that."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A member that is wanted. `start` and `end` bound all that is the member's, its local header included."""

    name: str
    raw_name: bytes
    flags: int
    method: int
    crc: int
    compressed: int
    size: int
    start: int
    end: int

    @property
    def is_wheel_metadata(self) -> bool:
        """Whether this is a wheel's METADATA."""
        return self.name.endswith(".dist-info/METADATA") and self.name.count("/") == 1


def likely_size(size: int, compressed: int, budget: Budget) -> int:
    """The bytes to count of a member before it is read: what the directory claims, if the limits allow that at all.

    A claim beyond them may be untrue: zipfile accepts less. Then the content counts once it is inflated.
    """
    return compressed if size > budget.limits.max_metadata_bytes else max(size, compressed)


def inflate(entry: Entry, content: bytes, budget: Budget, notes: list[str]) -> bytes:
    """What the member holds, with the right CRC. `content` starts at its local header.

    Adds to `notes` where readers that trust the local header, or the sizes, would read something else. Raises
    BadZipError, and LimitExceededError.
    """
    if len(content) < LOCAL_SIZE:
        raise BadZipError("cut off")
    signature, flags, method, crc, compressed_size, size, name_length, extra_length = _LOCAL.unpack_from(content)
    if signature != _LOCAL_SIGNATURE:
        raise BadZipError("no local header where the directory puts it")
    start = LOCAL_SIZE + name_length
    if len(content) < start + extra_length:
        raise BadZipError("overlaps the next member")
    raw_name = content[LOCAL_SIZE:start]
    if raw_name != entry.raw_name or ((flags ^ entry.flags) & UTF8 and not raw_name.isascii()):
        _check_name(entry, raw_name, flags)
    compressed = content[start + extra_length : start + extra_length + entry.compressed]
    if len(compressed) != entry.compressed:
        raise BadZipError("overlaps the next member")
    limit = budget.limits.max_metadata_bytes
    inflated = _decompress(entry, compressed, min(entry.size, limit + 1))
    budget.count_inflated(len(inflated))
    if entry.size > limit:
        budget.count_wanted(entry.name, len(inflated))
    if isal_zlib.crc32(inflated) != entry.crc:
        raise BadZipError("wrong CRC" if len(inflated) == entry.size else f"more or less than {entry.size} bytes")
    if len(inflated) != entry.size:
        notes.append(f"{AMBIGUOUS} {entry.name} claims {entry.size} bytes and has {len(inflated)}")
    if method != entry.method or (
        not flags & _DESCRIPTOR
        and (
            crc != entry.crc
            or (compressed_size != entry.compressed and compressed_size != _UNSET)
            or (size != entry.size and size != _UNSET)
        )
    ):
        notes.append(f"{AMBIGUOUS} the local header of {entry.name} has another method, size or CRC than the directory")
    return inflated


def _check_name(entry: Entry, raw: bytes, flags: int) -> None:
    """Raises BadZipError where the local header has another name, by its own flags."""
    try:
        is_same = decoded_name(raw, flags) == decoded_name(entry.raw_name, entry.flags)
    except UnicodeDecodeError:
        is_same = False
    if not is_same:
        raise BadZipError("the local header has another name than the directory")


def _decompress(entry: Entry, compressed: bytes, claimed: int) -> bytes:
    """At most the `claimed` bytes, and less where the data end early. What follows these must be valid too."""
    if entry.method == STORED:
        return compressed[:claimed]
    size = claimed + _LOOKED_FURTHER
    try:
        if entry.method == DEFLATED:
            inflated = _decompress_deflated(compressed, size)
        elif entry.method == BZIP2:
            inflated = bz2.BZ2Decompressor().decompress(compressed, size)
        else:
            inflated = _decompress_lzma(compressed, size)
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:  # Python may change their texts
        raise BadZipError("broken data: Invalid data stream") from error
    return inflated[:claimed] if len(inflated) > claimed else inflated


def _decompress_deflated(compressed: bytes, size: int) -> bytes:
    if len(compressed) <= _SMALL_BYTES:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(compressed, size)
    try:
        return isal_zlib.decompressobj(-isal_zlib.MAX_WBITS).decompress(compressed, size)
    except _INFLATE_ERROR:  # which is stricter in some cases than what installers use
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(compressed, size)


def _decompress_lzma(compressed: bytes, size: int) -> bytes:
    """Up to `size` bytes of LZMA data with the properties that a zip puts before them."""
    length = int.from_bytes(compressed[2:4], "little")
    if len(compressed) <= 4 + length:
        return b""
    properties, data = compressed[4 : 4 + length], compressed[4 + length :]
    if length != _LZMA_PROPERTIES:
        raise ValueError("LZMA properties of another length")
    rest, literal_context = divmod(properties[0], 9)
    position, literal_position = divmod(rest, 5)
    dictionary = int.from_bytes(properties[1:], "little")
    decompressor = lzma.LZMADecompressor(
        lzma.FORMAT_RAW,
        filters=[
            {
                "id": lzma.FILTER_LZMA1,
                "dict_size": max(min(dictionary, size), _MIN_DICTIONARY),  # more would take memory and change nothing
                "lc": literal_context,
                "lp": literal_position,
                "pb": position,
            }
        ],
    )
    return decompressor.decompress(data, size)
