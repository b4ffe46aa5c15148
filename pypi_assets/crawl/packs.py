"""Packs: the extracts of many distributions as one object in the storage, `extracts/<ab>/<sha256 of its content>.pack`.

A pack is a line that names the format, 16 random bytes, the extracts one after the other, and an index (MessagePack,
compressed by zstd) followed by its length in four bytes. The index tells which distribution each extract is of, so
that packs alone would do to fill a catalog. A pack is written once and whole, before the transaction that points into
it, so one that nobody points to is waste. Since no two packs have the same content, none can come back once it is.
"""

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec
import zstandard

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.packs import forget_pack, used_packs
from pypi_assets.storage.store import NotFoundError, Storage, StoredObject

EXTRACTS = "extracts"
UNUSED_FOR = timedelta(days=1)
"""How old a pack without use must be before it is deleted: no transaction takes so long to follow its pack."""
_FIRST_LINE = b"pypi-assets extracts 1\n"
_RANDOM_BYTES = 16
_LENGTH_BYTES = 4
_PATH = re.compile(rf"{EXTRACTS}/[0-9a-f]{{2}}/([0-9a-f]{{64}})\.pack")
_NAMES_AT_A_TIME = 500


class PackError(Exception):
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
        raise PackError(f"pack {name} is damaged: {storage.uri(pack_path(name))} is not what its name says")
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


@dataclass(frozen=True, slots=True)
class CleanedPacks:
    """What a clean-up found: packs in all, and those without use that were deleted (or would be), `size` in bytes."""

    packs: int
    deleted: tuple[str, ...]
    size: int


def clean_packs(catalog: Catalog, storage: Storage, *, dry_run: bool = False) -> CleanedPacks:
    """Deletes the packs that no distribution points to and that are older than a day. Raises StorageError.

    A pack without use is left by a killed crawl, or when everything in it was read anew. Right before each one is
    deleted, its row is removed, which the catalog refuses while anything points to it.
    """
    before = datetime.fromtimestamp(catalog.clock(), UTC) - UNUSED_FOR
    count = size = 0
    deleted: list[str] = []
    for found in _listed(storage):
        count += len(found)
        old = {name: pack for name, pack in found.items() if pack.last_modified < before}
        with catalog.read() as connection:
            used = used_packs(connection, list(old))
        for name in sorted(old.keys() - used):
            if not dry_run:
                with catalog.write() as connection:
                    if not forget_pack(connection, name):
                        continue
                storage.delete(old[name].path)
            deleted.append(name)
            size += old[name].size
    return CleanedPacks(count, tuple(deleted), size)


def _listed(storage: Storage) -> Iterator[dict[str, StoredObject]]:
    """The packs in the storage by their names, some hundreds at a time; other objects are left alone."""
    packs: dict[str, StoredObject] = {}
    for found in storage.list(EXTRACTS):
        if match := _PATH.fullmatch(found.path):
            packs[match[1]] = found
        if len(packs) == _NAMES_AT_A_TIME:
            yield packs
            packs = {}
    yield packs
