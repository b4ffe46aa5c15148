"""A request rate that all workers of an instance share through the catalog.

A worker reserves its next few slots in one short statement and sends one request in each. No two workers share a slot,
and a pause that the index requests stops all of them.
"""

import math
import threading
import time
from collections.abc import Callable

from sqlalchemy import ColumnElement, Connection, Double, case, cast, extract, func, literal, select, update

from pypi_assets.catalog.coordination.clock_steps import follow_clock
from pypi_assets.catalog.database import Catalog, MachineClock, insert_missing
from pypi_assets.catalog.tables import rates

_MOST_AT_ONCE = 1_000


class SharedRate:
    """A limit of `per_second` requests a second on average, with bursts of `burst_s` seconds' worth.

    A worker reserves as many slots as it uses in `block_s` seconds; slots that it does not use in time expire. Slots
    are times of the database's clock on PostgreSQL, and of the machine's clock on SQLite. A rate of `math.inf` has no
    limit but can still be paused with `hold`.
    """

    def __init__(
        self,
        catalog: Catalog,
        name: str,
        per_second: float,
        *,
        block_s: float = 0.25,
        burst_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._catalog = catalog
        self._name = name
        self._interval_s = 1 / per_second
        self._slack_s = max(0.0, burst_s - self._interval_s)
        self._block_s = block_s
        self._most = max(1, int(min(per_second * block_s, _MOST_AT_ONCE)))
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._at_once = 1
        self._left = 0
        self._next = 0.0
        self._taken_at = -math.inf
        self._lapses_at = -math.inf
        catalog.transact(self._enter)

    def _enter(self, connection: Connection) -> None:
        now = connection.scalar(select(self._now(connection)))
        insert_missing(connection, rates, [{"name": self._name, "due_at": now}])

    def wait(self) -> None:
        """Block until the caller may send one request."""
        with self._lock:
            now = self._clock()
            if not self._left or now > self._lapses_at:
                self._take_slots(now)
                now = self._clock()
            due = self._next
            self._next += self._interval_s
            self._left -= 1
        if due > now:
            self._sleep(due - now)

    def hold(self, seconds: float) -> None:
        """Grant no request to any worker for `seconds` from now, except slots that are already reserved."""
        with self._lock:
            self._left = 0
            self._move(lambda now: case((rates.c.due_at > now + seconds, rates.c.due_at), else_=now + seconds))

    def _take_slots(self, now: float) -> None:
        """Reserve twice as many slots as last time if those were used up quickly, and half as many if they lasted long.

        A worker with few requests would otherwise block slots of other workers; one with many would query too often.
        """
        lasted = now - self._taken_at
        if lasted < self._block_s:
            self._at_once = min(self._at_once * 2, self._most)
        elif lasted > 2 * self._block_s:
            self._at_once = max(self._at_once // 2, 1)
        span = self._at_once * self._interval_s
        slack = self._slack_s
        starts_in = self._move(
            lambda now: case((rates.c.due_at > now - slack, rates.c.due_at), else_=now - slack) + span,
            lambda now: rates.c.due_at - span - now,
        )
        self._taken_at = self._clock()
        self._left, self._next = self._at_once, self._taken_at + starts_in
        self._lapses_at = max(self._next + span, self._taken_at) + self._block_s

    def _move(
        self,
        due_at: Callable[[ColumnElement[float]], ColumnElement[float]],
        result: Callable[[ColumnElement[float]], ColumnElement[float]] = lambda now: now,
    ) -> float:
        """Move the rate's next free slot to `due_at`. Return the value of `result` after the move."""

        def moved(connection: Connection) -> float:
            now = self._now(connection)
            query = update(rates).where(rates.c.name == self._name).values(due_at=due_at(now)).returning(result(now))
            return float(connection.execute(query).scalar_one())

        return self._catalog.transact(moved)

    def _now(self, connection: Connection) -> ColumnElement[float]:
        if isinstance(self._catalog.clock, MachineClock):
            now, _ = follow_clock(connection, self._catalog.clock)
            return literal(now, Double)
        if self._catalog.is_sqlite:
            return literal(self._catalog.clock(), Double)
        return cast(extract("epoch", func.clock_timestamp()), Double)
