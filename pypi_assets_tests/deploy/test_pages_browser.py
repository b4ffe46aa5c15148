"""The pages of the service in a real browser: from search to answer, as of a serial, with keys alone, on a phone.

Needs selenium, chromium and chromedriver. axe-core, which looks for what keeps people out, is taken by npm.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pypi_assets_tests.deploy.test_browser import CHROMIUM, DRIVER, opened_browser
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.service.published import Client, fill, published_index
from pypi_assets_tests.service.solvable_days import write_days

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="there is no chromium, or no chromedriver"),
]
PAGES = (
    *("/", "/search/?q=demo", "/search/?q=never-was", "/import/yaml/", "/project/demo/", "/project/gone/", "/nowhere"),
    *("/release/demo/2.1/", "/changes/demo/", "/dependents/pyyaml/", "/history/demo/", "/command/demo/"),
    *("/resolve/", "/resolve/?requirements=demo&than=2026-03-05", "/resolve/?requirements=demo%3E9"),
    "/solvability/",
    "/at/20.20/project/demo/",
)
PHONE = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
SERIOUS = """
const done = arguments[0];
axe.run().then(found => done(found.violations.filter(one => ['serious', 'critical'].includes(one.impact))
    .map(one => `${one.id}: ${one.nodes.map(node => node.html).join(' ')}`)));
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with pytest.MonkeyPatch.context() as environment, published_index(tmp_path_factory.mktemp("shown")) as one:
        clear_settings(environment)
        fill(one)
        one.add("wheel", "top", "1.0", requires_dist=["demo"])
        one.publish_first()
        write_days(one.storage, 30, gap=7)
        with one.client() as client:
            yield client


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    with opened_browser() as browser:
        yield browser.driver


def find(driver: Any, selector: str) -> Any:
    return driver.find_element("css selector", selector)


def test_from_search_to_answer_and_to_what_was_before_a_yank_with_keys_alone(client: Client, driver: Any) -> None:
    driver.get(client.url)
    driver.switch_to.active_element.send_keys("demo\n")
    driver.find_element("xpath", "//li[p='project']//a").send_keys("\n")
    assert find(driver, "h1").text == "demo"
    assert find(driver, ".badge.warn").text == "yanked"
    yanked = "//li[contains(., 'release 2.0 yanked')]//a[contains(., 'before')]"
    driver.find_element("xpath", yanked).send_keys("\n")
    assert find(driver, ".moment").text
    assert driver.find_elements("css selector", ".badge.warn") == []
    find(driver, "#moment").clear()
    find(driver, "#moment").send_keys("2026-03-04\n")
    assert find(driver, ".facts").text.split() == ["1.0"]


def test_the_first_page_leads_to_what_was_before_a_yank(client: Client, driver: Any) -> None:
    driver.get(client.url)
    driver.find_element("xpath", "//li[contains(., 'release 2.0 yanked')]//a[contains(., 'before')]").click()
    assert find(driver, ".moment").text
    assert find(driver, "h1").text == "demo"
    assert driver.find_elements("css selector", ".badge.warn") == []


def test_the_tree_of_requirements_opens(client: Client, driver: Any) -> None:
    driver.get(f"{client.url}project/top/")
    summary, inner = find(driver, ".tree summary"), find(driver, ".tree ul .leaf")
    assert not inner.is_displayed()
    summary.send_keys("\n")
    assert inner.is_displayed()
    assert inner.text.startswith("PyYAML")


def test_from_a_loss_to_its_event_and_to_its_resolution_with_keys_alone(client: Client, driver: Any) -> None:
    driver.get(f"{client.url}solvability/")
    find(driver, "details summary").send_keys("\n")
    assert find(driver, "details table").is_displayed()
    assert find(driver, ".difference .removed strong").text == "broken"
    [picture] = [one for one in driver.find_elements("css selector", "svg[role=img]") if one.is_displayed()]
    assert picture.get_attribute("aria-label")
    driver.find_element("css selector", "a[rel=prev]").send_keys("\n")
    assert find(driver, "#day").text == "2026-03-01"
    assert find(driver, "a[rel=next]").text == "2026-03-02"


def test_no_page_is_wider_than_a_phone_or_logs_an_error(client: Client, driver: Any) -> None:
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    try:
        for path in PAGES:
            driver.get(client.url.rstrip("/") + path)
            assert driver.execute_script("return document.documentElement.scrollWidth") <= PHONE["width"], path
            logged = [one["message"] for one in driver.get_log("browser") if "/nowhere" not in one["message"]]
            assert logged == []
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_axe_finds_no_serious_fault(client: Client, driver: Any, tmp_path: Path) -> None:
    subprocess.run(["npm", "install", "--silent", "--prefix", str(tmp_path), "axe-core@4"], check=True)
    axe = (tmp_path / "node_modules" / "axe-core" / "axe.min.js").read_text()
    for scheme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        for path in PAGES:
            driver.get(client.url.rstrip("/") + path)
            driver.execute_script(axe)
            assert driver.execute_async_script(SERIOUS) == [], (scheme, path)
