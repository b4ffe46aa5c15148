"""Takes out of a zip what records are made of: the names of its members and its small metadata files.

Reads the end of the file, where the central directory lies and, in a wheel, the metadata too, and then only what else
is wanted.
"""

import bz2
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple, cast

from isal import isal_zlib

from pypi_assets.distributions.archives import Names, SafeNames, keep
from pypi_assets.distributions.build_scripts import is_build_script
from pypi_assets.distributions.extract import Extract, printable
from pypi_assets.distributions.limits import MIB, Budget, LimitExceededError
from pypi_assets.distributions.record import ErrorKind
from pypi_assets.distributions.sources import MismatchError, RangeSource

WHOLE_FILE_BYTES = 32 * 1024
"""Up to here the first read takes the whole file."""
MIN_TAIL_BYTES = 16 * 1024
MAX_TAIL_BYTES = 32 * 1024
TAIL_SHARE = 0.08
"""The first read of a larger file: of real wheels 4 of 5 need no other one, and it is under 3% of the bytes."""
BEFORE_DIRECTORY_BYTES = 8 * 1024
"""Read along with a directory that starts before the tail, since the metadata lie right before it."""
MAX_GAP_BYTES = 64 * 1024
"""Members that lie closer together are read in one piece: these bytes cost less than a request."""
MAX_PIECE_BYTES = 16 * MIB
MAX_PIECES = 50

_END = struct.Struct("<4s4H2LH")
_END_SIGNATURE = b"PK\x05\x06"
_END64 = struct.Struct("<4sQ2H2L4Q")
_END64_SIGNATURE = b"PK\x06\x06"
_LOCATOR64 = struct.Struct("<4sLQL")
_LOCATOR64_SIGNATURE = b"PK\x06\x07"
_ENTRY_SIGNATURE = 0x02014B50
_ENTRY_SIZE = 46
_ENTRY_EXTENT = struct.Struct("<L16xL4xHHH8xL")
"""What the walk needs of each entry: signature, compressed size, lengths of name, extra and comment, offset."""
_ENTRY_DETAILS = struct.Struct("<8xHH4xL8xH4xH2xL")
"""What reading needs in addition: flags, method, CRC, length of the name, disk, external attributes."""
_NAME_LENGTH = struct.Struct("<28xH")
_LOCAL = struct.Struct("<4s22xHH")
_LOCAL_SIGNATURE = b"PK\x03\x04"

_IN_ZIP64_EXTRA = 0xFFFFFFFF
_ENCRYPTED, _UTF8 = 0x1, 0x800
_INFLATE_ERROR = cast("type[Exception]", isal_zlib.error)
_STORED, _DEFLATED, _BZIP2 = 0, 8, 12
_SYMLINK = 0o120000
_MAX_COMMENT = _MAX_EXTRA = 0xFFFF
_BATCH_BYTES = MIB


class BadZipError(Exception):
    """What is no zip, or is broken; the text names how."""


Wanted = Callable[[Iterable[str]], Iterable[str]]
"""Picks the names of those members whose content is wanted."""


def extract_zip(
    source: RangeSource, wanted: Wanted, budget: Budget, names: Callable[[Extract, Budget], Names] = SafeNames
) -> Extract:
    """The names of all files in the zip, and the content of those that `wanted` picks; of core metadata
    only the headers. `names` makes what collects the names.

    Raises MismatchError where a wheel's METADATA is not the one that `source` promises, and what `source` raises.
    """
    extract = Extract()
    members = names(extract, budget)
    try:
        window = _Window(source, first_read_at(source.size))
        directory = _find_directory(window, budget)
        wanted_at, neighbours = _walk(directory, members, wanted, budget, extract)
        chosen = _choose(wanted_at, neighbours, directory, budget, extract)
        _read_members(_by_sidecar(chosen, window, budget, extract), window, budget, extract)
    except BadZipError as error:
        extract.fail(ErrorKind.CORRUPT_ARCHIVE, printable(f"BadZipFile: {error}"))
    except LimitExceededError as error:
        extract.fail_with(error)
    members.finish()
    return extract


def first_read_at(size: int) -> int:
    """From where to its end a zip of `size` bytes is read first."""
    if size <= WHOLE_FILE_BYTES:
        return 0
    return size - min(MAX_TAIL_BYTES, max(MIN_TAIL_BYTES, int(size * TAIL_SHARE)))


class _Window:
    """The end of a file, from `start` on; it can be widened to the front, and requests no byte twice."""

    def __init__(self, source: RangeSource, start: int) -> None:
        self.source = source
        self.start = start
        self.content = self.read(start, source.size)

    def widen(self, start: int) -> None:
        if start < self.start:
            self.content = self.read(start, self.start) + self.content
            self.start = start

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` to `end`, straight from the source."""
        content = self.source.read_at(start, end - start) if end > start else b""
        if len(content) != end - start:
            raise BadZipError(f"{len(content)} bytes instead of {end - start} at {start}")
        return content

    def at(self, start: int, end: int) -> bytes:
        """The bytes from `start` to `end`, after widening if need be."""
        if not 0 <= start <= end <= self.start + len(self.content):
            raise BadZipError(f"an offset outside the file ({start})")
        self.widen(start)
        return self.content[start - self.start : end - self.start]


@dataclass(frozen=True, slots=True)
class _Directory:
    """The central directory: its bytes, where it starts in the file, and how many bytes lie before the zip."""

    content: bytes
    start: int
    shift: int
    entries: int


class _Entry(NamedTuple):
    """A member that is wanted. `start` and `end` bound all that is the member's, its local header included."""

    name: str
    raw_name: bytes
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


def _find_directory(window: _Window, budget: Budget) -> _Directory:
    end = _find_end(window)
    _, disk, directory_disk, _, count, size, offset, _ = _END.unpack(window.at(end, end + _END.size))
    locator = end - _LOCATOR64.size
    if locator >= 0 and window.at(locator, locator + 4) == _LOCATOR64_SIGNATURE:
        end = _find_end64(window, locator)
        _, _, _, _, disk, directory_disk, _, count64, size64, offset64 = _END64.unpack(
            window.at(end, end + _END64.size)
        )
        for narrow, wide, unset in (
            (count, count64, 0xFFFF),
            (size, size64, _IN_ZIP64_EXTRA),
            (offset, offset64, _IN_ZIP64_EXTRA),
        ):
            if narrow not in {wide, unset}:
                raise BadZipError("the two records at the directory's end contradict each other")
        count, size, offset = count64, size64, offset64
    if disk or directory_disk:
        raise BadZipError("a part of a zip that is split")
    if size > budget.limits.max_directory_bytes:
        raise LimitExceededError(f"the zip's directory is larger than {budget.limits.max_directory_bytes} bytes")
    start = end - size
    shift = start - offset
    if start < 0 or shift < 0:
        raise BadZipError("the directory does not lie where its end record puts it")
    if start < window.start:
        window.widen(max(start - BEFORE_DIRECTORY_BYTES, 0))
    return _Directory(window.at(start, end), start, shift, count)


def _find_end(window: _Window) -> int:
    """Where the end record starts: at the file's end, else the last one that a comment's length can lie behind."""
    last = window.source.size - _END.size
    for start in (window.start, max(last - _MAX_COMMENT, 0)):
        window.widen(start)
        if window.content.startswith(_END_SIGNATURE, max(last - window.start, 0)) and window.content.endswith(b"\0\0"):
            return last
        found = window.content.rfind(_END_SIGNATURE, max(last - _MAX_COMMENT - window.start, 0))
        if found >= 0:
            if found + _END.size > len(window.content):
                raise BadZipError("the directory's end is cut off")
            return window.start + found
    raise BadZipError("File is not a zip file")


def _find_end64(window: _Window, locator: int) -> int:
    """Where the zip64 end record starts. It lies before its locator; bytes before the zip make the offset wrong."""
    _, disk, offset, disks = _LOCATOR64.unpack(window.at(locator, locator + _LOCATOR64.size))
    if disk or disks > 1:
        raise BadZipError("a part of a zip that is split")
    for start in (locator - _END64.size, offset):
        if start >= 0 and start + _END64.size <= locator:
            signature, size = struct.unpack("<4sQ", window.at(start, start + 12))
            if signature == _END64_SIGNATURE and start + 12 + size == locator:
                return start
    raise BadZipError("no zip64 end record before its locator")


def _walk(
    directory: _Directory,
    members: Names,
    wanted: Wanted,
    budget: Budget,
    extract: Extract,
) -> tuple[dict[str, int], dict[int, int] | None]:
    """Adds all members. Returns where in the directory the wanted ones are, by name, and the neighbours.

    Neighbours are, for where each member starts, where the next one does; None where the directory has them in order.
    Raises BadZipError where members overlap.
    """
    content = directory.content
    text = content.decode("latin-1")  # a slice of it is cheaper than a slice of bytes that is decoded
    unpack = _ENTRY_EXTENT.unpack_from
    local_size = _LOCAL.size
    positions: list[int] = []
    odd = _OddNames()
    in_order = True
    member_end = position = 0
    end = len(content) - _ENTRY_SIZE + 1
    while position < end:
        names: list[str] = []
        batch_end = min(position + _BATCH_BYTES, end)
        while position < batch_end:
            signature, size, name_length, extra_length, comment_length, start = unpack(content, position)
            if signature != _ENTRY_SIGNATURE:
                raise BadZipError(f"no entry of the directory at {directory.start + position}")
            name_end = position + _ENTRY_SIZE + name_length
            names.append(text[position + _ENTRY_SIZE : name_end])
            if size == _IN_ZIP64_EXTRA or start == _IN_ZIP64_EXTRA:
                _, size, start = _sizes(content, position)
            if start < member_end:
                in_order = False
            member_end = start + local_size + name_length + size
            positions.append(position)
            position = name_end + extra_length + comment_length
        entries = positions[-len(names) :]
        members.add_all(odd.decoded(names, content, entries), entries)
        budget.check_time()
    if position != len(content):
        raise BadZipError("the last entry of the directory is cut off")
    extract.notes += odd.notes
    if len(positions) != directory.entries:
        extract.notes.append(f"the zip's directory counts {directory.entries} entries and has {len(positions)}")
    limit = directory.start - directory.shift
    neighbours = None if in_order else _neighbours(content, positions, limit)
    if in_order and member_end > limit:
        raise BadZipError("a member overlaps the directory")
    return {name: members.places[name] for name in wanted(members.places)}, neighbours


def _neighbours(directory: bytes, positions: list[int], limit: int) -> dict[int, int]:
    spans = []
    for position in positions:
        _, size, start = _sizes(directory, position)
        (name_length,) = _NAME_LENGTH.unpack_from(directory, position)
        spans.append((start, start + _LOCAL.size + name_length + size))
    spans.sort()
    starts = [start for start, _ in spans]
    following = [*starts[1:], limit]
    if any(end > start for (_, end), start in zip(spans, following, strict=True)):
        raise BadZipError("members overlap each other or the directory")
    return dict(zip(starts, following, strict=True))


class _OddNames:
    """Decodes the names that are not ASCII, so that each is valid text, and counts those that were not."""

    def __init__(self) -> None:
        self._broken = 0

    def decoded(self, names: list[str], directory: bytes, positions: list[int]) -> list[str]:
        """`names`, which are Latin-1 so far, of the entries at `positions`."""
        if "".join(names).isascii():
            return names
        return [
            name if name.isascii() else self._decode(directory, position, position + _ENTRY_SIZE + len(name))
            for name, position in zip(names, positions, strict=True)
        ]

    def _decode(self, directory: bytes, position: int, name_end: int) -> str:
        raw = directory[position + _ENTRY_SIZE : name_end]
        flags = int.from_bytes(directory[position + 8 : position + 10], "little")
        if not flags & _UTF8:
            return raw.decode("cp437")
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self._broken += 1
            return raw.decode(errors="replace")

    @property
    def notes(self) -> list[str]:
        return [f"{self._broken} member names are not UTF-8: wrong bytes are replaced"] if self._broken else []


def _sizes(directory: bytes, position: int) -> tuple[int, int, int]:
    """Inflated size, compressed size and offset of an entry, from its zip64 extra field where need be."""
    compressed, size, name_length, extra_length, offset = struct.unpack_from("<LLHH10xL", directory, position + 20)
    sizes = [size, compressed, offset]
    extra_start = position + _ENTRY_SIZE + name_length
    extra = directory[extra_start : extra_start + extra_length]
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<HH", extra)
        if kind == 1:
            field = extra[4 : 4 + length]
            for index, value in enumerate(sizes):
                if value == _IN_ZIP64_EXTRA:
                    if len(field) < 8:
                        raise BadZipError("a zip64 extra field is cut short")
                    sizes[index] = int.from_bytes(field[:8], "little")
                    field = field[8:]
            break
        extra = extra[4 + length :]
    return sizes[0], sizes[1], sizes[2]


def _choose(
    wanted_at: dict[str, int],
    neighbours: dict[int, int] | None,
    directory: _Directory,
    budget: Budget,
    extract: Extract,
) -> list[_Entry]:
    """The wanted members that can be read, in the order in which they lie in the file. The others fail."""
    chosen = []
    content = directory.content
    for name, position in wanted_at.items():
        flags, method, crc, name_length, disk, attributes = _ENTRY_DETAILS.unpack_from(content, position)
        if (attributes >> 16) & 0o170000 == _SYMLINK:
            extract.notes.append(f"{name} is a symbolic link: it is not followed")
            continue
        problem = None
        if flags & _ENCRYPTED:
            problem = "encrypted"
        elif method not in {_STORED, _DEFLATED, _BZIP2}:
            problem = f"compression method {method} is not read"
        elif disk not in {0, 0xFFFF}:
            problem = "in another part of a zip that is split"
        if problem:
            if not is_build_script(name):  # without which a record is whole
                _fail(extract, name, problem)
            continue
        size, compressed, start = _sizes(content, position)
        if is_build_script(name) and not budget.has_room_for_script(max(size, compressed)):
            continue
        budget.count_wanted(name, max(size, compressed))
        following = _next_start(directory, position) if neighbours is None else neighbours[start]
        end = min(following, start + _LOCAL.size + name_length + _MAX_EXTRA + compressed)
        raw_name = content[position + _ENTRY_SIZE : position + _ENTRY_SIZE + name_length]
        shift = directory.shift
        chosen.append(_Entry(name, raw_name, method, crc, compressed, size, start + shift, end + shift))
    return sorted(chosen, key=lambda entry: entry.start)


def _next_start(directory: _Directory, position: int) -> int:
    """Where the member starts whose entry follows the one at `position`, or else the directory."""
    following = position + _ENTRY_SIZE + sum(struct.unpack_from("<HHH", directory.content, position + 28))
    if following < len(directory.content):
        return _sizes(directory.content, following)[2]
    return directory.start - directory.shift


def _by_sidecar(entries: list[_Entry], window: _Window, budget: Budget, extract: Extract) -> list[_Entry]:
    """Takes METADATA from the wheel's sidecar where nothing else is missing, and returns what is left to read.

    Where more is missing, the range that brings it brings METADATA too.
    """
    missing = [entry for entry in entries if entry.start < window.start]
    if len(missing) != 1 or not missing[0].is_wheel_metadata or sum(entry.is_wheel_metadata for entry in entries) > 1:
        return entries
    content = window.source.sidecar()
    if content is None:
        return entries
    if len(content) != missing[0].size or isal_zlib.crc32(content) != missing[0].crc:
        raise MismatchError("METADATA in the archive is not the one that the index serves next to it")
    keep(extract, missing[0].name, content, budget)
    return [entry for entry in entries if entry is not missing[0]]


def _read_members(entries: list[_Entry], window: _Window, budget: Budget, extract: Extract) -> None:
    """Puts the content of each into `extract`; one that is broken fails."""
    promised = window.source.metadata_sha256
    kept_promises = []
    for entry, content in _contents(entries, window, budget):
        try:
            inflated = _inflate(entry, content, budget)
        except BadZipError as error:
            _fail(extract, entry.name, str(error))
            continue
        keep(extract, entry.name, inflated, budget)
        if promised and entry.is_wheel_metadata:
            kept_promises.append(sha256(inflated).hexdigest() == promised)
    if kept_promises and not any(kept_promises):
        raise MismatchError("METADATA in the archive is not the one that the index promises")


def _contents(entries: list[_Entry], window: _Window, budget: Budget) -> Iterator[tuple[_Entry, bytes]]:
    """Each member with the bytes from its start to its end, read in few pieces."""
    missing = [entry for entry in entries if entry.start < window.start]
    pieces = list(_pieces(missing))
    to_read = sum(piece[-1].end - piece[0].start for piece in pieces)
    if len(pieces) > 1 and window.start <= MAX_PIECE_BYTES and to_read > window.start / 2:
        window.widen(0)
        pieces = []
    if len(pieces) > MAX_PIECES:
        raise LimitExceededError(f"the metadata files lie in more than {MAX_PIECES} places")
    for piece in pieces:
        budget.check_time()
        start, end = piece[0].start, piece[-1].end
        if end > window.start:
            window.widen(start)
            continue
        content = window.read(start, end)
        for entry in piece:
            yield entry, content[entry.start - start : entry.end - start]
    for entry in entries:
        if entry.start >= window.start:
            yield entry, window.at(entry.start, entry.end)


def _pieces(entries: list[_Entry]) -> Iterator[list[_Entry]]:
    """Groups members that lie close together."""
    piece: list[_Entry] = []
    for entry in entries:
        if piece and (entry.start - piece[-1].end > MAX_GAP_BYTES or entry.end - piece[0].start > MAX_PIECE_BYTES):
            yield piece
            piece = []
        piece.append(entry)
    if piece:
        yield piece


def _inflate(entry: _Entry, content: bytes, budget: Budget) -> bytes:
    """What the member holds, CRC checked. `content` starts at its local header. All sizes are claims."""
    if len(content) < _LOCAL.size:
        raise BadZipError("cut off")
    signature, name_length, extra_length = _LOCAL.unpack_from(content)
    start = _LOCAL.size + name_length
    if signature != _LOCAL_SIGNATURE:
        raise BadZipError("no local header where the directory puts it")
    if content[_LOCAL.size : start] != entry.raw_name:
        raise BadZipError("the local header has another name than the directory")
    compressed = content[start + extra_length : start + extra_length + entry.compressed]
    if len(compressed) != entry.compressed:
        raise BadZipError("overlaps the next member")
    inflated = _decompress(entry, compressed)
    budget.count_inflated(len(inflated))
    if len(inflated) != entry.size:
        raise BadZipError(f"more or less than {entry.size} bytes")
    if isal_zlib.crc32(inflated) != entry.crc:
        raise BadZipError("wrong CRC")
    return inflated


def _decompress(entry: _Entry, compressed: bytes) -> bytes:
    """At most one byte more than the directory claims."""
    if entry.method == _STORED:
        return compressed
    try:
        if entry.method == _BZIP2:
            return bz2.BZ2Decompressor().decompress(compressed, entry.size + 1)
        return isal_zlib.decompressobj(-isal_zlib.MAX_WBITS).decompress(compressed, entry.size + 1)
    except _INFLATE_ERROR as error:
        raise BadZipError(f"broken data: {error}") from error
    except (OSError, EOFError, ValueError) as error:  # their texts are Python's, which may change
        raise BadZipError("broken data: Invalid data stream") from error


def _fail(extract: Extract, name: str, problem: str) -> None:
    extract.fail(ErrorKind.CORRUPT_ARCHIVE, printable(f"{name}: BadZipFile: {problem}"))
