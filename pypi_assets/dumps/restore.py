"""Rebuild the catalog's index of dumps from the manifests in the storage, which are authoritative."""

from dataclasses import dataclass

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.restored_dumps import restore_dump
from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.dumps.dump_manifest import committed_directories, read_manifest
from pypi_assets.storage.store import Storage


@dataclass(frozen=True, slots=True)
class RestoredIndex:
    """The directories of the dumps that are now in the index, and the errors of corrupt dumps."""

    restored: tuple[str, ...]
    damaged: tuple[str, ...]


def restore_index(catalog: Catalog, storage: Storage) -> RestoredIndex:
    """Add every dump that has a manifest to the catalog. Repeating this changes nothing.

    Reads every manifest, and uses one transaction for each. A person runs it, once.
    """
    restored: list[str] = []
    damaged: list[str] = []
    for directory in committed_directories(storage):
        try:
            manifest = read_manifest(storage, directory)
        except DumpDamagedError as error:
            damaged.append(str(error))
            continue
        restore_dump(
            catalog,
            kind=manifest.kind,
            serials=manifest.serials,
            directory=manifest.directory,
            sequence=manifest.sequence,
            shards=manifest.shards,
            inputs=manifest.inputs,
            files=manifest.files,
            columns=manifest.columns,
            joined=manifest.joined,
        )
        restored.append(directory)
    return RestoredIndex(tuple(restored), tuple(damaged))
