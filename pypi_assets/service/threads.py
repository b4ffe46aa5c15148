"""Threads for what blocks: LevelDBs and the catalog are read there, so that what is slow holds up no other request.

To wake a thread for each request costs more than most requests do, and threads of Python that compete for the
interpreter cost more still. So one thread does what begins in one turn of the event loop, one after the other, and the
event loop waits for it a moment. What takes longer keeps its thread, and another thread takes the rest.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

Result = TypeVar("Result")
_THREADS = 16
_MOMENT_S = 0.002
"""For how long the event loop waits for what began in a turn: a small part of what requests may take."""


class Threads:
    """Runs work for one event loop, which alone calls it. `waiting` is how much has begun, or waits for a thread.

    >>> await threads.run(lambda: reader.module("yaml"))
    """

    def __init__(self, timeout_s: float = 30.0) -> None:
        self.waiting = 0
        self._timeout_s = timeout_s
        self._short = ThreadPoolExecutor(_THREADS, "service")
        self._streams = ThreadPoolExecutor(_THREADS, "streams")
        self._work: deque[tuple[Callable[[], Any], asyncio.Future[Any]]] = deque()
        self._done: deque[tuple[asyncio.Future[Any], Any, Exception | None]] = deque()
        self._begun: list[asyncio.Future[Any]] = []
        self._is_turn_due = False
        self._left_turns = 0

    def run(self, work: Callable[[], Result]) -> "asyncio.Future[Result]":
        """What `work` returns or raises; a TimeoutError where that takes too long. Then `work` ends unseen."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[Result] = loop.create_future()
        self.waiting += 1
        self._work.append((work, result))
        self._begun.append(result)
        self._plan_turn(loop)
        return result

    def run_alone(self, work: Callable[..., Result], *arguments: object) -> "asyncio.Future[Result]":
        """What `work` returns, which has a thread to itself however long it takes: for parts of streams."""
        return asyncio.get_running_loop().run_in_executor(self._streams, work, *arguments)

    def close(self) -> None:
        """Begins nothing more."""
        for pool in (self._short, self._streams):
            pool.shutdown(wait=False, cancel_futures=True)

    def _plan_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._is_turn_due:
            self._is_turn_due = True
            loop.call_soon(self._have_turn, loop)  # after all that is ready now

    def _have_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_turn_due = False
        if self._left_turns < _THREADS:  # else the next that ends plans one
            turn = _Turn()
            self._short.submit(self._drain, turn, loop)
            if not turn.has_ended_within(_MOMENT_S):
                self._left_turns += 1
            self._report()
            if self._work:
                self._plan_turn(loop)
        for result in self._begun:
            if not result.done():
                result.add_done_callback(partial(_cancel, loop.call_later(self._timeout_s, _expire, result)))
        self._begun.clear()

    def _drain(self, turn: "_Turn", loop: asyncio.AbstractEventLoop) -> None:
        """In a thread: does what waits, while the event loop waits for the turn."""
        with contextlib.suppress(IndexError):  # nothing is left
            while not turn.is_left:
                work, result = self._work.popleft()
                try:
                    self._done.append((result, None if result.done() else work(), None))
                except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
                    self._done.append((result, None, _raisable(error)))
        if not turn.end():
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._end_left_turn, loop)

    def _end_left_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self._left_turns -= 1
        self._report()
        if self._work:
            self._plan_turn(loop)

    def _report(self) -> None:
        while self._done:
            result, value, error = self._done.popleft()
            self.waiting -= 1
            if result.done():  # it took too long, or nothing waits for it
                continue
            if error is None:
                result.set_result(value)
            else:
                result.set_exception(error)


class _Turn:
    """One thread's turn at the work. It ends in time, or the event loop leaves it: whichever comes first."""

    def __init__(self) -> None:
        self._is_decided, self._has_ended = threading.Lock(), threading.Lock()
        self._has_ended.acquire()

    @property
    def is_left(self) -> bool:
        """For the thread: whether the event loop waits no more."""
        return self._is_decided.locked()

    def end(self) -> bool:
        """For the thread: ends the turn; returns whether it was in time."""
        is_in_time = self._is_decided.acquire(blocking=False)
        if is_in_time:
            self._has_ended.release()
        return is_in_time

    def has_ended_within(self, seconds: float) -> bool:
        """For the event loop: waits for the end; returns False where it leaves the turn."""
        return self._has_ended.acquire(timeout=seconds) or not self._is_decided.acquire(blocking=False)


def _expire(result: "asyncio.Future[Any]") -> None:
    if not result.done():
        result.set_exception(TimeoutError())


def _cancel(expiry: asyncio.TimerHandle, _result: "asyncio.Future[Any]") -> None:
    expiry.cancel()  # else it would keep the result until then


def _raisable(error: BaseException) -> Exception:
    """The error as a result can have it: it ends no iterator, and nothing but its own request."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    found = RuntimeError(f"the work ended with {type(error).__name__}")
    found.__cause__ = error
    return found
