"""The changelog is followed while it answers, else the list of projects, unless a setting names one of them."""

import xmlrpc.client

import pytest
from starlette.responses import PlainTextResponse, Response

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.ledger.range_ledger import SIMPLE, XMLRPC
from pypi_assets.catalog.observed.index_state import changelog_trouble
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import allocate_next_ranges, crawl_incremental, crawl_range
from pypi_assets.crawl.lister_choice import AUTO
from pypi_assets.index.errors import RefusedError, TransientError
from pypi_assets_tests.crawl.followers import BUSY, REFUSED, Follower, SilentIndex, add
from pypi_assets_tests.naming import naming
from pypi_assets_tests.served_index import ServedIndex
from pypi_assets_tests.served_index import live as served_live


def fault(code: int, text: str) -> str:
    return xmlrpc.client.dumps(xmlrpc.client.Fault(code, text), methodresponse=True)


@pytest.mark.nightly
def test_a_changelog_that_fails_is_waited_for_and_comes_back(auto: Follower) -> None:
    index = auto.index
    add(index, "demo")
    crawl_full(auto.crawler)
    add(index, "demo", "2.0")
    index.trouble = BUSY
    with pytest.raises(TransientError):
        crawl_incremental(auto.crawler)
    auto.now += 3_599
    with pytest.raises(TransientError):
        crawl_incremental(auto.crawler)
    assert not catalog_status(auto.catalog).followed.is_changelog_off
    assert auto.notified == []
    auto.now += 1
    crawl_incremental(auto.crawler)
    assert auto.live() == index.shown[index.serial]
    assert auto.listers() == [None, SIMPLE]
    assert len(auto.notified) == 1
    assert "HTTP 503" in auto.notified[0]
    assert catalog_status(auto.catalog).followed.is_changelog_off
    crawl_incremental(auto.crawler)
    assert len(auto.notified) == 1
    index.trouble = None
    add(index, "demo", "3.0")
    crawl_incremental(auto.crawler)
    assert auto.listers() == [None, SIMPLE, XMLRPC]
    assert len(auto.notified) == 2
    with auto.catalog.read() as connection:
        assert changelog_trouble(connection, index.index_url) is None


def test_a_changelog_that_goes_away_while_projects_are_visited(auto: Follower) -> None:
    index = auto.index
    add(index, "demo")
    crawl_full(auto.crawler)
    add(index, "demo", "2.0")
    [serials] = allocate_next_ranges(auto.crawler)
    add(index, "demo", "3.0")
    index.trouble = REFUSED
    result = crawl_range(auto.crawler, serials)
    assert (result.lister, result.visits.done, result.visits.exhausted) == (XMLRPC, 1, 0)
    assert auto.live(serials.end) == index.shown[serials.end]
    assert auto.live() == index.shown[serials.end]


def test_what_is_set_is_not_departed_from(catalog: Catalog) -> None:
    index = SilentIndex()
    add(index, "demo")
    crawl_full(Follower(index, catalog, XMLRPC).crawler)
    index.trouble = REFUSED
    with pytest.raises(RefusedError):
        crawl_incremental(Follower(index, catalog, XMLRPC).crawler)
    add(index, "demo", "2.0")
    crawl_incremental(Follower(index, catalog, SIMPLE).crawler)
    with pytest.raises(CatalogError, match=naming("--with-history")):
        crawl_full(Follower(index, catalog, SIMPLE).crawler, with_history=True)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "refusal",
    [
        PlainTextResponse("", 404),
        PlainTextResponse("", 410),
        Response(fault(-32601, "server error; requested method not found"), media_type="text/xml"),
    ],
    ids=["404", "410", "-32601"],
)
def test_an_index_whose_changelog_is_refused(index: ServedIndex, catalog: Catalog, refusal: Response) -> None:
    notified: list[str] = []
    index.wheel("one", "1.0")
    index.wheel("two", "1.0")
    index.faults = lambda request: refusal if request.url.path == "/pypi" else None
    crawler = index.crawler(catalog, lister=AUTO, notify=notified.append)
    crawl_full(crawler)
    index.wheel("one", "2.0")
    index.history.yank("one", "1.0")
    index.history.remove_project("two")
    crawl_incremental(crawler)
    assert served_live(catalog) == index.shown()
    assert len(notified) == 1
    index.faults = None
    index.wheel("three", "1.0")
    crawl_incremental(crawler)
    assert served_live(catalog) == index.shown()
    assert len(notified) == 2
