"""The reason of a yank at a serial is the one that pages gave for it then."""

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reports.past_pages import page_at
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets_tests.served_index import ServedIndex


def reason(catalog: Catalog, serial: int) -> object:
    page = page_at(catalog, serial, "demo")
    assert page is not None
    return page.files[0].yanked


@pytest.mark.nightly
def test_each_yank_has_its_own_reason(index: ServedIndex, catalog: Catalog) -> None:
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


def test_a_yank_that_no_page_showed_has_no_reason(index: ServedIndex, catalog: Catalog) -> None:
    index.wheel("demo", "1.0")
    crawl_full(index.crawler(catalog))
    unseen = index.history.yank("demo", "1.0", "unseen")
    index.history.unyank("demo", "1.0")
    seen = index.history.yank("demo", "1.0", "seen")
    crawl_incremental(index.crawler(catalog))
    assert (reason(catalog, unseen), reason(catalog, seen)) == (True, "seen")
