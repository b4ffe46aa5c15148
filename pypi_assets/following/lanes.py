"""Lanes: threads of one process that each repeat a piece of work, with growing pauses after transient errors.

The work itself does not belong here: see `follower.py`.
"""

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pypi_assets.index.errors import requested_pause_s
from pypi_assets.upkeep.transient import is_transient

LONGEST_PAUSE_S = 60.0
"""The longest pause after errors, unless the index requires a longer one."""
Log = Callable[[Mapping[str, object]], None]


class Stopped(BaseException):  # like KeyboardInterrupt, it is not caught by `except Exception`
    """Raised within the work of a lane when the lanes stop."""


@dataclass(frozen=True)
class Lanes:
    """The lanes of a process. They stop when `stopping` is set, or when the work of a lane fails for good.

    `log` receives a mapping for each step, and is called by all threads.
    """

    log: Log
    stopping: threading.Event = field(default_factory=threading.Event)
    first_pause_s: float = 1.0
    _threads: list[threading.Thread] = field(default_factory=list)
    _failures: list[Exception] = field(default_factory=list)

    def start(self, name: str, work: Callable[[], object], pause: Callable[[], object]) -> None:
        """Start a thread that repeats `work` until the lanes stop, and calls `pause` after each success."""

        def repeat() -> None:
            while not self.stopping.is_set():
                if self.patiently(name, work):
                    pause()

        thread = threading.Thread(target=self._guarded, args=(repeat,), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _guarded(self, repeat: Callable[[], None]) -> None:
        try:
            repeat()
        except Stopped:
            return
        except Exception as error:  # noqa: BLE001 - raised in the thread that waits for all lanes
            self._failures.append(error)
            self.stopping.set()

    def patiently(self, what: str, work: Callable[[], object]) -> bool:
        """Do `work`, and retry it after growing pauses while it fails with transient errors.

        Returns False if the lanes stop first. Raises any other error.
        """
        failures = 0
        while not self.stopping.is_set():
            try:
                work()
            except Exception as error:
                if not is_transient(error):
                    raise
                pause_s = min(self.first_pause_s * 2.0 ** min(failures, 20), LONGEST_PAUSE_S)
                pause_s = max(pause_s * random.uniform(0.75, 1.25), requested_pause_s(error))
                failures += 1
                self.log({"step": "error", "what": what, "error": str(error), "failures": failures, "pause_s": pause_s})
                self.stopping.wait(pause_s)
            else:
                return True
        return False

    def pass_or_stop(self, _progress: object = None) -> None:
        """Raise Stopped if the lanes are to stop. Work calls this with its progress."""
        if self.stopping.is_set():
            raise Stopped

    def sleep(self, seconds: float) -> None:
        """Wait within work. Raises Stopped if the lanes are to stop."""
        self.stopping.wait(seconds)
        self.pass_or_stop()

    def wait(self, grace_s: float) -> bool:
        """Wait until the lanes stop, and then at most `grace_s` seconds until their threads have ended.

        Returns whether all threads have ended. Raises the error of a lane that failed.
        """
        while not self.stopping.wait(1.0):  # in short waits, so that signals are handled in between
            pass
        until = time.monotonic() + grace_s
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0.0))
        if self._failures:
            raise self._failures[0]
        return not any(thread.is_alive() for thread in self._threads)
