"""Events are stored without a gap, and an index that goes backwards is detected."""

import pytest
from starlette.responses import Response

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.events import count_events, events_through
from pypi_assets.catalog.work.full_crawls import find_open_crawl
from pypi_assets.crawl.full_crawl import crawl_full, list_index
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.stored_events import catch_up
from pypi_assets.index.errors import StaleError
from pypi_assets_tests.crawl.failing_requests import xmlrpc_answer
from pypi_assets_tests.naming import naming
from pypi_assets_tests.served_index import ServedIndex, live, served_index


def test_index_going_backwards_changes_nothing(index: ServedIndex, catalog: Catalog, tmp_path):
    index.wheel("one", "1.0")
    index.wheel("two", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    index.faults = lambda request: (
        Response(xmlrpc_answer(3), media_type="text/xml")
        if request.url.path == "/pypi" and b"last_serial" in request.state.body
        else None
    )
    before = live(catalog)
    with pytest.raises(CatalogError, match=naming(3)):
        crawl_incremental(crawler)
    with pytest.raises(CatalogError, match=naming(3)):
        crawl_full(crawler)
    assert live(catalog) == before
    with catalog.read() as connection:
        assert find_open_crawl(connection) is None


def test_index_going_backwards_stops_an_open_full_crawl(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    list_index(crawler)
    index.faults = lambda request: (
        Response(xmlrpc_answer(index.serial - 1), media_type="text/xml") if request.url.path == "/pypi" else None
    )
    with pytest.raises(CatalogError, match=naming(index.serial - 1)):
        crawl_full(crawler)
    assert live(catalog) == set()


def test_index_that_went_backwards_and_forward_is_detected(index: ServedIndex, catalog: Catalog, tmp_path):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    index.wheel("one", "2.0")
    crawl_incremental(crawler)
    before, serial = live(catalog), index.serial
    with served_index(tmp_path / "restored") as restored:
        for number in range(8):
            restored.wheel("other", f"{number}.0")
        assert restored.serial > serial
        with pytest.raises(CatalogError, match=naming(6, "other", "one")):
            catch_up(index.crawler(catalog, index=restored.client()), restored.serial)
    assert live(catalog) == before
    with catalog.read() as connection:
        assert events_through(connection) == serial


def test_events_between_two_answers_are_not_skipped(index: ServedIndex, catalog: Catalog):
    """The changelog ends below `until`, and then the index moves beyond it: the events in between are requested."""
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    before = index.serial
    until = before + 3
    calls = []

    def move(request):
        if request.url.path == "/pypi" and b"last_serial" in request.state.body and not calls:
            calls.append(request)
            index.wheel("one", "2.0")
            index.wheel("two", "1.0")

    index.faults = move
    through = catch_up(crawler, until)
    assert calls
    assert through >= until
    with catalog.read() as connection:
        assert count_events(connection, SerialRange(before, through)).events == through - before


def test_range_can_end_with_serials_without_events(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    before = index.serial
    with pytest.raises(StaleError):
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
