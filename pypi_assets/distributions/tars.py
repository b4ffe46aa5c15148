"""Takes out of a tar what records are made of: the names of its files and its small metadata files, in one pass.

What pip unpacks counts. Only where that depends on links, or on names that are no usual paths, the start of the file is
read once more, from memory.
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
    """The compressed data are broken, or end too early. The text is no exception's of Python, which may change."""


_BROKEN: tuple[type[Exception], ...] = (
    cast("type[Exception]", igzip_lib.IsalError),  # broken gzip data
    OSError,  # broken bz2 data
    lzma.LZMAError,  # broken xz data, or a dictionary above the memory limit
    EOFError,
)
LZMA_MEMORY_BYTES = 80 * MIB
"""What xz's own presets need at the most is 65 MiB."""
PIECE = 128 * 1024
"""Bytes that go in and come out at a time: they stay in the processor's cache, and larger ones are no quicker."""


class _Decompressor(Protocol):
    """What gzip's, bz2's and lzma's incremental decompressors have in common."""

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
}
_PROBLEMS = {
    b"BZh": "OSError: Invalid data stream",
    b"\xfd7zXZ\0": f"LZMAError: Corrupt input data, or more than {LZMA_MEMORY_BYTES // MIB} MiB needed",
}
"""What is recorded, in the words that Python 3.11 had for it."""
_GZIP = b"\x1f\x8b"
_ZEROS = f"{AMBIGUOUS} zeros follow a compressed part, where Python ends or fails, and others read on"
_REST = f"{AMBIGUOUS} bytes after the end of the compressed data are ignored"
"""Python refuses some of them, if it reads as far, and behind xz it reads on where they are of lzma."""
_MAGIC_BYTES = max(map(len, _DECOMPRESSORS))


def inflated(source: SequentialSource, budget: Budget, notes: list[str]) -> Iterator[bytes]:
    """The content of `source`, decompressed where its first bytes are those of gzip, bzip2 or xz.

    Compressed parts may follow each other, with zeros between them. Checksums are verified by the time the last piece
    is out; bytes after the end are added to `notes`. Raises BrokenDataError, LimitExceededError and SourceError.
    """
    start = source.peek(PIECE)  # isal takes a gzip header that comes in two pieces for broken if it has a checksum
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
    """What follows the end of a compressed part and the zeros after it, enough to recognize it, or nothing; and whether
    there are such zeros."""
    data = unused.lstrip(b"\0")
    has_zeros = len(data) < len(unused)
    while len(data) < _MAGIC_BYTES and (more := source.read(PIECE)):
        found = data + more
        data = found.lstrip(b"\0")
        has_zeros = has_zeros or len(data) < len(found)
    return data, has_zeros


_CORE_METADATA = ("/PKG-INFO", "/METADATA")
"""How the names of those end of which the headers alone are kept."""


def extract_tar(source: SequentialSource, wanted: Callable[[str], bool], budget: Budget) -> Extract:
    """The paths of all files that pip makes of the tar, and the content of the `wanted` ones; of core metadata only the
    headers.

    Reads what POSIX (ustar, pax), GNU (long names, sparse files) and Unix 7 write. Raises SourceError.
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
    """The members of a tar, its folders, the number of each file's last one, and by number what is kept of each."""

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
        """Reads all members, and the content of those that are wanted by their names."""
        tar = TarStream(inflated(self._source, self._budget, notes))
        wanted, members, files, count = self._wanted, self._members, self._files, self._budget.count_member
        file, folder = MemberKind.FILE, MemberKind.FOLDER  # each look-up in an enumeration takes its time
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
        """Whether a member that is wanted as `name` is kept; it is then counted. Raises LimitExceededError."""
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
        """Puts the names and contents into `extract`. Raises LimitExceededError."""
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
        """Whether what is kept of the member of this number is what is kept of it as `path`."""
        return number in self._kept and _is_core(path) == _is_core(self._members[number].name)

    def _read_again(self, numbers: set[int]) -> dict[int, bytes]:
        """The content of the members of these numbers, as far as the start of the file that is kept has them."""
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
            return contents  # it ends where no more is kept, or is broken anyway
        return contents


def _is_core(name: str) -> bool:
    return f"/{name}".endswith(_CORE_METADATA)


def _usual(name: str) -> str:
    """`name` without `.` and empty parts, where it begins with one."""
    if name < "0" and name[:2] in {"./", "//"}:
        return "/".join([part for part in name.split("/") if part not in {"", "."}])
    return name
