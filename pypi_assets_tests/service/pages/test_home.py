import re

import pytest

from pypi_assets_tests.named import unnamed
from pypi_assets_tests.service.pages.documents import BROWSER, page
from pypi_assets_tests.service.pages.test_projects import serial_of
from pypi_assets_tests.service.published import Client, Published


def test_it_links_to_examples_that_are_there(client: Client):
    links = page(client, "/").links
    assert links["import yaml"] == "/import/yaml/"
    assert links["what requires"] == "/dependents/pyyaml/"
    assert "import dateutil" not in links


def test_it_shows_what_happened_last_with_what_was_true_before(client: Client):
    serial = serial_of(client, "demo", "yank release")
    shown = client.get("/").text
    assert unnamed(shown, "2.0") == []
    assert f'href="/at/{serial - 1}/project/demo/"' in shown
    assert "demo-2.1" not in client.get(f"/at/{serial}.{serial}/").text
    found = client.get("/index.json").json()["recent"]
    assert [one["serial"] for one in found] == sorted((one["serial"] for one in found), reverse=True)
    assert found[0]["project"] == "demo"


def test_the_past_index_that_it_names_is_there(client: Client):
    [path] = re.findall(r"<code>(/at/[0-9]+/simple/)</code>", client.get("/").text)
    answer = client.get(f"{path}pyyaml/", allow_redirects=True)
    assert answer.status_code == 200


def test_without_a_catalog_it_shows_no_events(published: Published, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "storage").symlink_to(published.home / "storage")
    with published.client(home=tmp_path / "home") as alone:
        document = page(alone, "/")
        assert "/at/" not in alone.get("/").text
        assert document.links["import yaml"] == "/import/yaml/"


@pytest.mark.parametrize(
    ("moment", "page_path", "location"),
    [
        ("17", "/import/yaml/", "/at/17/import/yaml/"),
        (" 2026-03-03 ", "/search/?q=a", "/at/2026-03-03/search/?q=a"),
        ("", "/import/yaml/", "/import/yaml/"),
    ],
)
def test_the_form_pins_a_page(client: Client, moment: str, page_path: str, location: str):
    answer = client.get("/as-of", params={"moment": moment, "page": page_path}, headers=BROWSER)
    assert (answer.status_code, answer.headers["location"]) == (303, location)


@pytest.mark.parametrize(
    ("moment", "page_path", "wrong"),
    [
        ("yesterday", "/", "moment"),
        ("1/../..", "/", "moment"),
        ("1", "//elsewhere.invalid/", "page"),
        ("1", "https://elsewhere.invalid/", "page"),
        ("", "//elsewhere.invalid/", "page"),
    ],
)
def test_what_is_no_moment_or_no_page_of_this_service_is_refused(
    client: Client, moment: str, page_path: str, wrong: str
):
    answer = client.get("/as-of", params={"moment": moment, "page": page_path})
    assert (answer.status_code, answer.json()["parameter"]) == (400, wrong)


def test_a_date_leads_to_what_was_then(client: Client):
    document = page(client, "/as-of?moment=2026-03-03&page=/project/demo/")
    assert "2.1" not in document.text


def test_a_serial_that_is_not_exact_is_a_page_that_names_those_that_are(client: Client, published: Published):
    assert page(client, "/as-of?moment=999999&page=/project/demo/", status=409).text.count(str(published.index.serial))
