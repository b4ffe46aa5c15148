"""A status that changes reaches the rows of dumps, and the epochs of what was answered."""

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.epochs import epoch_of
from pypi_assets.catalog.observed.projects import QUARANTINED
from pypi_assets.catalog.publications.dump_rows import project_rows_at
from pypi_assets.catalog.reports.past_pages import page_at
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets_tests.served_index import ServedIndex, logged_changes


def statuses(catalog: Catalog, serial: int, project: str) -> set[object]:
    return {row["project_status"] for row in project_rows_at(catalog, serial, project)}


def epoch(catalog: Catalog, serial: int) -> int:
    with catalog.read() as connection:
        return epoch_of(connection, serial)


@pytest.mark.nightly
def test_a_status_without_an_event_is_published_with_all_files(index: ServedIndex, catalog: Catalog) -> None:
    index.wheel("demo", "1.0")
    index.wheel("demo", "2.0")
    index.wheel("other", "1.0")
    crawl_full(index.crawler(catalog))
    first = index.serial
    assert statuses(catalog, first, "demo") == {"active"}
    index.history.archive("demo")
    index.history.yank("demo", "1.0")
    crawl_incremental(index.crawler(catalog))
    second = index.serial
    assert statuses(catalog, second, "demo") == {"archived"}
    assert statuses(catalog, second, "other") == {"active"}
    corrected = [change for change in logged_changes(catalog, "demo") if change[2] == "corrected"]
    assert sorted(name for name, *_ in corrected) == ["demo-1.0-py3-none-any.whl", "demo-2.0-py3-none-any.whl"]
    assert {serial for _, serial, _ in corrected} == {second}
    assert epoch(catalog, first) == first

    index.history.unarchive("demo")
    crawl_full(index.crawler(catalog))
    assert statuses(catalog, second, "demo") == {"active"}
    assert epoch(catalog, second) > second
    assert epoch(catalog, first) == first
    before = logged_changes(catalog, "demo")
    crawl_full(index.crawler(catalog))
    assert logged_changes(catalog, "demo") == before


def test_what_was_live_before_a_quarantine_has_no_status_of_then(index: ServedIndex, catalog: Catalog) -> None:
    index.wheel("demo", "1.0")
    crawl_full(index.crawler(catalog))
    first = index.serial
    index.history.quarantine("demo")
    crawl_incremental(index.crawler(catalog))
    assert statuses(catalog, first, "demo") == {None}
    assert statuses(catalog, index.serial, "demo") == set()
    page = page_at(catalog, index.serial, "demo")
    assert page is not None
    assert (page.status, page.files) == (QUARANTINED, ())
