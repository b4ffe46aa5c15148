"""The deployment recovers from killed processes, a restarted database, an unavailable store and index, and a full disk.

Each time, the result is exact, and the only repair is to restart ended processes, as Compose does. FAULTS_INDEX_DOWN_S
is the number of seconds that the index is down. `make test-faults` prints the table of results.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from starlette.requests import Request
from starlette.responses import Response

from pypi_assets.components import storage_from
from pypi_assets.devindex import response_faults
from pypi_assets.devindex.history import History
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbError
from pypi_assets.lookup.latest import open_latest
from pypi_assets.settings import load_settings
from pypi_assets.storage.store import StorageError
from pypi_assets_tests.builders import make_wheel
from pypi_assets_tests.deploy.services import Deployment, fill_disk, own_disk
from pypi_assets_tests.deploy.test_native import postgres_programs
from pypi_assets_tests.deploy.ui_client import UNDER_WAY, ended, launch, query_ui, run_details, runs, until

pytestmark = pytest.mark.faults

PROJECTS = 60
SLOW_S = 5.0
STORE_DOWN_S = 30.0
INDEX_DOWN_S = float(os.environ.get("FAULTS_INDEX_DOWN_S", "45"))
FULL_S = 30.0
STORE_BYTES = 256 * 1024**2
SERVICES = ("daemon", "webserver", "code")


@dataclass
class Troubles:
    """Faults of the index: it delays its responses, or resets all connections."""

    down: bool = False
    slow_s: float = 0.0
    received: int = 0

    def __call__(self, _request: Request) -> Response | None:
        self.received += 1
        if self.down:
            return response_faults.reset_at_once()
        time.sleep(self.slow_s)
        return None


@pytest.fixture
def index_faults() -> Troubles:
    return Troubles()


@dataclass
class Site:
    """A deployment that follows an index, and the files uploaded to the index, by project."""

    deployment: Deployment
    history: History
    troubles: Troubles
    folder: Path
    uploaded: dict[str, set[str]] = field(default_factory=dict)
    seen: list[tuple[str, str, float]] = field(default_factory=list)

    def upload(self, project: str, version: str = "1.0") -> None:
        wheel = make_wheel(self.folder, project, version, files={f"{project}_module/__init__.py": ""})
        self.history.add(wheel)
        self.uploaded.setdefault(project, set()).add(wheel.name)

    def answers(self, *projects: str) -> bool:
        """Check whether the newest LevelDBs have everything that was uploaded to these projects."""
        storage = storage_from(load_settings())
        try:
            with open_latest("modules", storage) as modules, open_latest("depgraph", storage) as depgraph:
                return all(
                    {row["filename"] for row in depgraph.project(project).results} == self.uploaded[project]
                    and [row["project"] for row in modules.module(f"{project}_module").results] == [project]
                    for project in projects
                )
        except (LeveldbError, StorageError):
            return False

    def await_run(self, job: str) -> None:
        """Wait until a run of the job is in progress and has sent a request to the index."""
        until(self.deployment, lambda: job in runs(self.deployment, "STARTED"))
        received = self.troubles.received
        until(self.deployment, lambda: self.troubles.received > received)
        assert job in runs(self.deployment, "STARTED"), "the run ended before the fault"

    def failures(self) -> dict[str, str]:
        """Return the failed runs, with the error that the UI shows for each."""
        found = run_details(self.deployment, "FAILURE")
        return {run["runId"]: f"{run['jobName']}: {self._reason(run['runId'])}" for run in found}

    def _reason(self, run: str) -> str:
        """Return the error of the last failed step or, if none has failed, Dagster's error of the run itself."""
        query = """query ($id: ID!, $after: String) {runOrError(runId: $id) {... on Run {
            eventConnection(afterCursor: $after) {cursor hasMore events {__typename ... on EngineEvent {message}
            ... on RunFailureEvent {message} ... on ExecutionStepFailureEvent {error {message}}}}}}}"""
        messages: dict[str, str] = {}
        connection: dict[str, Any] = {"cursor": None, "hasMore": True}
        while connection["hasMore"]:
            found = query_ui(self.deployment, query, id=run, after=connection["cursor"])
            connection = found["runOrError"]["eventConnection"]
            for event in connection["events"]:
                message = (event.get("error") or event).get("message")
                if message and "RunFailureEvent" not in messages:
                    messages[event["__typename"]] = message.replace(run, "it").strip().splitlines()[0]
        is_unspecific = "from outside" in messages.get("RunFailureEvent", "")
        kinds = ("ExecutionStepFailureEvent", "EngineEvent" if is_unspecific else "RunFailureEvent", "RunFailureEvent")
        return next(messages[kind] for kind in kinds if kind in messages)

    def is_shown(self) -> bool:
        """Check whether the UI responds. It does not while its database restarts."""
        try:
            self.failures()
        except AssertionError:
            return False
        return True

    @contextmanager
    def recovers(self, fault: str, *projects: str) -> Iterator[None]:
        """Cause a fault in the block, and wait until the deployment knows all files of these projects again."""
        failed = set(self.failures())
        begun = time.monotonic()
        yield
        until(self.deployment, lambda: self.answers(*projects))
        seconds = time.monotonic() - begun
        reasons = Counter(reason for run, reason in self.failures().items() if run not in failed)
        self.seen.append((fault, "; ".join(f"{count} x {reason}" for reason, count in reasons.items()), seconds))


def kill_and_restart(site: Site, name: str) -> None:
    """Kill only the process of a service with SIGKILL, and restart it as Compose does."""
    process = site.deployment.running.pop(name)
    process.send_signal(signal.SIGKILL)
    process.wait()
    site.deployment.start(name)


def restart_postgres(url: str) -> None:
    """Restart the server immediately, which breaks all its connections."""
    with psycopg.connect(url) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
    assert row is not None
    folder = Path(row[0])
    owner = folder.stat()
    subprocess.run(
        [
            f"{postgres_programs()}/pg_ctl",
            "restart",
            "-D",
            str(folder),
            "-m",
            "immediate",
            "-l",
            str(folder / "log"),
            "-w",
        ],
        check=True,
        user=owner.st_uid,
        group=owner.st_gid,
        stdout=subprocess.DEVNULL,
    )


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path | None]:
    """Create a small file system for the store, if one can be mounted."""
    folder = tmp_path / "deployment" / "srv" / "buckets"
    with own_disk(folder, STORE_BYTES) as is_mounted:
        yield folder if is_mounted else None


def test_deployment_is_exact_after_each_fault_without_manual_repair(
    small_disk: Path | None,
    deploy: Callable[..., Deployment],
    index_faults: Troubles,
    tmp_path: Path,
    postgres_url: str,
) -> None:
    deployment = deploy("compose.yaml")
    (tmp_path / "wheels").mkdir()
    site = Site(deployment, History(tmp_path / "index"), index_faults, tmp_path / "wheels")
    for number in range(PROJECTS):
        site.upload(f"project{number}")

    index_faults.slow_s = SLOW_S
    first = launch(deployment, "full_crawl")
    site.await_run("full_crawl")
    with site.recovers("kill -9 of the run of a full crawl", *site.uploaded):
        assert deployment.kill_runs()
        assert until(deployment, lambda: ended(deployment, first)) == "FAILURE"
        index_faults.slow_s = 0.0

    numbers = iter(range(1000))

    def uploaded() -> str:
        """Upload another project, and wait until its range is being crawled."""
        index_faults.slow_s = SLOW_S
        project = f"newcomer{next(numbers)}"
        site.upload(project)
        site.await_run("incremental_crawl")
        return project

    project = uploaded()
    with site.recovers("kill -9 of the run of a range", project):
        assert deployment.kill_runs()
        index_faults.slow_s = 0.0
    for name in SERVICES:
        project = uploaded()
        with site.recovers(f"kill -9 of the {name}", project):
            kill_and_restart(site, name)
            index_faults.slow_s = 0.0
    project = uploaded()
    with site.recovers("kill -9 of the code server with its runs", project):
        deployment.kill("code")
        index_faults.slow_s = 0.0
        deployment.start("code")
    project = uploaded()
    with site.recovers("PostgreSQL restarted", project):
        restart_postgres(postgres_url)
        index_faults.slow_s = 0.0
        until(deployment, site.is_shown)
    project = uploaded()
    with site.recovers(f"the S3 server gone for {STORE_DOWN_S:.0f} s", project):
        deployment.kill("s3")
        index_faults.slow_s = 0.0
        time.sleep(STORE_DOWN_S)
        deployment.start("s3")
    if small_disk is not None:
        project = uploaded()
        with site.recovers(f"the disk of the store full for {FULL_S:.0f} s", project):
            filling = fill_disk(small_disk)
            index_faults.slow_s = 0.0
            time.sleep(FULL_S)
            filling.unlink()
    project = uploaded()
    with site.recovers(f"the index down for {INDEX_DOWN_S:.0f} s", project):
        index_faults.down, index_faults.slow_s = True, 0.0
        site.upload(f"newcomer{next(numbers)}")
        time.sleep(INDEX_DOWN_S)
        index_faults.down = False

    until(deployment, lambda: site.answers(*site.uploaded))
    until(deployment, lambda: not runs(deployment, *UNDER_WAY))
    status = json.loads(deployment.run("pypi-assets", "status", "--json"))
    assert (status["read"], status["failed"]) == (len(site.uploaded), 0)
    deployment.run("pypi-assets", "leveldb", "verify", "--deep")
    rows = [f"| {fault} | {reasons or 'none'} | {seconds:.0f} |" for fault, reasons, seconds in site.seen]
    head = ["", "| fault | failed runs, as the UI shows them | seconds until all was known |", "|---|---|---|"]
    sys.stdout.write("\n".join([*head, *rows, ""]))
