"""Claims: which worker handles which entry of a queue, and until when.

No other worker takes a claimed entry while its worker lives and renews its claims. Each worker has a unique name. A
worker that lost a claim drops its result, so nothing is stored twice.

A claim on a workload excludes no other worker. It records that a worker is active on the whole of it, also at moments
when no entry of it is claimed.
"""

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Table,
    and_,
    case,
    delete,
    func,
    or_,
    select,
    tuple_,
    union,
    update,
)

from pypi_assets.catalog.coordination.worker_names import host_name, is_dead, process_of
from pypi_assets.catalog.database import lock_rows, storable, upsert
from pypi_assets.catalog.tables import read_queue, visit_queue, workload_claims

WORKER_DIED = "worker died"
FOLLOWER = "follower"
"""The workload on which a resident follower is active for as long as it runs."""
RELEASED: dict[str, Any] = {"claimed_by": None, "claimed_until": 0.0}
_CLAIMING = union(  # built once, since each worker that waits runs it again and again
    *(
        select(claims.c.claimed_by).where(claims.c.claimed_by.is_not(None))
        for claims in (visit_queue, read_queue, workload_claims)
    )
)


def is_claimable(queue: Table, worker: str, now: float) -> ColumnElement[bool]:
    """Whether an entry is due and no valid claim exists. A worker never claims again what it has claimed: its own claim
    can expire while the work goes on, and then the result would be stored twice.
    """
    is_another = or_(queue.c.claimed_by.is_(None), queue.c.claimed_by != worker)
    return and_(queue.c.due_at <= now, queue.c.claimed_until <= now, is_another)


def ready_at(queue: Table) -> ColumnElement[float]:
    """When an entry can be claimed, unless its worker finishes it first."""
    return case((queue.c.claimed_until > queue.c.due_at, queue.c.claimed_until), else_=queue.c.due_at)


def claim_values(queue: Table, worker: str, now: float, until: float) -> dict[str, Any]:
    """The values that a claim sets. Where the claim of another worker expired, its attempt counts as failed."""
    is_abandoned = queue.c.claimed_by.is_not(None)
    failed_at = func.coalesce(queue.c.first_failed_at, now)
    return {
        "claimed_by": worker,
        "claimed_until": until,
        "attempts": queue.c.attempts + case((is_abandoned, 1), else_=0),
        "first_failed_at": case((is_abandoned, failed_at), else_=queue.c.first_failed_at),
    }


def failures_at_claim(row: Row[Any], now: float) -> tuple[int, float | None]:
    """`attempts` and `first_failed_at` after `claim_values`, where `row` is the entry before it."""
    if row.claimed_by is None:
        return row.attempts, row.first_failed_at
    return row.attempts + 1, now if row.first_failed_at is None else row.first_failed_at


def renew_claims(connection: Connection, worker: str, until: float) -> None:
    """Extends all claims of `worker` to `until` (unix seconds). Entries that it is finishing right now are skipped."""
    for queue in (visit_queue, read_queue):
        key = list(queue.primary_key)
        mine = select(*key).where(queue.c.claimed_by == worker).with_for_update(skip_locked=True)
        connection.execute(update(queue).where(tuple_(*key).in_(mine)).values(claimed_until=until))


def claim_workload(connection: Connection, workload: str, worker: str, now: float, until: float) -> None:
    """Records that `worker` is active on `workload` until `until` (unix seconds). Expired records of other workers are
    deleted."""
    lock_rows(connection, workload_claims, workload_claims.c.claimed_until <= now)
    connection.execute(delete(workload_claims).where(workload_claims.c.claimed_until <= now))
    row = {"claimed_by": worker, "workload": workload, "claimed_until": until, "host": storable(host_name())}
    upsert(connection, workload_claims, [row], key=("claimed_by",), update=("claimed_until",))


@dataclass(slots=True)
class WorkloadWorkers:
    """The processes that are active on a workload, and the names of their machines."""

    processes: set[str] = field(default_factory=set)
    hosts: set[str] = field(default_factory=set)


def workers_of_workloads(connection: Connection, now: float) -> dict[str, WorkloadWorkers]:
    """Who is active on each workload, as far as they are known to live."""
    columns = (workload_claims.c.workload, workload_claims.c.claimed_by, workload_claims.c.host)
    found: dict[str, WorkloadWorkers] = {}
    for workload, worker, host in connection.execute(select(*columns).where(workload_claims.c.claimed_until > now)):
        if not is_dead(worker):
            workers = found.setdefault(workload, WorkloadWorkers())
            workers.processes.add(process_of(worker))
            workers.hosts.add(host)
    return found


def workloads_at_work(connection: Connection, now: float) -> set[str]:
    """The workloads on which a worker is active, as far as that worker is known to live."""
    return set(workers_of_workloads(connection, now))


def release_claims(connection: Connection, worker: str) -> None:
    """Releases what `worker` has claimed and not finished."""
    for queue in (visit_queue, read_queue):
        lock_rows(connection, queue, queue.c.claimed_by == worker)
        connection.execute(update(queue).where(queue.c.claimed_by == worker).values(RELEASED))
    connection.execute(delete(workload_claims).where(workload_claims.c.claimed_by == worker))


def claiming_workers(connection: Connection) -> set[str]:
    """The workers that have claims, dead ones included."""
    return set(connection.scalars(_CLAIMING))


def expire_claims(connection: Connection, worker: str) -> None:
    """Ends the claims of a dead worker at once."""
    for claims in (visit_queue, read_queue, workload_claims):
        lock_rows(connection, claims, claims.c.claimed_by == worker)
        connection.execute(update(claims).where(claims.c.claimed_by == worker).values(claimed_until=0.0))
