"""Makes private copies of published LevelDBs, since opening a LevelDB changes files in its folder.

Files of a remote store are cached by their content, so only new files are downloaded.
"""

import fcntl
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError, LeveldbError
from pypi_assets.leveldbs.versions.leveldb_manifest import LeveldbFile, PublishedVersion, check_file
from pypi_assets.storage.store import ObjectNotFoundError, Storage

RANGE_BYTES = 8 * 1024**2
_KEPT_VERSIONS = 2


class FileCache:
    """The cached files of a dataset below `cache_dir`. Creating it records that `published` is in use."""

    def __init__(self, cache_dir: Path, published: PublishedVersion) -> None:
        self._folder = cache_dir / published.manifest.dataset
        for name in ("files", "versions"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        self._note(published)

    def get(self, storage: Storage, path: str, file: LeveldbFile, *, hashes: bool) -> Path:
        """Return the cached file, after downloading it if it is missing or corrupt. Raises LeveldbDamagedError.

        Another process that uses newer versions can delete the file at any moment, so link to it soon.
        """
        kept = self._kept(file)
        try:
            check_file(kept, file, hashes=hashes)
        except LeveldbDamagedError:
            kept.unlink(missing_ok=True)
            _fetch(storage, path, file, kept)
        return kept

    def keep(self, file: LeveldbFile, local: Path) -> None:
        """Add a complete local file, which must not be written to any more."""
        with suppress(OSError):  # it is cached already, or cannot be linked, and is then downloaded when it is needed
            os.link(local, self._kept(file))

    def _kept(self, file: LeveldbFile) -> Path:
        return self._folder / "files" / file.sha256

    def _note(self, published: PublishedVersion) -> None:
        """Record the files of the version, and delete files that none of the last used versions has."""
        with (self._folder / "lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            noted = self._folder / "versions" / published.inputs.manifest_sha256
            noted.write_text("".join(f"{file.sha256}\n" for file in published.manifest.files))
            by_use = sorted(noted.parent.iterdir(), key=lambda path: path.stat().st_mtime_ns, reverse=True)
            wanted = {sha256 for kept in by_use[:_KEPT_VERSIONS] for sha256 in kept.read_text().splitlines()}
            for old in by_use[_KEPT_VERSIONS:]:
                old.unlink()
            for path in (self._folder / "files").iterdir():
                if path.stem not in wanted:
                    path.unlink(missing_ok=True)


def download(storage: Storage, path: str, file: LeveldbFile, target: Path) -> None:
    """Download a file of a version and check it. Raises LeveldbDamagedError."""
    with target.open("wb") as stream:
        _append_rest(storage, path, file, stream)
    _check_downloaded(storage, path, file, target)


def _fetch(storage: Storage, path: str, file: LeveldbFile, kept: Path) -> None:
    """Download the missing part of a file for the cache, and rename it once it is complete and checked."""
    part = kept.with_suffix(".part")
    while not kept.exists():
        with part.open("ab") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            if not is_at(stream, part):  # the previous holder of the lock has finished it
                continue
            resumed = 0 < stream.seek(0, os.SEEK_END) <= file.size
            if not resumed:
                stream.truncate(0)
            _append_rest(storage, path, file, stream)
            if not is_at(stream, part):  # deleted by a process that uses newer versions
                continue
            try:
                _check_downloaded(storage, path, file, part)
            except LeveldbDamagedError:
                stream.truncate(0)
                if resumed:  # its beginning was corrupt
                    continue
                raise
            part.rename(kept)


def is_at(stream: BinaryIO, path: Path) -> bool:
    """Check whether an open file is still the file at `path`, and not one that was deleted or renamed."""
    try:
        return os.path.samestat(path.stat(), os.fstat(stream.fileno()))
    except FileNotFoundError:
        return False


def _append_rest(storage: Storage, path: str, file: LeveldbFile, stream: BinaryIO) -> None:
    offset = stream.seek(0, os.SEEK_END)
    while offset < file.size:
        try:
            content = storage.get_range(path, offset, min(RANGE_BYTES, file.size - offset))
        except ObjectNotFoundError as error:
            raise LeveldbDamagedError(f"{storage.uri(path)} is missing") from error
        stream.write(content)
        offset += len(content)
    stream.flush()


def _check_downloaded(storage: Storage, path: str, file: LeveldbFile, target: Path) -> None:
    try:
        check_file(target, file)
    except LeveldbDamagedError as error:
        raise LeveldbDamagedError(f"{storage.uri(path)}, downloaded: {error}") from error


PRIVATE_FOLDER = ".private"
_DOWNLOADS = 8


@contextmanager
def private_folder(parent: Path) -> Iterator[Path]:
    """Yield a new folder below `parent`, and delete it at the end.

    If the process is killed, the next caller deletes the folder.
    """
    with ExitStack() as stack:
        try:
            folder = _new_folder(parent, stack)
        except OSError as error:
            raise LeveldbError(
                f"LevelDBs cannot be opened in {parent}: {error.strerror}; make it writable, or set PYPI_ASSETS_HOME or"
                " PYPI_ASSETS_STORAGE_URL to another folder"
            ) from error
        process = os.getpid()
        try:
            yield folder
        finally:
            if os.getpid() == process:  # a forked child leaves the folder to its parent
                _remove(folder.with_suffix(".lock"))


def _new_folder(parent: Path, stack: ExitStack) -> Path:
    """Return a new folder whose lock is held until the end of `stack`, and delete the folders of killed processes."""
    parent.mkdir(parents=True, exist_ok=True)
    for lock_path in parent.glob("*.lock"):
        with _locked(lock_path) as abandoned:
            if abandoned:
                _remove(lock_path)
    lock_path = parent / f"{uuid.uuid4().hex}.lock"
    while not stack.enter_context(_locked(lock_path, create=True)):
        pass  # another process considered the new lock file abandoned and deleted it
    folder = lock_path.with_suffix("")
    folder.mkdir()
    return folder


def private_parent(storage: Storage, cache_dir: Path | None) -> Path:
    """Return the parent of private folders.

    This is a folder within the storage's own folder if that is local and writable, so that files can be linked.
    Otherwise it is below `cache_dir`, or else in the folder for temporary files.
    """
    if storage.root is not None and os.access(storage.root, os.W_OK | os.X_OK):
        return storage.root / PRIVATE_FOLDER
    if cache_dir is not None:
        return cache_dir / PRIVATE_FOLDER
    temporary = Path(tempfile.gettempdir()) / f"pypi-assets-{os.getuid()}"
    temporary.mkdir(mode=0o700, exist_ok=True)
    if temporary.is_symlink() or temporary.stat().st_uid != os.getuid():  # anyone can create a folder with this name
        raise LeveldbError(f"{temporary} belongs to another user: delete it, or set a cache folder")
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
    """Make the folder `target` a copy of a published version: hard links to its final files, and copies of the others.

    Files of a remote store are downloaded through the cache in `cache_dir`, if given: then only files that are not in
    the cache, or corrupt there, are downloaded. Raises LeveldbDamagedError if a file does not match the manifest. The
    contents of local and cached files are not checked if `hashes` is False. `copied` is called with the name of each
    file.
    """
    target.mkdir()
    cache = FileCache(cache_dir, published) if cache_dir is not None and storage.root is None else None

    def copy(file: LeveldbFile) -> str:
        path, copied_to = published.path_of(file), target / file.name
        if source := storage.local_path(path):
            check_file(source, file, hashes=hashes)
            try:
                _link_or_copy(source, copied_to, file, hashes=hashes)
            except FileNotFoundError as error:
                raise LeveldbDamagedError(f"{source} is missing: it was deleted in the meantime") from error
        elif cache is not None:
            while not copied_to.exists():
                with suppress(FileNotFoundError):  # another process has deleted it
                    _link_or_copy(cache.get(storage, path, file, hashes=hashes), copied_to, file, hashes=hashes)
        else:
            download(storage, path, file, copied_to)
        return file.name

    with ThreadPoolExecutor(_DOWNLOADS if storage.root is None else 1) as pool:
        try:
            for name in pool.map(copy, published.manifest.files):
                copied(name)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def keep_published(storage: Storage, published: PublishedVersion, folder: Path, cache_dir: Path | None) -> None:
    """Add the new files of a version, which are in `folder`, to the cache for the next reader.

    They must not be written to any more.
    """
    if cache_dir is not None and storage.root is None:
        cache = FileCache(cache_dir, published)
        for file in published.manifest.files:
            if file.directory == published.manifest.directory:
                cache.keep(file, folder / file.name)


def _link_or_copy(source: Path, target: Path, file: LeveldbFile, *, hashes: bool) -> None:
    """Link or copy a file that was checked. A copy is checked, too."""
    if file.is_final:
        try:
            os.link(source, target)
        except OSError:  # another disk, or a file system without hard links
            pass
        else:
            return
    shutil.copyfile(source, target)
    check_file(target, file, hashes=hashes)


@contextmanager
def _locked(lock_path: Path, *, create: bool = False) -> Iterator[bool]:
    """Yield whether the lock was acquired and its file still exists. The lock is held until the end."""
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
