"""Signals that interrupt this program, Ctrl-C for one, where they do no harm.

Python runs their handlers between any two instructions of the main thread. One that raises there can leave a library's
own state half changed: a transaction stays open as long as the traceback, and what ends meanwhile waits for its lock.
"""

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Uninterrupted:
    """A block at whose end the handlers run of the signals that came meanwhile; of each, a second one does not wait.

    In other threads than the main one, which no handler interrupts, it does nothing.

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
                self._is_entered = True  # until here, and once this is left, signals are handled as before
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
