"""Reads what Dagster does for one package index: its runs that have not ended, and which of its sensors are off."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import dagster as dg

from pypi_assets.dagster_instance.run_counts import QUEUED, RUNNING

_SEPARATOR = "__"


@dataclass(frozen=True, slots=True)
class Activity:
    """What an instance does for an index.

    `runs` has the count of the runs that have not ended, by job; a run that was launched for some assets counts for
    each of these assets. Names are without the prefix of the index. `sensors_off` names the sensors that do not run.
    """

    runs: Mapping[str, int] = field(default_factory=dict)
    sensors_off: Sequence[str] = ()


def read_activity(
    instance: dg.DagsterInstance, prefix: str, sensors: Sequence[str], *, are_on_by_default: bool
) -> Activity:
    """Return what the instance does for the index whose names begin with `prefix`, such as `company__`; it is empty
    for the default index.

    `sensors` are names without the prefix. A sensor that nobody has switched is on if `are_on_by_default`. Raises
    whatever the classes raise that `dagster.yaml` names.
    """
    runs = instance.get_runs(dg.RunsFilter(statuses=[*QUEUED, *RUNNING]))
    switched = {one.instigator_name: one.status.name for one in instance.all_instigator_state()}
    is_on = {"RUNNING": True, "STOPPED": False}  # any other state leaves it to the default
    off = [sensor for sensor in sensors if not is_on.get(switched.get(prefix + sensor, ""), are_on_by_default)]
    counts = Counter(name for run in runs for name in _names(run, prefix))
    return Activity(dict(counts), off)


def _names(run: dg.DagsterRun, prefix: str) -> Iterator[str]:
    """Yield the job of a run, or its assets if it has no job of its own; nothing for a run of another index."""
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
