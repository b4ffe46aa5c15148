"""Deletes exports that later ones have superseded, and what exports that were stopped have left."""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

from pypi_assets.catalog.coordination.leases import end_expired_leases, oldest_lease
from pypi_assets.catalog.database import Catalog
from pypi_assets.dumps.unused_dumps import ABANDONED_AFTER_S, Reason, Removal, by_directory, is_older, remove
from pypi_assets.parquet.export_manifest import in_order
from pypi_assets.parquet.export_paths import EXPORTS, export_path, manifest_path
from pypi_assets.storage.store import Storage


def clean_exports(
    catalog: Catalog, storage: Storage, *, grace_s: float, kept: int, dry_run: bool = False
) -> Iterator[Removal]:
    """Deletes the exports before the newest `kept` that were superseded more than `grace_s` seconds ago, and folders
    without a manifest that nothing was written to for a day; yields them. In a `dry_run` nothing is deleted.

    What somebody may be writing who holds a lease stays. Who reads exports holds none.
    """
    now = catalog.clock()
    if not dry_run:  # whoever had one, and wakes up, publishes nothing of what is deleted here
        catalog.transact(partial(end_expired_leases, now=now))
    with catalog.read() as connection:
        oldest = oldest_lease(connection, now)
    since, old = min(now - grace_s, oldest), min(now - ABANDONED_AFTER_S, oldest)
    folders = by_directory(storage, EXPORTS)
    manifests = {
        directory: stored
        for directory, found in folders.items()
        for stored in found
        if stored.path == manifest_path(directory)
    }
    committed = in_order(manifests)
    for directory, following in pairwise(committed[: max(0, len(committed) - kept + 1)]):
        if is_older(manifests[following], since):
            path = export_path(directory)
            yield remove(storage, path, folders[directory], Reason.SUPERSEDED, dry_run=dry_run)
    for directory in in_order(folders.keys() - manifests.keys()):
        if all(is_older(stored, old) for stored in folders[directory]):
            yield remove(storage, export_path(directory), folders[directory], Reason.ABANDONED, dry_run=dry_run)
