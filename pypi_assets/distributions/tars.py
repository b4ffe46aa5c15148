"""Extract from a tar what records are made of: the names of its files and its small metadata files, in one pass.

The files that pip would unpack count. If that depends on links or unusual names, the start of the file is read again
from memory.
"""

import bz2
import io
import lzma
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol, cast

from isal import igzip_lib

from pypi_assets.characters import printable
from pypi_assets.distributions.archives import BadTarError, TarStream, padded, trimmed
from pypi_assets.distributions.build_scripts import is_build_script
from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.limits import MAX_SOURCES_BYTES, MIB, Budget, LimitExceededError
from pypi_assets.distributions.record import AMBIGUOUS, ErrorKind
from pypi_assets.distributions.sdist_names import are_usual, common_top, note_top, note_tree, put_names, readable
from pypi_assets.distributions.sources import SequentialSource
from pypi_assets.distributions.tar_headers import TarMember, content_of, read_members, skip_content
from pypi_assets.distributions.unpacked_tree import Doubts, Member, MemberKind, unpacked_tar


class BrokenDataError(Exception):
    """The compressed data are corrupt or truncated. The message is not Python's, which may change."""


_BROKEN: tuple[type[Exception], ...] = (
    cast("type[Exception]", igzip_lib.IsalError),  # corrupt gzip data
    OSError,  # corrupt bz2 data
    lzma.LZMAError,  # corrupt xz data, or a dictionary above the memory limit
    EOFError,
)
LZMA_MEMORY_BYTES = 80 * MIB
"""xz's own presets need up to 65 MiB."""
PIECE = 128 * 1024
"""The bytes read and returned at a time. They fit into the processor's cache, and larger pieces are not faster."""


LZMA_START = b"]\0\0"
"""How files in xz's older format begin, unless they were made with unusual parameters."""


class _Decompressor(Protocol):
    """The common interface of the incremental decompressors of gzip, bz2 and lzma."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes: ...


_DECOMPRESSORS: dict[bytes, Callable[[], _Decompressor]] = {
    b"\x1f\x8b": partial(igzip_lib.IgzipDecompressor, flag=igzip_lib.DECOMP_GZIP),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\0": partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, LZMA_MEMORY_BYTES),
    LZMA_START: partial(lzma.LZMADecompressor, lzma.FORMAT_ALONE, LZMA_MEMORY_BYTES),
}
_LZMA_PROBLEM = f"LZMAError: Corrupt input data, or more than {LZMA_MEMORY_BYTES // MIB} MiB needed"
_PROBLEMS = {b"BZh": "OSError: Invalid data stream", b"\xfd7zXZ\0": _LZMA_PROBLEM, LZMA_START: _LZMA_PROBLEM}
"""The recorded error, in the words of Python 3.11."""
_GZIP = b"\x1f\x8b"
_ZEROS = f"{AMBIGUOUS} zeros follow a compressed part, where Python ends or fails, and others read on"
_REST = f"{AMBIGUOUS} bytes after the end of the compressed data are ignored"
"""Python rejects some of these bytes if it reads so far. After xz data it continues to read lzma data."""
_MAGIC_BYTES = max(map(len, _DECOMPRESSORS))


def inflated(source: SequentialSource, budget: Budget, notes: list[str]) -> Iterator[bytes]:
    """Yield the content of `source`, decompressed if it begins like gzip, bzip2, xz or lzma data.

    Compressed parts may follow each other, with zeros between them. All checksums are verified before the last piece is
    yielded. Bytes after the end are added to `notes`. Raise BrokenDataError, LimitExceededError and RangeSourceError.
    """
    start = source.peek(PIECE)  # isal rejects a gzip header in two pieces if it has a checksum
    magic = next((magic for magic in _DECOMPRESSORS if start.startswith(magic)), b"")
    pieces = _decompressed(source, magic, budget, notes) if magic else iter(partial(source.read, PIECE), b"")
    for piece in pieces:
        budget.count_inflated(len(piece), source.size)
        yield piece


def _decompressed(source: SequentialSource, magic: bytes, budget: Budget, notes: list[str]) -> Iterator[bytes]:
    decompressor = _DECOMPRESSORS[magic]()
    while True:
        data = b""
        if decompressor.eof:
            data, has_zeros = _next_part(source, decompressor.unused_data)
            if has_zeros and magic != _GZIP and _ZEROS not in notes:
                notes.append(_ZEROS)
            if not data.startswith(magic):
                if data:
                    notes.append(_REST)
                return
            decompressor = _DECOMPRESSORS[magic]()
        elif decompressor.needs_input and not (data := source.read(PIECE)):
            raise BrokenDataError("EOFError: the compressed data ends too early")
        try:
            piece = decompressor.decompress(data, PIECE)
        except _BROKEN as error:
            raise BrokenDataError(_PROBLEMS.get(magic) or f"IsalError: {error}") from error
        if piece:
            yield piece
        else:
            budget.check_time()


def _next_part(source: SequentialSource, unused: bytes) -> tuple[bytes, bool]:
    """Return enough of the data after a compressed part and its zeros to recognize it, and whether there are zeros."""
    data = unused.lstrip(b"\0")
    has_zeros = len(data) < len(unused)
    while len(data) < _MAGIC_BYTES and (more := source.read(PIECE)):
        joined = data + more
        data = joined.lstrip(b"\0")
        has_zeros = has_zeros or len(data) < len(joined)
    return data, has_zeros


_CORE_METADATA = ("/PKG-INFO", "/METADATA")
"""The ends of the names of files of which only the headers are stored."""


def extract_tar(source: SequentialSource, wanted: Callable[[str], bool], budget: Budget) -> Extract:
    """Return the paths of all files that pip makes of the tar, and the content of `wanted` files.

    Of core metadata, only the headers are stored. The formats are POSIX (ustar, pax), GNU (long names, sparse files)
    and Unix 7. Raise RangeSourceError.
    """
    extract = Extract()
    files = _Files(source, wanted, budget)
    try:
        files.read(extract.notes)
    except BrokenDataError as error:
        extract.fail(ErrorKind.CORRUPT_ARCHIVE, printable(str(error)))
    except (BadTarError, LimitExceededError) as error:
        extract.fail_with(error)
    try:
        files.put_into(extract)
    except LimitExceededError as error:
        extract.fail_with(error)
    return extract


class _Files:
    """The members of a tar, its folders, the number of each file's last member, and the stored content by number."""

    def __init__(self, source: SequentialSource, wanted: Callable[[str], bool], budget: Budget) -> None:
        self._source = source
        self._wanted = wanted
        self._budget = budget
        self._doubts = Doubts()
        self._members: list[TarMember] = []
        self._files: dict[str, int] = {}
        self._folders: list[str] = []
        self._kept: dict[int, bytes] = {}

    def read(self, notes: list[str]) -> None:
        """Read all members, and the content of members that are wanted by their names."""
        tar = TarStream(inflated(self._source, self._budget, notes))
        wanted, members, files, count = self._wanted, self._members, self._files, self._budget.count_member
        file, folder = MemberKind.FILE, MemberKind.FOLDER  # looking up a member of an enumeration is slow
        for number, member in enumerate(read_members(tar, self._doubts)):
            name = member.name
            count(name)
            members.append(member)
            if member.kind is not file:
                if member.kind is folder:
                    self._folders.append(name)
                skip_content(tar, member)
                continue
            files[name] = number
            if wanted(name if name >= "0" else _usual(name)) and self._has_room(name, member):
                self._kept[number] = self._trimmed(name, content_of(tar, member))
            elif member.regions is None and not member.has_map:
                tar.skip(padded(member.size))
            else:
                skip_content(tar, member)
        tar.skip_rest()

    def _has_room(self, name: str, member: TarMember) -> bool:
        """Check whether a member that is wanted as `name` fits the limits, and count it. Raise LimitExceededError."""
        size = max(member.size, member.real_size)
        if is_build_script(name) and not self._budget.has_room_for_script(size):
            return False
        if name.endswith("/SOURCES.txt") and size > MAX_SOURCES_BYTES:
            return False
        self._budget.count_wanted(name, size)
        return True

    def _trimmed(self, name: str, content: bytes) -> bytes:
        kept = trimmed(name, content)
        self._budget.count_kept(len(kept))
        return kept

    def put_into(self, extract: Extract) -> None:
        """Store the names and contents in `extract`. Raise LimitExceededError."""
        members = self._members
        files, folders = self._files, self._folders
        if len(files) + len(folders) == len(members) and are_usual(files, folders):
            is_ascii = "".join(files).isascii()
            put_names(extract, files if is_ascii else {readable(name): number for name, number in files.items()})
            extract.notes += self._doubts.notes
            note_top(extract, common_top(files, folders))
            extract.files = {readable(self._members[number].name): content for number, content in self._kept.items()}
        else:
            self._put_tree_into(extract)

    def _put_tree_into(self, extract: Extract) -> None:
        members = [Member(each.name, each.kind, at, each.target) for at, each in enumerate(self._members)]
        tree = unpacked_tar(members, self._doubts)
        files = {readable(path): number for path, number in tree.files.items()}
        put_names(extract, files)
        note_tree(extract, tree, self._doubts)
        note_top(extract, tree.usual_top)
        wanted = {path: number for path, number in files.items() if self._wanted(path)}
        contents = self._read_again({number for path, number in wanted.items() if not self._has_kept(path, number)})
        for path, number in wanted.items():
            if self._has_kept(path, number):
                extract.files[path] = self._kept[number]
            elif self._has_room(path, self._members[number]):
                if number not in contents:
                    raise LimitExceededError(f"{path!a:.200} has its content too far behind the start of the file")
                extract.files[path] = self._trimmed(path, contents[number])

    def _has_kept(self, path: str, number: int) -> bool:
        """Check whether the stored content of this member is also the content to store for it under `path`."""
        return number in self._kept and _is_core(path) == _is_core(self._members[number].name)

    def _read_again(self, numbers: set[int]) -> dict[int, bytes]:
        """Return the content of the members with these numbers, if they lie in the part of the file kept in memory."""
        contents: dict[int, bytes] = {}
        size = 0
        if not numbers:
            return contents
        start = SequentialSource(io.BytesIO(self._source.start), self._budget, hash_content=False)
        tar = TarStream(inflated(start, self._budget, []))
        try:
            for number, member in enumerate(read_members(tar, Doubts())):
                limit = self._budget.limits.max_metadata_bytes
                if number in numbers and max(member.size, member.real_size) <= limit:
                    size += max(member.size, member.real_size)
                    if size > self._budget.limits.max_wanted_bytes:
                        break
                    contents[number] = content_of(tar, member)
                else:
                    skip_content(tar, member)
                if number >= max(numbers):
                    break
        except (BrokenDataError, BadTarError):
            return contents  # it ends where the kept part ends, or is corrupt anyway
        return contents


def _is_core(name: str) -> bool:
    return f"/{name}".endswith(_CORE_METADATA)


def _usual(name: str) -> str:
    """Return `name` without `.` and empty parts if it begins with one."""
    if name < "0" and name[:2] in {"./", "//"}:
        return "/".join([part for part in name.split("/") if part not in {"", "."}])
    return name
