"""Deletes the files of days that were written long ago."""

from pypi_assets.resolve.solvability_files import SOLVABILITY, day_of
from pypi_assets.storage.store import Storage, StoredObject


def clean_days(storage: Storage, before: float, *, dry_run: bool = False) -> list[StoredObject]:
    """Deletes the days that were written before `before` (unix seconds), and returns their files, by day. In a
    `dry_run` nothing is deleted.

    Whoever makes a day reads the one before it, and resolves again where that has gone.
    """
    found = [one for one in storage.list(SOLVABILITY) if day_of(one.path) and one.last_modified.timestamp() < before]
    if not dry_run:
        for stored in found:
            storage.delete(stored.path)
    return sorted(found, key=lambda one: one.path)
