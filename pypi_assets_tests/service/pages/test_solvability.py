"""The page of solvability: by day, and what was lost, with the event that did it."""

from collections.abc import Iterator

import pytest

from pypi_assets_tests.service.pages.documents import page
from pypi_assets_tests.service.published import Client, Published
from pypi_assets_tests.service.solvable_days import write_days


@pytest.fixture
def days(changing: Published) -> Iterator[Client]:
    write_days(changing.storage, 4, gap=2)
    with changing.client() as client:
        yield client


def test_where_nothing_was_published_that_is_the_page(client: Client):
    assert "Solvability of no day was published yet." in page(client, "/solvability/").text
    assert client.get("/solvability.json").json()["day"] is None


def test_the_newest_day_and_what_was_lost_on_it(days: Client):
    document = page(days, "/solvability/")
    assert "3 of 6 solvable, as of serial 1350." in document.text
    assert "Newly unsolvable since 2026-03-01" in document.text
    assert "Lib: yank release a.whl and 6 more at serial 1300, 2026-03-02 01:00 UTC; before after" in document.text
    assert "The event was not searched for, since there are many losses." in document.text
    assert "All without a solution, or not decided: 3" in document.text
    assert document.links["broken"] == "/project/broken/"
    assert (document.links["before"], document.links["after"]) == ("/at/1299/project/Lib/", "/at/1300/project/Lib/")
    resolution = document.links["the resolution"]
    assert resolution.startswith("/at/1350/resolve/?requirements=")
    assert document.links["2026-03-01"] == "/solvability/?day=2026-03-01"
    found = days.get("/solvability.json").json()
    assert (len(found["days"]["days"]), found["day"]["moment"]["serial"]) == (4, 1350)


def test_a_day_before_it(days: Client):
    document = page(days, "/solvability/?day=2026-02-27")
    assert "There is no day before it that could be compared with." in document.text
    assert document.links["2026-03-01"] == "/solvability/?day=2026-03-01"
    assert days.get("/solvability/?day=2026-02-28").status_code == 404
    assert days.get("/solvability/?day=never").status_code == 400


def test_the_first_page_leads_there(client: Client):
    assert page(client, "/").links["solvability by day"] == "/solvability/"
