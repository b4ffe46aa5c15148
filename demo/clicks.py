"""Count the clicks and the seconds of five daily tasks in Dagster's UI, in a browser. Run `make demo` first.

    .venv/bin/pip install selenium
    .venv/bin/python demo/clicks.py [FOLDER]

Each task begins on the UI's first page, and ends when the page shows the result, or when the runs have ended. The
seconds are the browser's, which clicks immediately; a person takes longer. FOLDER gets a screenshot of each task's last
page. Needs chromium and chromedriver.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from folders import DEMO, INDEX, ROOT, environment, free_port, remembered_port
from pages import stop as stop_pages
from processes import answers, started
from screens import PATIENCE_S, chromium, query_ui, until
from ui import new_wheel

from pypi_assets.devindex.history import History

MOST_CLICKS = 4
BROKEN = "broken_assets"
VISIBLE = """
const found = document.evaluate(arguments[0], document, null, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE, null);
for (let at = found.snapshotLength - 1; at >= 0; at--) {
    const one = found.snapshotItem(at);
    one.scrollIntoView({block: "nearest"});
    const {left, top, width, height} = one.getBoundingClientRect();
    const over = document.elementFromPoint(left + width / 2, top + height / 2);
    if (width && height && !one.disabled && over && (one.contains(over) || over.contains(one))) return one;
}
return null;
"""
"""Returns the last element of the XPath that is visible and can be clicked, or null."""


@dataclass
class Walk:
    """The actions of a person in the browser, from the first page on."""

    browser: Any
    url: str
    name: str
    clicks: list[str] = field(default_factory=list)
    seconds: float = 0.0
    seconds_of_runs: float = 0.0

    def __enter__(self) -> "Walk":
        self.browser.get(self.url)
        self._find("//a[normalize-space()='Jobs']")
        self._began = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = self.seconds or time.monotonic() - self._began

    def click(self, text: str, tag: str = "*") -> None:
        """Click the element with exactly this text."""
        self.click_at(f"//{tag}[normalize-space()='{text}']", text)

    def click_at(self, path: str, label: str) -> None:
        """Click the last visible element of an XPath."""
        from selenium.common.exceptions import WebDriverException

        def clicked() -> bool:
            try:
                self._find(path).click()
            except WebDriverException:  # the page was redrawn in the meantime
                return False
            return True

        until(clicked, f"{label} ({self.name})")
        self.clicks.append(label)

    def read(self, text: str) -> None:
        """Wait until the page shows a text. This ends the person's actions."""
        until(lambda: text in self.browser.execute_script("return document.body.innerText"), f"{text} ({self.name})")
        self.seconds = time.monotonic() - self._began

    def run(self, ended: Callable[[], bool]) -> None:
        """Wait until the runs that the clicks have launched have ended."""
        self.seconds = time.monotonic() - self._began
        until(ended, f"the end of the runs of: {self.name}")
        self.seconds_of_runs = time.monotonic() - self._began - self.seconds

    def _find(self, path: str) -> Any:
        found: list[Any] = []

        def look() -> bool:
            found[:] = [self.browser.execute_script(VISIBLE, path)]
            return found[0] is not None

        until(look, f"{path} ({self.name})")
        return found[0]


def full_crawl(walk: Walk) -> None:
    """Launch the job full_crawl, for all partitions."""
    launch_all(walk, "full_crawl", "project_listing")


def launch_all(walk: Walk, job: str, asset: str) -> None:
    """Launch a job that the first page shows, for all partitions, and wait for runs of one of its assets."""
    before = ended_runs(walk.url, asset)
    walk.click_at(f"//a[contains(@href, '/jobs/{job}')]", job)
    walk.click("Materialize all…", "button")
    walk.click("All", "button")
    walk.click("Launch backfill", "button")
    walk.run(lambda: ended_runs(walk.url, asset) > before and all_ended(walk.url))


def follow(walk: Walk) -> None:
    """Turn on the sensor that follows the index, and wait until an upload is followed."""
    history = History(INDEX)
    history.add(new_wheel(DEMO / "uploads"))
    path = DEMO / "uploads" / f"{BROKEN}-{int(time.time())}.tar.gz"
    path.write_bytes(b"no archive")
    history.add(path)
    before = ended_runs(walk.url, "incremental_dump")
    walk.click("Automation", "a")
    walk.click_at("//a[contains(@href, '/new_serial_range')]/ancestor::*[count(.//label)=2][1]//label", "its switch")
    walk.run(lambda: ended_runs(walk.url, "incremental_dump") > before and all_ended(walk.url))


def backfill(walk: Walk) -> None:
    """Backfill all serial ranges with the job whose runs the first page shows."""
    launch_all(walk, "incremental_crawl", "incremental_dump")


def failed_file(walk: Walk) -> None:
    """Read which file failed, and why."""
    walk.click("Catalog", "a")
    walk.click_at("//a[contains(@href, '/assets/changed_distribution_data')]", "changed_distribution_data")
    walk.read(BROKEN)


def why_stale(walk: Walk) -> None:
    """Read how far the answers lag the index, and why."""
    walk.click("Catalog", "a")
    walk.click_at("//a[contains(@href, '/assets/modules_leveldb')]", "modules_leveldb")
    walk.click("Checks")
    walk.read("answer of a look-up")


TASKS = {
    "run a full crawl": full_crawl,
    "follow the index": follow,
    "see which file failed": failed_file,
    "backfill": backfill,
    "see why an answer is stale": why_stale,
}


def ended_runs(url: str, asset: str) -> int:
    """Return the number of materializations of an asset."""
    query = "query ($path: [String!]!) {assetOrError(assetKey: {path: $path}) {... on Asset"
    found = query_ui(url, f"{query} {{assetMaterializations(limit: 5000) {{runId}}}}}}}}", path=[asset])
    return len(found["assetOrError"].get("assetMaterializations", []))


def all_ended(url: str) -> bool:
    """Check that no run and no backfill is in progress."""
    runs = "runsOrError(filter: {statuses: [QUEUED, NOT_STARTED, STARTING, STARTED]}) {... on Runs {results {id}}}"
    backfills = "partitionBackfillsOrError(status: REQUESTED) {... on PartitionBackfills {results {id}}}"
    found = query_ui(url, f"{{{runs} {backfills}}}")
    return not found["runsOrError"]["results"] and not found["partitionBackfillsOrError"]["results"]


def main() -> int:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DEMO / "clicks"
    folder.mkdir(parents=True, exist_ok=True)
    index_port, ui_port = remembered_port(), free_port()
    if index_port is None:
        raise SystemExit("run `make demo` first")
    stop_pages()
    settings = environment(index_port) | {"PYPI_ASSETS_SENSOR_INTERVAL_S": "5", "PYPI_ASSETS_LAG_WARN_S": "1"}
    program, url = f"{sys.prefix}/bin/", f"http://127.0.0.1:{ui_port}"
    commands = {
        "devindex": [f"{program}pypi-assets", "devindex", "serve", str(INDEX), "--port", str(index_port)],
        "dagster": [
            *(f"{program}dagster", "dev", "--workspace", str(ROOT / "workspace.yaml")),
            *("--host", "127.0.0.1", "--port", str(ui_port), "--log-level", "warning"),
        ],
    }
    too_many = 0
    with started(commands, settings), chromium() as browser:
        until(lambda: answers(f"{url}/server_info"), f"the UI within {PATIENCE_S} s")
        for name, task in TASKS.items():
            with Walk(browser, url, name) as walk:
                task(walk)
            browser.save_screenshot(str(folder / f"{task.__name__}.png"))
            too_many += len(walk.clicks) > MOST_CLICKS
            runs = f", then {walk.seconds_of_runs:.0f} s of runs" if walk.seconds_of_runs else ""
            print(f"{name}: {len(walk.clicks)} clicks in {walk.seconds:.1f} s{runs}: {' > '.join(walk.clicks)}")
    return min(too_many, 1)


if __name__ == "__main__":
    sys.exit(main())
