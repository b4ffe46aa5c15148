"""The base class of all dataset readers: it answers from the newest version, and moves on to newer ones."""

import atexit
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, TypeVar

from pypi_assets.leveldbs.format.leveldb_binding import Database, binding_errors
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError, LeveldbError
from pypi_assets.leveldbs.format.open_leveldb import leveldb_errors_as_damage
from pypi_assets.leveldbs.format.records import SEPARATOR
from pypi_assets.lookup.answers import Answer, Result, Stream
from pypi_assets.lookup.near_names import MOST_NAMES, Seek, first_names, near_names
from pypi_assets.storage.store import StorageError

Found = TypeVar("Found")
AnyReader = TypeVar("AnyReader", bound="DatasetReader")


class Closing:
    """Closes the `stack` of a version when it has no references and no running streams any more.

    A garbage collection can take a version and its iterator together, in any order, but LevelDB must be closed last.
    The lock is reentrant, because a collection can begin in the middle of this code. `process` is the id of the process
    that opened the version.
    """

    def __init__(self, stack: ExitStack) -> None:
        self.process = os.getpid()
        self._stack = stack
        self._lock = threading.RLock()
        self._streams = 0
        self._is_let_go = self._is_closed = False
        atexit.register(self._close)

    def let_go(self) -> None:
        """Note that the version has no references any more."""
        with self._lock:
            self._is_let_go = True
            self._close_if_last()

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Keep the version open until the end of the block."""
        with self._lock:
            self._streams += 1
        try:
            yield
        finally:
            with self._lock:
                self._streams -= 1
                self._close_if_last()

    def _close_if_last(self) -> None:
        if self._is_let_go and not self._streams:
            self._close()

    def _close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        atexit.unregister(self._close)
        if os.getpid() == self.process:
            self._stack.close()
        else:  # a fork lacks LevelDB's threads, and would wait for them forever
            _LEFT_TO_PARENT.append(self._stack)


_LEFT_TO_PARENT: list[ExitStack] = []


@dataclass(frozen=True, slots=True, eq=False)
class OpenVersion:
    """A version in a private copy. The copy is deleted with the last answer or reader that refers to this object.

    `checked` means that the files were compared with their hashes. `followed_projects` comes from the version's
    manifest. `side` are the dataset's open files beside the LevelDB.
    """

    db: Database
    name: str
    version: int
    serial: int
    checked: bool
    closing: Closing
    followed_projects: int | None = None
    side: Any = None

    def __del__(self) -> None:  # not a weak reference, whose callback would run before the ones of plyvel's iterators
        self.closing.let_go()


OpenReader = Callable[[type[Any]], Any]
"""Returns the open reader of a class, such as ModulesReader. Raises NoVersionError."""


class Versions(Protocol):
    """The published versions of a dataset. `skipped` has the reason for each version that could not be opened."""

    dataset: str
    skipped: dict[int, str]

    def open_newest(self, *, check_hashes: bool, beyond: int = 0) -> OpenVersion | None:
        """Open the newest readable version above `beyond`. Raises NoVersionError if `beyond` is 0 and there is none."""
        ...


class DatasetReader:
    """Answers from the newest version of a dataset. Readers are thread-safe, and are context managers.

    `refresh` moves on to a newer version. With `refresh_every_s`, a query starts a background search for a newer
    version if the last search is that many seconds ago; `refresh_problem` is the error of the last search. A query that
    has begun finishes with its version. A forked process must open a reader of its own.

    A subclass sets `dataset`, and queries with `_answer`, `_read` and `_stream`. They raise LeveldbDamagedError if the
    version is corrupt and no other one can be read. `names_start` is the prefix of the keys that continue with a name
    that people type, for suggestions; None: there are no such keys.
    """

    dataset: ClassVar[str]
    names_start: ClassVar[bytes | None] = None

    def __init__(self, versions: Versions, *, check_hashes: bool, refresh_every_s: float | None = None) -> None:
        self._versions, self._check_hashes, self._refresh_every_s = versions, check_hashes, refresh_every_s
        self._opening, self._swapping = threading.Lock(), threading.Lock()
        self._opened = versions.open_newest(check_hashes=check_hashes)
        self._next_look = time.monotonic() + (refresh_every_s or 0)
        self.refresh_problem: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def version(self) -> int:
        """The number of the version that is read now."""
        return self._current().version

    @property
    def serial(self) -> int:
        """The serial of the version that is read now."""
        return self._current().serial

    @property
    def followed_projects(self) -> int | None:
        """The number of followed projects in the version that is read now; None if the whole index is followed."""
        return self._current().followed_projects

    @property
    def skipped(self) -> tuple[str, ...]:
        """Return why versions that are newer than the open one are not read."""
        skipped = sorted(self._versions.skipped.items(), reverse=True)
        return tuple(f"version {version}: {why}" for version, why in skipped if version > self.version)

    def close(self) -> None:
        """Close the reader. The private copy is deleted after the last query that has begun."""
        with self._swapping:
            self._opened = None

    def refresh(self) -> bool:
        """Move on to the newest readable version. Return whether the version changed."""
        with self._opening:
            return self._move(beyond=self._current().version, check_hashes=self._check_hashes)

    def suggest(self, name: str, most: int = MOST_NAMES) -> tuple[str, ...]:
        """Return at most `most` names of the dataset that are similar to `name` and differ from it, the nearest first.

        >>> modules.suggest("yamll")
        ('yaml',)

        This takes a few hundred seeks, however many names there are.
        """
        start = self.names_start
        if start is None:
            return ()
        wanted = self._spelled(require_text("suggest", name))
        return self._read(lambda db: _with_seek(db, start, lambda seek: near_names(seek, wanted, most)))[1]

    def names_from(self, beginning: str, most: int, separator: str | None = None) -> list[str]:
        """Return the first `most` names of the dataset that begin with `beginning`, in order.

        With `separator`, each name is cut at the first separator after the beginning. Each name takes one or two seeks.

        >>> modules.names_from("google.cl", 5, ".")
        ['google.cloud']
        """
        start = self.names_start
        if start is None or SEPARATOR.decode() in require_text("names_from", beginning):
            return []
        return self._read(lambda db: _with_seek(db, start, lambda seek: first_names(seek, beginning, most, separator)))[
            1
        ]

    def _spelled(self, name: str) -> str:
        """Return `name` as keys spell it."""
        return name

    def _move(self, *, beyond: int, check_hashes: bool) -> bool:
        newest = self._versions.open_newest(check_hashes=check_hashes, beyond=beyond)
        with self._swapping:
            if newest is None or self._opened is None:  # closed in the meantime
                return False
            self._opened = newest
            return True

    def _current(self) -> OpenVersion:
        opened = self._opened
        if opened is None:
            raise LeveldbError(f"this reader of {self._versions.dataset} is closed: open another one")
        if opened.closing.process != os.getpid():
            raise LeveldbError(
                f"this reader of {self._versions.dataset} was opened before the process forked: open a reader in each"
                " process, and start processes by spawn or forkserver"
            )
        if self._refresh_every_s is not None and time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + self._refresh_every_s
            threading.Thread(target=self._look, name=f"newer {self._versions.dataset}", daemon=True).start()
        return opened

    def _look(self) -> None:
        if not self._opening.acquire(blocking=False):  # another search is still running
            return
        try:
            opened = self._opened
            if opened is not None:
                self._move(beyond=opened.version, check_hashes=self._check_hashes)
            self.refresh_problem = None
        except (LeveldbError, StorageError, OSError) as error:
            self.refresh_problem = str(error)
        finally:
            self._opening.release()

    def collected(self, kind: type[Result], results: Iterable[Result]) -> Answer[Result]:
        """Return results that were made from several queries of the open version as one answer."""
        opened = self._current()
        return Answer(opened.version, opened.serial, tuple(results), kind, followed_projects=opened.followed_projects)

    def streamed(self, kind: type[Result], results: Iterator[Result]) -> Stream[Result]:
        """Return results that are made from several queries of the open version as one stream."""
        opened = self._current()
        return Stream(opened.version, opened.serial, results, kind, opened.followed_projects)

    def _answer(self, kind: type[Result], query: Callable[[Database], Iterable[Result]]) -> Answer[Result]:
        """Return all results of `query` in the open version."""
        opened, found = self._read(lambda db: tuple(query(db)))
        return Answer(opened.version, opened.serial, found, kind, followed_projects=opened.followed_projects)

    def _read(self, query: Callable[[Database], Found]) -> tuple[OpenVersion, Found]:
        """Return the open version, and the result of `query` in it. If it is corrupt, try another version."""
        opened = self._current()
        try:
            return opened, query(opened.db)
        except binding_errors():
            if opened.checked:
                with leveldb_errors_as_damage(opened.name):
                    raise
        with self._opening:
            if self._opened is opened:  # its hashes were not checked: find out which files are corrupt
                self._move(beyond=0, check_hashes=True)
        opened = self._current()
        with leveldb_errors_as_damage(opened.name):
            return opened, query(opened.db)

    def _with_side(self, use: Callable[[Any], Found]) -> tuple[OpenVersion, Found]:
        """Return the open version, and the result of `use` on its side files. If these are corrupt, try another one."""
        opened = self._current()
        try:
            return opened, use(opened.side)
        except LeveldbDamagedError:
            if opened.checked:
                raise
        with self._opening:
            if self._opened is opened:
                self._move(beyond=0, check_hashes=True)
        opened = self._current()
        return opened, use(opened.side)

    def _stream(
        self,
        kind: type[Result],
        query: Callable[[Database], Iterator[Result]],
        opened: OpenVersion | None = None,
    ) -> Stream[Result]:
        """Return the results of `query` as a stream. It keeps the version open until it ends or is deleted.

        The version is the current one, or `opened`.
        """
        opened = opened or self._current()
        return Stream(opened.version, opened.serial, self._iterate(opened, query), kind, opened.followed_projects)

    def _iterate(self, opened: OpenVersion, query: Callable[[Database], Iterator[Found]]) -> Iterator[Found]:
        with opened.closing.streaming(), leveldb_errors_as_damage(opened.name):
            yield from query(opened.db)


def require_text(query: str, name: str) -> str:
    """Return `name`, an argument of `query`. Raises TypeError if it is not a str, for callers without type checks."""
    if isinstance(name, str):
        return name
    hint = ": decode it first" if isinstance(name, bytes | bytearray) else ""
    raise TypeError(f"{query}() needs a name as str, not {type(name).__name__}{hint}")


def _with_seek(db: Database, start: bytes, search: Callable[[Seek], Found]) -> Found:
    """Return the result of `search`, which seeks among the names whose keys begin with `start`."""
    with closing(db.raw_iterator(verify_checksums=True)) as records:

        def seek(least: str) -> str | None:
            records.seek(start + least.encode(errors="replace"))
            if not records.valid() or not records.key().startswith(start):
                return None
            return records.key()[len(start) :].split(SEPARATOR, 1)[0].decode()

        return search(seek)
