"""Deletes what nobody needs any more of the storage: LevelDB versions, and the dumps that none of those kept names.

What may be being read stays: what was in use within the grace time, or since a lease that is held was taken.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.leases import end_expired_leases, lease, oldest_lease, renewing
from pypi_assets.catalog.leveldbs import builds_started
from pypi_assets.dumps.clean_up import ABANDONED_AFTER_S, Reason, Removal, by_directory, clean_dumps, is_older, remove
from pypi_assets.dumps.layout import DUMPS
from pypi_assets.leveldbs.datasets import DATASETS
from pypi_assets.leveldbs.input_lists import InputList, read_input_list, stored_input_lists
from pypi_assets.leveldbs.layout import leveldb_path, leveldbs_path, version_name
from pypi_assets.leveldbs.records import LeveldbDamagedError
from pypi_assets.storage.store import Storage, StoredObject

LEASE_NAME = "clean up"
_LEASE_TTL_S = 3600.0


@dataclass(frozen=True, slots=True)
class _Version:
    """A valid version; `inputs` is None where its input list cannot be read."""

    number: int
    stored: StoredObject
    inputs: InputList | None


def clean_up(
    catalog: Catalog, storage: Storage, *, grace_s: float, versions_kept: int, dry_run: bool = False
) -> Iterator[Removal]:
    """Deletes superseded versions and dumps and what stopped attempts have left, and yields it.

    Of each dataset the newest `versions_kept` versions stay, and those superseded less than `grace_s` seconds ago. In a
    `dry_run` nothing is deleted.

    Raises LeaseTakenError where another process cleans up, CatalogError where catalog and storage do not belong
    together.
    """
    with lease(catalog, LEASE_NAME, _LEASE_TTL_S) as held:
        at_work = renewing(held)
        now = catalog.clock()
        with catalog.write() as connection:
            if not dry_run:  # whoever had one, and wakes up, publishes nothing of what is deleted here
                end_expired_leases(connection, now)
            since = min(now - grace_s, oldest_lease(connection, now))
        named: set[str] = set()
        for dataset in DATASETS:
            versions = _versions(storage, dataset)
            superseded = _superseded(versions, versions_kept, since)
            kept = [version.inputs for version in versions if version.inputs and version not in superseded]
            named.update(path.removeprefix(f"{DUMPS}/").partition("/")[0] for inputs in kept for path in inputs.inputs)
            folders = by_directory(storage, leveldbs_path(dataset))
            for version in superseded:
                if not dry_run:
                    storage.delete(version.stored.path)
                if version.inputs:
                    found = folders.pop(version.inputs.directory, [])
                    path = leveldb_path(dataset, version.inputs.directory)
                    yield remove(storage, path, found, Reason.SUPERSEDED, dry_run=dry_run)
            for inputs in kept:
                folders.pop(inputs.directory, None)
            unreadable = {version_name(one.number) for one in versions if not one.inputs and one not in superseded}
            started = builds_started(catalog, dataset)
            old = min(since, now - ABANDONED_AFTER_S)
            for directory, found in folders.items():
                is_old = started.get(directory, 0.0) < old and all(is_older(stored, old) for stored in found)
                if is_old and directory.partition(".")[0] not in unreadable:
                    yield remove(storage, leveldb_path(dataset, directory), found, Reason.ABANDONED, dry_run=dry_run)
        for removal in clean_dumps(catalog, storage, named, since, dry_run=dry_run):
            yield removal
            at_work(0)


def _versions(storage: Storage, dataset: str) -> list[_Version]:
    found = []
    for number, stored in stored_input_lists(storage, dataset).items():
        try:
            found.append(_Version(number, stored, read_input_list(storage, dataset, number)))
        except LeveldbDamagedError:
            found.append(_Version(number, stored, None))
    return found


def _superseded(versions: Sequence[_Version], count: int, since: float) -> list[_Version]:
    """Those before the newest `count` readable ones that a later one had superseded before `since`."""
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
