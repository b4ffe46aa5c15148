"""Whether a worker is at a run, as the launcher finds out from a worker that is real, but for its broker."""

import threading
from typing import Any

import dagster as dg
import pytest
from celery.contrib.testing.worker import start_worker
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG

from pypi_assets.dagster_instance import celery_launcher
from pypi_assets.dagster_instance.celery_launcher import WatchedCeleryRunLauncher


def health(launcher: WatchedCeleryRunLauncher, task: Any) -> str:
    run = dg.DagsterRun(job_name="anything", tags={DAGSTER_CELERY_TASK_ID_TAG: task.id})
    return launcher.check_run_worker_health(run).status.value


def test_a_run_that_began_before_there_was_celery_is_lost(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(celery_launcher, "ANSWERS_WITHIN_S", (0.1, 0.1))
    launcher = WatchedCeleryRunLauncher(default_queue="dagster", broker="memory://", backend="cache+memory://")
    assert launcher.check_run_worker_health(dg.DagsterRun(job_name="anything")).status.value == "FAILED"


def test_a_run_is_lost_once_no_worker_is_at_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(celery_launcher, "ANSWERS_WITHIN_S", (0.1,) * 600)  # no worker is given up that is slow
    launcher = WatchedCeleryRunLauncher(
        default_queue="dagster",
        broker="memory://",
        backend="cache+memory://",
        config_source={"broker_transport_options": {"polling_interval": 0.02}},
    )
    begun, over = threading.Event(), threading.Event()

    @launcher.celery.task(track_started=True)
    def work() -> None:
        begun.set()
        over.wait(60)

    with start_worker(launcher.celery, pool="threads", concurrency=2, perform_ping_check=False):
        task = work.apply_async(queue="dagster")
        assert begun.wait(60)
        assert health(launcher, task) == "RUNNING"
        monkeypatch.setattr(celery_launcher, "ANSWERS_WITHIN_S", (0.1, 0.1))
        lost = launcher.celery.AsyncResult("what a worker began that was killed")
        launcher.celery.backend.store_result(lost.id, {}, "STARTED")
        assert health(launcher, lost) == "FAILED"
        over.set()
        task.get(60)
        assert health(launcher, task) == "SUCCESS"
