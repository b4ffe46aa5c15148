"""Store the extracts of many distributions as one object, a pack: `extracts/<ab>/<sha256 of its content>.pack`.

A pack is a line that names the format, 16 random bytes, the extracts one after the other, and an index (MessagePack,
compressed by zstd) followed by its length in four bytes. The index names the distribution of each extract, so packs
alone are enough to fill a catalog.

A pack is written as a whole before the transaction that refers to it, so a pack without a row is orphaned. Because of
the random bytes no two packs have the same content, so an orphaned pack can never be referred to again.
"""

import hashlib
import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec
import zstandard

from pypi_assets.catalog.coordination.leases import deletion_deadlines
from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.reads.read_outcomes import forget_pack, have_extracts, used_packs
from pypi_assets.errors import ExpectedError
from pypi_assets.storage.store import ObjectNotFoundError, Storage, StoredObject
from pypi_assets.storage.sweeping import is_older, sweep_objects

EXTRACTS = "extracts"
_FIRST_LINE = b"pypi-assets extracts 1\n"
_RANDOM_BYTES = 16
_LENGTH_BYTES = 4


class PackError(ExpectedError):
    """A pack is missing or corrupt. The message names the pack."""


class PackEntry(msgspec.Struct, array_like=True, frozen=True):
    """One extract of a pack: the distribution that it came from, as named in the index, and its place in bytes."""

    project: str
    filename: str
    sha256: str | None
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class PackedExtract:
    """An extract to be packed. `content` is the result of `encode_extract`."""

    project: str
    filename: str
    sha256: str | None
    content: bytes


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack that is ready to be stored. Its entries are in the order of the packed extracts."""

    name: str
    content: bytes
    entries: tuple[PackEntry, ...]


def pack_path(name: str) -> str:
    """Return the path of the pack in the storage."""
    return f"{EXTRACTS}/{name[:2]}/{name}.pack"


def make_pack(extracts: Sequence[PackedExtract]) -> Pack:
    """Return a new pack of `extracts`. The same extracts lead to a different pack each time."""
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
    """Return the whole pack after checking its hash. Raise PackError if it is missing or corrupt, and StorageError."""
    try:
        content = storage.get(pack_path(name))
    except ObjectNotFoundError as error:
        raise PackError(f"pack {name} is missing: {error}") from error
    if hashlib.sha256(content).hexdigest() != name or not content.startswith(_FIRST_LINE):
        uri = storage.uri(pack_path(name))
        raise PackError(f"pack {name} is corrupt: the SHA-256 of {uri} does not match its name")
    end = len(content) - _LENGTH_BYTES
    index = content[end - int.from_bytes(content[end:]) : end]
    entries = msgspec.msgpack.decode(zstandard.decompress(index), type=tuple[PackEntry, ...])
    return Pack(name, content, entries)


def read_extracts(storage: Storage, name: str, size: int, places: Sequence[tuple[int, int]]) -> list[bytes]:
    """Return the extracts at `places` (offset, length) of a pack of `size` bytes, fetched as one byte range.

    Extracts packed together are mostly needed together. Each extract has its own checksum, so the pack's hash is not
    needed. Raise PackError if the pack is missing or too short, and StorageError.
    """
    start = min(offset for offset, _ in places)
    end = max(offset + length for offset, length in places)
    path = pack_path(name)
    try:
        if end > size or storage.head(path).size != size:
            raise PackError(f"pack {name} is corrupt: {storage.uri(path)} does not have the expected {size} bytes")
        span = storage.get_range(path, start, end - start)
    except ObjectNotFoundError as error:
        raise PackError(f"pack {name} is missing: {error}") from error
    return [span[offset - start : offset - start + length] for offset, length in places]


_PATH = re.compile(rf"{EXTRACTS}/[0-9a-f]{{2}}/([0-9a-f]{{64}})\.pack")
_NAMES_AT_A_TIME = 500


@dataclass(frozen=True, slots=True)
class CleanedPacks:
    """The result of a clean-up: the number of all packs, and the orphaned packs that were (or would be) deleted.

    `size` is in bytes.
    """

    packs: int
    deleted: tuple[str, ...]
    size: int


def clean_packs(catalog: Catalog, storage: Storage, *, dry_run: bool = False) -> CleanedPacks:
    """Delete packs that no distribution refers to and that are older than a day.

    A killed crawl leaves an orphaned pack, and so do distributions that are all read again. A pack is kept if it has
    the catalog's only extract of a distribution, or if it is corrupt, since its index cannot be read. The row of a pack
    is removed right before the pack is deleted. The catalog rejects this if anything refers to the pack. Raise
    StorageError, and CatalogError if catalog and storage do not belong together, since any pack would be orphaned then.
    """
    old = deletion_deadlines(catalog, dry_run=dry_run).old
    used = _used(catalog)  # before the listing, because a pack is stored before it is referred to
    stored = _listed(storage)
    _check_that_they_belong_together(used, stored, storage)
    deleted: dict[str, StoredObject] = {}
    for name in sorted(stored.keys() - used):
        if not is_older(stored[name], old) or not _is_superseded(catalog, storage, name):
            continue
        if dry_run or catalog.transact(partial(forget_pack, name=name)):
            sweep_objects(storage, [stored[name]], dry_run=dry_run)
            deleted[name] = stored[name]
    return CleanedPacks(len(stored), tuple(deleted), sum(pack.size for pack in deleted.values()))


def _used(catalog: Catalog) -> set[str]:
    used: set[str] = set()
    last = ""
    while True:
        with catalog.read() as connection:
            names = used_packs(connection, last, _NAMES_AT_A_TIME)
        if not names:
            return used
        used.update(names)
        last = names[-1]


def _check_that_they_belong_together(used: Collection[str], found: Collection[str], storage: Storage) -> None:
    missing = sorted(name for name in used if name not in found)
    if missing:
        what = f"{len(missing)} of the {len(used)} packs that the catalog refers to, such as {missing[0]}, are missing"
    elif found and not used:
        what = f"the catalog refers to none of its {len(found)} packs"
    else:
        return
    raise CatalogError(
        f"{storage.uri(EXTRACTS)} seems to belong to another catalog: {what}. Nothing was deleted. Check"
        " PYPI_ASSETS_DATABASE_URL, PYPI_ASSETS_STORAGE_URL and PYPI_ASSETS_HOME"
    )


def _is_superseded(catalog: Catalog, storage: Storage, name: str) -> bool:
    """Check whether the catalog has other extracts for everything in the pack, which is not in use."""
    try:
        entries = read_pack(storage, name).entries
    except PackError:
        return False
    with catalog.read() as connection:
        return have_extracts(connection, [(entry.project, entry.filename) for entry in entries])


def _listed(storage: Storage) -> dict[str, StoredObject]:
    """Return the packs in the storage by name. Other objects are ignored."""
    return {match[1]: stored for stored in storage.list(EXTRACTS) if (match := _PATH.fullmatch(stored.path))}
