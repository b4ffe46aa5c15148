"""Take the screenshots in docs/screens/: answers in a terminal, and Dagster's UI, with the demo's data.

Run `make demo` first, then:

    .venv/bin/pip install selenium
    .venv/bin/python demo/screens.py [FOLDER]

Needs chromium and chromedriver. It first creates the data of the screenshots: uploads in several ranges and their
backfill; a run that fails because the ledger has no such range; a check that fails because the sensors are off.
"""

import base64
import io
import json
import os
import pty
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from folders import DEMO, INDEX, ROOT, environment, free_port, remembered_port
from pages import stop as stop_pages
from processes import answers, started
from rich.console import Console
from rich.text import Text
from ui import new_wheel

from pypi_assets.crawl.incremental_crawl import allocate_next_ranges
from pypi_assets.defs.resources import build_resources
from pypi_assets.devindex.history import History
from pypi_assets.settings import load_settings

FOLDER = ROOT / "docs" / "screens"
PATIENCE_S = 300
WIDTH, HEIGHT = 1440, 900
TOP_OF = """
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const range = document.createRange();
while (texts.nextNode()) {
    const at = texts.currentNode.data.indexOf(arguments[0]);
    if (at < 0) continue;
    range.setStart(texts.currentNode, at);
    range.setEnd(texts.currentNode, at + arguments[0].length);
    const {left, top} = range.getBoundingClientRect();
    if (texts.currentNode.parentElement === document.elementFromPoint(left + 1, top + 1)) return top;
}
"""
"""Returns the top of the first visible text that contains the words."""
DRAWN_PART = """
const {x, y, width, height} = document.querySelector("svg > rect").getBoundingClientRect();
return {x, y, width, height, scale: 1.5};
"""
TERMINAL_COLUMNS = 110
QUESTIONS = (
    "lookup module yaml",
    "lookup dependents idna",
    "lookup module yamll",
    "lookup module text_unidecode --at {first}",
    "history click",
)
"""The commands whose answers are shown in a terminal. `first` is the serial of the full crawl."""
UPLOADS = (2, 5, 1, 3, 8, 2, 1, 4, 6, 3, 1, 2)
RANGE_ASSETS = ("changelog", "changed_distributions", "changed_distribution_data", "incremental_dump")
LOCATION = {"repositoryName": "__repository__", "repositoryLocationName": "pypi-assets"}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    index_port, ui_port = remembered_port(), free_port()
    if index_port is None:
        raise SystemExit("run `make demo` first")
    stop_pages()
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
        until(lambda: answers(f"{url}/server_info"))
        take_terminal(browser, folder / "answers.png", settings)

        def picture(name: str, path: str, *shows: str, click: str | None = None, above: str | None = None) -> None:
            show(browser, f"{url}{path}", shows, click)
            take(browser, folder / f"{name}.png", above)

        ranges = upload_ranges(settings)
        for key in (*ranges, "1-2"):
            add_partition(url, "serial_ranges", key)
        backfill = launch_backfill(url, RANGE_ASSETS, ranges)
        failed = launch(url, "incremental_crawl", {"dagster/partition": "1-2"})
        History(INDEX).add(new_wheel(DEMO / "uploads"))
        health = launch(url, "health", {})
        for run in (failed, health):
            until(lambda run=run: status(url, run) in {"SUCCESS", "FAILURE"})  # type: ignore[misc]
        until(lambda: backfill_status(url, backfill).startswith("COMPLETED"))
        picture("graph", "/asset-groups", "data_dumps")
        picture("partition", "/assets/full_dump?view=partitions&partition=000", "dagster/partition_row_count")
        picture("check", "/assets/changed_distribution_data?view=checks", "catalog_is_fresh")
        picture(
            "run", f"/runs/{failed}", "is not a range of the ledger", above="Stack Trace"
        )  # the trace contains paths
        picture("backfill", f"/runs/b/{backfill}", "incremental_dump")
        picture(
            "plots", "/assets/incremental_dump", "changes: add file", click="Plots", above="changes: remove release"
        )


def upload_ranges(settings: dict[str, str]) -> list[str]:
    """Upload batches of wheels and allocate a range for each batch; return the keys of the ranges."""
    os.environ.update(settings)
    resources = build_resources(load_settings())
    history, keys = History(INDEX), []
    for uploads in UPLOADS:
        for _ in range(uploads):
            history.add(new_wheel(DEMO / "uploads"))
        keys += [serials.key for serials in allocate_next_ranges(resources.crawler.get())]
    resources.close()
    return keys


def launch(url: str, job: str, tags: dict[str, str]) -> str:
    """Launch a job as the UI does; return the run id."""
    launched = query_ui(
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
    query_ui(
        url,
        "mutation ($selector: RepositorySelector!, $of: String!, $key: String!)"
        " {addDynamicPartition(repositorySelector: $selector, partitionsDefName: $of, partitionKey: $key)"
        " {__typename}}",
        selector=LOCATION,
        of=partitions,
        key=key,
    )


def launch_backfill(url: str, assets: Sequence[str], partitions: list[str]) -> str:
    launched = query_ui(
        url,
        "mutation ($params: LaunchBackfillParams!) {launchPartitionBackfill(backfillParams: $params)"
        " {__typename ... on LaunchBackfillSuccess {backfillId} ... on PythonError {message}}}",
        params={
            "partitionNames": partitions,
            "assetSelection": [{"path": [asset]} for asset in assets],
            "title": "What was uploaded today",
        },
    )["launchPartitionBackfill"]
    return str(launched["backfillId"])


def status(url: str, run: str) -> str:
    found = query_ui(url, "query ($id: ID!) {runOrError(runId: $id) {... on Run {status}}}", id=run)
    return str(found["runOrError"]["status"])


def backfill_status(url: str, backfill: str) -> str:
    query = "query ($id: String!) {partitionBackfillOrError(backfillId: $id) {... on PartitionBackfill {status}}}"
    return str(query_ui(url, query, id=backfill)["partitionBackfillOrError"]["status"])


def query_ui(url: str, query: str, **variables: object) -> Any:
    body = json.dumps({"query": query, "variables": variables}).encode()
    request = urllib.request.Request(f"{url}/graphql", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        found = json.load(answer)
    if "errors" in found:
        raise SystemExit(f"{found['errors']}")
    return found["data"]


def until(look: Callable[[], bool], what: str = "the expected state") -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not look():
        if time.monotonic() > deadline:
            raise SystemExit(f"{what} was not reached after {PATIENCE_S} s; see {DEMO}/dagster.log")
        time.sleep(0.5)


def show(browser: Any, url: str, texts: Sequence[str], click: str | None) -> None:
    """Wait until the page shows all `texts`, and a little longer. Then click the button `click` and scroll to it."""
    browser.get(url)
    text = "return document.body.innerText"
    until(lambda: all(wanted in browser.execute_script(text) for wanted in texts), f"{texts} on {url}")
    time.sleep(3)  # some parts are drawn after their text
    if click is not None:
        button = browser.find_element("xpath", f"//button[normalize-space()='{click}']")
        button.click()
        time.sleep(1)
        browser.execute_script("arguments[0].scrollIntoView()", button)
        time.sleep(1)


def take(browser: Any, path: Path, above: str | None) -> None:
    """Take a screenshot of the page, or of the part above the first visible text that contains `above`."""
    height = above and browser.execute_script(TOP_OF, above)
    height = height or browser.execute_script("return window.innerHeight")
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
    picture = browser.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip})
    path.write_bytes(base64.b64decode(picture["data"]))
    print(f"{path}, {path.stat().st_size} bytes")


def take_terminal(browser: Any, path: Path, settings: dict[str, str]) -> None:
    """Run the commands of QUESTIONS in a terminal, and take a screenshot of the output."""
    status = subprocess.check_output([f"{sys.prefix}/bin/pypi-assets", "status", "--json"], env=settings)
    console = Console(record=True, width=TERMINAL_COLUMNS, file=io.StringIO())
    for question in QUESTIONS:
        words = question.format(first=json.loads(status)["exact_from"]).split()
        console.print(f"[bold green]$[/] [bold]pypi-assets {' '.join(words)}[/]", highlight=False)
        console.print(Text.from_ansi(terminal_output(words, settings)))
    drawn = DEMO / "answers.svg"
    console.save_svg(str(drawn), title="pypi-assets")
    browser.get(drawn.as_uri())
    time.sleep(1)
    clip = browser.execute_script(DRAWN_PART)
    picture = browser.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    path.write_bytes(base64.b64decode(picture["data"]))
    print(f"{path}, {path.stat().st_size} bytes")


def terminal_output(arguments: list[str], settings: dict[str, str]) -> str:
    """Return the command's output, of both streams, on a terminal of TERMINAL_COLUMNS."""
    ours, theirs = pty.openpty()
    command = [f"{sys.prefix}/bin/pypi-assets", *arguments]
    size = {"COLUMNS": str(TERMINAL_COLUMNS), "TERM": "xterm-256color"}
    with subprocess.Popen(command, env=settings | size, stdout=theirs, stderr=theirs):
        os.close(theirs)
        parts = []
        while True:
            try:
                part = os.read(ours, 65_536)
            except OSError:  # the command has closed its end
                break
            if not part:
                break
            parts.append(part)
    os.close(ours)
    return b"".join(parts).decode().replace("\r\n", "\n").rstrip() + "\n"


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
