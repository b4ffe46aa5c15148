"""Run Dagster's webserver, daemon and code server as processes, and use the UI's actions through GraphQL."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import requests

from pypi_assets_tests.deploy.services import free_port

ROOT = Path(__file__).parent.parent
RANGE_ASSETS = ("changelog", "changed_distributions", "changed_distribution_data", "incremental_dump")

T = TypeVar("T")


@dataclass(frozen=True)
class ServedDagster:
    """A running Dagster with `folder` as DAGSTER_HOME. `process` is the ID of the parent process of all others."""

    folder: Path
    url: str
    process: int

    def until(self, look: Callable[[], T | None], seconds: float) -> T:
        """Call `look` until it returns a value, for at most `seconds`. Raise TimeoutError."""
        pause = threading.Event()
        deadline = time.monotonic() + seconds
        while (found := look()) is None:
            if time.monotonic() > deadline:
                log = (self.folder / "log").read_text()
                raise TimeoutError(f"not there after {seconds} s; the log ends with\n{log[-3000:]}")
            pause.wait(0.5)
        return found

    def try_query(self, query: str, **variables: object) -> dict[str, Any] | None:
        """Return the data of a GraphQL response, or None until the webserver is up."""
        try:
            answer = requests.post(self.url, json={"query": query, "variables": variables}, timeout=120).json()
        except (requests.ConnectionError, requests.exceptions.JSONDecodeError):
            return None
        assert "errors" not in answer, answer
        data: dict[str, Any] = answer["data"]
        return data

    def query(self, query: str, **variables: object) -> dict[str, Any]:
        """Return the data of a GraphQL response. The webserver must be up."""
        data = self.try_query(query, **variables)
        assert data is not None
        return data

    def backfill(self, assets: Sequence[str], keys: Sequence[str]) -> str:
        """Backfill these partitions as the UI does, and return the backfill's ID."""
        launched = self.query(
            "mutation ($params: LaunchBackfillParams!) {launchPartitionBackfill(backfillParams: $params)"
            " {... on LaunchBackfillSuccess {backfillId}}}",
            params={"assetSelection": [{"path": [name]} for name in assets], "partitionNames": list(keys)},
        )
        return str(launched["launchPartitionBackfill"]["backfillId"])

    def backfill_from_failure(self, backfill: str) -> str:
        """Backfill the failed partitions of a backfill, as the UI's "Re-execute from failure" does. Return the new
        ID.
        """
        launched = self.query(
            "mutation ($params: ReexecutionParams!) {reexecutePartitionBackfill(reexecutionParams: $params)"
            " {... on LaunchBackfillSuccess {backfillId}}}",
            params={"parentRunId": backfill, "strategy": "FROM_FAILURE"},
        )
        return str(launched["reexecutePartitionBackfill"]["backfillId"])

    def backfill_ended(self, backfill: str) -> str | None:
        """Return the final status of a backfill, or None while it is running."""
        answer = self.try_query(
            "query ($id: String!) {partitionBackfillOrError(backfillId: $id) {... on PartitionBackfill {status}}}",
            id=backfill,
        )
        status = None if answer is None else str(answer["partitionBackfillOrError"]["status"])
        return status if status and (status.startswith("COMPLETED") or status in {"FAILED", "CANCELED"}) else None

    def add_range(self, key: str) -> None:
        """Add a partition to the assets of ranges, as the UI does."""
        self.query(
            "mutation ($selector: RepositorySelector!, $key: String!) {addDynamicPartition("
            'repositorySelector: $selector, partitionsDefName: "serial_ranges", partitionKey: $key) {__typename}}',
            selector={"repositoryName": "__repository__", "repositoryLocationName": "pypi-assets"},
            key=key,
        )

    def failed_partitions(self, asset: str) -> list[str]:
        """Return the partitions of an asset that the UI shows as failed."""
        node = self.query(
            "query ($path: [String!]!) {assetNodeOrError(assetKey: {path: $path}) {... on AssetNode"
            " {assetPartitionStatuses {... on DefaultPartitionStatuses {failedPartitions}}}}}",
            path=[asset],
        )["assetNodeOrError"]
        return sorted(node["assetPartitionStatuses"]["failedPartitions"])


@contextmanager
def served_dagster(
    folder: Path, settings: dict[str, str], workspace: Path = ROOT / "workspace.yaml"
) -> Iterator[ServedDagster]:
    """Run all processes for this repository until the block ends, with `dagster.yaml` and `settings`."""
    shutil.copy(ROOT / "dagster.yaml", folder)
    port = free_port()
    command = [Path(sys.executable).with_name("dagster"), "dev", "--workspace", workspace]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*map(str, command), "--host", "127.0.0.1", "--port", str(port)],
            cwd=folder,
            env=os.environ | settings | {"DAGSTER_HOME": str(folder)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        served = ServedDagster(folder, f"http://127.0.0.1:{port}/graphql", process.pid)
        served.until(lambda: served.try_query("{version}"), 300)
        yield served
    finally:
        for number in (signal.SIGINT, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
                process.wait(20)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue
