"""Use Dagster's UI through GraphQL, and read lookups over the store."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from pypi_assets.components import storage_from
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbError
from pypi_assets.lookup.latest import open_latest
from pypi_assets.settings import load_settings
from pypi_assets.storage.store import ObjectNotFoundError
from pypi_assets_tests.deploy.services import LOOPBACK, Deployment

STEP_WITHIN_S = 900
"""The time limit of any single step, for a busy machine."""

UNDER_WAY = ("QUEUED", "NOT_STARTED", "STARTING", "STARTED", "CANCELING")
"""The statuses of runs that have not ended."""
T = TypeVar("T")


def until(deployment: Deployment, look: Callable[[], T | None]) -> T:
    """Call `look` until it returns a value, and return that."""
    pause = threading.Event()
    deadline = time.monotonic() + STEP_WITHIN_S
    while not (found := look()):
        if time.monotonic() > deadline:
            pytest.fail(f"not found after {STEP_WITHIN_S} s\n{deployment.last_logs()}")
        pause.wait(1)
    return found


def query_ui(deployment: Deployment, query: str, **variables: object) -> Any:
    answer = requests.post(deployment.url, json={"query": query, "variables": variables}, timeout=STEP_WITHIN_S).json()
    assert "errors" not in answer, answer
    return answer["data"]


def launch(deployment: Deployment, job: str, *assets: str) -> str:
    """Launch a job, or some of its assets, as the UI does. Return the run's ID."""
    selector: dict[str, Any] = {
        "repositoryName": "__repository__",
        "repositoryLocationName": "pypi-assets",
        "jobName": job,
        "assetSelection": [{"path": [asset]} for asset in assets] or None,
    }
    launched = query_ui(
        deployment,
        "mutation ($params: ExecutionParams!) {launchRun(executionParams: $params)"
        " {__typename ... on LaunchRunSuccess {run {runId}} ... on PythonError {message}}}",
        params={"selector": selector, "runConfigData": {}},
    )["launchRun"]
    return str(launched["run"]["runId"])


def ended(deployment: Deployment, run: str) -> str | None:
    """Return the final status of a run, or None while it is in progress."""
    found = query_ui(deployment, "query ($id: ID!) {runOrError(runId: $id) {... on Run {status}}}", id=run)
    status = str(found["runOrError"]["status"])
    return status if status in {"SUCCESS", "FAILURE", "CANCELED"} else None


def backfill(deployment: Deployment, assets: Sequence[str], keys: Sequence[str]) -> None:
    """Backfill these partitions as the UI does."""
    launched = query_ui(
        deployment,
        "mutation ($params: LaunchBackfillParams!) {launchPartitionBackfill(backfillParams: $params)"
        " {__typename ... on PythonError {message}}}",
        params={"assetSelection": [{"path": [asset]} for asset in assets], "partitionNames": list(keys)},
    )["launchPartitionBackfill"]
    assert launched["__typename"] == "LaunchBackfillSuccess", launched


def runs(deployment: Deployment, *statuses: str) -> list[str]:
    """Return the jobs of the runs with one of these statuses."""
    return [str(run["jobName"]) for run in run_details(deployment, *statuses)]


def run_details(deployment: Deployment, *statuses: str) -> list[dict[str, Any]]:
    """Return the runs with one of these statuses: `jobName`, `runId`, `parentRunId` of a retry, `startTime`,
    `endTime`.
    """
    query = (
        "query ($filter: RunsFilter!) {runsOrError(filter: $filter)"
        " {... on Runs {results {jobName runId parentRunId startTime endTime}}}}"
    )
    found: list[dict[str, Any]] = query_ui(deployment, query, filter={"statuses": statuses})["runsOrError"]["results"]
    return found


def metrics(deployment: Deployment, name: str) -> dict[str, float]:
    """Return the values of a metric as parsed by Prometheus, by the value of its only label."""
    url = f"http://{LOOPBACK}:{deployment.environment['METRICS_PORT']}/metrics"
    families = text_string_to_metric_families(requests.get(url, timeout=STEP_WITHIN_S).text)
    return {
        "".join(sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
        if sample.name == name
    }


def filenames(project: str) -> set[str] | None:
    """Return the files of `project` in the newest version of `depgraph`, or None if there is none."""
    try:
        with open_latest("depgraph", storage_from(load_settings())) as reader:
            return {str(row["filename"]) for row in reader.project(project).results}
    except (LeveldbError, ObjectNotFoundError):
        return None


def providers(module: str) -> set[str] | None:
    """Return the projects that provide `module` in the newest version of `modules`, or None if there is none."""
    try:
        with open_latest("modules", storage_from(load_settings())) as reader:
            return {str(row["project"]) for row in reader.module(module).results}
    except (LeveldbError, ObjectNotFoundError):
        return None
