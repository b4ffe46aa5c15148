"""The page of solvability by day: newly unsolvable requirements and the events that caused them."""

from collections.abc import Iterator

import pytest

from pypi_assets_tests.named import in_order, unnamed
from pypi_assets_tests.service.pages.documents import page
from pypi_assets_tests.service.published import Client, Published
from pypi_assets_tests.service.solvable_days import write_days


@pytest.fixture
def days(changing: Published) -> Iterator[Client]:
    write_days(changing.storage, 4, gap=2)
    with changing.client() as client:
        yield client


def test_page_without_published_days_explains_it(client: Client):
    document = page(client, "/solvability/")
    assert unnamed(document.text, "PYPI_ASSETS_SOLVABILITY_SINCE") == []
    assert client.get("/solvability.json").json()["day"] is None


def test_newest_day_shows_its_losses(days: Client):
    document = page(days, "/solvability/")
    assert in_order(document.text, "3", "6", "1350")
    assert unnamed(document.text, "2026-03-01") == []
    assert in_order(document.text, "a.whl", "6", "1300", "2026-03-02T01:00:00Z")
    assert unnamed(document.text, "3") == []
    assert document.links["broken"] == "/project/broken/"
    assert (document.links["before"], document.links["after"]) == ("/at/1299/project/Lib/", "/at/1300/project/Lib/")
    resolution = document.links["the resolution"]
    assert resolution.startswith("/at/1350/resolve/?requirements=")
    assert document.links["2026-03-01"] == "/solvability/?day=2026-03-01"
    found = days.get("/solvability.json").json()
    assert (len(found["days"]["days"]), found["day"]["moment"]["serial"]) == (4, 1350)


def test_earlier_day_is_shown(days: Client):
    document = page(days, "/solvability/?day=2026-02-27")
    assert document.links["2026-03-01"] == "/solvability/?day=2026-03-01"
    assert days.get("/solvability/?day=2026-02-28").status_code == 404
    assert days.get("/solvability/?day=never").status_code == 400


def test_home_links_to_solvability(client: Client):
    assert page(client, "/").links["solvability by day"] == "/solvability/"
