"""Find the central directory of a zip as each version of Python's zipfile does, and reject the zip if they differ.

Installers read zips with the zipfile module of their Python. The search for the directory changed with Python 3.13.5
and later releases of older versions, so both ways are followed here.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass

from pypi_assets.distributions.limits import Budget, LimitExceededError
from pypi_assets.distributions.record import AMBIGUOUS
from pypi_assets.distributions.sources import RangeSource

BEFORE_DIRECTORY_BYTES = 8 * 1024
"""Read together with a directory that starts before the tail, since the metadata lie right before it."""

_END = struct.Struct("<4s4H2LH")
_END_SIGNATURE = b"PK\x05\x06"
_END64 = struct.Struct("<4sQ2H2L4Q")
_END64_SIGNATURE = b"PK\x06\x06"
_LOCATOR64 = struct.Struct("<4sLQL")
_LOCATOR64_SIGNATURE = b"PK\x06\x07"
_ENTRY_SIGNATURE = b"PK\x01\x02"
_MAX_COMMENT = 0xFFFF
_OFFSET_OF_FIRST = slice(42, 46)
"""The offset of the first entry's member. Most zips begin with it, so they cannot lie in another zip's comment."""
_UNSET_16, _UNSET_32 = 0xFFFF, 0xFFFFFFFF


class BadZipError(Exception):
    """The content is not a zip, or it is corrupt. The message names the problem."""


class TailWindow:
    """The end of a file from `start` on. It can be extended to the front, and no byte is requested twice."""

    def __init__(self, source: RangeSource, start: int) -> None:
        self.source = source
        self.start = start
        self.content = self.read(start, source.size)

    def widen(self, start: int) -> None:
        if start < self.start:
            self.content = self.read(start, self.start) + self.content
            self.start = start

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end` directly from the source."""
        content = self.source.read_at(start, end - start) if end > start else b""
        if len(content) != end - start:
            raise BadZipError(f"{len(content)} bytes instead of {end - start} at {start}")
        return content

    def at(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`, after extending the window if necessary."""
        if not 0 <= start <= end <= self.start + len(self.content):
            raise BadZipError(f"an offset outside the file ({start})")
        if start < self.start:
            self.widen(start)
        return self.content[start - self.start : end - self.start]

    def peek(self, start: int, size: int) -> bytes:
        """Return up to `size` bytes from `start` without extending the window, or none outside of the file."""
        if start >= self.start:
            return self.content[start - self.start : start - self.start + size]
        return self.read(start, min(start + size, self.source.size)) if start >= 0 else b""


@dataclass(frozen=True, slots=True)
class Directory:
    """The central directory: its bytes, its start in the file, the number of bytes before the zip, and its entries."""

    content: bytes
    start: int
    shift: int
    entries: int


@dataclass(frozen=True, slots=True)
class _DirectoryPlace:
    """One interpretation of the end records: the directory's size, offset as written, end, and number of entries."""

    size: int
    offset: int
    end: int
    entries: int


def find_directory(window: TailWindow, budget: Budget, notes: list[str]) -> Directory:
    """Return the directory of the zip in `window`, and add to `notes` if some versions of Python reject it.

    Raise BadZipError, also if versions of Python or other readers find different directories, and LimitExceededError.
    """
    end = _find_end(window)
    place = _agreed(window, end, notes)
    if place.size > budget.limits.max_directory_bytes:
        raise LimitExceededError(f"the zip's directory is larger than {budget.limits.max_directory_bytes} bytes")
    start = place.end - place.size
    shift = start - place.offset
    if start < 0 or shift < 0:
        raise BadZipError("the directory does not lie where its end record puts it")
    if shift and place.size and window.peek(place.offset, 4) == _ENTRY_SIGNATURE:
        raise BadZipError(f"{AMBIGUOUS} a directory lies where the end record puts it, and another before that record")
    if start < window.start:
        window.widen(max(start - BEFORE_DIRECTORY_BYTES, 0))
    content = window.at(start, place.end)
    if shift or content[_OFFSET_OF_FIRST] != bytes(4) or end + _END.size != window.source.size:
        _check_single(window, end)
    return Directory(content, start, shift, place.entries)


def _find_end(window: TailWindow) -> int:
    """Return the start of the end record: at the end of the file, or else the last one before a possible comment."""
    last = window.source.size - _END.size
    limit = max(last - _MAX_COMMENT, 0)
    for start in (window.start, limit):
        window.widen(start)
        if window.content.startswith(_END_SIGNATURE, max(last - window.start, 0)) and window.content.endswith(b"\0\0"):
            return last
        at = window.content.rfind(_END_SIGNATURE, max(limit - window.start, 0))
        if at >= 0:
            if at + _END.size > len(window.content):
                raise BadZipError("the directory's end is cut off")
            return window.start + at
    if limit and window.at(limit - 1, limit + 3) == _END_SIGNATURE:
        raise BadZipError(f"{AMBIGUOUS} the end record lies one byte further than newer Pythons look for it")
    raise BadZipError("File is not a zip file")


def _check_single(window: TailWindow, chosen: int) -> None:
    """Raise BadZipError if another end record has a comment that ends with the file, as the format demands.

    If the chosen record is of this kind, only the part of the file that is read anyway is searched.
    """
    fits = _comment_end(window, chosen) == window.source.size
    if not fits:
        window.widen(max(window.source.size - _END.size - _MAX_COMMENT, 0))
    position = window.content.find(_END_SIGNATURE)
    while position >= 0:
        at = window.start + position
        if at != chosen and at + _END.size <= window.source.size and _comment_end(window, at) == window.source.size:
            raise BadZipError(f"{AMBIGUOUS} two end records, each of which may be the one that counts")
        position = window.content.find(_END_SIGNATURE, position + 1)


def _comment_end(window: TailWindow, end: int) -> int:
    """Return the end of the comment by the length in the end record at `end`."""
    return end + _END.size + int.from_bytes(window.at(end + _END.size - 2, end + _END.size), "little")


def _agreed(window: TailWindow, end: int, notes: list[str]) -> _DirectoryPlace:
    """Return the place of the directory on which all versions of Python agree. Add a note if some of them reject it."""
    _, disk, directory_disk, _, count, size, offset, _ = _END.unpack(window.at(end, end + _END.size))
    plain = _DirectoryPlace(size, offset, end, count)
    locator = end - _LOCATOR64.size
    if locator < 0 or window.at(locator, locator + 4) != _LOCATOR64_SIGNATURE:
        _check_disks(disk, directory_disk)
        return plain
    _, locator_disk, record_at, disks = _LOCATOR64.unpack(window.at(locator, end))
    _check_disks(locator_disk, disks > 1)
    records: set[int | None] = set()
    problems: list[str] = []
    before = locator - _END64.size
    ways: tuple[Callable[[], int | None], ...] = (
        lambda: _by_older_pythons(window, plain, before),
        lambda: _by_newer_pythons(window, before, record_at),
    )
    for way in ways:
        try:
            records.add(way())
        except BadZipError as problem:
            problems.append(str(problem))
    if not records:
        raise BadZipError("no zip64 end record before its locator")
    if len(records) > 1:
        raise BadZipError(f"{AMBIGUOUS} older and newer Pythons find different directories by its zip64 records")
    notes += [f"{AMBIGUOUS} {problem}" for problem in problems]
    record = records.pop()
    return plain if record is None else _zip64_place(window, plain, record)


def _by_older_pythons(window: TailWindow, plain: _DirectoryPlace, before: int) -> int | None:
    """Return the zip64 record up to Python 3.13.4, right before its locator, or None if the plain record counts."""
    if before >= 0 and window.at(before, before + 4) == _END64_SIGNATURE:
        return before
    if before < 0 or plain.end < plain.size:
        raise BadZipError("older Pythons refuse it: no zip64 end record right before its locator")
    return None


def _by_newer_pythons(window: TailWindow, before: int, record_at: int) -> int:
    """Return the zip64 record since Python 3.13.5: at the place in the locator, or else right before the locator."""
    if before < 0 or record_at > before:
        raise BadZipError("newer Pythons refuse it: the zip64 locator points behind itself")
    record = record_at if window.peek(record_at, 4) == _END64_SIGNATURE else before
    if window.at(record, record + 4) != _END64_SIGNATURE:
        raise BadZipError("newer Pythons refuse it: no zip64 end record where its locator puts it")
    _, length, _, _, _, _, _, _, size, offset = _END64.unpack(window.at(record, record + _END64.size))
    if offset + size != record_at or record + 12 + length != before + _END64.size:
        raise BadZipError("newer Pythons refuse it: the zip64 end record has another size or place than it claims")
    return record


def _zip64_place(window: TailWindow, plain: _DirectoryPlace, record: int) -> _DirectoryPlace:
    """Return the place in the zip64 record at `record`. Raise BadZipError if it contradicts the other end record."""
    _, _, _, _, disk, directory_disk, _, count, size, offset = _END64.unpack(window.at(record, record + _END64.size))
    _check_disks(disk, directory_disk)
    for narrow, wide, unset in (
        (plain.entries, count, _UNSET_16),
        (plain.size, size, _UNSET_32),
        (plain.offset, offset, _UNSET_32),
    ):
        if narrow not in {wide, unset}:
            raise BadZipError("the two records at the directory's end contradict each other")
    return _DirectoryPlace(size, offset, record, count)


def _check_disks(*disks: int) -> None:
    """Raise BadZipError for a part of a split zip. zipfile ignores most of these numbers, but other readers do not."""
    if any(disks):
        raise BadZipError("a part of a zip that is split")
