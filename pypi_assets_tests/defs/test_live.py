"""Dagster's own webserver and daemon over the pipeline: what a person sees and does, with nothing in its place."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
import requests

from pypi_assets.assembly import catalog_from, storage_from
from pypi_assets.catalog.range_states import ShownState, range_statuses
from pypi_assets.crawl.full import crawl_full
from pypi_assets.dumps.full import full_dump
from pypi_assets.leveldbs.records import LeveldbError
from pypi_assets.lookup.latest import open_latest
from pypi_assets.settings import Settings, load_settings
from pypi_assets_tests.served_index import ServedIndex, served_index

ROOT = Path(__file__).parent.parent.parent
RANGE_ASSETS = ("changelog", "changed_distributions", "changed_distribution_data", "incremental_dump")

T = TypeVar("T")


@contextmanager
def dagster_dev(folder: Path, settings: dict[str, str]) -> Iterator[str]:
    """Runs the webserver and the daemon with their sensors on, and gives the URL of their GraphQL."""
    shutil.copy(ROOT / "dagster.yaml", folder)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [Path(sys.executable).with_name("dagster"), "dev", "--workspace", ROOT / "workspace.yaml"]
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
        yield f"http://127.0.0.1:{port}/graphql"
    finally:
        for number in (signal.SIGINT, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
                process.wait(20)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue


def until(look: Callable[[], T | None], seconds: float, log: Path) -> T:
    """What `look` finds, asked again for so many seconds."""
    pause = threading.Event()
    deadline = time.monotonic() + seconds
    while (found := look()) is None:
        if time.monotonic() > deadline:
            pytest.fail(f"not there after {seconds} s; the log ends with\n{log.read_text()[-3000:]}")
        pause.wait(0.5)
    return found


def ask(url: str, query: str, **variables: object) -> dict[str, Any] | None:
    """The data of a GraphQL answer; None while the webserver is not up."""
    try:
        answer = requests.post(url, json={"query": query, "variables": variables}, timeout=120).json()
    except (requests.ConnectionError, requests.exceptions.JSONDecodeError):
        return None
    assert "errors" not in answer, answer
    data: dict[str, Any] = answer["data"]
    return data


def providers(settings: Settings, module: str) -> list[object] | None:
    try:
        with open_latest("modules", storage_from(settings)) as reader:
            return list(reader.module(module).results) or None
    except LeveldbError:
        return None


def test_an_upload_is_answered_by_itself_and_a_range_is_backfilled_by_graphql(tmp_path: Path) -> None:
    with served_index(tmp_path / "served") as index:
        index.wheel("one", "1.0")
        variables = {
            "PYPI_ASSETS_HOME": str(tmp_path / "home"),
            "PYPI_ASSETS_INDEX_URL": index.url,
            "PYPI_ASSETS_SENSORS_ON": "true",
            "PYPI_ASSETS_SENSOR_INTERVAL_S": "5",
        }
        settings = load_settings(home=tmp_path / "home", index_url=index.url)
        baseline(settings, index)
        (tmp_path / "dagster").mkdir()
        log = tmp_path / "dagster" / "log"
        with dagster_dev(tmp_path / "dagster", variables) as url:
            until(lambda: ask(url, "{version}"), 60, log)
            until(lambda: providers(settings, "one_module"), 90, log)

            index.wheel("two", "1.0")
            found = until(lambda: providers(settings, "two_module"), 120, log)
            assert found == [{"module": "two_module", "project": "two", "versions": ["1.0"]}]

            keys_of = '{assetNodeOrError(assetKey: {path: ["changelog"]}) {... on AssetNode {partitionKeys}}}'
            answer = ask(url, keys_of)
            assert answer is not None
            keys = answer["assetNodeOrError"]["partitionKeys"]
            assert keys[-1].endswith(f"-{index.serial}")
            backfill = launch(url, keys)
            assert until(lambda: ended(url, backfill), 120, log) == "COMPLETED_SUCCESS"

            extracts = tmp_path / "home" / "storage" / "extracts"
            extracts.rename(tmp_path / "aside")
            extracts.touch()  # so that nothing can be written there
            index.wheel("three", "1.0")
            [failed] = until(lambda: failed_ranges(url), 150, log)
            assert states_of_ranges(settings)[failed] == ShownState.FAILED
            extracts.unlink()
            (tmp_path / "aside").rename(extracts)
            backfill = launch(url, [failed])
            assert until(lambda: ended(url, backfill), 120, log) == "COMPLETED_SUCCESS"
            assert failed_ranges(url) is None
            assert set(states_of_ranges(settings).values()) == {ShownState.COMPLETE}
            assert until(lambda: providers(settings, "three_module"), 120, log)


def baseline(settings: Settings, index: ServedIndex) -> None:
    """A full crawl and a full dump, by the domain code: the runs of 1,000 shards are tested elsewhere."""
    catalog = catalog_from(settings)
    crawl_full(index.crawler(catalog))
    full_dump(catalog, storage_from(settings), 1)
    catalog.close()


def launch(url: str, keys: list[str]) -> str:
    """Backfills these ranges, as the UI does; returns the backfill's id."""
    launched = ask(
        url,
        "mutation ($params: LaunchBackfillParams!) {launchPartitionBackfill(backfillParams: $params)"
        " {... on LaunchBackfillSuccess {backfillId}}}",
        params={"assetSelection": [{"path": [name]} for name in RANGE_ASSETS], "partitionNames": keys},
    )
    assert launched is not None
    return str(launched["launchPartitionBackfill"]["backfillId"])


def failed_ranges(url: str) -> list[str] | None:
    """The ranges that the UI shows as failed; None where there are none."""
    answer = ask(
        url,
        '{assetNodeOrError(assetKey: {path: ["changed_distribution_data"]}) {... on AssetNode {assetPartitionStatuses'
        " {... on DefaultPartitionStatuses {failedPartitions}}}}}",
    )
    failed = [] if answer is None else answer["assetNodeOrError"]["assetPartitionStatuses"]["failedPartitions"]
    return failed or None


def states_of_ranges(settings: Settings) -> dict[str, ShownState]:
    catalog = catalog_from(settings)
    with catalog.read() as connection:
        found = {status.serials.key: status.state for status in range_statuses(connection, catalog.clock())}
    catalog.close()
    return found


def ended(url: str, backfill: str) -> str | None:
    answer = ask(
        url,
        "query ($id: String!) {partitionBackfillOrError(backfillId: $id) {... on PartitionBackfill {status}}}",
        id=backfill,
    )
    status = None if answer is None else answer["partitionBackfillOrError"]["status"]
    return None if status in {None, "REQUESTED", "CANCELING"} else str(status)
