"""Detect HTTP requests that are sent within a transaction.

Such a transaction would hold its locks, on SQLite the single write lock, for as long as a server takes to respond.
"""

import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event
from urllib3 import HTTPConnectionPool


class WaitingTransactions:
    """The requests that were sent by threads with an open transaction, with the calling functions."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self._thread = threading.local()

    def forget(self) -> None:
        """Reset the recorded requests, and the state of a transaction of this thread whose end was interrupted."""
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
    """Watch all threads of this process until the block ends."""
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
