"""Decides when a run is requested: at once, and again after growing pauses if it fails."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

import dagster as dg

from pypi_assets.dagster_instance.activity import UNENDED
from pypi_assets.defs.policy import PARTITION_TAG

FIRST_PAUSE_S = 60.0
LONGEST_PAUSE_S = 3600.0
_CLOCKS_DIFFER_S = 60.0  # the largest difference between the clocks of an instance's machines
_NEWEST = 20  # further failures in a row do not lengthen the pause


@dataclass(frozen=True, slots=True)
class Attempts:
    """The runs of a job so far: whether one is in progress, the count of ended runs, and the time when the last
    ended."""

    running: bool
    ended: int
    ended_at: float

    def due(self, now: float) -> bool:
        """Return whether a run should be requested at `now` (unix seconds)."""
        is_pausing = self.ended_at - _CLOCKS_DIFFER_S <= now < self.due_at  # earlier: the clock was set back
        return not self.running and not is_pausing

    @property
    def due_at(self) -> float:
        if not self.ended:
            return 0.0
        return self.ended_at + min(FIRST_PAUSE_S * 2.0 ** (self.ended - 1), LONGEST_PAUSE_S)

    def describe(self, now: float) -> str:
        """Return why no run is requested now."""
        if self.running:
            return "its run is in progress"
        return f"{self.ended} of its runs ended without success; it is retried in {max(self.due_at - now, 0):.0f} s"


def attempts(instance: dg.DagsterInstance, job: str, partition_key: str | None = None) -> Attempts:
    """Return the runs of a job, or only its runs of one partition."""
    tags = {} if partition_key is None else {PARTITION_TAG: partition_key}
    return _summarize(instance.get_run_records(dg.RunsFilter(job_name=job, tags=tags)))


def unended_run(instance: dg.DagsterInstance, job: str) -> dg.DagsterRun | None:
    """Return the newest run of a job that is queued or in progress."""
    newest = instance.get_runs(dg.RunsFilter(job_name=job, statuses=UNENDED), limit=1)
    return newest[0] if newest else None


def failures_in_a_row(instance: dg.DagsterInstance, job: str, partition_key: str | None = None) -> Attempts:
    """Return the newest failed runs of a job, or of one partition, back to the first run that did not fail.

    A cancelled run is not a failure: if the last run was cancelled, there are none.
    """
    tags = {} if partition_key is None else {PARTITION_TAG: partition_key}
    newest_first = instance.get_run_records(dg.RunsFilter(job_name=job, tags=tags), limit=_NEWEST)
    under_way = [record for record in newest_first if not record.dagster_run.is_finished]
    ended = (record for record in newest_first if record.dagster_run.is_finished)
    failed = takewhile(lambda record: record.dagster_run.status == dg.DagsterRunStatus.FAILURE, ended)
    return _summarize([*under_way, *failed])


def _summarize(records: Sequence[dg.RunRecord]) -> Attempts:
    ended = [record for record in records if record.dagster_run.is_finished]
    return Attempts(
        running=len(ended) < len(records),
        ended=len(ended),
        ended_at=max((record.end_time or record.update_timestamp.timestamp() for record in ended), default=0.0),
    )
