"""Open the newest readable version of a dataset for lookups. Nothing is written to the storage."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, overload

from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.registry import require_dataset
from pypi_assets.leveldbs.format.leveldb_binding import require_binding
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError, UnknownFormatError
from pypi_assets.leveldbs.format.open_leveldb import open_leveldb
from pypi_assets.leveldbs.format.records import read_meta
from pypi_assets.leveldbs.versions.input_lists import published_versions
from pypi_assets.leveldbs.versions.leveldb_manifest import read_published
from pypi_assets.leveldbs.versions.private_copy import copy_published, private_folder, private_parent
from pypi_assets.lookup.reader import AnyReader, Closing, DatasetReader, OpenVersion
from pypi_assets.setting_sources import load_locations
from pypi_assets.storage.store import Storage, open_storage

CACHE_BYTES = 256 * 1024**2
AnyStorage = Storage | str | os.PathLike[str]
"""An open storage, its URL, or the path of a local folder."""


@overload
def open_latest(
    dataset: type[AnyReader],
    storage: AnyStorage | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    *,
    check_hashes: bool = True,
    refresh_every_s: float | None = None,
    cache_bytes: int = CACHE_BYTES,
) -> AnyReader: ...
@overload
def open_latest(
    dataset: str,
    storage: AnyStorage | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    *,
    check_hashes: bool = True,
    refresh_every_s: float | None = None,
    cache_bytes: int = CACHE_BYTES,
) -> Any: ...
def open_latest(
    dataset: str | type[DatasetReader],
    storage: AnyStorage | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    *,
    check_hashes: bool = True,
    refresh_every_s: float | None = None,
    cache_bytes: int = CACHE_BYTES,
) -> DatasetReader:
    """Open the newest version of a dataset in a private copy. If it is corrupt, open the newest version that is not.

    >>> with open_latest(ModulesReader) as modules:  # open_latest("modules") works too, but is typed as Any
    ...     modules.module("yaml").results

    `dataset` is a reader class or the name of a dataset. `storage` is an open storage, its URL, or the path of a local
    one. Without it, storage and cache come from the settings (`PYPI_ASSETS_...`). A version in a remote storage is
    downloaded; with `cache_dir`, only files that the cache lacks are downloaded.

    With `check_hashes=False`, only the sizes of local or cached files are compared. This saves reading all files before
    the first answer. Each block has a checksum, which is always verified when the block is read. If a checksum is
    wrong, all files are checked, and a good version is opened. With `refresh_every_s`, a reader in use looks for a
    newer version at most that often. `cache_bytes` is the memory for blocks that were read before; reading them again
    is several times as fast.

    Raises NoVersionError, NotBuiltYetError if the dumps lack columns that the dataset needs, MissingBindingError if
    LevelDB cannot be loaded, StorageError, and SettingsError if settings are needed and invalid.
    """
    known = require_dataset(dataset if isinstance(dataset, str) else dataset.dataset)
    if storage is None:
        locations = load_locations()
        storage, cache_dir = locations.resolved_storage_url, cache_dir or locations.leveldbs_dir
    cache = None if cache_dir is None else Path(cache_dir)
    versions = _Versions(known, _opened(storage), cache, cache_bytes)
    reader = reader_class(known) if isinstance(dataset, str) else dataset
    return reader(versions, check_hashes=check_hashes, refresh_every_s=refresh_every_s)


def open_version(
    dataset: Dataset,
    version: int,
    storage: Storage,
    cache_dir: Path | None = None,
    *,
    cache_bytes: int = CACHE_BYTES,
    damaged: Callable[[str], None] = lambda _reason: None,
) -> DatasetReader:
    """Open this version only: the reader never moves on to another version.

    File sizes are checked now, and blocks when they are read. Raises UnknownFormatError, and LeveldbDamagedError, also
    later if a corrupt block is read. If opening fails because of the files in the storage, `damaged` is called with the
    reason before the error is raised.
    """
    versions = _OneVersion(dataset, version, storage, cache_dir, cache_bytes, damaged)
    return reader_class(dataset)(versions, check_hashes=False)


def _opened(storage: AnyStorage) -> Storage:
    if isinstance(storage, Storage):
        return storage
    text = os.fspath(storage)
    if not isinstance(text, str):
        raise TypeError("storage must be a Storage, a URL or a path, as str or os.PathLike, not bytes")
    is_url = isinstance(storage, str) and "://" in text
    return open_storage(text if is_url else Path(text).expanduser().absolute().as_uri(), read_only=True)


class _Versions:
    """The published versions of a dataset in a storage. A version that could not be opened is not tried again."""

    def __init__(self, dataset: Dataset, storage: Storage, cache_dir: Path | None, cache_bytes: int) -> None:
        self.dataset = dataset.name
        self.skipped: dict[int, str] = {}
        self._known, self._storage, self._cache_dir, self._cache_bytes = dataset, storage, cache_dir, cache_bytes

    def open_newest(self, *, check_hashes: bool, beyond: int = 0) -> OpenVersion | None:
        for version in reversed(published_versions(self._storage, self.dataset)):
            if version <= beyond:
                return None
            if version not in self.skipped:
                try:
                    return self._open(version, check_hashes)
                except (LeveldbDamagedError, UnknownFormatError) as error:
                    self.skipped[version] = str(error)
        if beyond:
            return None
        from pypi_assets.leveldbs.versions.missing_version import no_version

        raise no_version(self._known, self._storage, self.skipped)

    def _open(self, version: int, check_hashes: bool) -> OpenVersion:
        require_binding()  # before downloading anything
        published = read_published(self._storage, self.dataset, version)
        with ExitStack() as stack:
            folder = stack.enter_context(private_folder(private_parent(self._storage, self._cache_dir)))
            copy_published(self._storage, published, folder / "leveldb", self._cache_dir, hashes=check_hashes)
            db = stack.enter_context(open_leveldb(folder / "leveldb", published.name, cache_bytes=self._cache_bytes))
            meta = read_meta(db, published.name, dataset=self.dataset, known_format=self._known.format)
            followed, side_files = published.manifest.followed_projects, self._known.side_files
            side = None if side_files is None else side_files.open(db, folder / "leveldb", check_hashes)
            name, closing = published.name, Closing(stack.pop_all())
            return OpenVersion(db, name, version, meta.serial, check_hashes, closing, followed, side)
        raise AssertionError("an exit stack does not swallow exceptions")


class _OneVersion(_Versions):
    """One published version, which may be older than the newest."""

    def __init__(
        self,
        dataset: Dataset,
        version: int,
        storage: Storage,
        cache_dir: Path | None,
        cache_bytes: int,
        damaged: Callable[[str], None],
    ) -> None:
        super().__init__(dataset, storage, cache_dir, cache_bytes)
        self._version, self._damaged = version, damaged

    def open_newest(self, *, check_hashes: bool, beyond: int = 0) -> OpenVersion | None:
        if self._version <= beyond:
            return None
        try:
            return self._open(self._version, check_hashes)
        except (LeveldbDamagedError, UnknownFormatError) as error:
            self._damaged(str(error))
            raise


@cache
def reader_of(dataset: str) -> type[DatasetReader]:
    """Return the reader class of the dataset with this name. Raises LeveldbError."""
    return reader_class(require_dataset(dataset))


def reader_class(dataset: Dataset) -> type[DatasetReader]:
    """Return the reader class of the dataset: `READER` of its module."""
    reader: type[DatasetReader] = import_module(dataset.reader).READER
    return reader
