"""Dagster's UI over an index with hostile texts, in a real browser: it requests only this machine, and runs no script
of the texts.

Needs selenium, chromium and chromedriver. If SCREENS names a folder, a picture of each page is saved there.
"""

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dagster as dg
import pytest

from pypi_assets_tests.defs.conftest import Pipeline, settings_for
from pypi_assets_tests.defs.test_shown import run_all
from pypi_assets_tests.hostile_index import BEACON, HostileAnswers, upload, upload_broken
from pypi_assets_tests.served_dagster import ServedDagster, served_dagster
from pypi_assets_tests.served_index import served_index

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium or chromedriver is not installed"),
]
LIVE_ELEMENTS = """
return [...document.querySelectorAll('[src], [srcset], [poster], [background], a[href], link[href], form[action]')]
    .filter(one => !one.matches('a') || /^\\s*(javascript|data|vbscript):/i.test(one.getAttribute('href')))
    .map(one => one.outerHTML).filter(html => html.includes(arguments[0]));
"""
"""Elements that fetch or run content named by a hostile text. Links in logs show their URLs: see SECURITY.md."""
SHOW_MARKDOWN = """
const buttons = [...document.querySelectorAll('*')]
    .filter(one => !one.children.length && one.textContent.trim() == '[Show Markdown]');
buttons[arguments[0]]?.click();
return buttons.length;
"""
"""Opens one of the dialogs with Markdown, and returns their number."""
QUIET_S = 1.0
"""A page is complete when it has sent no request for this many seconds."""
PATIENCE_S = 60


@dataclass
class Browser:
    """A browser whose requests are logged."""

    driver: Any
    requested: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)

    def open(self, url: str) -> str:
        """Return the text of the page, once it is complete."""
        self.driver.get(url)
        return self.settled()

    def dialogs(self) -> Iterator[str]:
        """Return the text of the page with each of its Markdown dialogs opened."""
        for number in range(self.driver.execute_script(SHOW_MARKDOWN, -1)):
            self.driver.execute_script(SHOW_MARKDOWN, number)
            yield self.settled()
            self.driver.switch_to.active_element.send_keys("\ue00c")  # Escape

    def settled(self) -> str:
        deadline, last = time.monotonic() + PATIENCE_S, time.monotonic()
        while time.monotonic() < min(deadline, last + QUIET_S):
            time.sleep(0.2)
            if self._take_log():
                last = time.monotonic()
        return str(self.driver.execute_script("return document.body.innerText"))

    def _take_log(self) -> bool:
        entries = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [each["params"]["request"]["url"] for each in entries if each["method"] == "Network.requestWillBeSent"]
        sockets = [each["params"]["url"] for each in entries if each["method"] == "Network.webSocketCreated"]
        self.requested.update(sent, sockets)
        return bool(sent)

    @property
    def elsewhere(self) -> list[str]:
        """Return the requests to other machines."""
        parts = [(url, urlsplit(url)) for url in sorted(self.requested)]
        return [url for url, each in parts if each.scheme not in {"data", "blob"} and each.hostname != "127.0.0.1"]


@contextmanager
def opened_browser() -> Iterator[Browser]:
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    for option in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--no-proxy-server"):
        options.add_argument(option)
    options.add_argument("--window-size=1600,6000")  # otherwise, a log contains only its visible rows
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    options.binary_location = CHROMIUM
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        yield Browser(driver)
    finally:
        driver.quit()


@pytest.fixture
def dagster(tmp_path: Path) -> Iterator[ServedDagster]:
    """Run Dagster after all jobs have run over a hostile index, which by then returns only errors."""
    folder = tmp_path / "dagster"
    folder.mkdir()
    with served_index(tmp_path / "served") as index:
        upload(index)
        index.faults = answers = HostileAnswers(index)
        quick = {"superseded_kept_hours": 0, "lag_warn_s": 0.001, "lag_fail_s": 0.001}
        with dg.DagsterInstance.local_temp(str(folder)) as instance:
            pipeline = Pipeline(settings_for(index.url, tmp_path / "home", **quick), instance)
            pipeline.crawled()
            upload_broken(index, "4.0")
            run_all(pipeline)
            answers.fails = True
            run_all(pipeline)
            pipeline.close()
        settings = {"INDEX_URL": index.url, "HOME": str(tmp_path / "home"), "SENSORS_ON": "true"}
        settings |= {"SENSOR_INTERVAL_S": "5", "REQUEST_ATTEMPTS": "1", "LAG_WARN_S": "0.001", "LAG_FAIL_S": "0.001"}
        with served_dagster(folder, {f"PYPI_ASSETS_{name}": value for name, value in settings.items()}) as served:
            yield served


def pages(dagster: ServedDagster) -> Iterator[str]:
    """Return the URLs of each run, check and sensor, and of the events of each asset."""
    found = dagster.query(
        "{runsOrError {... on Runs {results {runId}}}"
        " assetNodes {assetKey {path} assetChecksOrError {... on AssetChecks {checks {name}}}}"
        " repositoriesOrError {... on RepositoryConnection {nodes {sensors {name}}}}}"
    )
    yield from ("/overview/activity", "/runs", "/assets", "/automation", "/health")
    for run in found["runsOrError"]["results"]:
        yield f"/runs/{run['runId']}"
    for node in found["assetNodes"]:
        asset = f"/assets/{'/'.join(node['assetKey']['path'])}"
        yield f"{asset}?view=events"
        for check in node["assetChecksOrError"].get("checks", ()):
            yield f"{asset}?view=checks&checkDetail={check['name']}"
    for repository in found["repositoriesOrError"]["nodes"]:
        for sensor in repository["sensors"]:
            yield f"/locations/pypi-assets/sensors/{sensor['name']}"


def has_ticks(dagster: ServedDagster) -> bool | None:
    """Return True if a sensor has ticked, and None until then."""
    found = dagster.query("{instigationStatesOrError: repositoriesOrError {... on RepositoryConnection {nodes"
                          " {sensors {sensorState {ticks(limit: 1) {status skipReason}}}}}}}")  # fmt: skip
    nodes = found["instigationStatesOrError"]["nodes"]
    return any(sensor["sensorState"]["ticks"] for node in nodes for sensor in node["sensors"]) or None


def test_dagster_pages_send_no_request_to_other_hosts(dagster: ServedDagster) -> None:
    dagster.until(lambda: has_ticks(dagster), 120)
    shown, live = 0, []
    screens = Path(os.environ["SCREENS"]) if "SCREENS" in os.environ else None
    root = dagster.url.removesuffix("/graphql")
    with opened_browser() as browser:
        for number, page in enumerate(pages(dagster)):
            text = "\n".join([browser.open(root + page), *browser.dialogs()])
            shown += BEACON in text
            live += [f"{page}: {html}" for html in browser.driver.execute_script(LIVE_ELEMENTS, BEACON)]
            if screens:
                browser.driver.save_screenshot(str(screens / f"{number:03}.png"))
                (screens / f"{number:03}.txt").write_text(f"{page}\n{text}")
    assert browser.elsewhere == []
    assert live == []
    assert shown >= 2, "the texts of the index are not on the page"
