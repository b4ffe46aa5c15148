"""Counts the runs of Dagster's instance and the places in its pools, for metrics."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import dagster as dg

FAILED_WITHIN = timedelta(hours=1)
_IS_RETRIED = {"dagster/will_retry": "true"}
"""A tag of failed runs that Dagster itself launches again (`run_retries` of the instance)."""
QUEUED = (dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED)
RUNNING = (dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING)


@dataclass(frozen=True, slots=True)
class PoolCounts:
    """The places in a pool, how many of them steps have claimed, and how many steps wait for a place."""

    limit: int
    claimed: int
    waiting: int


@dataclass(frozen=True, slots=True)
class RunCounts:
    """How many runs are queued and running, how many have failed within `FAILED_WITHIN`, and the pools by name.

    A failed run that Dagster launches again does not count: the last attempt decides.
    """

    queued: int
    running: int
    failed: int
    pools: dict[str, PoolCounts]


def count_runs(instance: dg.DagsterInstance) -> RunCounts:
    """Return the counts of an instance. Raises whatever the classes raise that its `dagster.yaml` names."""

    def count(*statuses: dg.DagsterRunStatus, since: datetime | None = None, tags: dict[str, str] | None = None) -> int:
        return instance.get_runs_count(dg.RunsFilter(statuses=statuses, updated_after=since, tags=tags))

    begun = datetime.now(UTC) - FAILED_WITHIN
    retried = count(dg.DagsterRunStatus.FAILURE, since=begun, tags=_IS_RETRIED)
    return RunCounts(
        queued=count(*QUEUED),
        running=count(*RUNNING),
        failed=max(count(dg.DagsterRunStatus.FAILURE, since=begun) - retried, 0),
        pools=_count_pools(instance),
    )


def _count_pools(instance: dg.DagsterInstance) -> dict[str, PoolCounts]:
    events = instance.event_log_storage
    pools = {}
    for name in sorted(events.get_concurrency_keys()):
        pool = events.get_concurrency_info(name)
        pools[name] = PoolCounts(pool.slot_count, pool.active_slot_count, pool.pending_step_count)
    return pools
