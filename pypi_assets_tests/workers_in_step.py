"""Run workers on one catalog one at a time, in a drawn order. Each can be killed at any step.

A step ends before each transaction and after each commit, so the same draws lead to the same result, however busy the
machine is. A killed worker never touches the catalog again, like a terminated process.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection

from pypi_assets.catalog.database import Catalog
from pypi_assets_tests.kills import KilledError


class Worker:
    """A worker that does `work` in a thread, one step at a time. If `lifetime` is given, it is killed after that
    many.
    """

    def __init__(self, work: Callable[["Worker"], object], lifetime: int | None) -> None:
        self._work = work
        self._left = lifetime
        self._may_go = threading.Semaphore(0)
        self._has_stopped = threading.Semaphore(0)
        self._one_at_a_time = threading.Lock()
        self._is_alone = False
        self.is_dead = False
        self.has_ended = False
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._has_stopped.acquire()

    def go_on(self) -> None:
        """Let the worker do one step, and wait for it."""
        self._may_go.release()
        self._has_stopped.acquire()

    def go_on_alone(self) -> None:
        """Let the last worker do all its remaining steps, and wait until it has ended."""
        self._is_alone = True
        self.go_on()

    def step(self) -> None:
        """End a step. The work calls this, in any of its threads, whenever another worker can run."""
        with self._one_at_a_time:
            if not (self.is_dead or self._is_alone):
                self._has_stopped.release()
                self._may_go.acquire()
            if self._left is not None:
                self._left -= 1
                self.is_dead = self.is_dead or self._left < 0
            if self.is_dead:
                raise KilledError

    def _run(self) -> None:
        try:
            self.step()
            self._work(self)
        except BaseException as error:  # noqa: BLE001 - it is raised again in the waiting thread
            self.error = error
        self.has_ended = True
        self._has_stopped.release()


@dataclass(frozen=True)
class SteppedCatalog(Catalog):
    """A catalog as used by one worker."""

    step: Callable[[], None] = lambda: None

    @contextmanager
    def write(self) -> Iterator[Connection]:
        self.step()
        with super().write() as connection:
            yield connection
        self.step()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        self.step()
        with super().read() as connection:
            yield connection


def run_in_step(workers: Sequence[Worker], order: Sequence[int], expected: tuple[type[Exception], ...] = ()) -> None:
    """Run all workers until they end. `order` selects the next worker; when it is exhausted, they take turns.

    Raise the error that ended a worker, unless the worker was killed or the error is `expected`.
    """
    for worker in workers:
        worker.start()
    alive = list(workers)
    turn = 0
    while alive := [worker for worker in alive if not worker.has_ended]:
        if len(alive) == 1:
            alive[0].go_on_alone()
            continue
        chosen = order[turn] if turn < len(order) else turn
        alive[chosen % len(alive)].go_on()
        turn += 1
    for worker in workers:
        if worker.error is not None and not isinstance(worker.error, (KilledError, *expected)):
            raise worker.error
