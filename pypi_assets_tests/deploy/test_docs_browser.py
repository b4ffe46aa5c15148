"""The API page in a real browser: an operation can be tried, and all resources are from this service.

Needs the same programs as `test_pages_browser.py`.
"""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from pypi_assets_tests.deploy.test_browser import CHROMIUM, DRIVER
from pypi_assets_tests.deploy.test_pages_browser import client as client
from pypi_assets_tests.deploy.test_pages_browser import driver as driver
from pypi_assets_tests.deploy.test_pages_browser import find, installed_axe, screens, waiting
from pypi_assets_tests.service.published import Client

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium or chromedriver is not installed"),
]
VIOLATIONS = """
const done = arguments[0];
axe.run({exclude: ["#api"]}).then(found => done(found.violations.map(one => one.id)));
"""
"""Violations on the page around Swagger UI, whose own elements we cannot change."""


def open_page(client: Client, driver: Any, anchor: str = "") -> None:
    """Open the page, and wait for its operations."""
    driver.get(f"{client.url}docs{anchor}")
    waiting(driver).until(lambda _: find(driver, ".opblock"))


def logged(driver: Any) -> list[str]:
    """Return the errors that the browser has logged, and violations of the page's content security policy."""
    return [one["message"] for one in driver.get_log("browser")]


def test_tried_operation_shows_its_response(client: Client, driver: Any) -> None:
    open_page(client, driver)
    expected = client.get("/v1/modules/yaml").json()
    block = "[id^=operations-lookup][id*='modules'] "
    find(driver, f"{block}.opblock-summary-control").click()
    waiting(driver).until(lambda _: find(driver, f"{block}.try-out__btn")).click()
    waiting(driver).until(lambda _: find(driver, f"{block}tr[data-param-name=module] input")).send_keys("yaml")
    find(driver, f"{block}.execute").click()
    answer = waiting(driver).until(lambda _: find(driver, f"{block}.live-responses-table .highlight-code code"))
    assert json.loads(answer.get_attribute("textContent")) == expected
    assert find(driver, f"{block}.live-responses-table tbody .response-col_status").text.split()[0] == "200"
    assert logged(driver) == []


def test_page_loads_only_resources_of_this_service(client: Client, driver: Any) -> None:
    driver.get_log("performance")
    open_page(client, driver)
    messages = [json.loads(one["message"])["message"] for one in driver.get_log("performance")]
    urls = [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]
    own = urlsplit(client.url).netloc
    assert f"{client.url}openapi.json" in urls
    assert {urlsplit(one).netloc for one in urls if not one.startswith("data:")} == {own}
    assert logged(driver) == []


def test_problem_anchors_work_without_scripts(client: Client, driver: Any) -> None:
    open_page(client, driver, "#not-exact")
    assert find(driver, "#not-exact").is_displayed()
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver.get(f"{client.url}docs")
        assert "/v1/modules/{module}" in find(driver, "#api table").text
        assert find(driver, "#not-exact").is_displayed()
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_page_fits_a_phone_and_has_no_axe_violations(client: Client, driver: Any, tmp_path: Path) -> None:
    axe = installed_axe(tmp_path)
    for scheme, screen in screens(driver):
        open_page(client, driver)
        find(driver, ".opblock-summary-control").click()
        waiting(driver).until(lambda _: find(driver, ".opblock-body table"))
        assert driver.execute_script("return document.documentElement.scrollWidth") <= screen["width"]
        driver.execute_script(axe)
        assert driver.execute_async_script(VIOLATIONS) == [], (scheme, screen["width"])
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
