"""Claims: which worker handles which entry of a queue, and until when.

No other worker takes a claimed entry while its worker lives and renews its claims. Each worker has a unique name. A
worker that lost a claim drops its result, so nothing is stored twice.

A claim on a workload excludes no other worker. It records that a worker is active on the whole workload, even when it
has claimed no entry at the moment.

A worker's name identifies the machine and the process, so that other processes on the machine can check whether the
worker still runs. A process id alone is not enough: other machines and containers use the same ids, and each id is
reused. So the name contains a hash of everything that makes process ids unique, and a hash of the process's start time.
If any of these is unknown, the worker is never assumed dead; its claims expire instead.
"""

import hashlib
import os
import platform
import subprocess
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
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

from pypi_assets.catalog.database import lock_rows, storable, upsert
from pypi_assets.catalog.tables import read_queue, visit_queue, workload_claims

_HOST_CHARACTERS = 12
_HASH_CHARACTERS = 16
_MACHINE_ID = Path("/etc/machine-id")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACES = (Path("/proc/self/ns/pid"), Path("/proc/self/ns/time"))
_COMMAND_S = 10.0


def new_worker() -> str:
    """Return a unique name for a worker of this process, of at most 64 characters: `HOST/MACHINE:PID-START:UNIQUE`.

    HOST is for people and may be cut; MACHINE is the `machine_hash`; START is a hash of the time when the process
    started.
    """
    pid = os.getpid()
    started = _start_of(pid)
    start = "" if started is None else _hash(started)[:_HASH_CHARACTERS]
    return f"{host_name()[:_HOST_CHARACTERS]}/{machine_hash() or ''}:{pid}-{start}:{uuid.uuid4().hex[:8]}"


def host_name() -> str:
    """Return the full name of this machine, for people."""
    return platform.node()


def process_of(worker: str) -> str:
    """Return the part of a worker's name that identifies its machine and process."""
    return worker.rpartition(":")[0]


def is_dead(worker: str) -> bool:
    """Check whether the worker ran on this machine and its process has ended.

    Return False for workers on other machines, and if the state of the process is unknown.
    """
    place, _, process = process_of(worker).rpartition(":")
    machine, (pid, _, start) = place.rpartition("/")[2], process.partition("-")
    if os.name != "posix" or not start or not pid.isdecimal() or machine != machine_hash():
        return False
    if not _is_running(int(pid)):
        return True
    started = _start_of(int(pid))
    return started is not None and _hash(started)[:_HASH_CHARACTERS] != start


@cache
def machine_hash() -> str | None:
    """Return a hash of everything that makes process ids unique on this machine: its boot and its container.

    The hash covers the boot id, the machine id, the full host name, and the namespaces of process ids and of time.
    macOS has no namespaces: there it covers the boot session's id from `sysctl`, and the network card's address in
    place of the machine id. Return None if the boot is unknown.
    """
    boot = _text(_BOOT_ID) or _answer("sysctl", "-n", "kern.bootsessionuuid")
    if not boot:
        return None
    machine = _text(_MACHINE_ID) or f"{uuid.getnode():x}"
    return _hash("\n".join((boot, machine, host_name(), *map(_target, _NAMESPACES))))[:_HASH_CHARACTERS]


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # the process belongs to another user
        return True
    return True


def _start_of(pid: int) -> str | None:
    """Return the start time of the process as a text whose unit depends on the system; None if it is unknown."""
    stat = _text(Path(f"/proc/{pid}/stat"))
    if stat:
        # field 22: clock ticks since the boot; the process name before it may contain any character
        return stat.rpartition(")")[2].split()[19]
    return None if _BOOT_ID.exists() else _answer("ps", "-o", "lstart=", "-p", str(pid)) or None


def _text(path: Path) -> str:
    return _or_empty(lambda: path.read_text(encoding="utf-8", errors="replace"))


def _target(link: Path) -> str:
    return _or_empty(lambda: str(link.readlink()))


def _answer(*command: str) -> str:
    environment = os.environ | {"LC_ALL": "C", "TZ": "UTC"}

    def run() -> str:
        done = subprocess.run(  # noqa: S603 - commands of the system, named in this module
            command, capture_output=True, text=True, timeout=_COMMAND_S, check=True, env=environment
        )
        return done.stdout

    return _or_empty(run)


def _or_empty(read: Callable[[], str]) -> str:
    try:
        return read().strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


WORKER_DIED = "worker died"
FOLLOWER = "follower"
"""The workload on which a resident follower is active for as long as it runs."""
RELEASED: dict[str, Any] = {"claimed_by": None, "claimed_until": 0.0}
_CLAIMING = union(  # built once, since each waiting worker runs it repeatedly
    *(
        select(claims.c.claimed_by).where(claims.c.claimed_by.is_not(None))
        for claims in (visit_queue, read_queue, workload_claims)
    )
)


def is_claimable(queue: Table, worker: str, now: float) -> ColumnElement[bool]:
    """Return the condition that an entry is due and has no valid claim.

    A worker never claims an entry that it has claimed before: its claim can expire while its work continues, and the
    result would then be stored twice.
    """
    is_another = or_(queue.c.claimed_by.is_(None), queue.c.claimed_by != worker)
    return and_(queue.c.due_at <= now, queue.c.claimed_until <= now, is_another)


def ready_at(queue: Table) -> ColumnElement[float]:
    """Return the time when an entry can be claimed, unless its worker finishes it first."""
    return case((queue.c.claimed_until > queue.c.due_at, queue.c.claimed_until), else_=queue.c.due_at)


def claim_values(queue: Table, worker: str, now: float, until: float) -> dict[str, Any]:
    """Return the values that a claim sets. If another worker's claim has expired, its attempt counts as failed."""
    is_abandoned = queue.c.claimed_by.is_not(None)
    failed_at = func.coalesce(queue.c.first_failed_at, now)
    return {
        "claimed_by": worker,
        "claimed_until": until,
        "attempts": queue.c.attempts + case((is_abandoned, 1), else_=0),
        "first_failed_at": case((is_abandoned, failed_at), else_=queue.c.first_failed_at),
    }


def failures_at_claim(row: Row[Any], now: float) -> tuple[int, float | None]:
    """Return the `attempts` and `first_failed_at` that `claim_values` sets for the entry `row`."""
    if row.claimed_by is None:
        return row.attempts, row.first_failed_at
    return row.attempts + 1, now if row.first_failed_at is None else row.first_failed_at


def renew_claims(connection: Connection, worker: str, until: float) -> None:
    """Extend all claims of `worker` to `until` (unix seconds). Entries that it is finishing right now are skipped."""
    for queue in (visit_queue, read_queue):
        key = list(queue.primary_key)
        mine = select(*key).where(queue.c.claimed_by == worker).with_for_update(skip_locked=True)
        connection.execute(update(queue).where(tuple_(*key).in_(mine)).values(claimed_until=until))


def claim_workload(connection: Connection, workload: str, worker: str, now: float, until: float) -> None:
    """Record that `worker` is active on `workload` until `until` (unix seconds).

    Expired records of other workers are deleted.
    """
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
    """Return the processes that are active on each workload. Workers that are known to be dead are skipped."""
    columns = (workload_claims.c.workload, workload_claims.c.claimed_by, workload_claims.c.host)
    found: dict[str, WorkloadWorkers] = {}
    for workload, worker, host in connection.execute(select(*columns).where(workload_claims.c.claimed_until > now)):
        if not is_dead(worker):
            workers = found.setdefault(workload, WorkloadWorkers())
            workers.processes.add(process_of(worker))
            workers.hosts.add(host)
    return found


def workloads_at_work(connection: Connection, now: float) -> set[str]:
    """Return the workloads on which a worker is active. Workers that are known to be dead are skipped."""
    return set(workers_of_workloads(connection, now))


def release_claims(connection: Connection, worker: str) -> None:
    """Release the unfinished claims of `worker`."""
    for queue in (visit_queue, read_queue):
        lock_rows(connection, queue, queue.c.claimed_by == worker)
        connection.execute(update(queue).where(queue.c.claimed_by == worker).values(RELEASED))
    connection.execute(delete(workload_claims).where(workload_claims.c.claimed_by == worker))


def claiming_workers(connection: Connection) -> set[str]:
    """Return the workers that have claims, including dead ones."""
    return set(connection.scalars(_CLAIMING))


def expire_claims(connection: Connection, worker: str) -> None:
    """Expire the claims of a dead worker immediately."""
    for claims in (visit_queue, read_queue, workload_claims):
        lock_rows(connection, claims, claims.c.claimed_by == worker)
        connection.execute(update(claims).where(claims.c.claimed_by == worker).values(claimed_until=0.0))
