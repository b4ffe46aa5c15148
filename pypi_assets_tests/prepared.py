"""Prepare dumps and LevelDB versions of a catalog in a storage. The fixtures are in `conftest.py`."""

from pathlib import Path

from pypi_assets.catalog.database import Catalog
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.storage.store import Storage, open_storage


def publish(catalog: Catalog, storage: Storage, *datasets: str) -> None:
    """Dump all complete serials, and build a version of each dataset, or only of the named ones."""
    full_dump(catalog, storage, 1)
    for dataset in datasets or DATASETS:
        build_version(dataset, storage=storage, catalog=catalog)


def published_storage(catalog: Catalog, folder: Path, *datasets: str) -> Storage:
    """Return a new storage in a folder below `folder`, after `publish`."""
    storage = open_storage((folder / "storage").as_uri())
    publish(catalog, storage, *datasets)
    return storage
