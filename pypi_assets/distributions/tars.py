"""Takes out of a tar what records are made of: the names of its members and its small metadata files, in one pass."""

import bz2
import lzma
import tarfile
from collections.abc import Callable
from typing import BinaryIO, Protocol, cast

from isal import igzip_lib

from pypi_assets.distributions.archives import FAILURES, Members
from pypi_assets.distributions.extracts import Extract
from pypi_assets.distributions.limits import MIB, Budget, LimitExceededError
from pypi_assets.distributions.sources import CHUNK, SequentialSource

LZMA_MEMORY_BYTES = 80 * MIB
"""What xz's own presets need at the most is 65 MiB."""
MAX_TAR_HEADER_BYTES = MIB


def extract_tar(source: SequentialSource, wanted: Callable[[str], bool], budget: Budget) -> Extract:
    """The names of all files in the tar, and the content of the `wanted` ones, in one pass over `source`."""
    extract = Extract()
    members = Members(extract, budget)
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
    except FAILURES as error:
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
