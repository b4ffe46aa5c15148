"""Runs on workers of Celery. Loaded by deploy/celery/run_launcher.yaml; needs the extra `celery`."""

import dagster as dg
from dagster._core.launcher import CheckRunHealthResult, WorkerStatus
from dagster_celery.launcher import CeleryRunLauncher
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG

ANSWERS_WITHIN_S = (1.0, 10.0)
"""How long to wait for answers of all workers, in two attempts. A worker answers in milliseconds, whatever its runs do,
unless its machine is overloaded."""


class WatchedCeleryRunLauncher(CeleryRunLauncher):
    """Dagster's own, which also knows a run whose worker is gone.

    A worker that is killed with all its processes, or whose machine is lost, leaves its tasks as started for ever. So
    while a task has not ended, each check queries the workers for it.
    """

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Whether some worker is at the run. Raises what Celery does where the broker cannot be reached."""
        task_id = run.tags.get(DAGSTER_CELERY_TASK_ID_TAG)
        if task_id is None:  # it began before runs were handed to Celery: its code server has been restarted since
            return CheckRunHealthResult(WorkerStatus.NOT_FOUND, "the run was not handed to Celery")
        if self.celery.AsyncResult(task_id).ready():
            return super().check_run_worker_health(run)
        if any(self._some_worker_is_at(task_id, within_s) for within_s in ANSWERS_WITHIN_S):
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.FAILED, "no worker of Celery is at the run")

    def _some_worker_is_at(self, task_id: str, within_s: float) -> bool:
        # not `inspect`, which keeps one answer a name: workers of one machine may share theirs
        answers = self.celery.control.broadcast(
            "query_task", arguments={"ids": [task_id]}, reply=True, timeout=within_s
        )
        return any(task_id in tasks for answer in answers or () for tasks in answer.values())
