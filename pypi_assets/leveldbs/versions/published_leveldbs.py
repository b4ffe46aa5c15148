"""The LevelDB versions in `published.json`: by dataset the input list of the newest one.

Versions of datasets are published one after the other. While the newest ones are of different serials, those of the
last serial that all of them have are named as well, so that who follows gets a set that answers agree in.
"""

from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.errors import LeveldbDamagedError
from pypi_assets.leveldbs.versions.input_lists import published_versions, read_input_list
from pypi_assets.leveldbs.versions.leveldb_paths import input_list_path
from pypi_assets.storage.published import name_objects, publish_part
from pypi_assets.storage.store import Storage

PART = "leveldbs"
_LOOKED_AT = 2
"""Versions of a dataset, when a serial is searched that all datasets have: older ones may be deleted at any moment."""


def publish_leveldbs(storage: Storage) -> None:
    """Names the newest versions in `published.json`. Call it after each publication."""

    def compute() -> object:
        return {
            dataset: name_objects(storage, PART, [input_list_path(dataset, version) for version in versions])
            for dataset, versions in _current(storage).items()
        }

    publish_part(storage, PART, compute)


def _current(storage: Storage) -> dict[str, list[int]]:
    """The versions to be named, by dataset, ascending."""
    found = {dataset: published_versions(storage, dataset)[-_LOOKED_AT:] for dataset in DATASETS}
    found = {dataset: versions for dataset, versions in found.items() if versions}
    newest = {_serial(storage, dataset, versions[-1]) for dataset, versions in found.items()}
    if len(newest) <= 1:
        return {dataset: versions[-1:] for dataset, versions in found.items()}
    serials = {
        dataset: {_serial(storage, dataset, version): version for version in versions}
        for dataset, versions in found.items()
    }
    common = set.intersection(*(set(of_dataset) for of_dataset in serials.values())) - {0}
    of_set = max(common, default=0)
    return {
        dataset: sorted({versions[-1], *([serials[dataset][of_set]] if of_set else [])})
        for dataset, versions in found.items()
    }


def _serial(storage: Storage, dataset: str, version: int) -> int:
    """The serial of a version; 0 where its input list is gone, or damaged."""
    try:
        return read_input_list(storage, dataset, version).serial
    except LeveldbDamagedError:
        return 0
