"""Packs: the extracts of many distributions as one object in the storage, `extracts/<ab>/<sha256 of its content>.pack`.

A pack is a line that names the format, 16 random bytes, the extracts one after the other, and an index (MessagePack,
compressed by zstd) followed by its length in four bytes. The index has the distribution of each extract, so that
packs alone are enough to fill a catalog. A pack is written once and whole, before the transaction that points into
it, so one that no row points to is waste. Since no two packs have the same content, none can come back once it is.
"""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import zstandard

from pypi_assets.errors import ExpectedError
from pypi_assets.storage.store import NotFoundError, Storage

EXTRACTS = "extracts"
_FIRST_LINE = b"pypi-assets extracts 1\n"
_RANDOM_BYTES = 16
_LENGTH_BYTES = 4


class PackError(ExpectedError):
    """A pack is missing or is not what was written; the text names it."""


class PackEntry(msgspec.Struct, array_like=True, frozen=True):
    """One extract of a pack: what it was read from, as the index names it, and where it lies (in bytes)."""

    project: str
    filename: str
    sha256: str | None
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class PackedExtract:
    """An extract that goes into a pack: `content` as `encode_extract` made it."""

    project: str
    filename: str
    sha256: str | None
    content: bytes


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack that is ready to be stored; its entries are in the order of what was packed."""

    name: str
    content: bytes
    entries: tuple[PackEntry, ...]


def pack_path(name: str) -> str:
    """Where the pack of that name lies in the storage."""
    return f"{EXTRACTS}/{name[:2]}/{name}.pack"


def make_pack(extracts: Sequence[PackedExtract]) -> Pack:
    """A new pack of `extracts`; of the same ones, another pack each time."""
    start = _FIRST_LINE + os.urandom(_RANDOM_BYTES)
    offset = len(start)
    entries = []
    for extract in extracts:
        entries.append(PackEntry(extract.project, extract.filename, extract.sha256, offset, len(extract.content)))
        offset += len(extract.content)
    index = zstandard.compress(msgspec.msgpack.encode(entries))
    content = b"".join([start, *(extract.content for extract in extracts), index, len(index).to_bytes(_LENGTH_BYTES)])
    return Pack(hashlib.sha256(content).hexdigest(), content, tuple(entries))


def read_pack(storage: Storage, name: str) -> Pack:
    """The whole pack, its hash and its index checked. Raises PackError where it is missing or damaged, StorageError."""
    try:
        content = storage.get(pack_path(name))
    except NotFoundError as error:
        raise PackError(f"pack {name} is missing: {error}") from error
    if hashlib.sha256(content).hexdigest() != name or not content.startswith(_FIRST_LINE):
        raise PackError(f"pack {name} is damaged: {storage.uri(pack_path(name))} has not the hash that is its name")
    end = len(content) - _LENGTH_BYTES
    index = content[end - int.from_bytes(content[end:]) : end]
    entries = msgspec.msgpack.decode(zstandard.decompress(index), type=tuple[PackEntry, ...])
    return Pack(name, content, entries)


def read_extracts(storage: Storage, name: str, size: int, places: Sequence[tuple[int, int]]) -> list[bytes]:
    """The extracts at `places` (offset, length) of a pack of `size` bytes, fetched as the one range that spans them.

    What was packed together is mostly wanted together. Each extract has a checksum of its own, so the pack's hash is
    not needed. Raises PackError where the pack is missing or too short, StorageError.
    """
    start = min(offset for offset, _ in places)
    end = max(offset + length for offset, length in places)
    path = pack_path(name)
    try:
        if end > size or storage.head(path).size != size:
            raise PackError(f"pack {name} is damaged: {storage.uri(path)} has not the {size} bytes that were written")
        span = storage.get_range(path, start, end - start)
    except NotFoundError as error:
        raise PackError(f"pack {name} is missing: {error}") from error
    return [span[offset - start : offset - start + length] for offset, length in places]
