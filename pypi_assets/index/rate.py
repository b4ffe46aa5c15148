"""Request rates: the protocol that senders use, and a rate that the threads of one process share.

A rate shared by several processes is in `catalog/coordination/rates.py`.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class Rate(Protocol):
    """Limits how fast requests may follow each other, for one process or for several."""

    def wait(self) -> None:
        """Block until the caller may send one request."""

    def hold(self, seconds: float) -> None:
        """Allow no further requests for `seconds` from now. Requests that were already allowed are not affected."""


@dataclass(frozen=True, slots=True)
class Rates:
    """The rate of all requests of a client, and the rate of changelog calls. A changelog call waits for both.

    None stands for the polite default: 20 requests a second, and one changelog call a second, as PyPI asks of its
    clients.
    """

    requests: Rate | None = None
    changelog: Rate | None = None


class Unpaced:
    """A rate without a limit: for hosts that serve files, and for hosts that are queried rarely."""

    def wait(self) -> None:
        """Return immediately."""

    def hold(self, seconds: float) -> None:
        """Do nothing: the hosts that share this rate are unrelated, so one host's limit does not concern the others."""


class RateLimit:
    """Allows `per_second` requests a second on average. After idle time, a burst of `burst_s` seconds' worth may pass.

    A rate of `math.inf` never delays requests, but can still be held.

    The only state is the time at which the next request is due. Each caller takes that time, advances it by one
    interval and sleeps until the time it took. A lock guards the state and is never held while sleeping.
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
        """Block until the caller may send one request."""
        with self._lock:
            now = self._clock()
            due = max(self._due, now - self._slack_s)
            self._due = due + self._interval_s
        if due > now:
            self._sleep(due - now)

    def hold(self, seconds: float) -> None:
        """Allow no further requests for `seconds` from now. Requests that were already allowed are not affected."""
        with self._lock:
            self._due = max(self._due, self._clock() + seconds)
