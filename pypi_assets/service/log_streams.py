"""Streams of logs that never block the service, even if the pipe that they go to is full because nobody reads it."""

import atexit
import io
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable

_MOST_WAITING_BYTES = 4 * 1024**2
_DRAINED_WITHIN_S = 2.0


class BackgroundStream(io.TextIOBase):
    """A text stream that a thread writes to a file descriptor. Each write is a number of whole lines.

    While more than 4 MiB wait, further lines are counted and dropped. `missing` returns the line that then takes their
    place. The thread writes without Python's buffers: their locks would let the process crash at its end.
    """

    def __init__(self, descriptor: int, missing: Callable[[int], str]) -> None:
        self._descriptor, self._missing = descriptor, missing
        self._waiting = deque[bytes]()
        self._waiting_bytes = self._dropped = 0
        self._changed = threading.Condition()
        threading.Thread(target=self._run, name="log", daemon=True).start()
        atexit.register(self.drain, _DRAINED_WITHIN_S)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def write(self, text: str) -> int:
        """Hand the lines to the thread, or drop them if too many wait."""
        content = text.encode("utf-8", "backslashreplace")
        with self._changed:
            if self._waiting_bytes > _MOST_WAITING_BYTES:
                self._dropped += text.count("\n")
            else:
                self._report_dropped()
                self._append(content)
        return len(text)

    def drain(self, within_s: float) -> None:
        """Wait until all lines are written, but at most some seconds, since the pipe may be full."""
        ends = time.monotonic() + within_s
        with self._changed:
            while self._waiting_bytes and (left_s := ends - time.monotonic()) > 0:
                self._changed.wait(left_s)

    def _report_dropped(self) -> None:
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            self._append(self._missing(dropped).encode())

    def _append(self, content: bytes) -> None:
        self._waiting.append(content)
        self._waiting_bytes += len(content)
        self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                content = self._waiting.popleft()
            _write(self._descriptor, content)
            with self._changed:
                self._waiting_bytes -= len(content)
                if not self._waiting:
                    self._report_dropped()
                self._changed.notify_all()


def _write(descriptor: int, content: bytes) -> None:
    """Write all bytes. They are lost if the reader has closed the pipe, as a log has no other place to report it."""
    left = memoryview(content)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError:
        return


def log_in_background() -> None:
    """Write the logs that go to standard error in a thread."""
    stream = sys.__stderr__
    for handler in logging.root.handlers:
        if stream is not None and isinstance(handler, logging.StreamHandler) and handler.stream is stream:
            handler.setStream(BackgroundStream(stream.fileno(), _formatted(handler)))


def _formatted(handler: logging.Handler) -> Callable[[int], str]:
    """Return a function that formats a warning about missing lines as the handler formats its records."""

    def missing(count: int) -> str:
        text = f"{count} lines are missing from this log, since its pipe was full"
        record = logging.LogRecord(__name__, logging.WARNING, __file__, 0, text, None, None)
        return f"{handler.format(record)}\n"

    return missing
