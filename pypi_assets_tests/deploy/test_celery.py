"""Celery workers over a real Redis share a full crawl, whose result is exact although one worker is killed at work.

The second worker runs in a separate network namespace, if Linux allows the tests to create one.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from packaging.utils import canonicalize_name, parse_wheel_filename

from pypi_assets.devindex.history import History
from pypi_assets_tests.builders import make_wheel
from pypi_assets_tests.deploy.services import LOOPBACK, Deployment, Network, own_network, secret
from pypi_assets_tests.deploy.ui_client import backfill, ended, filenames, launch, providers, run_details, runs, until

pytestmark = pytest.mark.deploy

CRAWL = ("crawled_projects", "crawled_distribution_data")
WORKERS = 2
PROJECTS = 20
"""The number of projects in each scope."""
AT_ONCE = 2
"""The number of runs that each worker executes at the same time."""


@pytest.fixture
def elsewhere() -> Iterator[Network | None]:
    """Create the network of another machine, if this process may."""
    with own_network() as network:
        yield network


@pytest.fixture
def address(elsewhere: Network | None) -> str:
    return elsewhere.address if elsewhere else LOOPBACK


def reads(deployment: Deployment) -> int:
    """Return the number of distributions read so far."""
    with psycopg.connect(secret(deployment.environment, "database_url")) as connection:
        [count] = connection.execute("SELECT count(*) FROM read_attempts").fetchone() or [0]
        return int(count)


def is_reading(deployment: Deployment, worker: str) -> bool:
    """Check whether the worker's log has a run of shards that is in progress, and something was read."""
    under_way = [run["runId"] for run in run_details(deployment, "STARTED") if run["jobName"] == "__ASSET_JOB"]
    log = deployment.log_of(worker)
    return reads(deployment) > 0 and any(run in log for run in under_way)


@pytest.mark.nightly
def test_full_crawl_shared_by_workers_is_exact_after_one_is_killed(
    deploy: Callable[..., Deployment], wheels: dict[str, Path], elsewhere: Network | None, tmp_path: Path
):
    history = History(tmp_path / "index")
    expected: dict[str, set[str]] = {}
    for name, path in wheels.items():
        history.add(path)
        expected.setdefault(canonicalize_name(parse_wheel_filename(name)[0]), set()).add(name)
    deployment = deploy(
        "compose.yaml",
        "compose.celery.yaml",
        PYPI_ASSETS_REQUESTS_PER_SECOND="8",  # slow enough to kill a worker in the middle of a run
        CELERY_RUNS_AT_ONCE=str(AT_ONCE),
    )
    deployment.start_another("worker", "another worker", elsewhere)
    deployment.run("dagster", "instance", "concurrency", "set", "index", str(AT_ONCE * WORKERS))

    run = launch(deployment, "full_crawl", "project_listing")
    assert until(deployment, lambda: ended(deployment, run)) == "SUCCESS"
    backfill(deployment, CRAWL, [f"{part:02}" for part in range(100)])
    until(deployment, lambda: not runs(deployment, "STARTING") and is_reading(deployment, "worker"))
    deployment.kill("worker")
    killed = time.monotonic()
    assert reads(deployment) < len(wheels)

    until(deployment, lambda: providers("yaml") and filenames("requests"))  # the sensors start these runs
    sys.stdout.write(f"kill -9 of a worker: all was known after {time.monotonic() - killed:.0f} s\n")
    assert {project: filenames(project) for project in expected} == expected
    status = json.loads(deployment.run("pypi-assets", "status", "--json"))
    assert (status["read"], status["failed"]) == (len(wheels), 0)
    until(deployment, lambda: not runs(deployment, "QUEUED", "NOT_STARTED", "STARTING", "STARTED"))
    lost = {run["runId"] for run in run_details(deployment, "FAILURE")}
    assert 1 <= len(lost) <= AT_ONCE, deployment.last_logs()
    assert lost <= {run["parentRunId"] for run in run_details(deployment, "SUCCESS")}


def states(deployment: Deployment) -> dict[str, str]:
    """Return the state of each scope."""
    return {one["scope"]: one["state"] for one in json.loads(deployment.run("pypi-assets", "scope", "list", "--json"))}


@pytest.mark.nightly
def test_workers_run_the_scopes_of_their_tags_and_recover_from_a_kill(
    deploy: Callable[..., Deployment], tmp_path: Path
):
    history = History(tmp_path / "index")
    expected = {f"{scope}{number}" for scope in ("left", "right") for number in range(PROJECTS)}
    for scope in ("left", "right"):
        for number in range(PROJECTS):
            requires = [f"{scope}{number + 1}"] if number + 1 < PROJECTS else []
            history.add(make_wheel(tmp_path, f"{scope}{number}", "1.0", requires_dist=requires))
    deployment = deploy(
        "compose.yaml",
        "compose.celery.yaml",
        PYPI_ASSETS_REQUESTS_PER_SECOND="4",  # slow enough to kill a worker in the middle of a run
        CELERY_RUNS_AT_ONCE="1",
    )
    for tag in ("right", "left"):
        deployment.start_another("worker", f"{tag} worker", None, f"--queues={tag}", f"--hostname={tag}@%h")
        deployment.run("pypi-assets", "scope", "create", tag, f"{tag}0", "--tag", tag, "--match-only")
    until(deployment, lambda: "STEP_START" in deployment.log_of("left worker") and reads(deployment) > 0)
    deployment.kill("left worker")
    assert states(deployment)["left"] != "finished"
    until(deployment, lambda: states(deployment)["right"] == "finished")
    deployment.start_another("worker", "left worker", None, "--queues=left", "--hostname=left@%h")
    until(deployment, lambda: set(states(deployment).values()) == {"finished"})
    assert "follow_scopes" not in deployment.log_of("worker")
    files = json.loads(deployment.run("pypi-assets", "lookup", "files", "--json"))
    assert {(file["project"], file["outcome"]) for file in files} == {(name, "data") for name in expected}
