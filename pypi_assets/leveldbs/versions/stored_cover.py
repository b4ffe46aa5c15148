"""The cover as the manifests in the storage describe it, for readers that have no catalog."""

from pypi_assets.catalog.publications.dump_registry import Dump, DumpState
from pypi_assets.dumps.cover import Cover, cover_of
from pypi_assets.dumps.dump_manifest import committed_directories, read_manifest
from pypi_assets.storage.store import Storage


def stored_cover(storage: Storage) -> Cover:
    """The cover of all dumps in the storage. Raises DumpDamagedError and StorageError.

    Reads every manifest: those of the cover, and of what was superseded since the last clean-up. Nothing that runs
    regularly needs it, but a look-up does that finds no version.
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
