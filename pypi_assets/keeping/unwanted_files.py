"""The clean-up of kept files: deletes files that no scope wants any longer, and objects that no row refers to.

It also completes what killed processes began, and brings the ranks of all files up to date, so that files which the
index has removed are evicted last.
"""

from functools import partial

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reads.forgotten_files import forgotten_among
from pypi_assets.catalog.reads.kept_files import (
    doom_abandoned,
    enforce_budgets,
    refresh_ranks,
    release_unwanted,
)
from pypi_assets.catalog.reads.kept_lists import known_files
from pypi_assets.keeping.keeper import FileKeeper
from pypi_assets.keeping.objects import stored_objects
from pypi_assets.storage.store import Storage, StoredObject
from pypi_assets.storage.sweeping import is_older, sweep_objects

_AT_ONCE = 500


def clean_files(catalog: Catalog, storage: Storage, old: float) -> list[StoredObject]:
    """Delete unwanted kept files, and orphaned objects that were written before `old` (unix seconds). Return them.

    A file is unwanted if no scope that keeps files follows its project. Raises StorageError.
    """
    stored = {(sha256, attempt): one for one, sha256, attempt in stored_objects(storage)}
    catalog.transact(partial(doom_abandoned, now=catalog.clock()))
    known: dict[str, str] = {}
    while some := _next(catalog, max(known, default="")):
        known |= some
        catalog.transact(partial(release_unwanted, sha256s=list(some)))
        catalog.transact(partial(refresh_ranks, sha256s=list(some)))
    catalog.transact(enforce_budgets)
    deleted = [
        stored[key]
        for one in FileKeeper(catalog, storage).delete_doomed()
        if (key := (one.sha256, one.attempt)) in stored
    ]
    orphans = {key: one for key, one in stored.items() if known.get(key[0]) != key[1]}
    with catalog.read() as connection:
        forgotten = forgotten_among(connection, [sha256 for sha256, _ in orphans])
    old_ones = [one for (sha256, _), one in orphans.items() if sha256 in forgotten or is_older(one, old)]
    return deleted + sweep_objects(storage, old_ones)


def _next(catalog: Catalog, after: str) -> dict[str, str]:
    with catalog.read() as connection:
        return known_files(connection, after, _AT_ONCE)
