"""Watches that nobody waits for a network within a transaction: its locks, and on SQLite the one write lock, would last
as long as a server likes."""

import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event
from urllib3 import HTTPConnectionPool


class WaitingTransactions:
    """The requests that were sent by threads with an open transaction, and from where."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self._thread = threading.local()

    def forget(self) -> None:
        """Begins again; a transaction of this thread whose end was interrupted counts no more."""
        self.requests.clear()
        self._thread.open = 0

    def begin(self, _: Connection) -> None:
        self._thread.open = getattr(self._thread, "open", 0) + 1

    def end(self, _: Connection) -> None:
        self._thread.open = max(getattr(self._thread, "open", 0) - 1, 0)

    def note(self, method: str, url: str) -> None:
        if getattr(self._thread, "open", 0):
            frames = [frame for frame in traceback.extract_stack() if "/pypi_assets/" in frame.filename]
            shown = [f"{frame.filename.rpartition('/pypi_assets/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
            self.requests.append("\n  ".join([f"{method} {url} is sent within a transaction", *shown[-8:]]))


@contextmanager
def watched_transactions() -> Iterator[WaitingTransactions]:
    """Watches all threads of this process until the block ends."""
    waiting = WaitingTransactions()
    original = HTTPConnectionPool.urlopen

    def urlopen(pool: HTTPConnectionPool, method: str, url: str, *args: Any, **options: Any) -> Any:
        waiting.note(method, url)
        return original(pool, method, url, *args, **options)

    watched = {"begin": waiting.begin, "commit": waiting.end, "rollback": waiting.end}
    for name, hook in watched.items():
        event.listen(Engine, name, hook)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(HTTPConnectionPool, "urlopen", urlopen)
            yield waiting
    finally:
        for name, hook in watched.items():
            event.remove(Engine, name, hook)
