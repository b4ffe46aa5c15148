"""Deletes superseded LevelDB versions, and files from stopped builds.

A build is based on the newest version, which is never deleted, or on nothing. So later versions can name only files of
the newest version and files that they add themselves. The order of deletion among versions, dumps and other files does
not belong here; `upkeep/deletion.py` decides it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pypi_assets.catalog.coordination.leases import Deadlines
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.allocated_names import Attempt, attempts
from pypi_assets.dumps.dump_manifest import DUMPS
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError, UnknownFormatError
from pypi_assets.leveldbs.versions.input_lists import (
    MANIFEST_NAME,
    InputList,
    leveldbs_path,
    read_input_list,
    stored_input_lists,
)
from pypi_assets.leveldbs.versions.leveldb_manifest import read_listed
from pypi_assets.storage.store import Storage, StoredObject
from pypi_assets.storage.sweeping import DeletionReason, Removal, Waste, by_directory, is_older, sweep_directories


@dataclass(frozen=True, slots=True)
class _Version:
    """A valid version. `inputs` is None if its input list cannot be read."""

    number: int
    stored: StoredObject
    inputs: InputList | None


def clean_versions(
    catalog: Catalog,
    storage: Storage,
    dataset: str,
    deadlines: Deadlines,
    *,
    count: int,
    renew: Callable[[int], None],
    named: set[str],
    dry_run: bool = False,
) -> Iterator[Removal]:
    """Delete superseded versions of `dataset` and files from stopped attempts, and yield the deletions.

    The newest `count` versions are kept, and versions that were superseded after `deadlines.since`. Files of stopped
    attempts are kept if they are younger than `deadlines.old`. The directories of the dumps that the remaining versions
    name are added to `named`. `renew` is called regularly, to renew the caller's lease. With `dry_run`, nothing is
    deleted.
    """
    # read first, so that the listing below has the input list of each attempt that is published by now
    known = attempts(catalog, dataset)
    versions = _versions(storage, dataset)
    superseded = _superseded(versions, count, deadlines.since)
    kept = [version for version in versions if version not in superseded]
    inputs = [path for version in kept if version.inputs for path in version.inputs.inputs]
    named.update(path.removeprefix(f"{DUMPS}/").partition("/")[0] for path in inputs)
    if not dry_run:  # delete all input lists before the first file, since versions share files
        for version in superseded:
            storage.delete(version.stored.path)
    gone = {version.inputs.directory for version in superseded if version.inputs}
    wanted = _wanted(storage, kept, renew)
    folders: dict[str, list[StoredObject]] = {directory: [] for directory in gone}
    folders |= by_directory(storage, leveldbs_path(dataset))

    def unnamed(directory: str, stored: Sequence[StoredObject]) -> Waste | None:
        renew(0)
        found = [candidate for candidate in stored if not wanted(directory, candidate)]
        if directory in gone or (found and _is_published(known, directory)):
            return DeletionReason.SUPERSEDED, found
        return (DeletionReason.ABANDONED, found) if found and _is_old(known, directory, found, deadlines.old) else None

    yield from sweep_directories(storage, leveldbs_path(dataset), folders, unnamed, dry_run=dry_run)


def _versions(storage: Storage, dataset: str) -> list[_Version]:
    found = []
    for number, stored in stored_input_lists(storage, dataset).items():
        try:
            found.append(_Version(number, stored, read_input_list(storage, dataset, number)))
        except LeveldbDamagedError:
            found.append(_Version(number, stored, None))
    return found


def _superseded(versions: Sequence[_Version], count: int, since: float) -> list[_Version]:
    """Return the versions before the newest `count` readable ones that a later version superseded before `since`."""
    readable = [version for version in versions if version.inputs]
    if len(readable) <= count:
        return []
    found = []
    for version in versions:
        if version.number >= readable[-count].number:
            break
        following = next(later for later in readable if later.number > version.number)
        if is_older(following.stored, since):
            found.append(version)
    return found


def _wanted(
    storage: Storage, kept: Sequence[_Version], renew: Callable[[int], None]
) -> Callable[[str, StoredObject], bool]:
    """Return a function that checks whether a remaining version names an object in a directory, or may name it.

    A version that cannot be read may name all files that were written up to then.
    """
    paths: set[str] = set()
    unreadable = 0
    for version in kept:
        renew(0)
        try:
            published = read_listed(storage, version.inputs) if version.inputs else None
        except (LeveldbDamagedError, UnknownFormatError):
            published = None
        if published is None:
            unreadable = max(unreadable, version.number)
        else:
            paths.add(f"{published.path}/{MANIFEST_NAME}")
            paths.update(published.path_of(file) for file in published.manifest.files)

    def is_wanted(directory: str, stored: StoredObject) -> bool:
        number = directory.partition(".")[0]
        return stored.path in paths or (number.isdecimal() and int(number) <= unreadable)

    return is_wanted


def _is_published(known: Mapping[str, Attempt], directory: str) -> bool:
    return directory in known and known[directory].is_published


def _is_old(known: Mapping[str, Attempt], directory: str, found: Sequence[StoredObject], old: float) -> bool:
    began = known[directory].started_at if directory in known else 0.0
    return began < old and all(is_older(stored, old) for stored in found)
