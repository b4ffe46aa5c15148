"""A follower and Dagster's sensors work on one catalog, while files are uploaded and both processes are killed.

Each range is done once, and the UI shows all ranges.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from starlette.requests import Request
from starlette.responses import Response

from pypi_assets.catalog.database import open_catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.defs.external_work import RANGE_ASSETS, done_through
from pypi_assets.devindex.history import History
from pypi_assets.devindex.server import Faults
from pypi_assets_tests.builders import make_wheel
from pypi_assets_tests.deploy.services import Deployment, secret
from pypi_assets_tests.deploy.ui_client import UNDER_WAY, ended, launch, query_ui, runs, until
from pypi_assets_tests.following.followers import assert_sound
from pypi_assets_tests.served_index import live

pytestmark = pytest.mark.faults

PROJECTS, TURNS = 20, 4
UPLOAD_EVERY_S = 0.7
SLOW_S = 0.3


@pytest.fixture
def index_faults() -> Faults:
    """Delay each file, so that processes are killed at work."""

    def slow(request: Request) -> Response | None:
        if request.url.path.endswith(".whl"):
            time.sleep(SLOW_S)
        return None

    return slow


@contextmanager
def uploading(history: History, folder: Path) -> Iterator[None]:
    """Upload and yank files during the block, at regular intervals."""
    stopping, drawn = threading.Event(), Random(1)

    def upload() -> None:
        number = 0
        while not stopping.wait(UPLOAD_EVERY_S):
            number += 1
            project = f"project{drawn.randrange(PROJECTS)}"
            history.add(make_wheel(folder, project, f"2.{number}", files={f"{project}/__init__.py": ""}))
            if drawn.random() < 0.2:
                history.yank(project, f"2.{number}", "broken")

    thread = threading.Thread(target=upload)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def follow(deployment: Deployment) -> None:
    deployment.start_another("follower", "follower")


def steps(deployment: Deployment) -> int:
    """Return the number of ranges that all processes of the follower together have dumped."""
    return deployment.log_of("follower").count('"step": "dump"')


def shown(deployment: Deployment, asset: str) -> list[SerialRange]:
    """Return the partitions of the asset that the UI shows as materialized, in order."""
    query = """query ($key: AssetKeyInput!) {assetNodeOrError(assetKey: $key) {... on AssetNode {
        assetPartitionStatuses {... on DefaultPartitionStatuses {materializedPartitions}}}}}"""
    found = query_ui(deployment, query, key={"path": [asset]})["assetNodeOrError"]["assetPartitionStatuses"]
    return sorted((SerialRange.parse(key) for key in found["materializedPartitions"]), key=lambda one: one.start)


def is_whole(ranges: list[SerialRange], start: int, end: int) -> bool:
    """Check whether the ranges lead from `start` to `end` without gaps or overlaps."""
    edges = [start, *(edge for one in ranges for edge in (one.start, one.end)), end]
    return edges[::2] == edges[1::2]


def test_follower_and_dagster_do_each_range_once_despite_load_and_kills(
    deploy: Callable[..., Deployment], tmp_path: Path
) -> None:
    deployment = deploy("compose.yaml", PYPI_ASSETS_FOLLOW_INTERVAL_S="1")
    (tmp_path / "wheels").mkdir()
    history = History(tmp_path / "index")
    for number in range(PROJECTS):
        history.add(make_wheel(tmp_path / "wheels", f"project{number}", "1.0"))
    run = launch(deployment, "full_crawl")
    assert until(deployment, lambda: ended(deployment, run)) == "SUCCESS"
    begun = history.state().last_serial or 0

    with uploading(history, tmp_path / "wheels"):
        follow(deployment)
        until(deployment, lambda: steps(deployment) >= 2)
        for turn in range(TURNS):
            deployment.kill("follower")  # the sensors continue its work
            until(deployment, lambda: "incremental_crawl" in runs(deployment, "STARTED"))
            done = steps(deployment)
            follow(deployment)  # while that run is in progress
            if turn % 2:
                deployment.kill_runs()
            until(deployment, lambda done=done: steps(deployment) >= done + 2)
            if turn % 2:
                deployment.kill("follower")
                follow(deployment)

    catalog = open_catalog(secret(deployment.environment, "database_url"))
    last = history.state().last_serial or 0
    until(deployment, lambda: done_through(catalog) >= last)
    until(deployment, lambda: not runs(deployment, *UNDER_WAY))
    assert live(catalog) == {
        (filename, release.yanked)
        for project in history.state().projects.values()
        for release in project.visible_releases()
        for filename in release.files
    }
    assert_sound(catalog)
    catalog.close()
    assert steps(deployment) > 2 * TURNS
    assert len(runs(deployment, "SUCCESS")) > 1
    for asset in RANGE_ASSETS:
        until(deployment, lambda asset=asset: is_whole(shown(deployment, asset), begun, last))
    deployment.run("pypi-assets", "journal", "verify")
    deployment.run("pypi-assets", "leveldb", "verify", "--deep")
