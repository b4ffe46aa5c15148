"""Extract from a zip what records are made of: the names of its members and its small metadata files.

The end of the file is read first. It has the central directory and, in a wheel, also the metadata. Then only other
wanted parts are read.
"""

import bz2
import lzma
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import cast

import msgspec
from isal import isal_zlib

from pypi_assets.characters import printable
from pypi_assets.distributions.archives import Names, SafeNames
from pypi_assets.distributions.build_scripts import is_build_script
from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.limits import MAX_SOURCES_BYTES, MIB, Budget, LimitExceededError
from pypi_assets.distributions.record import AMBIGUOUS, ErrorKind
from pypi_assets.distributions.sources import MismatchError, RangeSource
from pypi_assets.distributions.wheel_names import MAX_RECORD_BYTES, MAX_RECORD_SIZE, RECORD, keep_member
from pypi_assets.distributions.zip_directory import BadZipError, Directory, TailWindow, find_directory
from pypi_assets.distributions.zip_entries import (
    BZIP2,
    DEFLATED,
    ENTRY_SIZE,
    LOCAL_SIZE,
    STORED,
    UTF8,
    decoded_name,
    reading_problem,
    sizes_at,
    walk_entries,
)

_LOCAL = struct.Struct("<4s2xHH4xLLLHH")
_LOCAL_SIGNATURE = b"PK\x03\x04"
_DESCRIPTOR = 0x8
_UNSET = 0xFFFFFFFF
_INFLATE_ERROR = cast("type[Exception]", isal_zlib.error)
_LZMA_PROPERTIES = 5
_MIN_DICTIONARY = 4096
_SMALL_BYTES = 512
"""The compressed size up to which zlib is faster than isal, whose state is larger."""
_LOOKED_FURTHER = 64 * 1024
"""The bytes inflated beyond the claimed size, since zipfile rejects corrupt data there."""


class ZipEntry(msgspec.Struct, frozen=True, gc=False):
    """A wanted member. `start` and `end` bound all its bytes, including its local header."""

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
        """Check whether this is a wheel's METADATA."""
        return self.name.endswith(".dist-info/METADATA") and self.name.count("/") == 1


def likely_size(size: int, compressed: int, budget: Budget) -> int:
    """Return the number of bytes to count for a member before it is read: the claimed size, if the limits allow it.

    A larger claim may be wrong, since zipfile accepts members with less content. Then the content is counted after it
    is inflated.
    """
    return compressed if size > budget.limits.max_metadata_bytes else max(size, compressed)


def inflate(entry: ZipEntry, content: bytes, budget: Budget, notes: list[str]) -> bytes:
    """Return the content of the member after checking its CRC. `content` starts at its local header.

    Add to `notes` if readers that trust the local header or the sizes would read something else. Raise BadZipError and
    LimitExceededError.
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


def _check_name(entry: ZipEntry, raw: bytes, flags: int) -> None:
    """Raise BadZipError if the local header has another name, decoded by its own flags."""
    try:
        is_same = decoded_name(raw, flags) == decoded_name(entry.raw_name, entry.flags)
    except UnicodeDecodeError:
        is_same = False
    if not is_same:
        raise BadZipError("the local header has another name than the directory")


def _decompress(entry: ZipEntry, compressed: bytes, claimed: int) -> bytes:
    """Return at most the `claimed` bytes, or fewer if the data end early. Data shortly after them must be valid."""
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
    except (
        OSError,
        EOFError,
        ValueError,
        zlib.error,
        lzma.LZMAError,
    ) as error:  # Python may change their messages
        raise BadZipError("broken data: Invalid data stream") from error
    return inflated[:claimed] if len(inflated) > claimed else inflated


def _decompress_deflated(compressed: bytes, size: int) -> bytes:
    if len(compressed) <= _SMALL_BYTES:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(compressed, size)
    try:
        return isal_zlib.decompressobj(-isal_zlib.MAX_WBITS).decompress(compressed, size)
    except _INFLATE_ERROR:  # isal is stricter in some cases than the zlib of installers
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(compressed, size)


def _decompress_lzma(compressed: bytes, size: int) -> bytes:
    """Return up to `size` bytes of LZMA data with the properties that a zip stores before them."""
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
                "dict_size": max(min(dictionary, size), _MIN_DICTIONARY),  # a larger one takes memory without an effect
                "lc": literal_context,
                "lp": literal_position,
                "pb": position,
            }
        ],
    )
    return decompressor.decompress(data, size)


WHOLE_FILE_BYTES = 32 * 1024
"""Up to this size, the first read takes the whole file."""
MIN_TAIL_BYTES = 16 * 1024
MAX_TAIL_BYTES = 32 * 1024
TAIL_SHARE = 0.08
"""The share of a larger file in the first read. It is enough for 4 of 5 real wheels and is under 3% of all bytes."""
MAX_GAP_BYTES = 64 * 1024
"""Members that are closer together are read at once, since these bytes cost less than a request."""
MAX_PIECE_BYTES = 16 * MIB
MAX_PIECES = 50

_ENTRY_DETAILS = struct.Struct("<8xHH4xL8xHHHH2xL")
"""The fields for reading an entry: flags, method, CRC, lengths of name, extra field and comment, disk, attributes."""
_SYMLINK = 0o120000
_MAX_EXTRA = 0xFFFF

Wanted = Callable[[Iterable[str]], Iterable[str]]
"""Selects the names of members whose content is wanted."""


def extract_zip(
    source: RangeSource, wanted: Wanted, budget: Budget, names: Callable[[Extract, Budget], Names] = SafeNames
) -> Extract:
    """Return the names of all files in the zip, and the content of files that `wanted` selects.

    Of core metadata, only the headers are stored. `names` creates the collector of the names. Raise MismatchError if a
    wheel's METADATA is not the one that `source` promises, and the errors of `source`.
    """
    extract = Extract()
    members = names(extract, budget)
    try:
        window = TailWindow(source, first_read_at(source.size))
        directory = find_directory(window, budget, extract.notes)
        neighbours = walk_entries(directory, members, budget, extract)
        wanted_at = {name: members.places[name] for name in wanted(members.places)}
        chosen = _choose(wanted_at, neighbours, directory, first_read_at(source.size), budget, extract)
        _read_members(_by_sidecar(chosen, window, budget, extract), window, budget, extract)
    except BadZipError as error:
        extract.fail(ErrorKind.CORRUPT_ARCHIVE, printable(f"BadZipFile: {error}"))
    except LimitExceededError as error:
        extract.fail_with(error)
    members.finish()
    return extract


def first_read_at(size: int) -> int:
    """Return the offset from which a zip of `size` bytes is read first, up to its end."""
    if size <= WHOLE_FILE_BYTES:
        return 0
    return size - min(MAX_TAIL_BYTES, max(MIN_TAIL_BYTES, int(size * TAIL_SHARE)))


def _choose(
    wanted_at: dict[str, int],
    neighbours: dict[int, int] | None,
    directory: Directory,
    read_from: int,
    budget: Budget,
    extract: Extract,
) -> list[ZipEntry]:
    """Return the wanted members that can be read, in the order of the file. Other wanted members become errors.

    RECORD is read only if it is small and among the bytes from `read_from` on, which are read anyway.
    """
    chosen = []
    content = directory.content
    for name, position in wanted_at.items():
        details = _ENTRY_DETAILS.unpack_from(content, position)
        flags, method, crc, name_length, extra_length, comment_length, disk, attributes = details
        if (attributes >> 16) & 0o170000 == _SYMLINK:
            extract.notes.append(f"{AMBIGUOUS} {name} has the mode of a symbolic link, and pip writes a file")
        is_elsewhere = disk not in {0, 0xFFFF}
        problem = "in another part of a zip that is split" if is_elsewhere else reading_problem(flags, method)
        is_script = is_build_script(name)
        if problem:
            if not is_script:  # a record does not need it
                _fail(extract, name, problem)
            continue
        size, compressed, start = sizes_at(content, position)
        if is_script and not budget.has_room_for_script(max(size, compressed)):
            continue
        if name.endswith("/SOURCES.txt") and size > MAX_SOURCES_BYTES:
            continue
        if name.endswith(RECORD) and (
            compressed > MAX_RECORD_BYTES or size > MAX_RECORD_SIZE or start + directory.shift < read_from
        ):
            continue
        budget.count_wanted(name, likely_size(size, compressed, budget))
        if neighbours is None:
            following = _start_at(directory, position + ENTRY_SIZE + name_length + extra_length + comment_length)
        else:
            following = neighbours[start]
        end = min(following, start + LOCAL_SIZE + name_length + _MAX_EXTRA + compressed)
        raw_name = content[position + ENTRY_SIZE : position + ENTRY_SIZE + name_length]
        shift = directory.shift
        chosen.append(ZipEntry(name, raw_name, flags, method, crc, compressed, size, start + shift, end + shift))
    return sorted(chosen, key=lambda entry: entry.start)


def _start_at(directory: Directory, position: int) -> int:
    """Return the start of the member whose entry is at `position`, or of the directory if it ends there."""
    if position < len(directory.content):
        return sizes_at(directory.content, position)[2]
    return directory.start - directory.shift


def _by_sidecar(entries: list[ZipEntry], window: TailWindow, budget: Budget, extract: Extract) -> list[ZipEntry]:
    """Take METADATA from the wheel's sidecar if nothing else is missing, and return the entries that are left to read.

    If more is missing, the range for the other members also contains METADATA.
    """
    missing = [entry for entry in entries if entry.start < window.start]
    if len(missing) != 1 or not missing[0].is_wheel_metadata or sum(entry.is_wheel_metadata for entry in entries) > 1:
        return entries
    content = window.source.sidecar()
    if content is None:
        return entries
    if len(content) != missing[0].size or isal_zlib.crc32(content) != missing[0].crc:
        raise MismatchError("METADATA in the archive is not the one that the index serves next to it")
    keep_member(extract, missing[0].name, content, budget)
    extract.metadata_sha256 = sha256(content).hexdigest()
    return [entry for entry in entries if entry is not missing[0]]


def _read_members(entries: list[ZipEntry], window: TailWindow, budget: Budget, extract: Extract) -> None:
    """Store the content of each entry in `extract`. A corrupt one becomes an error."""
    promised = window.source.metadata_sha256
    digests = []
    for entry, content in _contents(entries, window, budget):
        try:
            inflated = inflate(entry, content, budget, extract.notes)
        except BadZipError as error:
            _fail(extract, entry.name, str(error))
            continue
        keep_member(extract, entry.name, inflated, budget)
        if entry.is_wheel_metadata:
            digests.append(sha256(inflated).hexdigest())
    if promised and digests and promised not in digests:
        raise MismatchError("METADATA in the archive is not the one that the index promises")
    if len(digests) == 1:
        [extract.metadata_sha256] = digests


def _contents(entries: list[ZipEntry], window: TailWindow, budget: Budget) -> Iterator[tuple[ZipEntry, bytes]]:
    """Yield each member with the bytes from its start to its end, read in a few pieces."""
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


def _pieces(entries: list[ZipEntry]) -> Iterator[list[ZipEntry]]:
    """Yield groups of members that are close together."""
    piece: list[ZipEntry] = []
    for entry in entries:
        if piece and (entry.start - piece[-1].end > MAX_GAP_BYTES or entry.end - piece[0].start > MAX_PIECE_BYTES):
            yield piece
            piece = []
        piece.append(entry)
    if piece:
        yield piece


def _fail(extract: Extract, name: str, problem: str) -> None:
    extract.fail(ErrorKind.CORRUPT_ARCHIVE, printable(f"{name}: BadZipFile: {problem}"))
