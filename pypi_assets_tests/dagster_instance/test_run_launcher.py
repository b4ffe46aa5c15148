"""Detection of runs without a worker or code server, and the counts of runs and pools."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import grpc
import pytest
import yaml
from celery.contrib.testing.worker import start_worker
from dagster._core.launcher import WorkerStatus
from dagster._core.storage.tags import GRPC_INFO_TAG
from dagster._grpc.__generated__.dagster_api_pb2 import CanCancelExecutionReply, CanCancelExecutionRequest
from dagster._grpc.__generated__.dagster_api_pb2_grpc import DagsterApiServicer, add_DagsterApiServicer_to_server
from dagster._grpc.types import CanCancelExecutionRequest as RunQuery
from dagster._grpc.types import CanCancelExecutionResult
from dagster._serdes import deserialize_value, serialize_value
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG

from pypi_assets.dagster_instance import activity, celery_launcher
from pypi_assets.dagster_instance.activity import PoolCounts, RunCounts, count_runs
from pypi_assets.dagster_instance.celery_launcher import WatchedCeleryRunLauncher
from pypi_assets.dagster_instance.run_launcher import WatchedRunLauncher
from pypi_assets_tests.deploy.services import DEPLOY


class CodeServer(DagsterApiServicer):
    """A code server that executes these runs."""

    def __init__(self, *runs: str) -> None:
        self._runs = runs

    def CanCancelExecution(  # noqa: N802
        self, request: CanCancelExecutionRequest, context: grpc.ServicerContext
    ) -> CanCancelExecutionReply:
        query = deserialize_value(request.serialized_can_cancel_execution_request, RunQuery)
        result = CanCancelExecutionResult(can_cancel=query.run_id in self._runs)
        return CanCancelExecutionReply(serialized_can_cancel_execution_result=serialize_value(result))


@contextmanager
def serving(code: CodeServer, port: int = 0) -> Iterator[int]:
    server = grpc.server(ThreadPoolExecutor(1))
    add_DagsterApiServicer_to_server(code, server)
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        yield bound
    finally:
        server.stop(None).wait(60)


def test_run_is_lost_once_another_code_server_replaces_its_own():
    with dg.DagsterInstance.ephemeral() as instance:
        launcher = WatchedRunLauncher()
        launcher.register_instance(instance)
        run = instance.create_run_for_job(_job, status=dg.DagsterRunStatus.STARTED)
        assert launcher.check_run_worker_health(run).status == WorkerStatus.NOT_FOUND
        with serving(CodeServer(run.run_id)) as port:
            instance.add_run_tags(run.run_id, {GRPC_INFO_TAG: json.dumps({"host": "127.0.0.1", "port": port})})
            assert launcher.check_run_worker_health(run).status == WorkerStatus.RUNNING
        assert launcher.check_run_worker_health(run).status == WorkerStatus.RUNNING  # the state is unknown
        with serving(CodeServer(), port):
            found = launcher.check_run_worker_health(run)
        assert found.status == WorkerStatus.FAILED
        assert found.msg


@dg.job
def _job() -> None:
    pass


def health(launcher: WatchedCeleryRunLauncher, task: Any) -> str:
    run = dg.DagsterRun(job_name="anything", tags={DAGSTER_CELERY_TASK_ID_TAG: task.id})
    return launcher.check_run_worker_health(run).status.value


def test_run_started_before_celery_is_lost(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(celery_launcher, "ANSWERS_WITHIN_S", (0.1, 0.1))
    launcher = WatchedCeleryRunLauncher(default_queue="dagster", broker="memory://", backend="cache+memory://")
    assert launcher.check_run_worker_health(dg.DagsterRun(job_name="anything")).status.value == "FAILED"


def test_run_is_lost_once_no_worker_executes_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(celery_launcher, "ANSWERS_WITHIN_S", (0.1,) * 600)  # slow workers are not given up
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


ROOT = Path(__file__).parent.parent.parent


@dg.op
def fail() -> None:
    raise dg.Failure("wrong")


@dg.job
def failing() -> None:
    fail()


@dg.job
def empty() -> None:
    pass


def test_runs_are_counted_by_state_and_steps_by_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text())
    require_counts(tmp_path, monkeypatch)


@pytest.mark.nightly
def test_runs_are_counted_on_postgresql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dagster_postgres: str) -> None:
    instance = yaml.safe_load((DEPLOY / "dagster.yaml").read_text())
    instance.pop("compute_logs")  # needs a store
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(instance))
    require_counts(tmp_path, monkeypatch)


def require_counts(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run jobs on the instance in `home`, and check the counts."""
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    with dg.DagsterInstance.get() as instance:
        assert count_runs(instance) == RunCounts(queued=0, running=0, failed=0, pools={})
        for job in (failing, failing, empty):
            job.execute_in_process(instance=instance, raise_on_error=False)
        for most_retries in ("0", "10"):  # Dagster relaunches the second run, so it is not counted
            tags = {"dagster/max_retries": most_retries}
            lost = instance.create_run_for_job(empty, status=dg.DagsterRunStatus.STARTED, tags=tags)
            instance.report_run_failed(lost)
        for status, times in ((dg.DagsterRunStatus.NOT_STARTED, 3), (dg.DagsterRunStatus.STARTED, 1)):
            for _ in range(times):
                instance.create_run_for_job(empty, status=status)
        events = instance.event_log_storage
        events.set_concurrency_slots("index", 2)
        for step in ("one", "two", "three"):
            events.claim_concurrency_slot("index", "run", step)
        pool = PoolCounts(limit=2, claimed=2, waiting=1)
        assert count_runs(instance) == RunCounts(queued=3, running=1, failed=3, pools={"index": pool})
        monkeypatch.setattr(activity, "FAILED_WITHIN", timedelta(0))
        assert count_runs(instance).failed == 0
