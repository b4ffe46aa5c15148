"""The cover according to the manifests in the storage, for readers without a catalog."""

from pypi_assets.catalog.publications.dump_registry import Dump, DumpState
from pypi_assets.dumps.cover import Cover, cover_of
from pypi_assets.dumps.dump_manifest import committed_directories, read_manifest
from pypi_assets.storage.store import Storage


def stored_cover(storage: Storage) -> Cover:
    """Return the cover of all dumps in the storage. Raises DumpDamagedError and StorageError.

    It reads the manifests of the cover, and of dumps superseded since the last clean-up. No regular process uses it; a
    look-up uses it if it finds no version.
    """
    manifests = [read_manifest(storage, directory) for directory in committed_directories(storage)]
    return cover_of(
        Dump(
            id=number,
            kind=manifest.kind,
            serials=manifest.serials,
            directory=manifest.directory,
            sequence=manifest.sequence,
            shards=manifest.shards,
            state=DumpState.COMMITTED,
            inputs=manifest.inputs,
            columns=manifest.columns,
            joined=manifest.joined,
        )
        for number, manifest in enumerate(manifests)
    )
