"""What has failed for good is shown, and read or visited when it is retried."""

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.catalog.reports.failures import list_failures
from pypi_assets.catalog.work.requeued_failures import retry_failed_reads
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.reading import read_scope
from pypi_assets_tests.crawl.failing_requests import fail
from pypi_assets_tests.served_index import ServedIndex


def test_a_file_that_keeps_failing_is_exhausted_shown_and_read_on_retry(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    index.wheel("two", "1.0")
    index.faults = fail("two-1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    status = catalog_status(catalog)
    assert status.complete_serial == index.serial
    assert (status.outcomes["data"], status.outcomes["gave up"]) == (1, 1)
    assert sum(status.outcomes.values()) == status.live_distributions == 2
    with catalog.read() as connection:
        [failure] = list_failures(connection, 50)
    assert (failure.filename, failure.kind) == ("two-1.0-py3-none-any.whl", "transient")
    assert failure.attempts >= 2

    index.faults = None
    with catalog.write() as connection:
        assert retry_failed_reads(connection, kind="transient") == 1
    assert read_scope(crawler, None).data == 1
    assert catalog_status(catalog).outcomes["data"] == 2
