"""Permanent failures are shown, and are read or visited again on retry."""

import pytest
from starlette.responses import PlainTextResponse

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reports.catalog_status import catalog_status, read_exhausted
from pypi_assets.catalog.reports.failures import count_failures, list_failures
from pypi_assets.catalog.work.finished_workloads import retry_failed_reads
from pypi_assets.catalog.work.visit_queue import range_workload, workload_progress
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.reading import read_workload
from pypi_assets.crawl.retry_failures import retry
from pypi_assets_tests.crawl.failing_requests import fail
from pypi_assets_tests.served_index import ServedIndex, live


def test_file_that_keeps_failing_is_exhausted_shown_and_read_on_retry(index: ServedIndex, catalog: Catalog):
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
    assert read_workload(crawler, None).data == 1
    assert catalog_status(catalog).outcomes["data"] == 2


def refuse(path: str):
    return lambda request: PlainTextResponse("", 403) if path in request.url.path else None


@pytest.mark.nightly
def test_later_success_clears_exhausted_visits_of_any_workload(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    index.wheel("two", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    index.faults = refuse("/simple/")
    exhausted = []
    for version in ("2.0", "3.0"):
        index.wheel("one", version)
        index.wheel("two", version)
        exhausted += crawl_incremental(crawler)
    assert [result.visits.exhausted for result in exhausted] == [2, 2]
    index.faults = refuse("/simple/two/")
    index.wheel("one", "4.0")
    crawl_incremental(crawler)
    with catalog.read() as connection:
        failures = list(list_failures(connection, 50, "visit"))
        assert [(failure.project, failure.outcome) for failure in failures] == [("two", "gave up")] * 2
        progress = [workload_progress(connection, range_workload(result.serials)) for result in exhausted]
        assert [(one.done, one.exhausted) for one in progress] == [(1, 1), (1, 1)]
        assert read_exhausted(connection).kinds["visit"] == catalog_status(catalog).failed_visits == 2
    index.faults = None
    index.history.remove_project("two")
    crawl_incremental(crawler)
    with catalog.read() as connection:
        assert list(list_failures(connection, 50, "visit")) == []
        assert count_failures(connection)["visit"] == 0


@pytest.mark.nightly
def test_success_with_older_page_does_not_clear_visits_needing_a_newer_one(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog, revisit_share=100.0)
    crawl_full(crawler)
    index.serve_page("one", index.page("one"))  # from a cache, for longer than the deadline
    index.wheel("one", "2.0")
    crawl_incremental(crawler)
    index.wheel("two", "1.0")
    crawl_incremental(crawler)  # visits `one` again, whose page is still old
    with catalog.read() as connection:
        [failure] = list_failures(connection, 50, "visit")
    assert (failure.project, failure.outcome) == ("one", "gave up")
    index.faults = None
    index.wheel("two", "2.0")
    crawl_incremental(crawler)
    with catalog.read() as connection:
        assert list(list_failures(connection, 50, "visit")) == []


@pytest.mark.nightly
def test_page_that_outlives_its_project_agrees_once_deleted(index: ServedIndex, catalog: Catalog):
    """Removing a user's projects does not refresh their pages, which return 200 for up to a day."""
    wheel = index.wheel("one", "1.0")
    crawler = index.crawler(catalog, revisit_share=100.0)
    crawl_full(crawler)
    index.serve_page("one", index.page("one"))
    index.history.remove_project("one")
    removed = index.serial
    [result] = crawl_incremental(crawler)
    assert (result.visits.exhausted, result.unexplained_changes) == (1, 0)
    index.wheel("two", "1.0")
    crawl_incremental(crawler)  # it sees the old page of `one` again
    assert live(catalog) == index.shown() == {("two-1.0-py3-none-any.whl", False)}
    index.faults = None
    assert retry(crawler).retried_visits == 1
    assert live(catalog) == index.shown()
    assert live(catalog, removed) == set()
    assert live(catalog, removed - 1) == {(wheel, False)}
    assert catalog_status(catalog).unexplained_changes == 0
    with catalog.read() as connection:
        assert list(list_failures(connection, 50, "visit")) == []
