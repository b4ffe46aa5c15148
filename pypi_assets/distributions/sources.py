"""Provide sources of bytes for the archive readers: hashed, limited, and with separate errors.

The readers take OSError as a sign of a corrupt archive, since bz2 and seeking raise it. Failures of the disk or the
network are raised as RangeSourceError, so that they are never mistaken for a property of the bytes.
"""

import hashlib
import io
import os
import sys
import tempfile
from collections import deque
from typing import BinaryIO, Protocol, Self

from pypi_assets.distributions.limits import MIB, Budget

CHUNK = 256 * 1024
START_BYTES = MIB // 2
"""The size of the start that is kept of a source that is read only once: targets of links are known only later."""
TAIL_BYTES = 65_536 + 22
"""The size of the part at the end of a file in which the end of a zip can lie."""


class RangeSource(Protocol):
    """A file that is read in parts. Each call may be a request to an index, so a few large calls are best.

    `size` is in bytes. `metadata_sha256` is the index's hash of a wheel's METADATA in hex, or None if the index gives
    none.
    """

    @property
    def size(self) -> int: ...
    @property
    def metadata_sha256(self) -> str | None: ...

    def read_at(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset`, or fewer at the end of the file. Raise RangeSourceError."""

    def sidecar(self) -> bytes | None:
        """Return the METADATA that the index serves next to a wheel, with its hash checked, or None."""


def is_range_source(source: object) -> bool:
    return hasattr(source, "read_at")


class SeekableFileSource:
    """A seekable file as a range source."""

    metadata_sha256 = None

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self.size = raw.seek(0, io.SEEK_END)

    def read_at(self, offset: int, size: int) -> bytes:
        self._raw.seek(offset)
        return _read(self._raw, size)

    def sidecar(self) -> None:
        """Return None, since a local file has no sidecar."""


class Spool:
    """A stream that is stored as a range source. It is in memory because a contained reader cannot open files.

    macOS lacks memory files, so it uses a temporary file there.
    """

    metadata_sha256 = None

    def __init__(self) -> None:
        """Open the memory file. Raise OSError."""
        if sys.platform == "linux":
            self._descriptor = os.memfd_create("spool")
        else:
            with tempfile.TemporaryFile() as file:
                self._descriptor = os.dup(file.fileno())
        self.size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def add(self, content: bytes) -> None:
        """Append content. Raise OSError, for example if there is no space."""
        left = memoryview(content)
        while left:
            left = left[os.write(self._descriptor, left) :]
        self.size += len(content)

    def read_at(self, offset: int, size: int) -> bytes:
        """Return the same as `RangeSource.read_at`."""
        try:
            return os.pread(self._descriptor, size, offset)
        except OSError as error:
            raise RangeSourceError(error) from error

    def sidecar(self) -> None:
        """Return None, since a stream has no sidecar."""


class RangeReader(io.RawIOBase):
    """A range source as a file that is read from start to end."""

    def __init__(self, source: RangeSource) -> None:
        self._source = source
        self._at = 0

    def read(self, size: int = -1) -> bytes:
        content = self._source.read_at(self._at, CHUNK if size < 0 else size)
        self._at += len(content)
        return content


class MismatchError(Exception):
    """A range source returned other bytes than the index promised, so only the whole file can be trusted."""


class RangeSourceError(Exception):
    """The source itself failed. `error` is the original error."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


def _read(raw: BinaryIO, size: int) -> bytes:
    try:
        return raw.read(size) or b""
    except OSError as error:
        raise RangeSourceError(error) from error


class SequentialSource:
    """Reads a source once from start to end, and hashes it with `hash_content`. The source need not be seekable."""

    def __init__(self, raw: BinaryIO, budget: Budget, *, hash_content: bool = True) -> None:
        self._raw = raw
        self._budget = budget
        self._sha256 = hashlib.sha256() if hash_content else None
        self._peeked = b""
        self._ended = False
        self._first: list[bytes] = []
        self._last: deque[bytes] = deque()
        self._last_bytes = 0
        self.size = 0

    def peek(self, size: int) -> bytes:
        """Return the next `size` bytes, or fewer at the end, without consuming them."""
        while len(self._peeked) < size and (chunk := self._take(size - len(self._peeked))):
            self._peeked += chunk
        return self._peeked[:size]

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes, and none only at the end."""
        if self._peeked:
            chunk, self._peeked = self._peeked[:size], self._peeked[size:]
            return chunk
        return self._take(size)

    def drain(self) -> None:
        self._peeked = b""
        while self._take(CHUNK):
            self._budget.check_time()

    @property
    def start(self) -> bytes:
        """The first bytes that were read, without chunks that end after START_BYTES."""
        return b"".join(self._first)

    @property
    def tail(self) -> bytes:
        """The last bytes that were read, at least TAIL_BYTES if there are so many."""
        return b"".join(self._last)

    @property
    def sha256(self) -> str | None:
        """The hash in hex of the bytes read so far, or None without hashing."""
        return self._sha256.hexdigest() if self._sha256 else None

    def _take(self, size: int) -> bytes:
        if self._ended:  # the zip reader may have moved the source
            return b""
        chunk = _read(self._raw, size)
        self._ended = not chunk
        self.size += len(chunk)
        if self.size <= START_BYTES:
            self._first.append(chunk)
        self._last.append(chunk)
        self._last_bytes += len(chunk)
        while self._last_bytes - len(self._last[0]) >= TAIL_BYTES:
            self._last_bytes -= len(self._last.popleft())
        if self._sha256:
            self._sha256.update(chunk)
        self._budget.check_file_size(self.size)
        return chunk
