"""Mark and sweep: delete unreferenced objects from the storage.

Each kind of publication (dumps, LevelDB versions, exports, packs, segments of the journal, days of solvability, files
of a mirror) marks the objects that it refers to. This module deletes the other objects. It does not decide the age from
which an unreferenced object can be deleted: see `deletion_deadlines` in catalog/coordination/leases.py.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pypi_assets.storage.store import Storage, StoredObject

_MANIFEST = "/_MANIFEST.json"
_INPUT_LISTS = "/input_lists/"


class DeletionReason(StrEnum):
    """The reason for a deletion: a later publication took its place, or an attempt never committed it."""

    SUPERSEDED = "superseded"
    ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True)
class Removal:
    """The deletion of `files` files in the folder `path`, in a dry run not performed; `size` is in bytes."""

    path: str
    reason: DeletionReason
    files: int
    size: int


Waste = tuple[DeletionReason, Collection[StoredObject]]
"""The unreferenced objects of a directory, and the reason. There are none if only the input list is deleted."""


def by_directory(storage: Storage, path: str) -> dict[str, list[StoredObject]]:
    """Return the objects in each directory of the folder `path`, by the directory's name."""
    found: dict[str, list[StoredObject]] = {}
    for stored in sorted(storage.list(path), key=lambda stored: stored.path):
        found.setdefault(stored.path.removeprefix(f"{path}/").partition("/")[0], []).append(stored)
    return found


def is_older(stored: StoredObject, than: float) -> bool:
    """Check whether the object was written before `than`, in unix seconds."""
    return stored.last_modified.timestamp() < than


def sweep_directories(
    storage: Storage,
    path: str,
    directories: Mapping[str, Sequence[StoredObject]],
    unnamed: Callable[[str, Sequence[StoredObject]], Waste | None],
    *,
    dry_run: bool = False,
) -> Iterator[Removal]:
    """Delete the `unnamed` objects of each of the `directories` of the folder `path`, and yield the deletions.

    `unnamed` returns None to keep a directory unchanged.
    """
    for directory, stored in sorted(directories.items()):
        if (found := unnamed(directory, stored)) is not None:
            reason, waste = found
            sweep_objects(storage, waste, dry_run=dry_run)
            if not dry_run:
                _drop_empty_folders(storage, f"{path}/{directory}")
            yield Removal(f"{path}/{directory}", reason, len(waste), sum(one.size for one in waste))


def sweep_objects(storage: Storage, unnamed: Iterable[StoredObject], *, dry_run: bool = False) -> list[StoredObject]:
    """Delete the objects, and return them by path. A `dry_run` deletes nothing.

    Manifests and input lists are deleted before the files that they name. If the process is killed in between, the
    remaining files do not look like a complete publication.
    """
    waste = sorted(unnamed, key=lambda stored: stored.path)
    if not dry_run:
        for stored in sorted(waste, key=lambda stored: not _names_others(stored.path)):
            storage.delete(stored.path)
    return waste


def _names_others(path: str) -> bool:
    return _INPUT_LISTS in path or path.endswith(_MANIFEST)


def drop_empty_folder(storage: Storage, path: str) -> None:
    """Delete the folder if it is empty. Do nothing in a store without folders."""
    if folder := storage.local_path(path):
        with suppress(OSError):  # not empty
            folder.rmdir()


def _drop_empty_folders(storage: Storage, path: str) -> None:
    """Delete the folder and all folders in it, unless they have files. Do nothing in a store without folders."""
    if folder := storage.local_path(path):
        for inner, _, _ in os.walk(folder, topdown=False):
            with suppress(OSError):  # not empty
                Path(inner).rmdir()
