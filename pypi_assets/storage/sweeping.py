"""Mark and sweep: deletes the objects of a folder that nothing names.

Each kind of publication (dumps, LevelDB versions, exports, packs, segments of the journal, days of solvability, files
of a mirror) marks what it names. Here is what is done with the rest. How old that must be does not belong here:
`deletion_deadlines` in catalog/coordination/leases.py decides it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from pypi_assets.storage.store import Storage, StoredObject

_MANIFEST = "/_MANIFEST.json"
_INPUT_LISTS = "/input_lists/"


class Reason(StrEnum):
    """Why something is deleted."""

    SUPERSEDED = "superseded"
    ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True)
class Removal:
    """`files` of the folder `path` that were deleted, or would be; `size` in bytes."""

    path: str
    reason: Reason
    files: int
    size: int


Waste = tuple[Reason, Collection[StoredObject]]
"""The objects of a directory that nothing names, and why. It can have none, where what named them goes."""


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
    """Delete what is `unnamed` in each of the `directories` of the folder `path`, and yield it. None: nothing is."""
    for directory, stored in sorted(directories.items()):
        if (found := unnamed(directory, stored)) is not None:
            reason, waste = found
            sweep_objects(storage, waste, dry_run=dry_run)
            if not dry_run:
                drop_empty_folder(storage, f"{path}/{directory}")
            yield Removal(f"{path}/{directory}", reason, len(waste), sum(one.size for one in waste))


def sweep_objects(storage: Storage, unnamed: Iterable[StoredObject], *, dry_run: bool = False) -> list[StoredObject]:
    """Delete the objects, and return them by path. In a `dry_run` nothing is deleted.

    Manifests and input lists go before the files that they name: wherever this is stopped, no rest looks whole.
    """
    waste = sorted(unnamed, key=lambda stored: stored.path)
    if not dry_run:
        for stored in sorted(waste, key=lambda stored: not _names_others(stored.path)):
            storage.delete(stored.path)
    return waste


def _names_others(path: str) -> bool:
    return _INPUT_LISTS in path or path.endswith(_MANIFEST)


def drop_empty_folder(storage: Storage, path: str) -> None:
    """Delete a folder in which nothing is left. Stores without folders stay as they are."""
    if folder := storage.local_path(path):
        with suppress(OSError):  # not empty
            folder.rmdir()
