"""The service's pages in a real browser: from search to answer, at a serial, with the keyboard only, and on a phone.

Needs selenium, chromium and chromedriver. axe-core, which checks accessibility, is installed by npm.
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
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium or chromedriver is not installed"),
]
PAGES = (
    *("/", "/search/?q=demo", "/search/?q=never-was", "/import/yaml/", "/project/demo/", "/project/gone/", "/nowhere"),
    *(
        "/import/never.was/",
        "/command/dmeo/",
        "/file/" + "0" * 64 + "/",
        "/releases/demo/",
        "/changes/",
        "/project/dmeo/",
    ),
    *("/release/demo/2.1/", "/changes/demo/", "/dependents/pyyaml/", "/history/demo/", "/command/demo/"),
    *("/resolve/", "/resolve/?requirements=demo&than=2026-03-05", "/resolve/?requirements=demo%3E9"),
    "/solvability/",
    *("/at/20.20/project/demo/", "/at/20.20/", "/at/2020-01-01/project/demo/", "/at/20.20/command/demo/"),
)
PHONE = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
DESKTOP = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
VIOLATIONS = """
const done = arguments[0];
axe.run().then(found => done(found.violations.map(one => `${one.id}: ${one.nodes.map(node => node.html).join(' ')}`)));
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


def waiting(driver: Any) -> Any:
    """Return a waiter of up to 10 seconds that also works while one page replaces another."""
    pytest.importorskip("selenium")
    from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(driver, 10, ignored_exceptions=[NoSuchElementException, StaleElementReferenceException])


def require_heading(driver: Any, text: str) -> None:
    """Wait for the page with this heading. Raise TimeoutException."""
    waiting(driver).until(lambda _: find(driver, "h1").text == text)


def test_keyboard_leads_from_search_to_the_answer_before_a_yank(client: Client, driver: Any) -> None:
    driver.get(client.url)
    driver.switch_to.active_element.send_keys("demo\n")
    waiting(driver).until(lambda _: driver.find_element("xpath", "//li[p='project']//a")).send_keys("\n")
    require_heading(driver, "demo")
    assert find(driver, ".badge.warn").text == "yanked"
    yanked = "//li[contains(., 'release 2.0 yanked')]//a[contains(., 'before')]"
    driver.find_element("xpath", yanked).send_keys("\n")
    waiting(driver).until(lambda _: find(driver, ".moment.pinned"))
    assert driver.find_elements("css selector", ".badge.warn") == []
    find(driver, "#moment").clear()
    find(driver, "#moment").send_keys("2026-03-04\n")
    waiting(driver).until(lambda _: find(driver, "#moment").get_attribute("value") not in ("2026-03-04", ""))
    assert find(driver, ".facts").text.split() == ["1.0"]


def test_first_page_leads_to_the_answer_before_a_yank(client: Client, driver: Any) -> None:
    driver.get(client.url)
    driver.find_element("xpath", "//li[contains(., 'release 2.0 yanked')]//a[contains(., 'before')]").click()
    assert find(driver, ".moment").text
    assert find(driver, "h1").text == "demo"
    assert driver.find_elements("css selector", ".badge.warn") == []


def test_tree_of_requirements_opens(client: Client, driver: Any) -> None:
    driver.get(f"{client.url}project/top/")
    summary, inner = find(driver, ".tree summary"), find(driver, ".tree ul .leaf")
    assert not inner.is_displayed()
    summary.send_keys("\n")
    assert inner.is_displayed()
    assert inner.text.startswith("PyYAML")


def test_keyboard_leads_from_a_loss_to_its_event_and_resolution(client: Client, driver: Any) -> None:
    driver.get(f"{client.url}solvability/")
    find(driver, "details summary").send_keys("\n")
    assert find(driver, "details table").is_displayed()
    assert find(driver, ".difference .removed strong").text == "broken"
    [picture] = [one for one in driver.find_elements("css selector", "svg[role=img]") if one.is_displayed()]
    assert picture.get_attribute("aria-label")
    driver.find_element("css selector", "a[rel=prev]").send_keys("\n")
    waiting(driver).until(lambda _: find(driver, "#day").text == "2026-03-01")
    assert find(driver, "a[rel=next]").text == "2026-03-02"


def test_pages_fit_a_phone_and_log_no_errors(client: Client, driver: Any) -> None:
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    try:
        for path in PAGES:
            driver.get(client.url.rstrip("/") + path)
            assert driver.execute_script("return document.documentElement.scrollWidth") <= PHONE["width"], path
            logged = [one["message"] for one in driver.get_log("browser")]
            assert [one for one in logged if "Failed to load resource" not in one] == []
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def suggestions(driver: Any, count: int) -> list[Any]:
    """Return the options of the search box, once there are `count`."""
    waiting(driver).until(lambda _: len(options(driver)) == count)
    return options(driver)


def options(driver: Any) -> list[Any]:
    found: list[Any] = driver.find_elements("css selector", "[role=option]")
    return [one for one in found if one.is_displayed()]


def test_search_box_works_with_the_keyboard(client: Client, driver: Any) -> None:
    driver.get(client.url)
    box = find(driver, "[role=combobox]")
    assert (box.get_attribute("aria-expanded"), options(driver)) == ("false", [])
    box.send_keys("dem")
    found = suggestions(driver, 3)
    assert [one.text.split() for one in found] == [["demo", "project"], ["demo", "import"], ["demo", "command"]]
    assert box.get_attribute("aria-expanded") == "true"
    assert box.get_attribute("aria-controls") == find(driver, "[role=listbox]").get_attribute("id")
    box.send_keys("\ue015\ue015")  # down twice
    assert box.get_attribute("aria-activedescendant") == found[1].get_attribute("id")
    assert [one.get_attribute("aria-selected") for one in found] == ["false", "true", "false"]
    box.send_keys("\ue013\ue013")  # up, back to the input text
    assert (box.get_attribute("aria-activedescendant"), box.get_attribute("value")) == (None, "dem")
    box.send_keys("\ue00c")  # escape
    assert (box.get_attribute("aria-expanded"), box.get_attribute("value")) == ("false", "dem")
    box.send_keys("o")
    suggestions(driver, 3)
    box.send_keys("\ue015\n")
    require_heading(driver, "demo")


def test_suggestion_chosen_by_mouse_keeps_the_serial(client: Client, driver: Any) -> None:
    driver.get(f"{client.url}at/20.20/project/demo/")
    box = find(driver, "[role=combobox]")
    box.clear()
    box.send_keys("pyy")
    [option] = suggestions(driver, 1)
    option.click()
    waiting(driver).until(lambda _: driver.current_url == f"{client.url}at/20.20/project/pyyaml/")


def test_copied_command_has_the_url_of_the_browser(client: Client, driver: Any) -> None:
    url = client.url.replace("127.0.0.1", "localhost")
    driver.execute_cdp_cmd(
        "Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    )
    driver.get(f"{url}project/demo/")
    code, button = find(driver, "code.command"), find(driver, ".copy")
    assert code.text == f"pip install --index-url {url}simple/ demo"
    button.send_keys("\n")
    waiting(driver).until(lambda _: find(driver, "[role=status]").get_attribute("textContent") == "Copied")
    read = "navigator.clipboard.readText().then(arguments[0])"
    assert driver.execute_async_script(read) == code.text


def test_latest_pages_show_their_age(client: Client, driver: Any) -> None:
    driver.get(f"{client.url}project/demo/")
    assert find(driver, ".moment .age").text.split()[-1] == "ago)"
    driver.get(f"{client.url}at/20.20/project/demo/")
    assert driver.find_elements("css selector", ".age") == []


def test_pages_work_without_a_script(client: Client, driver: Any) -> None:
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver.get(f"{client.url}project/demo/")
        assert find(driver, "code.command").text == f"pip install --index-url {client.url}simple/ demo"
        assert driver.find_elements("css selector", ".copy, [role=listbox]") == []
        find(driver, "#q").clear()
        find(driver, "#q").send_keys("pyyaml\n")
        require_heading(driver, "PyYAML")
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def installed_axe(folder: Path) -> str:
    """Install axe into a folder, and return its script."""
    subprocess.run(["npm", "install", "--silent", "--prefix", str(folder), "axe-core@4"], check=True)
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


def screens(driver: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each colour scheme and screen size after applying it to the browser."""
    for scheme, screen in (("light", DESKTOP), ("dark", DESKTOP), ("light", PHONE)):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        yield scheme, screen


def test_pages_have_no_axe_violations(client: Client, driver: Any, tmp_path: Path) -> None:
    axe = installed_axe(tmp_path)
    for scheme, screen in screens(driver):
        for path in PAGES:
            driver.get(client.url.rstrip("/") + path)
            driver.execute_script(axe)
            assert driver.execute_async_script(VIOLATIONS) == [], (scheme, screen["width"], path)
        driver.get(client.url)
        find(driver, "#q").send_keys("dem")
        suggestions(driver, 3)
        driver.execute_script(axe)
        assert driver.execute_async_script(VIOLATIONS) == [], (scheme, screen["width"], "suggestions")
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
