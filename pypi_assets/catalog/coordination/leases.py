"""Leases: one holder of a name at a time.

A lease ends when its holder releases it, or does not renew it in time. A lease held by a process of this machine also
ends when that process does.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection, and_, delete, func, select, update

from pypi_assets.catalog.coordination.claims import is_dead, new_worker
from pypi_assets.catalog.database import Catalog, CatalogError, insert_missing, lock_rows
from pypi_assets.catalog.tables import leases

Result = TypeVar("Result")
_WAIT_S = 0.5
ABANDONED_AFTER_S = 24 * 3600.0
"""Uncommitted files older than this many seconds are deleted, since no attempt takes so long."""


class LeaseTakenError(CatalogError):
    """Another process holds the lease, or took it because it was not renewed in time."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease that this process holds.

    `holder` is the unique name of a worker; `ttl_s` is the duration of the lease in seconds.
    """

    catalog: Catalog
    name: str
    holder: str
    ttl_s: float

    def renew(self) -> None:
        """Extend the lease by `ttl_s` seconds. Raises LeaseTakenError if it was lost."""

        def extend(connection: Connection) -> int:
            mine = leases.c.name == self.name, leases.c.holder == self.holder
            ends = update(leases).where(*mine).values(expires_at=self.catalog.clock() + self.ttl_s)
            return connection.execute(ends).rowcount

        if self.catalog.transact(extend) != 1:
            raise LeaseTakenError(f"the lease of {self.name} was not renewed in time, and another process took it")


@contextmanager
def lease(catalog: Catalog, name: str, ttl_s: float = 300.0) -> Iterator[Lease]:
    """Take the lease `name`, and release it at the end. Raises LeaseTakenError if another process holds it.

    For example:

        with lease(catalog, "modules") as held:
            held.renew()
    """
    held = Lease(catalog, name, new_worker(), ttl_s)

    def take(connection: Connection) -> None:
        now = catalog.clock()
        holder = connection.scalar(select(leases.c.holder).where(leases.c.name == name))
        has_ended = leases.c.holder == holder if holder and is_dead(holder) else leases.c.expires_at <= now
        connection.execute(delete(leases).where(and_(leases.c.name == name, has_ended)))
        row = {"name": name, "holder": held.holder, "taken_at": now, "expires_at": now + ttl_s}
        if not insert_missing(connection, leases, [row]):
            left = connection.scalar(select(leases.c.expires_at).where(leases.c.name == name)) or now
            raise LeaseTakenError(
                f"another process holds the lease of {name}; it ends in {left - now:.0f} s unless renewed"
            )

    catalog.transact(take)
    try:
        yield held
    finally:
        mine = delete(leases).where(leases.c.name == name, leases.c.holder == held.holder)
        catalog.transact(lambda connection: connection.execute(mine))


def waiting_for_lease(work: Callable[[], Result], wait_s: float) -> Result:
    """Call `work`, which takes a lease, and return its result.

    If another process holds the lease, try again for up to `wait_s` seconds. Then raise LeaseTakenError.
    """
    until = time.monotonic() + wait_s
    while True:
        try:
            return work()
        except LeaseTakenError:
            if time.monotonic() > until:
                raise
            time.sleep(_WAIT_S)


def oldest_lease(connection: Connection, now: float) -> float:
    """Return the time at which the oldest valid lease was taken; `now` if there is none. Times are unix seconds."""
    taken_at = connection.scalar(select(func.min(leases.c.taken_at)).where(leases.c.expires_at > now))
    return now if taken_at is None else min(float(taken_at), now)


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Deadlines for deletion, in unix seconds.

    Publications that were superseded before `since` can be deleted. So can the files of attempts that committed
    nothing, if they were written before `old`.
    """

    since: float
    old: float


def deletion_deadlines(catalog: Catalog, grace_s: float = 0.0, *, dry_run: bool = False) -> Deadlines:
    """Return the deadlines: `grace_s` seconds ago and a day ago, but not after the oldest valid lease was taken.

    Expired leases are deleted unless it is a `dry_run`, so that a holder that wakes up later cannot publish deleted
    files.
    """
    now = catalog.clock()
    if not dry_run:
        catalog.transact(partial(end_expired_leases, now=now))
    with catalog.read() as connection:
        oldest = oldest_lease(connection, now)
    return Deadlines(since=min(now - grace_s, oldest), old=min(now - ABANDONED_AFTER_S, oldest))


def end_expired_leases(connection: Connection, now: float) -> None:
    """Delete expired leases. Their former holders get LeaseTakenError, even if no other process took the lease."""
    lock_rows(connection, leases, leases.c.expires_at <= now)
    connection.execute(delete(leases).where(leases.c.expires_at <= now))


def renewing(held: Lease, progress: Callable[[int], object] | None = None) -> Callable[[int], None]:
    """Return a function that forwards to `progress`, and renews the lease after each tenth of its duration."""
    renewed_at = held.catalog.clock()

    def report(done: int) -> None:
        nonlocal renewed_at
        if held.catalog.clock() - renewed_at > held.ttl_s / 10:
            held.renew()
            renewed_at = held.catalog.clock()
        if progress:
            progress(done)

    return report
