"""Removes old partitions and runs from Dagster, whose database grows with the events of each run.

Which partitions are old is computed in `upkeep/old_partitions.py`.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial

import dagster as dg

from pypi_assets.defs.naming import BARE, Naming
from pypi_assets.defs.partitions import leveldb_versions, serial_ranges
from pypi_assets.upkeep.deletion import Pruning
from pypi_assets.upkeep.old_partitions import OldPartitions


def pruning_of(instance: dg.DagsterInstance, jobs: Iterable[str], naming: Naming = BARE) -> Pruning:
    """How old partitions, and old runs of `jobs`, are removed from the instance. `jobs` are bare names."""
    return Pruning(
        partitions=partial(prune_partitions, instance, naming),
        runs=partial(prune_runs, instance, [naming.name(job) for job in jobs]),
    )


def prune_partitions(instance: dg.DagsterInstance, naming: Naming, old: OldPartitions) -> int:
    """Removes the partitions that are named, and returns their count. Others stay, whoever added them."""
    ranges, versions = naming.partitions(serial_ranges), naming.partitions(leveldb_versions)
    starts, ends = ({key.split("-")[place] for key in old.ranges} for place in (0, -1))

    def is_old(key: str) -> bool:
        """Also of ranges that were joined, once all of them are old."""
        start, _, end = key.partition("-")
        return start in starts and end in ends

    return _prune(instance, ranges, is_old) + _prune(instance, versions, old.versions.__contains__)


def prune_runs(instance: dg.DagsterInstance, jobs: Iterable[str], before: float) -> int:
    """Deletes the runs of `jobs` that succeeded before then (unix seconds), with events and logs; returns their count.

    The newest run of each job stays, so that what it made is not shown as missing. Runs that failed stay too: sensors
    count the attempts by them.
    """
    pruned, until = 0, datetime.fromtimestamp(before, UTC)
    for job in jobs:
        succeeded = [dg.DagsterRunStatus.SUCCESS]
        newest = instance.get_run_ids(dg.RunsFilter(job_name=job, statuses=succeeded), limit=1)
        old = instance.get_run_ids(dg.RunsFilter(job_name=job, statuses=succeeded, updated_before=until))
        for run in {*old} - {*newest}:
            instance.compute_log_manager.delete_logs(prefix=[run])
            instance.delete_run(run)
            pruned += 1
    return pruned


def _prune(
    instance: dg.DagsterInstance, partitions: dg.DynamicPartitionsDefinition, is_old: Callable[[str], bool]
) -> int:
    name = str(partitions.name)
    pruned = [key for key in instance.get_dynamic_partitions(name) if is_old(key)]
    for key in pruned:
        instance.delete_dynamic_partition(name, key)
    return len(pruned)
