"""Connections to SQLite files that a process keeps, with the statements that SQLAlchemy compiled for them.

What is stored in the files does not belong here.
"""

import atexit
import os
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event

BUSY_TIMEOUT_S = 60
"""How long a statement waits for another process that writes to the file."""
_MOST_FILES = 32
_MOST_CONNECTIONS = 5


@dataclass(slots=True)
class _KeptEngine:
    engine: Engine
    file: tuple[int, int]
    """Device and inode: a file that was deleted and made again is another one."""
    users: int = 0


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.connections: dict[Path, Connection] = {}


class KeptEngines:
    """An engine for each SQLite file, and its connections while somebody holds the file's folder.

    At most `most_files` are open, those that were used last. Threads share an engine, never a connection.

    SQLite keeps in memory what a process has locked, and a fork copies this without the locks. So connections are
    closed before a fork, which waits for threads that use some. A child whose parent forked in a transaction cannot
    use that file.
    """

    def __init__(self, most_files: int = _MOST_FILES) -> None:
        self._most_files = most_files
        self._engines: OrderedDict[Path, _KeptEngine] = OrderedDict()
        self._holders: Counter[Path] = Counter()
        self._of_thread = _OfThread()
        self._lock = threading.Condition()
        self._of_parent: dict[Path, _KeptEngine] = {}
        os.register_at_fork(
            before=self._before_fork, after_in_parent=self._after_fork, after_in_child=self._after_fork_in_child
        )
        atexit.register(self.close)

    def _before_fork(self) -> None:
        self._lock.acquire()
        mine = self._of_thread.connections
        self._lock.wait_for(
            lambda: all(path in mine or not kept.users for path, kept in self._engines.items()), BUSY_TIMEOUT_S
        )
        self._close()

    def _after_fork(self) -> None:
        self._lock.release()

    def _after_fork_in_child(self) -> None:
        used = {path: kept for path, kept in self._engines.items() if kept.users}
        self._of_parent |= used  # never closed here, which would take away the parent's locks
        for path in used:
            del self._engines[path]
        self._of_thread = _OfThread()
        self._lock = threading.Condition()

    @contextmanager
    def begin(self, path: Path) -> Iterator[Connection]:
        """A connection to the file in a transaction, which is committed at the end of the block.

        Inside another such block of the same thread and file it is that one's connection and transaction. Raises
        RuntimeError for a file whose transaction this process has from its parent.
        """
        mine = self._of_thread.connections
        if path in mine:
            yield mine[path]
            return
        kept = self._use(path)
        try:
            with kept.engine.begin() as connection:
                mine[path] = connection
                try:
                    yield connection
                finally:
                    del mine[path]
        finally:
            self._end_use(path, kept)

    def hold(self, folder: Path) -> None:
        """Keeps connections to the files below `folder` until `release`."""
        with self._lock:
            self._holders[folder] += 1

    def release(self, folder: Path) -> None:
        """Closes the connections to the files below `folder`, unless somebody else holds it too."""
        with self._lock:
            self._holders[folder] -= 1
            if self._holders[folder] <= 0:
                del self._holders[folder]
                self._close_unused(folder)

    def close_files(self, folder: Path) -> None:
        """Closes the connections to the files below `folder` that are not in use just now."""
        with self._lock:
            self._close_unused(folder)

    def close(self) -> None:
        """Closes all connections that are not in use just now."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        for kept in self._engines.values():
            if not kept.users:
                kept.engine.dispose()

    def _use(self, path: Path) -> _KeptEngine:
        with self._lock:
            if path in self._of_parent:
                raise RuntimeError(
                    f"{path} was in use when this process was forked: it can be used in the parent alone"
                )
            kept = self._engines.get(path)
            if kept is None or kept.file != _file(path):
                replaced = self._engines.pop(path, None)
                if replaced is not None and not replaced.users:
                    replaced.engine.dispose()
                kept = self._engines[path] = _KeptEngine(_engine(path), _file(path))
                self._close_oldest()
            self._engines.move_to_end(path)
            kept.users += 1
            return kept

    def _end_use(self, path: Path, kept: _KeptEngine) -> None:
        with self._lock:
            kept.users -= 1
            is_kept = self._engines.get(path) is kept and not self._holders.keys().isdisjoint(path.parents)
            if not kept.users and not is_kept:
                kept.engine.dispose()
            self._lock.notify_all()

    def _close_oldest(self) -> None:
        unused = [path for path, kept in self._engines.items() if not kept.users]
        for path in unused[: max(0, len(self._engines) - self._most_files)]:
            self._engines.pop(path).engine.dispose()

    def _close_unused(self, folder: Path) -> None:
        for path, kept in self._engines.items():
            if folder in path.parents and not kept.users:
                kept.engine.dispose()  # its compiled statements stay


def _file(path: Path) -> tuple[int, int]:
    """Device and inode of the file, which is made if it is missing."""
    try:
        found = path.stat()
    except FileNotFoundError:
        path.touch()
        found = path.stat()
    return found.st_dev, found.st_ino


def _engine(path: Path) -> Engine:
    engine = create_engine(
        f"sqlite:///{path}",
        connect_args={"timeout": BUSY_TIMEOUT_S},
        pool_size=_MOST_CONNECTIONS,
        max_overflow=-1,
    )
    event.listen(engine, "connect", _set_up)
    return engine


def _set_up(connection: Any, _: object) -> None:
    # the files are in WAL mode: what is committed survives the end of the process, and the file is whole in any case
    connection.execute("PRAGMA synchronous = NORMAL")


ENGINES = KeptEngines()
"""Those of this process: Dagster opens its storage again for each tick of a sensor."""
