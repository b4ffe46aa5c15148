"""Packs without use: finds those that nothing in the catalog points to, and deletes them.

The format of a pack does not belong here: see packs.py. The order of all deletions is in upkeep/deletion.py.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

from pypi_assets.catalog.coordination.leases import deletion_deadlines
from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.reads.read_outcomes import forget_pack, have_extracts, used_packs
from pypi_assets.extracts.packs import EXTRACTS, PackError, read_pack
from pypi_assets.storage.store import Storage, StoredObject
from pypi_assets.storage.sweeping import is_older, sweep_objects

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
