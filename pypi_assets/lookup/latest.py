"""Opens the newest good version of a dataset for lookups. It only reads what is published."""

from contextlib import ExitStack
from pathlib import Path
from typing import Literal, overload

from pypi_assets.leveldbs.datasets import Dataset, require_dataset
from pypi_assets.leveldbs.input_lists import published_versions
from pypi_assets.leveldbs.manifest import read_published
from pypi_assets.leveldbs.private_copy import copy_published, private_folder, private_parent
from pypi_assets.leveldbs.records import LeveldbDamagedError, LeveldbError, UnknownFormatError, open_leveldb, read_meta
from pypi_assets.lookup.readers import DepgraphReader, ModulesReader
from pypi_assets.storage.store import Storage


class NoVersionError(LeveldbError):
    """There is no version that can be read."""


@overload
def open_latest(
    dataset_name: Literal["modules"], storage: Storage, cache_dir: Path | None = None, *, check_hashes: bool = True
) -> ModulesReader: ...
@overload
def open_latest(
    dataset_name: Literal["depgraph"], storage: Storage, cache_dir: Path | None = None, *, check_hashes: bool = True
) -> DepgraphReader: ...
def open_latest(
    dataset_name: str, storage: Storage, cache_dir: Path | None = None, *, check_hashes: bool = True
) -> ModulesReader | DepgraphReader:
    """Opens the newest version of a dataset in a private copy, or if it is damaged the newest that is not.

    From a remote store it is downloaded, by way of `cache_dir` if given, and checked. `check_hashes` False saves
    reading a local version's files through; their sizes are checked anyway. Raises NoVersionError.
    """
    dataset = require_dataset(dataset_name)
    skipped: list[str] = []
    for version in reversed(published_versions(storage, dataset.name)):
        try:
            return _open(dataset, version, storage, cache_dir, check_hashes, tuple(skipped))
        except (LeveldbDamagedError, UnknownFormatError) as error:
            skipped.append(f"version {version}: {error}")
    reason = f" ({'; '.join(skipped)})" if skipped else ""
    raise NoVersionError(
        f"there is no version of {dataset.name} to read in {storage.url}{reason}: run `pypi-assets leveldb update`"
    )


def _open(
    dataset: Dataset, version: int, storage: Storage, cache_dir: Path | None, hashes: bool, skipped: tuple[str, ...]
) -> ModulesReader | DepgraphReader:
    published = read_published(storage, dataset.name, version)
    with ExitStack() as stack:
        folder = stack.enter_context(private_folder(private_parent(storage, cache_dir)))
        copy_published(storage, published, folder / "leveldb", cache_dir, hashes=hashes)
        db = stack.enter_context(open_leveldb(folder / "leveldb", published.name))
        meta = read_meta(db, published.name, dataset=dataset.name, known_format=dataset.format)
        reader = ModulesReader if dataset.name == "modules" else DepgraphReader
        return reader(db, published.name, version, meta.serial, skipped, stack.pop_all().close)
    raise AssertionError("an exit stack swallows nothing")
