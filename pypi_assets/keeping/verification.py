"""Checks that kept files have the bytes of their hashes, and records the corrupt ones in the catalog."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reads.kept_files import KeptObject, mark_verified
from pypi_assets.catalog.reads.kept_lists import WrittenFile, find_kept, known_files
from pypi_assets.keeping.objects import verify_object
from pypi_assets.storage.store import Storage

_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class VerifiedFile:
    """A kept file, and the reason why it is corrupt; None if it is sound."""

    object: KeptObject
    fault: str | None


def verify_files(catalog: Catalog, storage: Storage) -> Iterator[VerifiedFile]:
    """Check all kept files and yield the results.

    A corrupt file is not served any more, and the next run of its scope fetches it again. Raises StorageError.
    """
    after = ""
    while True:
        with catalog.read() as connection:
            hashes = list(known_files(connection, after, _AT_ONCE))
        if not hashes:
            return
        after = hashes[-1]
        for sha256 in hashes:
            with catalog.read() as connection:
                found = find_kept(connection, sha256)
            if found is None:
                continue
            fault = verify_object(storage, found.object, found.blocks)
            if fault is not None and not _is_still_kept(catalog, found):
                continue  # it was evicted or forgotten while it was read
            if (fault is not None) != found.is_corrupt:
                catalog.transact(partial(mark_verified, one=found.object, is_corrupt=fault is not None))
            yield VerifiedFile(found.object, fault)


def _is_still_kept(catalog: Catalog, kept: WrittenFile) -> bool:
    with catalog.read() as connection:
        return find_kept(connection, kept.object.sha256) == kept
