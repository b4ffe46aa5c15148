"""Files of versions in a remote store, kept in a folder by their content: only what is new is downloaded.

    CACHE/DATASET/files/SHA256         a file, whole and checked
    CACHE/DATASET/files/SHA256.part    one that is being downloaded, or whose download was stopped
    CACHE/DATASET/versions/SHA256      the files of a version, a hash a line; named by the hash of its manifest

Files are shared by hard links, so one that is damaged is replaced, never written to. Any number of processes may use a
cache at the same time.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from pypi_assets.leveldbs.format.errors import LeveldbDamagedError
from pypi_assets.leveldbs.versions.leveldb_manifest import LeveldbFile, PublishedVersion, check_file
from pypi_assets.storage.store import NotFoundError, Storage

RANGE_BYTES = 8 * 1024**2
_KEPT_VERSIONS = 2


class FileCache:
    """What is kept of a dataset below `cache_dir`, for `published`, which is noted to be in use."""

    def __init__(self, cache_dir: Path, published: PublishedVersion) -> None:
        self._folder = cache_dir / published.manifest.dataset
        for name in ("files", "versions"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        self._note(published)

    def get(self, storage: Storage, path: str, file: LeveldbFile, *, hashes: bool) -> Path:
        """The kept file; it is downloaded where it is not there, or not what it must be. Raises LeveldbDamagedError.

        Another process can remove it at any moment, once it uses newer versions: link to it soon.
        """
        kept = self._kept(file)
        try:
            check_file(kept, file, hashes=hashes)
        except LeveldbDamagedError:
            kept.unlink(missing_ok=True)
            _fetch(storage, path, file, kept)
        return kept

    def keep(self, file: LeveldbFile, local: Path) -> None:
        """Keeps a file that is at hand, whole, and not written to any more."""
        with suppress(OSError):  # it is kept already, or cannot be linked: then it is downloaded once it is needed
            os.link(local, self._kept(file))

    def _kept(self, file: LeveldbFile) -> Path:
        return self._folder / "files" / file.sha256

    def _note(self, published: PublishedVersion) -> None:
        """Notes what the version consists of, and removes what none of those that were used last does."""
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
    """Downloads a file of a version and checks it. Raises LeveldbDamagedError."""
    with target.open("wb") as stream:
        _append_rest(storage, path, file, stream)
    _check_downloaded(storage, path, file, target)


def _fetch(storage: Storage, path: str, file: LeveldbFile, kept: Path) -> None:
    """Downloads what is missing of a file that is to be kept, and renames it once it is whole and checked."""
    part = kept.with_suffix(".part")
    while not kept.exists():
        with part.open("ab") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            if not _is_at(stream, part):  # whoever had the lock is done with it
                continue
            resumed = 0 < stream.seek(0, os.SEEK_END) <= file.size
            if not resumed:
                stream.truncate(0)
            _append_rest(storage, path, file, stream)
            if not _is_at(stream, part):  # removed, since newer versions are in use
                continue
            try:
                _check_downloaded(storage, path, file, part)
            except LeveldbDamagedError:
                stream.truncate(0)
                if resumed:  # it began with something else
                    continue
                raise
            part.rename(kept)


def _is_at(stream: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(stream.fileno()))
    except FileNotFoundError:
        return False


def _append_rest(storage: Storage, path: str, file: LeveldbFile, stream: BinaryIO) -> None:
    offset = stream.seek(0, os.SEEK_END)
    while offset < file.size:
        try:
            content = storage.get_range(path, offset, min(RANGE_BYTES, file.size - offset))
        except NotFoundError as error:
            raise LeveldbDamagedError(f"{storage.uri(path)} is missing") from error
        stream.write(content)
        offset += len(content)
    stream.flush()


def _check_downloaded(storage: Storage, path: str, file: LeveldbFile, target: Path) -> None:
    try:
        check_file(target, file)
    except LeveldbDamagedError as error:
        raise LeveldbDamagedError(f"{storage.uri(path)}, downloaded: {error}") from error
