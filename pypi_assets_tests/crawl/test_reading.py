"""Rule 4 for distributions: each gets an outcome, and a bad file delays no other."""

import pytest
from sqlalchemy import select, update
from starlette.responses import Response

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.catalog.reports.failures import list_failures
from pypi_assets.catalog.tables import distribution_data, distributions, live_intervals
from pypi_assets.catalog.work.read_queue import queue_reads
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import (
    crawl_incremental,
)
from pypi_assets.crawl.reading import read_workload
from pypi_assets.crawl.retry_failures import retry
from pypi_assets_tests.served_index import ServedIndex, live


def test_corrupt_wheel_has_an_outcome_and_blocks_nothing(index: ServedIndex, catalog: Catalog):
    index.raw("broken-1.0-py3-none-any.whl", b"this is no zip")
    index.raw("old-1.0.win32.exe", b"MZ")
    index.wheel("one", "1.0")
    result = crawl_full(index.crawler(catalog))
    assert (result.reads.data, result.reads.errors, result.reads.unsupported) == (1, 1, 1)
    with catalog.read() as connection:
        [failure] = list_failures(connection, 50)
    assert (failure.filename, failure.kind) == ("broken-1.0-py3-none-any.whl", "corrupt archive")
    assert live(catalog) == index.shown()


def test_bytes_that_do_not_match_the_page_are_an_error(index: ServedIndex, catalog: Catalog):
    wheel = index.wheel("one", "1.0")
    index.faults = lambda request: Response(b"other bytes") if wheel in request.url.path else None
    crawl_full(index.crawler(catalog))
    with catalog.read() as connection:
        [failure] = list_failures(connection, 50)
    assert failure.kind == "wrong content"


def test_file_deleted_before_its_read_has_vanished_and_was_live(index: ServedIndex, catalog: Catalog):
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


def test_reads_continue_through_many_shards(index: ServedIndex, catalog: Catalog, monkeypatch: pytest.MonkeyPatch):
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


def test_live_file_is_never_vanished(index: ServedIndex, catalog: Catalog):
    """The file was hidden before it was read, returned a 404 while hidden, and was shown again later."""
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    wheel = index.wheel("one", "2.0")
    index.faults = lambda request: Response(status_code=404) if request.url.path.endswith(wheel) else None
    index.history.quarantine("one")
    crawl_incremental(crawler)
    index.faults = None
    index.history.unquarantine("one")
    crawl_incremental(crawler)
    retry(crawler)
    assert live(catalog) == index.shown() == {("one-1.0-py3-none-any.whl", False), (wheel, False)}
    assert catalog_status(catalog).outcomes["data"] == 2


def test_404_is_judged_by_the_live_files_when_stored(index: ServedIndex, catalog: Catalog):
    """A quarantine that begins or is cleared during the fetch decides the meaning of the 404."""
    wheel = index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    seen = []

    def gone(request):
        if not request.url.path.endswith(wheel):
            return None
        with catalog.write() as connection:  # the result of another worker's visit meanwhile
            connection.execute(update(live_intervals).values(end=None if seen else index.serial + 1))
        seen.append(request)
        return Response(status_code=404)

    index.faults = gone
    for outcome in ("vanished", "gave up"):
        with catalog.write() as connection:
            connection.execute(update(distribution_data).values(outcome="pending"))
            id_, project_id = connection.execute(select(distributions.c.id, distributions.c.project_id)).one()
            queue_reads(connection, [(id_, project_id)])
        read_workload(index.crawler(catalog, retry_deadline_s=0), None)
        with catalog.read() as connection:
            assert connection.scalar(select(distribution_data.c.outcome)) == outcome
    with catalog.read() as connection:
        [failure] = list_failures(connection, 50)
    assert (failure.filename, failure.kind) == (wheel, "gone")
