"""Deletes exports that later ones have superseded, and what exports that were stopped have left."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from pypi_assets.catalog.coordination.leases import Deadlines
from pypi_assets.parquet.export_manifest import EXPORTS, in_order, manifest_path
from pypi_assets.storage.store import Storage, StoredObject
from pypi_assets.storage.sweeping import Reason, Removal, Waste, by_directory, is_older, sweep_directories


def clean_exports(storage: Storage, deadlines: Deadlines, *, kept: int, dry_run: bool = False) -> Iterator[Removal]:
    """Deletes the exports before the newest `kept` that were superseded before `deadlines.since`, and folders without a
    manifest that nothing was written to since `deadlines.old`; yields them. In a `dry_run` nothing is deleted.

    What somebody may be writing who holds a lease stays. Who reads exports holds none.
    """
    folders = by_directory(storage, EXPORTS)
    exports = {directory: folders[directory] for directory in in_order(folders)}
    manifests = {
        directory: stored
        for directory, found in exports.items()
        for stored in found
        if stored.path == manifest_path(directory)
    }
    committed = list(manifests)
    superseded = {
        directory
        for directory, following in pairwise(committed[: max(0, len(committed) - kept + 1)])
        if is_older(manifests[following], deadlines.since)
    }

    def unnamed(directory: str, found: Sequence[StoredObject]) -> Waste | None:
        if directory in manifests:
            return (Reason.SUPERSEDED, found) if directory in superseded else None
        return (Reason.ABANDONED, found) if all(is_older(stored, deadlines.old) for stored in found) else None

    yield from sweep_directories(storage, EXPORTS, exports, unnamed, dry_run=dry_run)
