"""Rule 4 for visits: each gets an outcome, even with stale pages, 404s and invalid answers."""

from dataclasses import replace

import pytest
from starlette.responses import PlainTextResponse, Response

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import (
    crawl_incremental,
)
from pypi_assets.crawl.retry_failures import retry
from pypi_assets_tests.crawl.failing_requests import fail
from pypi_assets_tests.served_index import JSON, ServedIndex, live, logged_changes


@pytest.mark.nightly
def test_stale_page_is_retried_until_new_enough(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog, retry_deadline_s=60)
    crawl_full(crawler)
    stale = index.page("one")
    index.wheel("one", "2.0")
    served = []

    def answer(request):
        if "/simple/one/" in request.url.path and len(served) < 3:
            served.append(request)
            return Response(stale, media_type=JSON)
        return None

    index.faults = answer
    crawl_incremental(crawler)
    assert len(served) == 3
    assert live(catalog) == index.shown()
    assert catalog_status(catalog).outcomes["data"] == 2


def test_page_stale_at_the_deadline_is_judged_by_events_alone(index: ServedIndex, catalog: Catalog):
    old = index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    stale = index.page("one")
    index.history.remove_file(old)
    index.wheel("one", "2.0")
    index.serve_page("one", stale)
    [result] = crawl_incremental(crawler)
    assert result.visits.exhausted == 1
    assert live(catalog) == index.shown()
    status = catalog_status(catalog)
    assert (status.complete_serial, status.outcomes["gave up"]) == (index.serial, 1)


def test_explained_404_is_believed_at_once(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    index.wheel("two", "1.0")
    crawler = index.crawler(catalog, retry_deadline_s=10**6)
    crawl_full(crawler)
    index.history.remove_project("one")
    crawl_incremental(crawler)
    assert live(catalog) == index.shown()


@pytest.mark.nightly
def test_404_after_other_failures_is_not_believed_at_the_deadline(index: ServedIndex, catalog: Catalog):
    """It may come from a cache, and one answer proves nothing: the visit is exhausted, and retried later."""
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    index.wheel("one", "2.0")
    statuses = [503]
    index.faults = lambda request: (
        PlainTextResponse("", statuses.pop() if statuses else 404) if "/simple/one/" in request.url.path else None
    )
    passed = [catalog.clock()]

    def pass_time(_: float) -> None:
        passed.append(3600.0)

    later = replace(catalog, clock=lambda: sum(passed))  # advanced only by these steps
    [result] = crawl_incremental(index.crawler(later, sleep=pass_time, retry_deadline_s=1800))
    assert result.visits.exhausted == 1
    assert live(catalog) == index.shown()  # known from the events
    index.faults = None
    retry(crawler)
    assert catalog_status(catalog).failed_visits == 0
    assert live(catalog) == index.shown()


def test_unexplained_404_is_believed_at_the_deadline(index: ServedIndex, catalog: Catalog):
    wheel = index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    index.wheel("one", "2.0")
    index.faults = fail("/simple/one/", status=404)
    crawl_incremental(crawler)
    assert live(catalog) == set()
    assert (wheel, "unexplained") in {(filename, cause) for filename, _, cause in logged_changes(catalog, "one")}


def test_unrequested_304_is_retried_until_exhausted(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    index.wheel("two", "1.0")
    index.faults = lambda request: Response(status_code=304) if "/simple/one/" in request.url.path else None
    result = crawl_full(index.crawler(catalog))
    assert (result.visits.done, result.visits.exhausted) == (1, 1)
    index.faults = None
    crawl_full(index.crawler(catalog))
    assert live(catalog) == index.shown()
