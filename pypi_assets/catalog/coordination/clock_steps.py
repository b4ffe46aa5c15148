"""Follow steps of the machine's clock: keep stored times right when the clock is set forward or back.

Otherwise a clock that is set back by hours would delay retries by hours, and a clock that is set forward would exhaust
them. So the catalog stores the offset between the clock and the time since the machine's boot. When the offset changes,
the times of retries, polls, deliveries and rate slots move with the clock, once for all processes.

Only a catalog on SQLite needs this. For a database server, the server's clock is read when the catalog is opened.
"""

import threading
from dataclasses import dataclass, field

from sqlalchemy import Column, ColumnElement, Connection, Table, and_, case, delete, insert, literal, select, update

from pypi_assets.catalog.coordination.claims import machine_hash
from pypi_assets.catalog.database import Catalog, MachineClock
from pypi_assets.catalog.tables import (
    clock_offsets,
    journal_letters,
    leases,
    observed_projects,
    rates,
    read_queue,
    visit_queue,
    workload_claims,
)

LEAST_STEP_S = 30.0
"""Smaller differences are ignored, since clocks are adjusted by seconds all the time."""
_RECENT_S = 900.0
"""How long a process can use a time that it read before a step. No attempt takes longer."""
_MOVED: tuple[tuple[Table, tuple[Column[float], ...]], ...] = (
    (visit_queue, (visit_queue.c.due_at, visit_queue.c.first_failed_at, visit_queue.c.claimed_until)),
    (read_queue, (read_queue.c.due_at, read_queue.c.first_failed_at, read_queue.c.claimed_until)),
    (workload_claims, (workload_claims.c.claimed_until,)),
    (leases, (leases.c.taken_at, leases.c.expires_at)),
    (rates, (rates.c.due_at,)),
    (observed_projects, (observed_projects.c.due_at, observed_projects.c.looked_at)),
    (journal_letters, (journal_letters.c.due_at,)),
)
_HAPPENED = {"first_failed_at", "looked_at", "taken_at"}


@dataclass
class ClockSteps:
    """The clock steps that one process has noticed. All its threads share the object."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _offset_s: float | None = None
    _noticed: list[tuple[float, float]] = field(default_factory=list)

    def follow(self, catalog: Catalog) -> float:
        """Move the stored times if the clock was stepped.

        Returns the seconds by which the clock was set forward in the last minutes. Steps back are not subtracted: a
        time that was read between a step back and a step forward is affected by the step forward alone.
        """
        clock = catalog.clock
        if not isinstance(clock, MachineClock):
            return 0.0
        with self._lock:
            steady, offset_s = clock.steady(), clock.offset_s
            if self._offset_s is None or abs(offset_s - self._offset_s) >= LEAST_STEP_S:
                before = self._offset_s
                if _is_set(catalog, offset_s):
                    _, offset_s = catalog.transact(lambda connection: follow_clock(connection, clock))
                if before is not None:
                    self._noticed.append((steady, offset_s - before))
                self._offset_s = offset_s
            self._noticed = [(at, step_s) for at, step_s in self._noticed if steady - at < _RECENT_S]
            return sum(max(step_s, 0.0) for _, step_s in self._noticed)

    def end_long_pauses(self, catalog: Catalog, longest_s: float) -> None:
        """End pauses longer than `longest_s` if the clock was stepped in the last minutes.

        A pause that begins at the moment of a step can be stored after the other times were moved.
        """
        with self._lock:
            is_recent = bool(self._noticed)
        if is_recent:
            catalog.transact(lambda connection: _end_pauses(connection, catalog.clock(), longest_s))


def _is_set(catalog: Catalog, offset_s: float) -> bool:
    with catalog.read() as connection:
        known = _known_offset(connection)
    return known is None or abs(offset_s - known) >= LEAST_STEP_S


def _known_offset(connection: Connection) -> float | None:
    c = clock_offsets.c
    return connection.scalar(select(c.offset_s).where(c.machine == (machine_hash() or "")))


def follow_clock(connection: Connection, clock: MachineClock) -> tuple[float, float]:
    """Move all stored times by the change of the clock's offset since it was stored for this boot of the machine.

    Returns the current time and its offset, both read inside this transaction, which must be a writing one. So a
    process that read them before a step moves nothing after another process has followed that step, and a time that the
    transaction computes from the returned one agrees with all stored times.
    """
    now = clock()
    offset_s = now - clock.steady()
    known = _known_offset(connection)
    if known is None:
        connection.execute(delete(clock_offsets))  # offsets of earlier boots
        connection.execute(insert(clock_offsets).values(machine=machine_hash() or "", offset_s=offset_s))
        return now, offset_s
    step_s = offset_s - known
    if abs(step_s) >= LEAST_STEP_S:
        connection.execute(update(clock_offsets).values(offset_s=offset_s))
        for table, columns in _MOVED:
            connection.execute(update(table).values({one.name: _moved(one, step_s, now) for one in columns}))
    return now, offset_s


def _end_pauses(connection: Connection, now: float, longest_s: float) -> None:
    for queue in (visit_queue, read_queue):
        connection.execute(update(queue).where(queue.c.due_at > now + longest_s).values(due_at=now))


def _moved(column: Column[float], step_s: float, now: float) -> ColumnElement[float]:
    """Return the time of `column` according to the clock that shows `now` and was set forward by `step_s`.

    A time stored before the step is in the past if the clock was set forward, and in the future if it was set back.
    Other times do not change, since they were stored after the step. Neither do 0, which means immediately, and null,
    which means never.

    Between a step and this move, a time can be stored by the new clock and look like an old one. So the time of a past
    event is never moved beyond `now`. A first failure in the future is set to `now`: after two steps back it could
    otherwise look old enough to end all attempts.
    """
    moved: ColumnElement[float] = column + step_s
    if step_s < 0:
        return case((column > now, literal(now) if column.name == "first_failed_at" else moved), else_=column)
    if column.name in _HAPPENED:
        moved = case((moved > now, now), else_=moved)
    return case((and_(column > 0, column <= now), moved), else_=column)
