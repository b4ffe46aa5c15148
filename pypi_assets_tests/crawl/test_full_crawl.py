"""A full crawl is opened once, follows its selection, and belongs to one index."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.ledger.range_ledger import ledger
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.catalog.work.full_crawls import open_crawl
from pypi_assets.crawl.full_crawl import crawl_full, list_index, visit_shards
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets_tests.naming import naming
from pypi_assets_tests.served_index import ServedIndex, live


@pytest.mark.nightly
def test_only_the_selection_is_followed_and_it_may_change(index: ServedIndex, catalog: Catalog):
    requested: list[str] = []
    index.faults = lambda request: requested.append(request.url.path)
    for name in ("one", "two", "Three.x"):
        index.wheel(name, "1.0", requires_dist=["two"])
    crawler = index.crawler(catalog, selection=Selection(frozenset({"one", "three-x", "absent"})))
    result = crawl_full(crawler)
    assert result.listing.missing == ("absent",)
    assert "/simple/" not in requested  # the list of all projects
    assert {name.split("-")[0] for name, _ in live(catalog)} == {"one", "three_x"}
    index.wheel("two", "2.0")
    index.wheel("one", "2.0")
    crawl_incremental(crawler)
    few = {"one-1.0-py3-none-any.whl", "one-2.0-py3-none-any.whl", "three_x-1.0-py3-none-any.whl"}
    assert {name for name, _ in live(catalog)} == few
    first = catalog_status(catalog).exact_from
    more = replace(crawler, selection=Selection(frozenset({"one", "three-x", "absent", "two"})))
    with pytest.raises(CatalogError, match="PYPI_ASSETS_PROJECTS"):
        crawl_incremental(more)
    crawl_full(more)
    assert catalog_status(catalog).exact_from == first  # projects followed before are exact as before
    crawl_incremental(more)
    assert live(catalog) == index.shown()
    index.wheel("two", "3.0")
    crawl_incremental(more)
    assert live(catalog) == index.shown()
    with pytest.raises(CatalogError, match="PYPI_ASSETS_PROJECTS"):
        crawl_incremental(crawler)
    crawl_full(crawler)
    index.wheel("two", "4.0")
    crawl_incremental(crawler)
    assert {name for name, _ in live(catalog)} == few


def test_selection_can_grow_to_all_but_all_cannot_shrink(index: ServedIndex, catalog: Catalog):
    for name in ("one", "two"):
        index.wheel(name, "1.0")
    few, whole = index.crawler(catalog, selection=Selection(frozenset({"one"}))), index.crawler(catalog)
    crawl_full(few)
    index.wheel("two", "2.0")
    crawl_incremental(few)
    crawl_full(whole)
    assert live(catalog) == index.shown()
    index.wheel("two", "3.0")
    crawl_incremental(whole)
    assert live(catalog) == index.shown()
    with pytest.raises(CatalogError, match=naming("PYPI_ASSETS_PROJECTS")):
        crawl_full(few)


def test_another_index_is_rejected(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawl_full(index.crawler(catalog))
    elsewhere = index.crawler(catalog, index=replace_url(index))
    with pytest.raises(CatalogError, match="PYPI_ASSETS_INDEX_URL"):
        crawl_incremental(elsewhere)


def replace_url(index: ServedIndex):
    other = ServedIndex.client(index)
    other.index_url = index.url.replace("127.0.0.1", "localhost")
    return other


def test_expected_end_of_a_full_crawl_counts_pending_reads(index: ServedIndex, catalog: Catalog):
    for version in range(1, 5):
        index.wheel("one", f"{version}.0")
    crawler = index.crawler(catalog)
    crawl, _ = list_index(crawler)
    visit_shards(crawler, crawl)
    opened = catalog_status(catalog).open_crawl
    assert opened is not None
    assert opened.projects_done == opened.projects == 1
    seconds = 1 / opened.projects_per_second
    assert opened.expected_end == pytest.approx(crawl.opened_at + 5 * seconds)  # one visit is done, four reads are left


def test_concurrent_openers_share_the_first_full_crawl(catalog: Catalog):
    together = threading.Barrier(4)

    def open_one(serial: int) -> int:
        together.wait()
        return open_crawl(catalog, serial, 50, "http://index.example.org/simple/", Selection()).id

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(open_one, [100, 101, 102, 103]))) == 1
    with catalog.read() as connection:
        assert len(ledger(connection)) == 1
