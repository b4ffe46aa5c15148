"""The bytes inside a compressed source, piece by piece, whatever it is compressed by."""

import bz2
import lzma
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol, cast

from isal import igzip_lib

from pypi_assets.distributions.limits import MIB, Budget
from pypi_assets.distributions.record import AMBIGUOUS
from pypi_assets.distributions.sources import SequentialSource


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
