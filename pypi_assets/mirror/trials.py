"""Opens new LevelDB versions of a source in a separate process, since a crafted file can make LevelDB abort.

A version is tried before any published file names it. The trial reads all records, so that every block is read,
and the files beside the LevelDB.
"""

import multiprocessing
import resource
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from pypi_assets.leveldbs.datasets.registry import require_dataset
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError, LeveldbError, UnknownFormatError
from pypi_assets.leveldbs.format.open_leveldb import open_leveldb
from pypi_assets.leveldbs.versions.leveldb_manifest import PublishedVersion
from pypi_assets.leveldbs.versions.private_copy import copy_published, private_folder, private_parent
from pypi_assets.mirror.sources import MirrorError, RefusedSourceError
from pypi_assets.storage.store import Storage

_START_S = 60.0
LEAST_S = 60.0
BYTES_PER_S = 2 * 1024**2
"""The minimum speed of reading a version, after `LEAST_S` have passed."""
_MOST_BYTES = 2 * 1024**3
"""The memory limit of a trial. Reading needs LevelDB's caches and a few blocks."""
_processes = multiprocessing.get_context("spawn")


class _Problem(NamedTuple):
    """Why a LevelDB cannot be read: it is corrupt, or this machine lacks something."""

    text: str
    is_damage: bool


_Found = _Problem | None


class Trials:
    """Tries versions of a source one after the other. They share a process as long as it lives; `close` ends it."""

    def __init__(self, storage: Storage, cache_dir: Path | None, source_name: str) -> None:
        self._storage, self._cache_dir, self._source_name = storage, cache_dir, source_name
        self._process: BaseProcess | None = None
        self._connection: Connection[Any, Any] | None = None

    def require_readable(self, version: PublishedVersion) -> None:
        """Raise RefusedSourceError if the stored files of a version cannot be read as a LevelDB."""
        size = sum(file.size for file in version.manifest.files)
        try:
            with private_folder(private_parent(self._storage, self._cache_dir)) as folder:
                copied = folder / "leveldb"
                copy_published(self._storage, version, copied, self._cache_dir, hashes=False)
                problem = self._tried(copied, version.name, LEAST_S + size / BYTES_PER_S, version.manifest.dataset)
        except LeveldbDamagedError as error:
            problem = str(error)
        except LeveldbError as error:
            raise MirrorError(f"{version.name} cannot be tried here: {error}") from error
        if problem is not None:
            raise RefusedSourceError(
                f"{version.name} of {self._source_name} cannot be read: {problem}. It is rejected, and the previous"
                " version keeps answering"
            )

    def close(self) -> None:
        """End the process."""
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if connection is not None:
            connection.close()
        if process is not None:
            process.kill()
            process.join()

    def _tried(self, folder: Path, name: str, most_s: float, dataset: str) -> str | None:
        """Return the problem of the LevelDB in a folder, or None."""
        connection = self._started()
        try:
            connection.send((folder, name, dataset))
            if not connection.poll(most_s):
                self.close()
                return f"it could not be read within {most_s:.0f} s"
            found: _Found = connection.recv()
        except (EOFError, OSError):
            process = self._process
            if process is not None:
                process.join()
            code = None if process is None else process.exitcode
            self.close()
            return f"the process that opened it has ended (exit code {code})"
        if found is not None and not found.is_damage:
            raise MirrorError(f"{name} cannot be tried here: {found.text}")
        return None if found is None else found.text

    def _started(self) -> "Connection[Any, Any]":
        if self._connection is None:
            self._connection, theirs = _processes.Pipe()
            self._process = _processes.Process(target=_run, args=(theirs,), name="trials", daemon=True)
            self._process.start()
            theirs.close()
            if not self._connection.poll(_START_S) or self._connection.recv() is not None:
                self.close()
                raise MirrorError("the process that opens new LevelDB versions does not start")
        return self._connection


def _run(connection: "Connection[Any, Any]") -> None:
    """Try the versions that arrive over the connection, until the other end closes it."""
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (_MOST_BYTES, _MOST_BYTES))
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(EOFError, OSError, KeyboardInterrupt):
        connection.send(None)  # ready
        while True:
            connection.send(_problem(*connection.recv()))


def _problem(folder: Path, name: str, dataset: str) -> _Found:
    side_files = require_dataset(dataset).side_files
    try:
        if side_files is not None:
            side_files.check(folder)
        with open_leveldb(folder, name) as db, db.iterator(verify_checksums=True) as records:
            for _ in records:
                pass
    except (LeveldbDamagedError, UnknownFormatError, MemoryError) as error:
        return _Problem(str(error) or type(error).__name__, is_damage=True)
    except LeveldbError as error:
        return _Problem(str(error), is_damage=False)
    return None
