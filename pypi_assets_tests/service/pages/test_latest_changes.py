"""The page of changes on the newest day, grouped by kind, and its data."""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from pypi_assets.service.pages import latest_changes
from pypi_assets.service.pages.latest_changes import change_page, change_summary
from pypi_assets_tests.hostile_index import HOSTILE
from pypi_assets_tests.journal.written import simple_record, write_journal
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.service.drawn_journal import DrawnJournal
from pypi_assets_tests.service.pages.documents import page
from pypi_assets_tests.service.published import Client, Published, published_index


@pytest.fixture
def busy(changing: Published) -> Iterator[Client]:
    """Yield a client of a service over an index with many changes on its last day."""
    at = changing.at()
    changing.index.wheel("early", "1.0", at=at - timedelta(hours=20))
    for number in range(3):
        changing.index.wheel("busy", f"{number}.0", files={f"busy_{number}/__init__.py": ""}, at=at)
    changing.index.history.yank("demo", "1.0", "bad", at=at)
    changing.publish()
    write_journal(changing)
    with changing.client() as client:
        yield client


def test_newest_day_is_grouped_by_kind(busy: Client):
    document = page(busy, "/changes/")
    changes = busy.get("/changes.json").json()["changes"]
    assert unnamed(document.text, changes["day"]) == []
    counts = {kind["kind"]: kind["count"] for kind in changes["kinds"]}
    assert counts.pop("file corrected", 0) in {0, 2}
    assert counts == {"file added": 3, "new provider": 3, "file yanked": 2, "release compared": 2}
    assert unnamed(document.text, "3") == []
    assert "early" not in document.text
    assert document.links["busy 2.0"] == "/release/busy/2.0/"
    assert document.links["before"].startswith("/at/")
    for kind in changes["kinds"]:
        for entry in kind["newest"]:
            assert busy.get(entry["page"]).status_code == 200


def test_page_after_first_crawl_is_up_to_date_at_its_serial(tmp_path: Path):
    with published_index(tmp_path) as first:
        first.add("wheel", "demo", "1.0")
        serial = first.publish_first(with_history=False)
        write_journal(first)
        with first.client() as client:
            status = client.get("/v1/status").json()
            assert (status["catalog"]["index_serial"], status["lag_serials"]) == (serial, 0)
            text = page(client, "/changes/").text
            assert unnamed(text, "file added") == []
            assert not re.search(
                rf"\b{serial}\b[^.]*\b{serial}\b", text.split("file added")[0].partition("What changed")[2]
            )


def test_page_filters_by_project_and_kind(busy: Client):
    document = page(busy, "/changes/?project=Busy&kind=file-added")
    assert unnamed(document.text, "3") == []
    assert "new provider" not in document.text
    page(busy, "/changes/?project=none")
    announced = busy.get("/changes.json?kind=yank%20release").json()["changes"]
    assert [kind["kind"] for kind in announced["kinds"]] == ["yank release"]
    gained = busy.get("/changes.json?gained=modules").json()["changes"]
    assert [(kind["kind"], kind["count"]) for kind in gained["kinds"]] == [("release compared", 2)]
    assert busy.get("/changes.json?gained=start-up").json()["changes"]["kinds"] == []
    for wrong in ("kind=gone", "project=,", "gained=weight"):
        assert busy.get(f"/changes/?{wrong}").status_code == 400


def test_long_kinds_have_their_own_page(busy: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(latest_changes, "MOST_OF_A_KIND", 2)
    document = page(busy, "/changes/")
    more = document.links["the newest of this kind"]
    assert page(busy, more).text.count("busy 0.0") == 1


def test_pages_link_to_changes_and_missing_journal_names_the_command(client: Client):
    assert page(client, "/").links["What changed today"] == "/changes/"
    assert unnamed(page(client, "/changes/").text, "journal write") == []
    document = client.get("/changes.json").json()
    assert (document["changes"], [unnamed(hint, "pypi-assets journal write") for hint in document["hints"]]) == (
        None,
        [[]],
    )


def test_page_needs_neither_catalog_nor_datasets(tmp_path, monkeypatch: pytest.MonkeyPatch):
    drawn = DrawnJournal(tmp_path / "home")
    drawn.add(3)
    with drawn.client() as client:
        document = page(client, "/changes/?kind=add_file")
        assert unnamed(document.text, "3") == []


def test_changes_link_to_pages_that_show_them():
    read = simple_record(3, "file read", "demo", stream="content", version="a/b", filename=HOSTILE)
    assert change_page(read) == "/project/demo/"
    assert change_page({**read, "version": "1.0"}) == "/release/demo/1.0/"
    epoch = simple_record(9, "epoch changed", "", stream="observed") | {"normalized": None, "of_serial": 4}
    assert change_page(epoch) is None
    assert unnamed(change_summary(epoch), 4, 9) == []
