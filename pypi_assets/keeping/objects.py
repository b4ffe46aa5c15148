"""The objects of kept files: `files/<ab>/<sha256>/<attempt>`, which have the bytes of a file and nothing else.

An object is written only after all of its bytes were received and checked. While they are received, each block of 1 MiB
is hashed. With these hashes, any part of the object can be checked before it is served, without reading the rest.
"""

import hashlib
import io
import re
from collections.abc import Iterator
from typing import BinaryIO

from pypi_assets.catalog.reads.kept_files import KeptObject
from pypi_assets.errors import ExpectedError
from pypi_assets.storage.store import ObjectNotFoundError, Storage, StoredObject
from pypi_assets.storage.sweeping import drop_empty_folder

FILES = "files"
BLOCK_BYTES = 1024**2
_HASH_BYTES = 32
_BYTES_AT_ONCE = 4 * BLOCK_BYTES
_PATH = re.compile(rf"{FILES}/[0-9a-f]{{2}}/([0-9a-f]{{64}})/([0-9a-f]{{16}})")


class CorruptFileError(ExpectedError):
    """A kept file is missing, or its bytes do not match its SHA-256. The message has the URI of its object."""


def folder_of(sha256: str) -> str:
    """Return the folder with all objects of a file."""
    return f"{FILES}/{sha256[:2]}/{sha256}"


def path_of(one: KeptObject) -> str:
    """Return the path of an object."""
    return f"{folder_of(one.sha256)}/{one.attempt}"


def stored_objects(storage: Storage) -> Iterator[tuple[StoredObject, str, str]]:
    """Yield all objects of kept files with their hashes and attempts. Other objects are ignored."""
    for stored in storage.list(FILES):
        if match := _PATH.fullmatch(stored.path):
            yield stored, match[1], match[2]


class ReceivedFile:
    """The bytes of a file that is being received, in a local file that a killed process does not leave behind.

    Write all bytes in order, then call `store`.
    """

    def __init__(self, storage: Storage) -> None:
        self.size = 0
        self._storage = storage
        self._file = storage.unnamed_file()
        self._digest, self._block = hashlib.sha256(), hashlib.sha256()
        self._blocks: list[bytes] = []

    def write(self, content: bytes | memoryview) -> None:
        """Append bytes. Raises OSError if the disk is full."""
        self._file.write(content)
        self._digest.update(content)
        rest = memoryview(content)
        while rest:
            part = rest[: BLOCK_BYTES - self.size % BLOCK_BYTES]
            self._block.update(part)
            self.size += len(part)
            rest = rest[len(part) :]
            if self.size % BLOCK_BYTES == 0:
                self._end_block()

    def read_from(self, source: BinaryIO) -> None:
        """Append the rest of a stream."""
        while chunk := source.read(BLOCK_BYTES):
            self.write(chunk)

    @property
    def sha256(self) -> str:
        """Return the hash of the bytes so far."""
        return self._digest.hexdigest()

    @property
    def blocks(self) -> bytes:
        """Return the hashes of the blocks, one after the other."""
        last = [] if self.size % BLOCK_BYTES == 0 else [self._block.digest()]
        return b"".join([*self._blocks, *last])

    def store(self, one: KeptObject) -> bool:
        """Write the bytes to the object in the storage. Return False, and write nothing, if they are not its bytes."""
        if (self.sha256, self.size) != (one.sha256, one.size):
            return False
        self._file.seek(0)
        self._storage.put(path_of(one), self._file)
        return True

    def close(self) -> None:
        """Delete the local file, unless it became the object."""
        self._file.close()

    def _end_block(self) -> None:
        self._blocks.append(self._block.digest())
        self._block = hashlib.sha256()


class CopyingStream(io.BufferedIOBase):
    """A stream that copies all bytes that are read from `source` into a received file.

    If the copy cannot be written, such as on a full disk, `failure` is the error, and reading continues without a copy.
    """

    def __init__(self, source: BinaryIO, received: ReceivedFile) -> None:
        self.failure: OSError | None = None
        self._source, self._received = source, received

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes, all of them if `size` is negative."""
        content = self._source.read(-1 if size is None else size)
        if self.failure is None:
            try:
                self._received.write(content)
            except OSError as error:
                self.failure = error
        return content

    def drain(self) -> None:
        """Copy the rest."""
        while self.read(BLOCK_BYTES):
            pass


def read_verified(
    storage: Storage, one: KeptObject, blocks: bytes, start: int = 0, end: int | None = None
) -> Iterator[bytes]:
    """Yield the bytes from `start` to `end` of a kept file, each block after it was checked.

    Raises CorruptFileError at the first block that is missing or does not have its hash, and StorageError.
    """
    end = one.size if end is None else min(end, one.size)
    path = path_of(one)
    try:
        if storage.head(path).size != one.size or len(blocks) != -(-one.size // BLOCK_BYTES) * _HASH_BYTES:
            raise CorruptFileError(f"{storage.uri(path)} does not have the {one.size} bytes of its file")
        if one.size == 0:
            return
        for first in range(start // BLOCK_BYTES * BLOCK_BYTES, end, _BYTES_AT_ONCE):
            content = storage.get_range(path, first, min(_BYTES_AT_ONCE, one.size - first))
            for at in range(first, first + len(content), BLOCK_BYTES):
                block, number = content[at - first : at - first + BLOCK_BYTES], at // BLOCK_BYTES
                if at < end:
                    if hashlib.sha256(block).digest() != blocks[number * _HASH_BYTES : (number + 1) * _HASH_BYTES]:
                        raise CorruptFileError(f"{storage.uri(path)} is corrupt in the MiB from byte {at} on")
                    yield block[max(start - at, 0) : end - at]
    except ObjectNotFoundError as error:
        raise CorruptFileError(f"a kept file is missing: {error}") from error


def verify_object(storage: Storage, one: KeptObject, blocks: bytes | None) -> str | None:
    """Return the reason why the object does not have the bytes of its hash; None if it has. Raises StorageError."""
    digest = hashlib.sha256()
    try:
        for block in read_verified(storage, one, blocks or b""):
            digest.update(block)
    except CorruptFileError as error:
        return str(error)
    if digest.hexdigest() != one.sha256:
        return f"{storage.uri(path_of(one))} does not have its SHA-256"
    return None


def delete_object(storage: Storage, one: KeptObject) -> None:
    """Delete one object."""
    storage.delete(path_of(one))
    drop_empty_folder(storage, folder_of(one.sha256))


def delete_file(storage: Storage, sha256: str) -> None:
    """Delete the objects of all attempts at a file."""
    for stored in list(storage.list(folder_of(sha256))):
        storage.delete(stored.path)
    drop_empty_folder(storage, folder_of(sha256))
