"""Rule 4 for distributions: each has an outcome, and a bad one keeps no other one waiting."""

import pytest
from starlette.responses import Response

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.catalog.reports.failures import list_failures
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import (
    crawl_incremental,
)
from pypi_assets_tests.served_index import ServedIndex, live


def test_a_corrupt_wheel_is_data_and_blocks_nothing(index: ServedIndex, catalog: Catalog):
    index.raw("broken-1.0-py3-none-any.whl", b"this is no zip")
    index.raw("old-1.0.win32.exe", b"MZ")
    index.wheel("one", "1.0")
    result = crawl_full(index.crawler(catalog))
    assert (result.reads.data, result.reads.errors, result.reads.unsupported) == (1, 1, 1)
    with catalog.read() as connection:
        [failure] = list_failures(connection, 50)
    assert (failure.filename, failure.kind) == ("broken-1.0-py3-none-any.whl", "corrupt archive")
    assert live(catalog) == index.shown()


def test_bytes_that_are_not_those_of_the_page_are_an_error(index: ServedIndex, catalog: Catalog):
    wheel = index.wheel("one", "1.0")
    index.faults = lambda request: Response(b"other bytes") if wheel in request.url.path else None
    crawl_full(index.crawler(catalog))
    with catalog.read() as connection:
        [failure] = list_failures(connection, 50)
    assert failure.kind == "wrong content"


def test_a_file_gone_before_it_could_be_read_has_vanished_and_was_live(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    wheel = index.wheel("one", "2.0")
    between = index.serial
    index.history.remove_file(wheel)
    crawl_incremental(crawler)
    assert live(catalog) == index.shown()
    assert (wheel, False) in live(catalog, between)
    with catalog.read() as connection:
        assert list(list_failures(connection, 50)) == []


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
