"""Enforces wall-clock deadlines: a watchdog shuts down the socket of a block that takes too long.

A socket's timeout restarts with each received byte, so a server that sends one byte at a time could hold a request
forever. How long an exchange may take is decided in `transport.py`.
"""

import math
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

_REPEAT_S = 0.05
"""If a block has no socket yet at its deadline, the watchdog checks again after this time."""
_IDLE_S = 10.0
_ABORTING = struct.pack("ii", 1, 0)


@dataclass(slots=True, eq=False)
class _Deadline:
    until: float
    find_socket: Callable[[], socket.socket | None]
    is_over: bool = False


class Watchdog:
    """Ends blocks of all threads at their deadlines, from one thread that runs only while there are blocks to watch."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._deadlines: set[_Deadline] = set()
        self._thread: threading.Thread | None = None
        self._wakes_at = math.inf

    @contextmanager
    def within(self, seconds: float, find_socket: Callable[[], socket.socket | None]) -> Iterator[None]:
        """Shut down the socket that `find_socket` returns after `seconds`; the block then raises TimeoutError.

        with WATCHDOG.within(10.0, lambda: connection.sock):
            connection.getresponse()
        """
        deadline = _Deadline(time.monotonic() + seconds, find_socket)
        self._add(deadline)
        failure: Exception | None = None
        try:
            yield
        except Exception as error:
            failure = error
            raise
        finally:
            with self._changed:
                self._deadlines.discard(deadline)
            if deadline.is_over:
                raise TimeoutError("timed out") from failure

    def _add(self, deadline: _Deadline) -> None:
        with self._changed:
            self._deadlines.add(deadline)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="deadlines of requests", daemon=True)
                self._thread.start()
            elif deadline.until < self._wakes_at:
                self._changed.notify()

    def _run(self) -> None:
        with self._changed:
            while self._deadlines:
                now = time.monotonic()
                for deadline in self._deadlines:
                    if deadline.until <= now:
                        deadline.is_over = True
                        _shut_down(deadline.find_socket())
                self._wakes_at = min(
                    (max(deadline.until, now + _REPEAT_S) for deadline in self._deadlines), default=now
                )
                self._changed.wait(self._wakes_at - now)
                if not self._deadlines:
                    self._wakes_at = time.monotonic() + _IDLE_S
                    self._changed.wait(_IDLE_S)
            self._thread = None


def _shut_down(sock: object) -> None:
    """Shut down both directions of a connection, so that the waiting thread stops.

    SO_LINGER with zero seconds makes the later close send a reset, so that the server stops too.
    """
    while sock is not None and not isinstance(sock, socket.socket):
        sock = getattr(sock, "socket", None)  # TLS inside the TLS connection to a proxy
    with suppress(OSError):  # not connected yet, or already closed
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORTING)
            socket.socket.shutdown(sock, socket.SHUT_RDWR)  # below the TLS layer, whose state belongs to another thread


WATCHDOG = Watchdog()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: Watchdog.__init__(WATCHDOG))
