"""Rule 4 for retries: failed requests are retried, but not before the index allows it, and not after the deadline."""

import pytest
from starlette.responses import PlainTextResponse

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import allocate_range
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental, crawl_range
from pypi_assets.index.errors import TransientError
from pypi_assets.progress import Progress
from pypi_assets_tests.crawl.failing_requests import fail
from pypi_assets_tests.naming import naming
from pypi_assets_tests.served_index import ServedIndex, live


def test_temporary_failure_is_retried(index: ServedIndex, catalog: Catalog):
    reported: list[Progress] = []
    crawler = index.sleeping_crawler(catalog, retry_pause_s=1.0, retry_deadline_s=60, report=reported.append)
    wheel = index.wheel("one", "1.0")
    index.faults = fail("/simple/one/", times=1)
    crawl_full(crawler)
    index.wheel("one", "2.0")
    index.faults = fail("one-2.0", times=1)
    crawl_incremental(crawler)
    assert catalog_status(catalog).outcomes["data"] == 2
    assert (wheel, False) in live(catalog)
    waits = {progress.stage: progress.wait_s for progress in reported if progress.wait_s}
    assert waits.keys() == {"visits", "reads"}
    assert all(0.0 < wait_s <= 1.25 for wait_s in waits.values())


@pytest.mark.nightly
@pytest.mark.parametrize("path", ["/simple/one/", "/one-1.0-"])
def test_retry_waits_until_the_index_allows_it(index: ServedIndex, catalog: Catalog, path: str):
    index.wheel("one", "1.0")
    crawler = index.sleeping_crawler(catalog, retry_deadline_s=5_000)
    requested_at = []

    def answer(request):
        if path not in request.url.path:
            return None
        requested_at.append(crawler.catalog.clock())
        return PlainTextResponse("later", 503, {"Retry-After": "1000"}) if len(requested_at) == 1 else None

    index.faults = answer
    result = crawl_full(crawler)
    assert result.reads.data == 1
    assert [at - requested_at[0] >= 1_000 for at in requested_at] == [False, True]


def test_started_crawl_waits_for_the_list_and_changelog(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog, retry_deadline_s=30.0)
    refuse = fail("/simple/", times=3)
    index.faults = lambda request: refuse(request) if request.url.path == "/simple/" else None
    crawl_full(crawler)
    assert live(catalog) == index.shown()
    before = index.serial
    index.wheel("one", "2.0")
    with catalog.write() as connection:
        serials = allocate_range(connection, index.serial, 0.0)
    assert serials == SerialRange(before, index.serial)
    index.faults = fail("/pypi", times=4)
    crawl_range(crawler, serials)
    assert live(catalog) == index.shown()


def test_crawl_that_cannot_start_fails_at_once(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    index.faults = fail("/pypi")
    with pytest.raises(TransientError, match=naming(503)):
        crawl_full(index.crawler(catalog, retry_deadline_s=30.0, lister="xmlrpc"))
