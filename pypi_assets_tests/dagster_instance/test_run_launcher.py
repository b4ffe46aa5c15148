"""Whether a code server is at a run, as the launcher finds out over the protocol that code servers speak."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import dagster as dg
import grpc
from dagster._core.launcher import WorkerStatus
from dagster._core.storage.tags import GRPC_INFO_TAG
from dagster._grpc.__generated__.dagster_api_pb2 import CanCancelExecutionReply, CanCancelExecutionRequest
from dagster._grpc.__generated__.dagster_api_pb2_grpc import DagsterApiServicer, add_DagsterApiServicer_to_server
from dagster._grpc.types import CanCancelExecutionRequest as RunQuery
from dagster._grpc.types import CanCancelExecutionResult
from dagster._serdes import deserialize_value, serialize_value

from pypi_assets.dagster_instance.run_launcher import WatchedRunLauncher


class CodeServer(DagsterApiServicer):
    """One that is at these runs."""

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


def test_a_run_is_lost_once_another_code_server_answers_in_place_of_its_own():
    with dg.DagsterInstance.ephemeral() as instance:
        launcher = WatchedRunLauncher()
        launcher.register_instance(instance)
        run = instance.create_run_for_job(_job, status=dg.DagsterRunStatus.STARTED)
        assert launcher.check_run_worker_health(run).status == WorkerStatus.NOT_FOUND
        with serving(CodeServer(run.run_id)) as port:
            instance.add_run_tags(run.run_id, {GRPC_INFO_TAG: json.dumps({"host": "127.0.0.1", "port": port})})
            assert launcher.check_run_worker_health(run).status == WorkerStatus.RUNNING
        assert launcher.check_run_worker_health(run).status == WorkerStatus.RUNNING  # unknown
        with serving(CodeServer(), port):
            found = launcher.check_run_worker_health(run)
        assert found.status == WorkerStatus.FAILED
        assert found.msg


@dg.job
def _job() -> None:
    """Anything."""
