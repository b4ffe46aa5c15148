"""Claims: which worker does what of a queue, and until when.

What is claimed is left alone by all others for as long as its worker lives and renews its claims. A worker is a name
that nobody else has. What a claim is lost for is dropped by who lost it, so nothing is stored twice.

A claim on a scope keeps nobody out. It tells that somebody is at work on the whole of it, also at moments in which
nothing of it is claimed.
"""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, and_, case, delete, func, select, tuple_, update

from pypi_assets.catalog.coordination.worker_names import is_dead
from pypi_assets.catalog.database import upsert
from pypi_assets.catalog.tables import read_queue, scope_claims, visit_queue

WORKER_DIED = "worker died"
RELEASED: dict[str, Any] = {"claimed_by": None, "claimed_until": 0.0}


def is_claimable(queue: Table, now: float) -> ColumnElement[bool]:
    """Whether an entry is due, and nobody has a claim on it that still holds."""
    return and_(queue.c.due_at <= now, queue.c.claimed_until <= now)


def ready_at(queue: Table) -> ColumnElement[float]:
    """From when on an entry can be claimed, if its worker does not finish it."""
    return case((queue.c.claimed_until > queue.c.due_at, queue.c.claimed_until), else_=queue.c.due_at)


def claimed(queue: Table, worker: str, now: float, until: float) -> dict[str, Any]:
    """What a claim makes of an entry. Where another worker's claim ran out, its attempt has failed."""
    is_abandoned = queue.c.claimed_by.is_not(None)
    failed_at = func.coalesce(queue.c.first_failed_at, now)
    return {
        "claimed_by": worker,
        "claimed_until": until,
        "attempts": queue.c.attempts + case((is_abandoned, 1), else_=0),
        "first_failed_at": case((is_abandoned, failed_at), else_=queue.c.first_failed_at),
    }


def failures_at_claim(row: Row[Any], now: float) -> tuple[int, float | None]:
    """What `claimed` makes of `attempts` and `first_failed_at` of an entry, whose `row` is as it was before."""
    if row.claimed_by is None:
        return row.attempts, row.first_failed_at
    return row.attempts + 1, now if row.first_failed_at is None else row.first_failed_at


def renew_claims(connection: Connection, worker: str, until: float) -> None:
    """Holds all that `worker` has claimed until `until` (unix seconds), but for what it is just finishing."""
    for queue in (visit_queue, read_queue):
        key = list(queue.primary_key)
        mine = select(*key).where(queue.c.claimed_by == worker).with_for_update(skip_locked=True)
        connection.execute(update(queue).where(tuple_(*key).in_(mine)).values(claimed_until=until))


def claim_scope(connection: Connection, scope: str, worker: str, now: float, until: float) -> None:
    """Says that `worker` is at work on `scope` until `until` (unix seconds). What others have said and not renewed is
    forgotten."""
    connection.execute(delete(scope_claims).where(scope_claims.c.claimed_until <= now))
    row = {"claimed_by": worker, "scope": scope, "claimed_until": until}
    upsert(connection, scope_claims, [row], key=("claimed_by",), update=("claimed_until",))


def scopes_at_work(connection: Connection, now: float) -> set[str]:
    """The scopes that somebody is at work on, as far as it is known that they live."""
    claims = select(scope_claims.c.scope, scope_claims.c.claimed_by).where(scope_claims.c.claimed_until > now)
    return {scope for scope, worker in connection.execute(claims) if not is_dead(worker)}


def release_claims(connection: Connection, worker: str) -> None:
    """Gives back what `worker` has claimed and not finished."""
    for queue in (visit_queue, read_queue):
        connection.execute(update(queue).where(queue.c.claimed_by == worker).values(RELEASED))
    connection.execute(delete(scope_claims).where(scope_claims.c.claimed_by == worker))


def claiming_workers(connection: Connection) -> set[str]:
    """The workers that have claims, also those that died."""
    found: set[str] = set()
    for claims in (visit_queue, read_queue, scope_claims):
        claimed_by = claims.c.claimed_by
        found.update(connection.scalars(select(claimed_by).where(claimed_by.is_not(None)).distinct()))
    return found


def expire_claims(connection: Connection, worker: str) -> None:
    """Lets the claims of a worker that is known to be dead run out at once."""
    for claims in (visit_queue, read_queue, scope_claims):
        connection.execute(update(claims).where(claims.c.claimed_by == worker).values(claimed_until=0.0))
