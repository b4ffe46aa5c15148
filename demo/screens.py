"""Takes the pictures in docs/screens/ of Dagster's UI over the demo's data, after `make demo`.

    .venv/bin/pip install selenium
    .venv/bin/python demo/screens.py [FOLDER]

Needs chromium and chromedriver. It brings about what is to be seen: a backfill of project shards, a run that fails, and
a check that fails, since an upload is not followed while the sensors are off.
"""

import json
import shutil
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from folders import DEMO, INDEX, ROOT, environment, free_port, remembered_port
from ui import answers, new_wheel, started

from pypi_assets.devindex.history import History

FOLDER = ROOT / "docs" / "screens"
PATIENCE_S = 300
WIDTH, HEIGHT = 1440, 900
LOCATION = {"repositoryName": "__repository__", "repositoryLocationName": "pypi-assets"}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    index_port, ui_port = remembered_port(), free_port()
    if index_port is None:
        raise SystemExit("run `make demo` first")
    settings = environment(index_port) | {"PYPI_ASSETS_LAG_WARN_S": "1", "PYPI_ASSETS_LAG_FAIL_S": "2"}
    program = f"{sys.prefix}/bin/"
    commands = {
        "devindex": [f"{program}pypi-assets", "devindex", "serve", str(INDEX), "--port", str(index_port)],
        "dagster": [
            *(f"{program}dagster", "dev", "--workspace", str(ROOT / "workspace.yaml")),
            *("--host", "127.0.0.1", "--port", str(ui_port), "--log-level", "warning"),
        ],
    }
    url = f"http://127.0.0.1:{ui_port}"
    with started(commands, settings), chromium() as browser:
        until(lambda: answers(url))

        def picture(name: str, path: str, *shows: str) -> None:
            take(browser, f"{url}{path}", folder / f"{name}.png", shows)

        History(INDEX).add(new_wheel(DEMO / "uploads"))
        backfill = launch_backfill(url, "crawled_projects", [f"{shard:03}" for shard in range(20)])
        add_partition(url, "serial_ranges", "1-2")
        failed = launch(url, "incremental_crawl", {"dagster/partition": "1-2"})
        health = launch(url, "health", {})
        for run in (failed, health):
            until(lambda run=run: status(url, run) in {"SUCCESS", "FAILURE"})  # type: ignore[misc]
        until(lambda: backfill_status(url, backfill).startswith("COMPLETED"))
        picture("graph", "/asset-groups", "data_dumps")
        picture("partition", "/assets/full_dump?view=partitions&partition=000", "dagster/partition_row_count")
        picture("check", "/assets/changed_distribution_data?view=checks", "catalog_is_fresh")
        picture("run", f"/runs/{failed}", "incremental_crawl")
        picture("backfill", f"/runs/b/{backfill}", "crawled_projects")


def launch(url: str, job: str, tags: dict[str, str]) -> str:
    """Launches a job as the UI does; returns the run's id."""
    launched = ask(
        url,
        "mutation ($params: ExecutionParams!) {launchRun(executionParams: $params)"
        " {__typename ... on LaunchRunSuccess {run {runId}} ... on PythonError {message}}}",
        params={
            "selector": LOCATION | {"jobName": job},
            "runConfigData": {},
            "executionMetadata": {"tags": [{"key": key, "value": value} for key, value in tags.items()]},
        },
    )["launchRun"]
    if "run" not in launched:
        raise SystemExit(f"{job} was not launched: {launched}")
    return str(launched["run"]["runId"])


def add_partition(url: str, partitions: str, key: str) -> None:
    ask(
        url,
        "mutation ($selector: RepositorySelector!, $of: String!, $key: String!)"
        " {addDynamicPartition(repositorySelector: $selector, partitionsDefName: $of, partitionKey: $key)"
        " {__typename}}",
        selector=LOCATION,
        of=partitions,
        key=key,
    )


def launch_backfill(url: str, asset: str, partitions: list[str]) -> str:
    launched = ask(
        url,
        "mutation ($params: LaunchBackfillParams!) {launchPartitionBackfill(backfillParams: $params)"
        " {__typename ... on LaunchBackfillSuccess {backfillId} ... on PythonError {message}}}",
        params={
            "partitionNames": partitions,
            "assetSelection": [{"path": [asset]}],
            "title": "Some project shards again",
        },
    )["launchPartitionBackfill"]
    return str(launched["backfillId"])


def status(url: str, run: str) -> str:
    found = ask(url, "query ($id: ID!) {runOrError(runId: $id) {... on Run {status}}}", id=run)
    return str(found["runOrError"]["status"])


def backfill_status(url: str, backfill: str) -> str:
    query = "query ($id: String!) {partitionBackfillOrError(backfillId: $id) {... on PartitionBackfill {status}}}"
    return str(ask(url, query, id=backfill)["partitionBackfillOrError"]["status"])


def ask(url: str, query: str, **variables: object) -> Any:
    body = json.dumps({"query": query, "variables": variables}).encode()
    request = urllib.request.Request(f"{url}/graphql", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        found = json.load(answer)
    if "errors" in found:
        raise SystemExit(f"{found['errors']}")
    return found["data"]


def until(look: Callable[[], bool], what: str = "what was waited for") -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not look():
        if time.monotonic() > deadline:
            raise SystemExit(f"{what} is not there after {PATIENCE_S} s; see {DEMO}/dagster.log")
        time.sleep(0.5)


def take(browser: Any, url: str, path: Path, shows: tuple[str, ...]) -> None:
    """Waits until the page has the texts that it is to show, and a little longer, and takes its picture."""
    browser.get(url)
    text = "return document.body.innerText"
    until(lambda: all(wanted in browser.execute_script(text) for wanted in shows), f"{shows} on {url}")
    time.sleep(3)  # what is drawn after its text
    browser.save_screenshot(str(path))
    print(f"{path}, {path.stat().st_size} bytes")


@contextmanager
def chromium() -> Iterator[Any]:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for option in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--no-proxy-server"):
        options.add_argument(option)
    options.add_argument(f"--window-size={WIDTH},{HEIGHT}")
    options.binary_location = str(shutil.which("chromium"))
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield browser
    finally:
        browser.quit()


if __name__ == "__main__":
    main()
