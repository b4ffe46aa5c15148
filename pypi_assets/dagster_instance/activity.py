"""Reads the state of a Dagster instance: its queued and running runs, its sensors that are off, and its pools."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import dagster as dg

FAILED_WITHIN = timedelta(hours=1)
IS_RETRIED = {"dagster/will_retry": "true"}
"""The tags of failed runs that Dagster launches again by itself (`run_retries` of the instance)."""
QUEUED = (dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED)
RUNNING = (dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING)
UNENDED = [*QUEUED, *RUNNING]
_SEPARATOR = "__"


@dataclass(frozen=True, slots=True)
class Activity:
    """The activity of an instance for one index.

    `runs` counts the runs that have not ended by job. A run that was launched for some assets counts for each of these
    assets. Names have no prefix of the index. `sensors_off` names the sensors that are off.
    """

    runs: Mapping[str, int] = field(default_factory=dict)
    sensors_off: Sequence[str] = ()


def read_activity(
    instance: dg.DagsterInstance, prefix: str, sensors: Sequence[str], *, are_on_by_default: bool
) -> Activity:
    """Return the instance's activity for the index whose names begin with `prefix`, such as `company__`.

    The default index has an empty prefix. `sensors` are names without the prefix. A sensor that was never switched on
    or off is on if `are_on_by_default`. Raises any error of the classes that `dagster.yaml` names.
    """
    runs = instance.get_runs(dg.RunsFilter(statuses=UNENDED))
    switched = {one.instigator_name: one.status.name for one in instance.all_instigator_state()}
    is_on = {"RUNNING": True, "STOPPED": False}  # in any other state, the default applies
    off = [sensor for sensor in sensors if not is_on.get(switched.get(prefix + sensor, ""), are_on_by_default)]
    counts = Counter(name for run in runs for name in _names(run, prefix))
    return Activity(dict(counts), off)


def _names(run: dg.DagsterRun, prefix: str) -> Iterator[str]:
    """Yield the job of a run, or its assets if it was launched for assets; nothing for a run of another index."""
    if run.job_name.startswith(_SEPARATOR):  # Dagster's name for the job of all assets
        for key in run.asset_selection or ():
            yield from _without(prefix, _SEPARATOR.join(key.path))
    else:
        yield from _without(prefix, run.job_name)


def _without(prefix: str, name: str) -> Iterator[str]:
    """Yield the name without the prefix, if it belongs to this index."""
    rest = name.removeprefix(prefix)
    if name.startswith(prefix) and _SEPARATOR not in rest:
        yield rest


@dataclass(frozen=True, slots=True)
class PoolCounts:
    """The slots of a pool, how many of them steps have claimed, and how many steps wait for a slot."""

    limit: int
    claimed: int
    waiting: int


@dataclass(frozen=True, slots=True)
class RunCounts:
    """The numbers of queued and running runs, of runs that failed within `FAILED_WITHIN`, and the pools by name.

    A failed run that Dagster launches again does not count, since only the last attempt decides.
    """

    queued: int
    running: int
    failed: int
    pools: dict[str, PoolCounts]


def count_runs(instance: dg.DagsterInstance) -> RunCounts:
    """Return the counts of an instance. Raises any error of the classes that its `dagster.yaml` names."""

    def count(*statuses: dg.DagsterRunStatus, since: datetime | None = None, tags: dict[str, str] | None = None) -> int:
        return instance.get_runs_count(dg.RunsFilter(statuses=statuses, updated_after=since, tags=tags))

    begun = datetime.now(UTC) - FAILED_WITHIN
    retried = count(dg.DagsterRunStatus.FAILURE, since=begun, tags=IS_RETRIED)
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
