"""The journal for the service: opened on first use, and polled while requests wait for changes.

A waiting request takes no thread. One poll a second serves all waiting requests of the process.
"""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, TypeVar

from pypi_assets.errors import ExpectedError
from pypi_assets.journal.cursors import RANKS
from pypi_assets.journal.journal_errors import NoJournalError
from pypi_assets.journal.record_reader import Journal
from pypi_assets.journal.segment_files import Head
from pypi_assets.journal.tailing import Tail
from pypi_assets.storage.store import Storage

LOOK_EVERY_S = 1.0
_MOST_REMEMBERED = 64
Result = TypeVar("Result")
Run = Callable[[Callable[[], list[Head]]], Awaitable[list[Head]]]
"""Runs a function that reads heads in a thread."""


class PublishedChanges:
    """The journal in the storage that `opened` returns.

    It is thread-safe, except for `wait_beyond`, which belongs to the event loop.
    """

    def __init__(self, opened: Callable[[], Storage]) -> None:
        self._opened = opened
        self._tail: Tail | None = None
        self._opening = threading.Lock()
        self._remembered: OrderedDict[object, tuple[object, Any]] = OrderedDict()
        self._watch: _Watch | None = None

    def tail(self) -> Tail:
        """Return the journal for readers that keep following it. Raises StorageError."""
        with self._opening:
            if self._tail is None:
                self._tail = Tail(Journal(self._opened()))
            return self._tail

    @property
    def journal(self) -> Journal:
        """Return the journal. Raises StorageError."""
        return self.tail().journal

    def remembered(self, key: object, made: Callable[[], Result]) -> Result:
        """Return the result of `made`, cached by `key` until more is published. Raises NoJournalError."""
        state = tuple(self.journal.heads())
        with self._opening:
            known = self._remembered.get(key)
            if known is not None and known[0] == state:
                found: Result = known[1]
                return found
        found = made()
        with self._opening:
            self._remembered[key] = state, found
            if len(self._remembered) > _MOST_REMEMBERED:
                self._remembered.popitem(last=False)
        return found

    async def wait_beyond(
        self,
        run: Run,
        through: int,
        streams: Collection[str],
        until: float,
        ended: "asyncio.Future[Any]",
    ) -> bool:
        """Wait until all of `streams` are published beyond the serial `through`. Return whether they are.

        Stops at the time `until` of the event loop, or when `ended` is done.
        """
        loop = asyncio.get_running_loop()
        if self._watch is None or self._watch.loop is not loop:
            self._watch = _Watch(loop, run, self)
        with self._watch as watch:
            while not watch.is_beyond(through, streams):
                rest = until - loop.time()
                if rest <= 0 or ended.done():
                    return False
                await asyncio.wait({watch.changed, ended}, timeout=rest, return_when=asyncio.FIRST_COMPLETED)
        return True


class _Watch:
    """Polls the heads of the journal while any request waits. Each waiting request enters the context."""

    def __init__(self, loop: asyncio.AbstractEventLoop, run: Run, changes: PublishedChanges) -> None:
        self.loop = loop
        self.changed: asyncio.Future[None] = loop.create_future()
        self._run, self._changes = run, changes
        self._through: Mapping[str, int] = {}
        self._waiting = 0
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> "_Watch":
        self._waiting += 1
        if self._task is None or self._task.done():
            self._through = {}  # the last poll may be long ago
            self._task = self.loop.create_task(self._look())
        return self

    def __exit__(self, *_error: object) -> None:
        self._waiting -= 1

    def is_beyond(self, through: int, streams: Collection[str]) -> bool:
        """Check whether all of `streams` were seen beyond the serial `through`."""
        return bool(self._through) and min(self._through[stream] for stream in streams) > through

    async def _look(self) -> None:
        while self._waiting:
            try:
                found = await self._run(self._heads)  # its thread is never blocked by long streams
            except (ExpectedError, OSError):
                found = []  # waiting requests time out, and then report the problem
            through = {head.stream: head.through for head in found}
            if found and through != self._through:
                self._through = through
                self.changed.set_result(None)
                self.changed = self.loop.create_future()
            await asyncio.sleep(LOOK_EVERY_S)

    def _heads(self) -> list[Head]:
        try:
            return self._changes.journal.heads(tuple(RANKS))
        except NoJournalError:
            return []
