"""Packs: the extracts of many distributions as one object in the storage, `extracts/<ab>/<sha256 of its content>.pack`.

A pack is a line that names the format, 16 random bytes, the extracts one after the other, and an index (MessagePack,
compressed by zstd) followed by its length in four bytes. The index has the distribution of each extract, so that
packs alone are enough to fill a catalog. A pack is written once and whole, before the transaction that points into
it, so one that no row points to is waste. Since no two packs have the same content, none can come back once it is.
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
    except ObjectNotFoundError as error:
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
    except ObjectNotFoundError as error:
        raise PackError(f"pack {name} is missing: {error}") from error
    return [span[offset - start : offset - start + length] for offset, length in places]


_PATH = re.compile(rf"{EXTRACTS}/[0-9a-f]{{2}}/([0-9a-f]{{64}})\.pack")
_NAMES_AT_A_TIME = 500


@dataclass(frozen=True, slots=True)
class CleanedPacks:
    """What a clean-up found: packs in all, and those without use that were deleted (or would be), `size` in bytes."""

    packs: int
    deleted: tuple[str, ...]
    size: int


def clean_packs(catalog: Catalog, storage: Storage, *, dry_run: bool = False) -> CleanedPacks:
    """Deletes the packs that no distribution points to and that are older than a day.

    A killed crawl leaves a pack without use, and so do distributions that are all read again. A pack stays if it holds
    the catalog's only extract of a distribution, or if it is damaged, since its index is lost. Right before a pack is
    deleted, its row is removed, which the catalog refuses while anything points to it. Raises StorageError, and
    CatalogError where catalog and storage do not belong together: any pack would be waste then.
    """
    old = deletion_deadlines(catalog, dry_run=dry_run).old
    used = _used(catalog)  # before the listing: a pack is stored before it comes into use
    found = _listed(storage)
    _check_that_they_belong_together(used, found, storage)
    deleted: dict[str, StoredObject] = {}
    for name in sorted(found.keys() - used):
        if not is_older(found[name], old) or not _is_superseded(catalog, storage, name):
            continue
        if dry_run or catalog.transact(partial(forget_pack, name=name)):
            sweep_objects(storage, [found[name]], dry_run=dry_run)
            deleted[name] = found[name]
    return CleanedPacks(len(found), tuple(deleted), sum(pack.size for pack in deleted.values()))


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
        what = f"{len(missing)} of the {len(used)} packs that the catalog refers to, like {missing[0]}, are not there"
    elif found and not used:
        what = f"the catalog refers to none of the {len(found)} packs there"
    else:
        return
    raise CatalogError(
        f"{storage.uri(EXTRACTS)} seems to belong to another catalog: {what}. Nothing was deleted; check"
        " PYPI_ASSETS_DATABASE_URL, PYPI_ASSETS_STORAGE_URL and PYPI_ASSETS_HOME"
    )


def _is_superseded(catalog: Catalog, storage: Storage, name: str) -> bool:
    """Whether the catalog has other extracts of all that is in the pack, which is not in use."""
    try:
        entries = read_pack(storage, name).entries
    except PackError:
        return False
    with catalog.read() as connection:
        return have_extracts(connection, [(entry.project, entry.filename) for entry in entries])


def _listed(storage: Storage) -> dict[str, StoredObject]:
    """The packs in the storage by their names; other objects are left alone."""
    return {match[1]: found for found in storage.list(EXTRACTS) if (match := _PATH.fullmatch(found.path))}
