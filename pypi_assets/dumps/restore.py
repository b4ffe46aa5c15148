"""Rebuilds the catalog's index of dumps from the manifests in the storage, which are the truth."""

from dataclasses import dataclass

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.restored_dumps import restore_dump
from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.dumps.dump_manifest import committed_directories, read_manifest
from pypi_assets.storage.store import Storage


@dataclass(frozen=True, slots=True)
class RestoredIndex:
    """The directories of the dumps that are in the index now, and what is wrong with those that are not."""

    restored: tuple[str, ...]
    damaged: tuple[str, ...]


def restore_index(catalog: Catalog, storage: Storage) -> RestoredIndex:
    """Enters every dump that has a manifest into the catalog. Doing it again changes nothing.

    Reads every manifest, in a transaction for each: a person runs it, once.
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
