"""The status of a project at each serial: from events if there are any, otherwise from pages."""

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.projects import find_project
from pypi_assets.catalog.reports.past_pages import page_at
from pypi_assets.catalog.reports.past_statuses import last_serial_at, status_at
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets_tests.served_index import ServedIndex


def status(catalog: Catalog, project: str, serial: int) -> str | None:
    with catalog.read() as connection:
        found = find_project(connection, project)
        assert found is not None
        return status_at(connection, found, serial)


def test_quarantines_and_removals_count_from_their_events(index: ServedIndex, catalog: Catalog) -> None:
    for name in ("demo", "hidden"):
        index.wheel(name, "1.0")
    index.history.quarantine("hidden")
    crawl_full(index.crawler(catalog))
    first, history = index.serial, index.history
    serials = [
        history.quarantine("demo"),
        history.unquarantine("demo"),
        history.remove_project("demo"),
        history.unquarantine("hidden"),
    ]
    index.wheel("demo", "2.0")
    serials.append(index.serial)
    crawl_incremental(index.crawler(catalog))
    assert [status(catalog, "demo", serial) for serial in [first, *serials]] == [
        "active",
        "quarantined",
        "active",
        None,
        None,
        "active",
    ]
    assert [status(catalog, "hidden", serial) for serial in [first, *serials]] == [
        *["quarantined"] * 4,
        *["active"] * 2,
    ]
    with catalog.read() as connection:
        demo = find_project(connection, "demo")
        assert demo is not None
        assert [last_serial_at(connection, demo.id, serial) for serial in serials] == [
            *serials[:3],
            serials[2],
            serials[4],
        ]


@pytest.mark.nightly
def test_status_without_event_counts_from_where_it_was_seen(index: ServedIndex, catalog: Catalog) -> None:
    index.wheel("demo", "1.0")
    crawl_full(index.crawler(catalog))
    first = index.serial
    index.history.archive("demo")
    index.wheel("other", "1.0")
    second = index.serial
    crawl_incremental(index.crawler(catalog))
    assert [status(catalog, "demo", serial) for serial in (first, second)] == ["active", "active"]
    crawl_full(index.crawler(catalog))
    assert [status(catalog, "demo", serial) for serial in (first, second)] == ["active", "archived"]
    index.history.yank("demo", "1.0")
    index.history.unarchive("demo")
    crawl_incremental(index.crawler(catalog))
    third = index.serial
    index.history.archive("demo")
    index.history.yank("other", "1.0")
    crawl_full(index.crawler(catalog))
    crawl_incremental(index.crawler(catalog))
    found = [status(catalog, "demo", serial) for serial in (first, second, third, index.serial)]
    assert found == ["active", "archived", "active", "archived"]


def reason(catalog: Catalog, serial: int) -> object:
    page = page_at(catalog, serial, "demo")
    assert page is not None
    return page.files[0].yanked


@pytest.mark.nightly
def test_each_yank_has_its_reason(index: ServedIndex, catalog: Catalog) -> None:
    index.wheel("demo", "1.0")
    crawl_full(index.crawler(catalog))
    expected: dict[int, object] = {index.serial: False}
    for why in ("first", None, "third é <b>", "last"):
        index.history.yank("demo", "1.0", why)
        expected[index.serial] = why or True
        index.wheel("other", f"1.{len(expected)}")
        crawl_incremental(index.crawler(catalog))
        index.history.unyank("demo", "1.0")
        expected[index.serial] = False
        crawl_incremental(index.crawler(catalog))
    assert {serial: reason(catalog, serial) for serial in expected} == expected


def test_yank_missing_from_pages_has_no_reason(index: ServedIndex, catalog: Catalog) -> None:
    index.wheel("demo", "1.0")
    crawl_full(index.crawler(catalog))
    unseen = index.history.yank("demo", "1.0", "unseen")
    index.history.unyank("demo", "1.0")
    seen = index.history.yank("demo", "1.0", "seen")
    crawl_incremental(index.crawler(catalog))
    assert (reason(catalog, unseen), reason(catalog, seen)) == (True, "seen")
