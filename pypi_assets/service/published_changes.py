"""The journal as the service follows it: opened when it is first needed, and watched while requests wait for more.

What waits costs no thread. One look a second, for all requests of the process together, finds what is published.
"""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, TypeVar

from pypi_assets.errors import ExpectedError
from pypi_assets.journal.cursors import RANKS
from pypi_assets.journal.record_reader import Journal, NoJournalError
from pypi_assets.journal.segment_files import Head
from pypi_assets.journal.tailing import Tail
from pypi_assets.storage.store import Storage

LOOK_EVERY_S = 1.0
_MOST_REMEMBERED = 64
Result = TypeVar("Result")
Run = Callable[[Callable[[], list[Head]]], Awaitable[list[Head]]]
"""Reads heads in a thread."""


class PublishedChanges:
    """The journal of the storage that `opened` returns. Several threads may use it; `wait_beyond` is for the event
    loop."""

    def __init__(self, opened: Callable[[], Storage]) -> None:
        self._opened = opened
        self._tail: Tail | None = None
        self._opening = threading.Lock()
        self._remembered: OrderedDict[object, tuple[object, Any]] = OrderedDict()
        self._watch: _Watch | None = None

    def tail(self) -> Tail:
        """The journal, for readers that go on. Raises StorageError."""
        with self._opening:
            if self._tail is None:
                self._tail = Tail(Journal(self._opened()))
            return self._tail

    @property
    def journal(self) -> Journal:
        """The journal. Raises StorageError."""
        return self.tail().journal

    def remembered(self, key: object, made: Callable[[], Result]) -> Result:
        """What `made` returns for `key`, made again once more is published. Raises NoJournalError."""
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
        """Waits until all of `streams` are published beyond the serial `through`; returns whether they are.

        Ends at the time `until` of the event loop, and when `ended` is done.
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
    """Looks at the heads of the journal while any request waits. A context for each that does."""

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
            self._through = {}  # what was seen before can be long ago
            self._task = self.loop.create_task(self._look())
        return self

    def __exit__(self, *_error: object) -> None:
        self._waiting -= 1

    def is_beyond(self, through: int, streams: Collection[str]) -> bool:
        """Whether all of `streams` were seen beyond the serial `through`."""
        return bool(self._through) and min(self._through[stream] for stream in streams) > through

    async def _look(self) -> None:
        while self._waiting:
            try:
                found = await self._run(self._heads)  # streams that read much hold up no look
            except (ExpectedError, OSError):
                found = []  # who waits is answered in time, and then the problem is shown
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
