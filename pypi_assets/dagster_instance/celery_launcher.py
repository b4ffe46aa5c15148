"""Runs Dagster's runs on Celery workers. `deploy/celery/run_launcher.yaml` loads it. Needs the extra `celery`."""

from typing import Any

import dagster as dg
from dagster_celery.launcher import CeleryRunLauncher
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG

ANSWERS_WITHIN_S = (1.0, 10.0)
"""Seconds to wait for the answers of all workers, in two attempts.

A worker answers within milliseconds, even while it executes runs, unless its machine is overloaded.
"""


class LostRunError(Exception):
    """The result of a task that no worker has, stored as Celery stores failed tasks."""


class WatchedCeleryRunLauncher(CeleryRunLauncher):
    """Dagster's Celery launcher, which also detects runs whose worker has died.

    If a worker is killed with all its processes, or its machine is lost, its tasks stay in the state "started" for
    ever. So for each task that has not ended, a health check asks the workers for it, and stores a failure if no worker
    has it.
    """

    def check_run_worker_health(self, run: dg.DagsterRun) -> Any:
        """Return whether a worker has the run. Raises Celery's errors if the broker does not answer."""
        # a run without a task began before runs were executed by Celery; its code server has been restarted since
        task_id = run.tags.get(DAGSTER_CELERY_TASK_ID_TAG, run.run_id)
        if not self.celery.AsyncResult(task_id).ready() and not self._is_at_work(task_id):
            self.celery.backend.mark_as_failure(task_id, LostRunError(run.run_id))
        return super().check_run_worker_health(run.with_tags({**run.tags, DAGSTER_CELERY_TASK_ID_TAG: task_id}))

    def _is_at_work(self, task_id: str) -> bool:
        return any(self._some_worker_is_at(task_id, within_s) for within_s in ANSWERS_WITHIN_S)

    def _some_worker_is_at(self, task_id: str, within_s: float) -> bool:
        # not `inspect`, which keeps one answer per name: workers on one machine may have the same name
        answers = self.celery.control.broadcast(
            "query_task", arguments={"ids": [task_id]}, reply=True, timeout=within_s
        )
        return any(task_id in tasks for answer in answers or () for tasks in answer.values())
