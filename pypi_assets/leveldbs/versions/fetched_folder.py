"""Fetches a published version into a folder of its own, which any program that reads LevelDBs can open.

Such a program writes to its folder, so tables are the only files that the folder shares with the storage: LevelDB never
writes to a table again. Private copies for our own readers are in private_copy.py.
"""

import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError, LeveldbError
from pypi_assets.leveldbs.versions.input_lists import MANIFEST_NAME
from pypi_assets.leveldbs.versions.leveldb_manifest import PublishedVersion, check_file
from pypi_assets.leveldbs.versions.private_copy import copy_published, is_at
from pypi_assets.storage.store import Storage

VERSION_NAME = "_VERSION.json"
"""The name of the version's manifest in a fetched folder. A folder of the storage never has this name."""
_LOCK_NAME = "LOCK"
_SIDE_FILES = "".join(rf"|{re.escape(one.side_files.suffix)}" for one in DATASETS.values() if one.side_files)
_REPLACEABLE = re.compile(
    rf"{VERSION_NAME}|{_LOCK_NAME}|LOG(\.old)?|CURRENT(\.bak|\.\d+)?|MANIFEST-\d+|lost"
    rf"|\d+(\.ldb|\.sst|\.log|\.dbtmp|\.tmp{_SIDE_FILES})",
    re.ASCII,
)
"""The names of a fetched version's files, and of files that LevelDBs in C++ and Go create. A repair creates `lost`."""
_MOST_NAMED = 3


class FetchError(LeveldbError):
    """A version cannot be fetched into this folder."""


class FetchState(StrEnum):
    """What a fetch did. IN_USE: the folder has the version already, but another program has it open."""

    FETCHED = "fetched"
    UNCHANGED = "unchanged"
    IN_USE = "in use"


@dataclass(frozen=True, slots=True)
class FetchedFolder:
    """A fetched version. `linked` of its `files` are hard links, and all files have `bytes` together."""

    dataset: str
    version: int
    serial: int
    content_hash: str
    folder: str
    state: FetchState
    files: int
    linked: int
    bytes: int


def fetch_version(
    storage: Storage,
    published: PublishedVersion,
    folder: Path,
    cache_dir: Path | None = None,
    *,
    copied: Callable[[str], object] = str,
) -> FetchedFolder:
    """Make `folder` a LevelDB with the records of a version, and its manifest as `_VERSION.json`.

    The version is written next to the folder and renamed at the end, so a killed process leaves the folder as it was,
    or none. A folder that was fetched before is replaced, unless it is unchanged or open. Files of a remote storage are
    downloaded through the cache in `cache_dir`. `copied` is called with the name of each file.

    Raises FetchError if the folder has other files or is open, and LeveldbDamagedError if a file does not match the
    manifest.
    """
    folder = folder.resolve()
    if storage.root is not None and folder.is_relative_to(storage.root.resolve()):
        raise FetchError(f"{folder} is within the storage {storage.root}: choose a folder outside")
    if cache_dir is not None and folder.is_relative_to(cache_dir.resolve()):
        raise FetchError(f"{folder} is within the cache {cache_dir}: choose a folder outside")
    if folder.exists() and not folder.is_dir():
        raise FetchError(f"{folder} is not a folder: choose a new one")
    if os.path.ismount(folder):
        raise FetchError(f"{folder} is a mount point, which cannot be replaced: choose a folder below it")
    with _working_folder(folder) as working:
        state = _state(folder, published)
        if state is FetchState.FETCHED:
            new = working / "new"
            copy_published(storage, published, new, cache_dir, copied=copied)
            (new / VERSION_NAME).write_bytes(storage.get(f"{published.path}/{MANIFEST_NAME}"))
            _swap(folder, new, working / "old")
        return _fetched(folder, published, state)


def _state(folder: Path, published: PublishedVersion) -> FetchState:
    """Return FETCHED if the version must be written, otherwise why not. Raises FetchError if it must not be written."""
    if not folder.exists() or not any(folder.iterdir()):
        return FetchState.FETCHED
    if not (folder / VERSION_NAME).is_file():
        raise FetchError(f"{folder} has files that were not fetched: choose a new or empty folder")
    if others := sorted(path.name for path in folder.iterdir() if not _REPLACEABLE.fullmatch(path.name)):
        raise FetchError(
            f"{folder} has files that do not belong to a LevelDB: {', '.join(others[:_MOST_NAMED])}; move them, or"
            " choose another folder"
        )
    is_same = hashlib.sha256((folder / VERSION_NAME).read_bytes()).hexdigest() == published.inputs.manifest_sha256
    if is_same and _is_unchanged(folder, published):
        return FetchState.UNCHANGED
    with _kept_closed(folder) as is_closed:
        if not is_closed and not is_same:
            raise _opened(folder)
    return FetchState.FETCHED if is_closed else FetchState.IN_USE


def _is_unchanged(folder: Path, published: PublishedVersion) -> bool:
    """Check whether the folder has exactly the files of the version. A program that opens it changes some."""
    files = published.manifest.files
    if {path.name for path in folder.iterdir()} - {_LOCK_NAME} != {VERSION_NAME, *(file.name for file in files)}:
        return False
    try:
        for file in files:
            check_file(folder / file.name, file)
    except LeveldbDamagedError:
        return False
    return True


def _swap(folder: Path, new: Path, old: Path) -> None:
    """Give the new folder the name `folder`, and move a former folder to `old`."""
    if not folder.exists() or not any(folder.iterdir()):
        new.rename(folder)
        return
    # tables are opened by name when they are needed: an open reader would read tables of the new version
    with _kept_closed(folder) as is_closed:
        if not is_closed:
            raise _opened(folder)
        folder.rename(old)
        try:
            new.rename(folder)
        except OSError:
            old.rename(folder)
            raise


def _opened(folder: Path) -> FetchError:
    return FetchError(
        f"{folder} has another version, which a program has open: close the program, or choose another folder"
    )


@contextmanager
def _kept_closed(folder: Path) -> Iterator[bool]:
    """Yield whether no program has the LevelDB open. If so, none can open it until the end."""
    with (folder / _LOCK_NAME).open("ab") as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # as LevelDB does, and bindings to it
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # as LevelDBs in Go do
            is_closed = True
        except (BlockingIOError, PermissionError):
            is_closed = False
        yield is_closed


@contextmanager
def _working_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder next to `folder`, on the same disk, and delete it at the end.

    It belongs to one process at a time. What a killed process left in it is deleted.
    """
    working = folder.with_name(f".{folder.name}.fetching")
    lock_path = working / "lock"
    while True:
        working.mkdir(parents=True, exist_ok=True)
        try:
            lock = lock_path.open("ab")
        except FileNotFoundError:  # the process before has just deleted it
            continue
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not is_at(lock, lock_path):
                continue
            _empty(working)
            try:
                yield working
            finally:
                _empty(working)
                lock_path.unlink()
                with suppress(OSError):  # another process has just begun to use it
                    working.rmdir()
            return


def _empty(working: Path) -> None:
    for name in ("new", "old"):
        shutil.rmtree(working / name, ignore_errors=True)


def _fetched(folder: Path, published: PublishedVersion, state: FetchState) -> FetchedFolder:
    manifest = published.manifest
    links = sum(path.stat().st_nlink > 1 for path in folder.iterdir())
    return FetchedFolder(
        manifest.dataset,
        manifest.version,
        manifest.serial,
        manifest.content_hash,
        str(folder),
        state,
        files=len(manifest.files),
        linked=links,
        bytes=sum(file.size for file in manifest.files),
    )
