"""Rates of requests: the protocol that senders use, and a rate that the threads of one process share.

The rate that several processes share is `catalog/coordination/rates.py`.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class Rate(Protocol):
    """How fast requests may follow each other, of one process or of several."""

    def wait(self) -> None:
        """Returns when the caller may send one request."""

    def hold(self, seconds: float) -> None:
        """Grants no request for `seconds` from now, beyond those already granted."""


@dataclass(frozen=True, slots=True)
class Rates:
    """The rate of all requests of a client, and that of the changelog's calls, which keep to both.

    None stands for the polite default: 20 requests a second, and one call a second, as PyPI wishes.
    """

    requests: Rate | None = None
    changelog: Rate | None = None


class Unpaced:
    """A rate that grants each request: for a host that serves files, and for hosts that are asked once in a while."""

    def wait(self) -> None:
        """Returns."""

    def hold(self, seconds: float) -> None:
        """Holds nothing: one receiver's wish is not for the others."""


class RateLimit:
    """Grants at most `per_second` requests a second on average, `burst_s` seconds' worth at once after a rest.

    A rate of `math.inf` is one that can only be held.

    It keeps only the time at which the next request is due: each caller takes that time, moves it on by one interval
    and sleeps until its own has come. A lock guards the time and is never held while sleeping.
    """

    def __init__(
        self,
        per_second: float,
        *,
        burst_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._interval_s = 1 / per_second
        self._slack_s = max(0.0, burst_s - self._interval_s)
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._due = clock()

    def wait(self) -> None:
        """Returns when the caller may send one request."""
        with self._lock:
            now = self._clock()
            due = max(self._due, now - self._slack_s)
            self._due = due + self._interval_s
        if due > now:
            self._sleep(due - now)

    def hold(self, seconds: float) -> None:
        """Grants no request for `seconds` from now, beyond those already granted."""
        with self._lock:
            self._due = max(self._due, self._clock() + seconds)
