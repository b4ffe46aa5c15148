"""Stages run alone, at the same time as others, or against an index that answers late: nothing is lost or skipped."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.responses import Response

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.ledger.range_ledger import complete_serial, ledger
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.events import count_events
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.catalog.work.full_crawls import open_crawl
from pypi_assets.crawl.full_crawl import crawl_full, list_index, visit_shards
from pypi_assets.crawl.incremental_crawl import (
    allocate_next_ranges,
    crawl_incremental,
    read_range,
    store_changelog,
    visit_range,
)
from pypi_assets.crawl.stored_events import catch_up
from pypi_assets.index.errors import StaleError
from pypi_assets_tests.served_index import ServedIndex, live


def test_a_range_is_not_complete_before_its_projects_are_visited(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    before = index.serial
    index.wheel("one", "2.0")
    [serials] = allocate_next_ranges(crawler)
    with pytest.raises(CatalogError, match="not been visited"):
        read_range(crawler, serials)
    store_changelog(crawler, serials)
    with pytest.raises(CatalogError, match="not been visited"):
        read_range(crawler, serials)
    with catalog.read() as connection:
        assert complete_serial(connection) == before
    visit_range(crawler, serials)
    read_range(crawler, serials)
    with catalog.read() as connection:
        assert complete_serial(connection) == index.serial
    assert live(catalog) == index.shown()


def test_a_range_can_be_visited_by_itself(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    index.wheel("one", "2.0")
    [serials] = allocate_next_ranges(crawler)
    assert visit_range(crawler, serials).done == 1


def test_the_expected_end_of_a_full_crawl_counts_what_is_left_to_read(index: ServedIndex, catalog: Catalog):
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


def test_two_that_open_the_first_full_crawl_at_the_same_time_share_it(catalog: Catalog):
    together = threading.Barrier(4)

    def open_one(serial: int) -> int:
        together.wait()
        return open_crawl(catalog, serial, 50, "http://index.example.org/simple/", Selection()).id

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(open_one, [100, 101, 102, 103]))) == 1
    with catalog.read() as connection:
        assert len(ledger(connection)) == 1


def test_events_that_come_in_between_two_answers_are_not_passed_over(index: ServedIndex, catalog: Catalog):
    """The changelog ends below `until`, and then the index has moved beyond it: the events between are requested."""
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    before = index.serial
    until = before + 3
    calls = []

    def move(request):
        if request.url.path == "/pypi" and b"last_serial" in request.state.body:
            calls.append(request)
            index.wheel("one", "2.0")
            index.wheel("two", "1.0")

    index.faults = move
    through = catch_up(crawler, until)
    assert calls
    assert through >= until
    with catalog.read() as connection:
        assert count_events(connection, SerialRange(before, through)).events == through - before


def test_serials_without_an_event_at_the_end_of_a_range(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    before = index.serial
    with pytest.raises(StaleError, match="changelog ends"):
        catch_up(crawler, before + 5)
    ahead = (
        '<?xml version="1.0"?><methodResponse><params><param><value>'
        f"<int>{before + 7}</int></value></param></params></methodResponse>"
    )
    index.faults = lambda request: (
        Response(ahead, media_type="text/xml")
        if request.url.path == "/pypi" and b"last_serial" in request.state.body
        else None
    )
    assert catch_up(crawler, before + 5) == before + 5


def test_an_unrequested_304_is_retried_until_exhausted(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    index.wheel("two", "1.0")
    index.faults = lambda request: Response(status_code=304) if "/simple/one/" in request.url.path else None
    result = crawl_full(index.crawler(catalog))
    assert (result.visits.done, result.visits.exhausted) == (1, 1)
    index.faults = None
    crawl_full(index.crawler(catalog))
    assert live(catalog) == index.shown()


def test_reads_go_on_through_many_shards(index: ServedIndex, catalog: Catalog, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pypi_assets.crawl.reading._GROUP_READS", 2)
    for number in range(7):
        index.wheel(f"project{number}", "1.0")
    failing = iter(range(2))

    def fail_twice(request):
        if "project3-1.0" in request.url.path and next(failing, None) is not None:
            return Response(status_code=503)
        return None

    index.faults = fail_twice
    result = crawl_full(index.crawler(catalog, retry_deadline_s=60))
    assert result.reads.data == 7
    index.wheel("project3", "2.0")
    assert [range_.reads.data for range_ in crawl_incremental(index.crawler(catalog))] == [1]
    assert catalog_status(catalog).outcomes["pending"] == 0
