"""Runs Dagster's runs as processes of a code server (`dagster api grpc`). `deploy/run_launcher.yaml` loads it."""

import dagster as dg
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.launcher import CheckRunHealthResult, DefaultRunLauncher, WorkerStatus
from dagster._grpc.types import CanCancelExecutionRequest, CanCancelExecutionResult
from dagster._serdes import deserialize_value


class WatchedRunLauncher(DefaultRunLauncher):
    """Dagster's default launcher, which also detects runs whose code server has died.

    Runs end with the container or the machine of their code server, and Dagster gets no report of it. So each health
    check asks the code server at the same address whether it has the run.
    """

    @property
    def supports_check_run_worker_health(self) -> bool:
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Return whether the code server has the run.

        While it does not answer, that is unknown, and the run goes on.
        """
        client = self._get_grpc_client_for_termination(run.run_id)  # type: ignore[no-untyped-call]
        if client is None:
            return CheckRunHealthResult(WorkerStatus.NOT_FOUND, "the run was not passed to a code server")
        try:
            answer = client.can_cancel_execution(CanCancelExecutionRequest(run_id=run.run_id))
        except DagsterUserCodeUnreachableError:
            return CheckRunHealthResult(WorkerStatus.RUNNING, "the code server does not answer")
        if deserialize_value(answer, CanCancelExecutionResult).can_cancel:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.FAILED, "the code server was restarted after the run began")
