"""Delay signals that interrupt this program, such as Ctrl-C, until they do no harm.

Python runs signal handlers between any two instructions of the main thread. A handler that raises an error there can
leave the state of a library half changed: for example, a transaction stays open as long as the traceback exists, and
cleanup code waits for the lock of this transaction.
"""

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Uninterrupted:
    """A block that delays signals. Their handlers run at its end. A second signal of the same kind is not delayed.

    It does nothing in threads other than the main thread, because handlers never interrupt them.

        with Uninterrupted():
            connection = engine.connect()
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self._waiting: list[int] = []
        self._is_entered = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            try:
                self._replace_handlers()
                self._is_entered = True  # signals are only delayed from here until __exit__
            except BaseException:
                self._restore_handlers()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self._is_entered = False
        self._restore_handlers()
        for number in self._waiting:
            self._handlers[number](number, None)

    def _replace_handlers(self) -> None:
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                self._handlers[number] = handler
                signal.signal(number, self._handle)

    def _restore_handlers(self) -> None:
        for number, handler in self._handlers.items():
            if signal.getsignal(number) == self._handle:  # a handler can have set another one
                signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._is_entered and number not in self._waiting:
            self._waiting.append(number)
        else:
            self._handlers[number](number, frame)
