"""Takes out of an archive what records are made of: the names of its members and its small metadata files.

Nothing is unpacked: member names are names and never become paths of this machine. What goes wrong in the middle is
kept as the extract's error, beside what was found until then.
"""

import bz2
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol, cast

from isal import igzip_lib

from pypi_assets.distributions.limits import MIB, Budget, LimitExceededError
from pypi_assets.distributions.models import ErrorKind, ReadError
from pypi_assets.distributions.sources import CHUNK, SeekableSource, SequentialSource

ARCHIVE_ERRORS: tuple[type[Exception], ...] = (
    zipfile.BadZipFile,  # no zip, a directory that lies, a wrong CRC
    tarfile.TarError,  # no tar, a broken or truncated header
    zlib.error,  # broken deflate data in a zip
    lzma.LZMAError,  # broken xz data, or a dictionary above the memory limit
    cast("type[Exception]", igzip_lib.IsalError),  # broken gzip data
    EOFError,  # compressed data ends too early
    OSError,  # broken bz2 data; a seek to a nonsensical offset. A failing disk or network is a SourceError
    struct.error,  # fields cut short
    UnicodeError,  # a name that is not in its declared encoding
    NotImplementedError,  # a zip's compression method or version that zipfile does not know
    RuntimeError,  # an encrypted member; RecursionError from a chain of tar headers that extend each other
    ValueError,  # numbers that are none
    OverflowError,  # numbers too large for an offset
    IndexError,  # sparse maps and extra fields that are too short
    KeyError,  # sparse maps without their fields
)
"""All that zipfile, tarfile and the decompressors raise at broken bytes."""
_FAILURES: tuple[type[Exception], ...] = (LimitExceededError, *ARCHIVE_ERRORS)

LZMA_MEMORY_BYTES = 256 * MIB
MAX_TAR_HEADER_BYTES = MIB
_ZIP_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2})


@dataclass(slots=True)
class Extract:
    """What was read from one archive. `members` are its files (no folders) without a leading `./`."""

    members: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    error: ReadError | None = None

    def fail(self, kind: ErrorKind, text: str) -> None:
        """Keeps the first error: later ones mostly follow from it."""
        self.error = self.error or ReadError(kind, text)

    def fail_with(self, error: Exception) -> None:
        if isinstance(error, LimitExceededError):
            self.fail(ErrorKind.LIMIT_EXCEEDED, printable(str(error)))
        else:
            self.fail(ErrorKind.CORRUPT_ARCHIVE, printable(f"{type(error).__name__}: {error}"))


def printable(text: str, limit: int = 300) -> str:
    """`text` fit for one line of a log or a database: cut, and without control characters."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text[:limit])


class _Members:
    """Collects safe member names, each once, and counts the others."""

    def __init__(self, extract: Extract, budget: Budget) -> None:
        self._extract = extract
        self._budget = budget
        self._seen: set[str] = set()
        self._unsafe = 0
        self._repeated = 0

    def add(self, written: str, *, is_file: bool) -> str | None:
        """The cleaned name of a file, or None for folders and for names that lead out of the archive."""
        self._budget.count_member(written)
        if not is_file:
            return None
        parts = [part for part in written.split("/") if part not in {"", "."}]
        if written.startswith("/") or ".." in parts or not parts:
            self._unsafe += 1
            return None
        name = "/".join(parts)
        if name in self._seen:
            self._repeated += 1
        else:
            self._seen.add(name)
            self._extract.members.append(name)
        return name

    def finish(self) -> None:
        if self._unsafe:
            self._extract.notes.append(f"{self._unsafe} member names that lead out of the archive are ignored")
        if self._repeated:
            self._extract.notes.append(f"{self._repeated} member names occur again; the last one counts")


def extract_zip(source: BinaryIO, wanted: Callable[[str], bool], budget: Budget) -> Extract:
    """The names of all files in the zip, and the content of the `wanted` ones. `source` must be seekable."""
    extract = Extract()
    members = _Members(extract, budget)
    try:
        seekable = SeekableSource(source, budget.limits.max_directory_bytes)
        with zipfile.ZipFile(cast("BinaryIO", seekable)) as archive:
            kept: dict[str, zipfile.ZipInfo] = {}
            for info in archive.infolist():
                name = members.add(info.filename, is_file=not info.is_dir())
                if name is not None and wanted(name):
                    kept[name] = info
            budget.check_time()
            for name, info in kept.items():
                try:
                    extract.files[name] = _read_zip_member(archive, info, budget)
                except ARCHIVE_ERRORS as error:
                    extract.fail(ErrorKind.CORRUPT_ARCHIVE, printable(f"{name}: {type(error).__name__}: {error}"))
    except _FAILURES as error:
        extract.fail_with(error)
    members.finish()
    return extract


def _read_zip_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, budget: Budget) -> bytes:
    """The content, CRC checked. The sizes in the directory are claims: the read itself is bounded."""
    if info.flag_bits & 0x1:
        raise zipfile.BadZipFile("encrypted")
    if info.compress_type not in _ZIP_METHODS:
        raise zipfile.BadZipFile(f"compression method {info.compress_type} is not read")
    budget.keep(info.filename, info.file_size)
    content = bytearray()
    with archive.open(info) as member:
        while chunk := member.read(min(CHUNK, budget.limits.max_metadata_bytes + 1 - len(content))):
            content += chunk
            budget.count_inflated(len(chunk))
    if len(content) != info.file_size:
        raise zipfile.BadZipFile(f"{len(content)} bytes instead of {info.file_size}")
    return bytes(content)


def extract_tar(source: SequentialSource, wanted: Callable[[str], bool], budget: Budget) -> Extract:
    """The names of all files in the tar, and the content of the `wanted` ones, in one pass over `source`."""
    extract = Extract()
    members = _Members(extract, budget)
    stream = _InflatedStream(source, budget)
    try:
        with tarfile.TarFile(fileobj=cast("BinaryIO", stream), errors="surrogateescape") as archive:
            while (info := archive.next()) is not None:
                # Else tarfile keeps every member, and every global header, in memory.
                archive.members.clear()  # type: ignore[attr-defined]
                archive.pax_headers = {}
                budget.check_time()
                name = members.add(info.name, is_file=info.isreg() or info.issym() or info.islnk())
                if name is not None and info.isreg() and wanted(name):
                    extract.files[name] = _read_tar_member(archive, info, budget)
            if stream.last_read.strip(b"\0"):  # tarfile takes a broken header for the end
                raise tarfile.ReadError(f"a broken header at {stream.tell() - len(stream.last_read)}")
        stream.finish()
    except _FAILURES as error:
        extract.fail_with(error)
    extract.notes += stream.notes
    members.finish()
    return extract


def _read_tar_member(archive: tarfile.TarFile, info: tarfile.TarInfo, budget: Budget) -> bytes:
    budget.keep(info.name, info.size)
    member = archive.extractfile(info)
    content = bytearray()
    while member is not None and (chunk := member.read(CHUNK)):
        content += chunk
    return bytes(content)


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
    b"\x1f\x8b": lambda: igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\0": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=LZMA_MEMORY_BYTES),
}
MAGIC_BYTES = max(map(len, _DECOMPRESSORS))


class _InflatedStream:
    """The tar inside a source, compressed or not, as a file that can only be read forward.

    The compression is told by the first bytes and not by the filename. The checksum at the end is verified by
    `finish`, and bytes after the end are noted.
    """

    def __init__(self, source: SequentialSource, budget: Budget) -> None:
        self._source = source
        self._budget = budget
        self._magic = next((magic for magic in _DECOMPRESSORS if source.peek(MAGIC_BYTES).startswith(magic)), b"")
        self._decompressor = _DECOMPRESSORS[self._magic]() if self._magic else None
        self._chunk = b""
        self._offset = 0
        self._position = 0
        self._ended = False
        self.last_read = b""
        self.notes: list[str] = []

    def tell(self) -> int:
        return self._position

    def seek(self, position: int, _whence: int = 0) -> int:
        if position < self._position:
            raise tarfile.ReadError(f"the tar points back from {self._position} to {position}")
        while self._position < position and self._available():
            self._advance(position - self._position)
        return self._position

    def read(self, size: int) -> bytes:
        """`size` bytes, fewer only at the end."""
        if not 0 <= size <= MAX_TAR_HEADER_BYTES:  # members are skipped by seek and kept ones read in small pieces
            raise LimitExceededError(f"a tar header of {size} bytes")
        pieces = []
        while size and self._available():
            piece = self._advance(size)
            size -= len(piece)
            pieces.append(piece)
        self.last_read = b"".join(pieces)
        return self.last_read

    def finish(self) -> None:
        while self._available():
            self._advance(len(self._chunk))

    def _advance(self, size: int) -> bytes:
        piece = self._chunk[self._offset : self._offset + size]
        self._offset += len(piece)
        self._position += len(piece)
        return piece

    def _available(self) -> bool:
        """Whether there is an unread byte, after inflating more if need be."""
        if self._offset == len(self._chunk) and not self._ended:
            self._offset = 0
            self._chunk = self._inflate(self._decompressor) if self._decompressor else self._source.read(CHUNK)
            self._ended = not self._chunk
            self._budget.count_inflated(len(self._chunk), self._source.size)
        return self._offset < len(self._chunk)

    def _inflate(self, decompressor: _Decompressor) -> bytes:
        while True:
            data = b""
            if decompressor.eof:
                if not (data := self._next_part(decompressor.unused_data)):
                    return b""
                decompressor = self._decompressor = _DECOMPRESSORS[self._magic]()
            elif decompressor.needs_input and not (data := self._source.read(CHUNK)):
                raise EOFError("the compressed data ends too early")
            self._budget.check_time()
            if chunk := decompressor.decompress(data, CHUNK):
                return chunk

    def _next_part(self, unused: bytes) -> bytes:
        """The start of another compressed part after `unused` bytes, or nothing at the end."""
        data = unused.lstrip(b"\0")
        while len(data) < MAGIC_BYTES and (more := self._source.read(CHUNK)):
            data = (data + more).lstrip(b"\0")
        if data.startswith(self._magic):
            return data
        if data:
            self.notes.append("bytes after the end of the compressed data are ignored")
        return b""
