"""Private copies of published LevelDBs: opening one changes files in its folder, so none is opened where it lies.

A private folder belongs to the process that made it. It holds a lock on a file beside the folder; when it dies, the
lock goes with it, and the next one to come removes the folder.
"""

import fcntl
import hashlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pypi_assets.leveldbs.manifest import LeveldbFile, PublishedVersion
from pypi_assets.leveldbs.records import LeveldbDamagedError, LeveldbError
from pypi_assets.storage.store import NotFoundError, Storage

PRIVATE_FOLDER = ".private"
_CACHED_VERSIONS = 2


@contextmanager
def private_folder(parent: Path) -> Iterator[Path]:
    """A new folder below `parent` that is removed at the end, at the latest by whoever comes after a killed process."""
    parent.mkdir(parents=True, exist_ok=True)
    for lock_path in parent.glob("*.lock"):
        with _locked(lock_path) as abandoned:
            if abandoned:
                _remove(lock_path)
    with ExitStack() as stack:
        lock_path = parent / f"{uuid.uuid4().hex}.lock"
        while not stack.enter_context(_locked(lock_path, create=True)):
            pass  # somebody took the new lock file for an abandoned one, and removed it
        folder = lock_path.with_suffix("")
        folder.mkdir()
        process = os.getpid()
        try:
            yield folder
        finally:
            if os.getpid() == process:  # a fork that ends leaves it to its parent
                _remove(lock_path)


def private_parent(storage: Storage, cache_dir: Path | None) -> Path:
    """Where private folders go: within the storage's own folder, so that files can be linked, if there is one that can
    be written; else below `cache_dir`, else where temporary files go.
    """
    if storage.root is not None and os.access(storage.root, os.W_OK | os.X_OK):
        return storage.root / PRIVATE_FOLDER
    if cache_dir is not None:
        return cache_dir / PRIVATE_FOLDER
    temporary = Path(tempfile.gettempdir()) / f"pypi-assets-{os.getuid()}"
    temporary.mkdir(mode=0o700, exist_ok=True)
    if temporary.is_symlink() or temporary.stat().st_uid != os.getuid():  # anyone can make a folder by that name
        raise LeveldbError(f"{temporary} belongs to somebody else: remove it, or name a cache folder")
    return temporary


def copy_published(
    storage: Storage,
    published: PublishedVersion,
    target: Path,
    cache_dir: Path | None = None,
    *,
    hashes: bool = True,
    copied: Callable[[str], object] = str,
) -> None:
    """Makes the folder `target` a copy of a published version: hard links to its tables and copies of the rest.

    From a remote store the files are downloaded, by way of `cache_dir` if there is one, which keeps the newest
    versions. All files are checked against the manifest, their contents too unless `hashes` is False: raises
    LeveldbDamagedError. `copied` is told the name of each file.
    """
    source = storage.local_path(published.path)
    if source is None:
        if cache_dir is None:
            _download(storage, published, target, copied)
            return
        source = _cached(storage, published, cache_dir, copied)
    target.mkdir()
    for file in published.manifest.files:
        _check(source / file.name, file, hashes=hashes)
        _link_or_copy(source / file.name, target / file.name)
        copied(file.name)


def file_sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _link_or_copy(source: Path, target: Path) -> None:
    if source.suffix == ".ldb":  # LevelDB never writes a table twice
        try:
            os.link(source, target)
        except OSError:  # another disk, or a file system without links
            shutil.copyfile(source, target)
    else:
        shutil.copyfile(source, target)


def _check(path: Path, file: LeveldbFile, *, hashes: bool = True) -> None:
    try:
        size = path.stat().st_size
    except FileNotFoundError as error:
        raise LeveldbDamagedError(f"{path} is missing") from error
    if size != file.size:
        raise LeveldbDamagedError(f"{path} must have {file.size} bytes, not {size}")
    if hashes and file_sha256(path) != file.sha256:
        raise LeveldbDamagedError(f"{path} is not the file that its manifest names: its sha256 differs")


def _download(storage: Storage, published: PublishedVersion, target: Path, copied: Callable[[str], object]) -> None:
    target.mkdir()
    for file in published.manifest.files:
        path = f"{published.path}/{file.name}"
        try:
            storage.download(path, target / file.name)
        except NotFoundError as error:
            raise LeveldbDamagedError(f"{storage.uri(path)} is missing") from error
        try:
            _check(target / file.name, file)
        except LeveldbDamagedError as error:
            raise LeveldbDamagedError(f"{storage.uri(path)}, downloaded: {error}") from error
        copied(file.name)


def _cached(storage: Storage, published: PublishedVersion, cache_dir: Path, copied: Callable[[str], object]) -> Path:
    """The folder of `cache_dir` that holds the version, downloaded now if it is not there yet."""
    versions = cache_dir / published.manifest.dataset
    cached = versions / f"{published.manifest.directory}-{published.inputs.manifest_sha256[:16]}"
    if cached.is_dir():
        return cached
    versions.mkdir(parents=True, exist_ok=True)
    with private_folder(cache_dir / PRIVATE_FOLDER) as folder:
        _download(storage, published, folder / "download", copied)
        try:
            (folder / "download").rename(cached)
        except OSError:
            if not cached.is_dir():  # otherwise another process was quicker
                raise
    for old in sorted(versions.iterdir())[:-_CACHED_VERSIONS]:
        if old != cached:
            shutil.rmtree(old, ignore_errors=True)
    return cached


@contextmanager
def _locked(lock_path: Path, *, create: bool = False) -> Iterator[bool]:
    """Whether the lock could be taken and its file is still there; it is held until the end."""
    try:
        descriptor = os.open(lock_path, os.O_RDWR | (os.O_CREAT if create else 0), 0o600)
    except FileNotFoundError:
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = os.fstat(descriptor).st_nlink > 0
        except BlockingIOError:
            held = False
        yield held
    finally:
        os.close(descriptor)


def _remove(lock_path: Path) -> None:
    shutil.rmtree(lock_path.with_suffix(""), ignore_errors=True)
    lock_path.unlink(missing_ok=True)
