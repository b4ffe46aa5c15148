"""Traverse the central directory of a zip: names, places and sizes of members, and entries that zipfile rejects."""

import struct
from collections.abc import Iterator
from zlib import crc32

from pypi_assets.characters import printable
from pypi_assets.distributions.archives import Names
from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.limits import MIB, Budget
from pypi_assets.distributions.record import AMBIGUOUS, ErrorKind
from pypi_assets.distributions.zip_directory import BadZipError, Directory

STORED, DEFLATED, BZIP2, LZMA = 0, 8, 12, 14
READ_METHODS = frozenset({STORED, DEFLATED, BZIP2, LZMA})
"""The methods that zipfile supports. Zstandard is missing because only Python 3.14 supports it."""
LOCAL_SIZE = 30
ENTRY_SIZE = 46
UTF8 = 0x800

_ENTRY_SIGNATURE = b"PK\x01\x02"
_ENTRY_EXTENT = struct.Struct("<12s8xL4xHHL6xL")
"""The fields that the traversal needs from each entry.

They are the fields that are equal in nearly all entries, the compressed size, the lengths of name and extra field, the
length of the comment and the disk in one number, and the offset.
"""
_ENTRY_KIND = struct.Struct("<4s2xBxHH")
"""The fields that are equal in nearly all entries: signature, required version, flags, method."""
_SIZES = struct.Struct("<20xLLHH10xL")
_NAME_LENGTH = struct.Struct("<28xH")
_FIELD = struct.Struct("<HH")
_ZIP64_FIELD, _UNICODE_PATH_FIELD = 0x0001, 0x7075
_UNSET = 0xFFFFFFFF
_UNSET_SIZES = frozenset({_UNSET, 0xFFFFFFFFFFFFFFFF})
_ENCRYPTED = 0x1
_PATCHED_OR_STRONGLY_ENCRYPTED = 0x20 | 0x40
_MAX_VERSION = 63
_BATCH_BYTES = MIB


def walk_entries(directory: Directory, members: Names, budget: Budget, extract: Extract) -> dict[int, int] | None:
    """Add all members of `directory` to `members` by their positions in it.

    Return the start of the next member by the start of each member, or None if the directory has them in order. A
    member that zipfile rejects becomes an error of `extract`. Raise BadZipError if members overlap or zipfile rejects
    the directory, and LimitExceededError.
    """
    content = directory.content
    # slicing text is cheaper than decoding slices of bytes; it starts at the first name
    text = str(memoryview(content)[ENTRY_SIZE:], "latin-1")
    unpack = _ENTRY_EXTENT.unpack_from
    checks = _Checks(content, extract)
    positions: list[int] = []
    odd = _OddNames()
    usual: set[bytes] = set()
    last_kind = b""
    in_order = True
    member_end = position = 0
    end = len(content) - ENTRY_SIZE + 1
    while position < end:
        names: list[str] = []
        batch_end = min(position + _BATCH_BYTES, end)
        while position < batch_end:
            kind, size, name_length, extra_length, comment_and_disk, start = unpack(content, position)
            if kind != last_kind and kind not in usual and checks.is_usual(kind, position, directory.start):
                usual.add(kind)
                last_kind = kind
            names.append(text[position : position + name_length])
            positions.append(position)
            name_end = position + ENTRY_SIZE + name_length
            if extra_length:
                size, start = checks.with_extra(position, name_end, extra_length, size, start)
            if start < member_end:
                in_order = False
            member_end = start + LOCAL_SIZE + name_length + size
            position = name_end + extra_length
            if comment_and_disk:
                checks.check_disk(comment_and_disk >> 16, positions[-1])
                position += comment_and_disk & 0xFFFF
        entries = positions[-len(names) :]
        members.add_all(odd.decoded(names, content, entries), entries)
        budget.check_time()
    if position != len(content):
        raise BadZipError("the last entry of the directory is cut off")
    extract.notes += odd.notes
    extract.notes += checks.notes
    if len(positions) != directory.entries:
        extract.notes.append(f"the zip's directory counts {directory.entries} entries and has {len(positions)}")
    limit = directory.start - directory.shift
    if in_order and member_end > limit:
        raise BadZipError("a member overlaps the directory")
    return None if in_order else _neighbours(content, positions, limit)


def _neighbours(directory: bytes, positions: list[int], limit: int) -> dict[int, int]:
    spans = []
    for position in positions:
        _, size, start = sizes_at(directory, position)
        (name_length,) = _NAME_LENGTH.unpack_from(directory, position)
        spans.append((start, start + LOCAL_SIZE + name_length + size))
    spans.sort()
    starts = [start for start, _ in spans]
    following = [*starts[1:], limit]
    if any(end > start for (_, end), start in zip(spans, following, strict=True)):
        raise BadZipError("members overlap each other or the directory")
    return dict(zip(starts, following, strict=True))


def reading_problem(flags: int, method: int) -> str | None:
    """Return why zipfile cannot open a member with these flags and this method, or None if it can."""
    if flags & _PATCHED_OR_STRONGLY_ENCRYPTED:
        return "patched or strongly encrypted"
    if flags & _ENCRYPTED:
        return "encrypted"
    return None if method in READ_METHODS else f"compression method {method} is not read"


def decoded_name(raw: bytes, flags: int) -> str:
    """Return a member's name as zipfile decodes it. Raise UnicodeDecodeError if it is marked as UTF-8 and is not."""
    return raw.decode() if flags & UTF8 else raw.decode("cp437")


class _OddNames:
    """Decodes names that are not ASCII into valid text, and counts the invalid ones."""

    def __init__(self) -> None:
        self._broken = 0

    def decoded(self, names: list[str], directory: bytes, positions: list[int]) -> list[str]:
        """Return `names`, which are decoded as Latin-1 so far, of the entries at `positions`."""
        if "".join(names).isascii():
            return names
        return [
            name if name.isascii() else self._decode(directory, position, position + ENTRY_SIZE + len(name))
            for name, position in zip(names, positions, strict=True)
        ]

    def _decode(self, directory: bytes, position: int, name_end: int) -> str:
        raw = directory[position + ENTRY_SIZE : name_end]
        try:
            return decoded_name(raw, _flags(directory, position))
        except UnicodeDecodeError:
            self._broken += 1
            return raw.decode(errors="replace")

    @property
    def notes(self) -> list[str]:
        if not self._broken:
            return []
        return [f"{AMBIGUOUS} pip refuses it: {self._broken} member names are not UTF-8: wrong bytes are replaced"]


class _Checks:
    """Checks of zipfile for single entries. They are applied only to entries that are unusual in some way."""

    def __init__(self, directory: bytes, extract: Extract) -> None:
        self._directory = directory
        self._extract = extract
        self._refused_paths = 0
        self._closed = 0

    def is_usual(self, kind: bytes, position: int, directory_start: int) -> bool:
        """Check whether entries of this kind can be read. If not, and the entry has content, the extract gets an error.

        pip reads everything in `.dist-info`, even folders. Elsewhere only older versions open empty members. Raise
        BadZipError if there is no entry at `position`.
        """
        signature, version, flags, method = _ENTRY_KIND.unpack(kind)
        if signature != _ENTRY_SIGNATURE:
            raise BadZipError(f"no entry of the directory at {directory_start + position}")
        if version > _MAX_VERSION:
            raise BadZipError(f"a member needs version {version / 10} of the format")
        if (problem := reading_problem(flags, method)) is None:
            return True
        name = _raw_name(self._directory, position)
        is_folder = name.endswith(b"/")
        if b".dist-info/" in name or (not is_folder and sizes_at(self._directory, position)[0]):
            self._fail(position, problem)
        elif not is_folder:
            self._closed += 1
        return False

    def check_disk(self, disk: int, position: int) -> None:
        """Add an error if the member is on another disk. Python ignores the number, but other readers use it."""
        if disk not in {0, 0xFFFF}:
            self._fail(position, "in another part of a zip that is split")

    def _fail(self, position: int, problem: str) -> None:
        name = _usual_name(self._directory, position)
        self._extract.fail(ErrorKind.CORRUPT_ARCHIVE, printable(f"{name}: BadZipFile: {problem}"))

    def with_extra(self, position: int, name_end: int, length: int, size: int, start: int) -> tuple[int, int]:
        """Return the compressed size and offset of an entry with an extra field of this length."""
        if name_end + length > len(self._directory):
            raise BadZipError("the last entry of the directory is cut off")
        if length >= 4:
            kind, field_length = _FIELD.unpack_from(self._directory, name_end)
            if field_length + 4 == length and kind not in {_ZIP64_FIELD, _UNICODE_PATH_FIELD}:
                return size, start  # most extra fields contain times
            for kind, value in extra_fields(self._directory[name_end : name_end + length]):
                if kind == _UNICODE_PATH_FIELD:
                    self._check_unicode_path(value, position)
        _, size, start = sizes_at(self._directory, position)
        return size, start

    def _check_unicode_path(self, value: bytes, position: int) -> None:
        """Check a Unicode Path field: newer versions of Python take the name from it, and older ones ignore it."""
        raw = _raw_name(self._directory, position)
        if len(value) < 5:
            self._refused_paths += 1
        elif value[0] == 1 and int.from_bytes(value[1:5], "little") == crc32(raw):
            try:
                name = value[5:].decode()
            except UnicodeDecodeError:
                self._refused_paths += 1
                return
            if name and name.partition("\0")[0] != _usual_name(self._directory, position).partition("\0")[0]:
                self._fail(position, f"{AMBIGUOUS} newer Pythons read the name {name!a:.100}, by a Unicode Path field")

    @property
    def notes(self) -> list[str]:
        notes = []
        if self._refused_paths:
            notes.append(f"{AMBIGUOUS} newer Pythons refuse it: {self._refused_paths} broken Unicode Path extra fields")
        if self._closed:
            notes.append(f"{AMBIGUOUS} some readers refuse it: {self._closed} empty members that zipfile does not open")
        return notes


def extra_fields(extra: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the kind and content of each extra field. Raise BadZipError if one runs past the end, as zipfile does."""
    while len(extra) >= 4:
        kind, length = _FIELD.unpack_from(extra)
        if length + 4 > len(extra):
            raise BadZipError(f"corrupt extra field {kind:04x}")
        yield kind, extra[4 : 4 + length]
        extra = extra[4 + length :]


def sizes_at(directory: bytes, position: int) -> tuple[int, int, int]:
    """Return the inflated size, compressed size and offset of an entry, from its zip64 extra fields if necessary.

    Each such field replaces values that are still unset, as in zipfile.
    """
    compressed, size, name_length, extra_length, start = _SIZES.unpack_from(directory, position)
    if not extra_length or not (size == _UNSET or compressed == _UNSET or start == _UNSET):
        return size, compressed, start
    extra_start = position + ENTRY_SIZE + name_length
    for kind, value in extra_fields(directory[extra_start : extra_start + extra_length]):
        if kind == _ZIP64_FIELD:
            numbers = _numbers(value)
            if size in _UNSET_SIZES:
                size = next(numbers)
            if compressed == _UNSET:
                compressed = next(numbers)
            if start == _UNSET:
                start = next(numbers)
    return size, compressed, start


def _numbers(value: bytes) -> Iterator[int]:
    """Yield the 8-byte numbers of a zip64 extra field. Raise BadZipError after the last one."""
    for at in range(0, len(value) - 7, 8):
        yield int.from_bytes(value[at : at + 8], "little")
    raise BadZipError("a zip64 extra field is cut short")


def _raw_name(directory: bytes, position: int) -> bytes:
    (length,) = _NAME_LENGTH.unpack_from(directory, position)
    return directory[position + ENTRY_SIZE : position + ENTRY_SIZE + length]


def _usual_name(directory: bytes, position: int) -> str:
    """Return the name as older versions of Python decode it, with invalid bytes replaced."""
    encoding = "utf-8" if _flags(directory, position) & UTF8 else "cp437"
    return _raw_name(directory, position).decode(encoding, "replace")


def _flags(directory: bytes, position: int) -> int:
    return int.from_bytes(directory[position + 8 : position + 10], "little")
