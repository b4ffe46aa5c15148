"""Ranges of the changelog: a backlog is cut by its events, and ranges run in any order, at once, and again."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

import pytest
from starlette.requests import Request
from starlette.responses import Response

from pypi_assets.catalog.coordination.claims import workloads_at_work
from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.ledger.range_ledger import UnknownRangeError, complete_serial
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.events import count_events
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.catalog.reports.failures import list_failures
from pypi_assets.catalog.reports.range_states import ShownState, range_statuses
from pypi_assets.catalog.work.finished_workloads import retry_failed_visits
from pypi_assets.catalog.work.visit_queue import range_workload
from pypi_assets.crawl.draining import claiming
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import (
    allocate_next_ranges,
    crawl_incremental,
    crawl_range,
    read_range,
    store_changelog,
    visit_range,
)
from pypi_assets.crawl.reading import read_workload
from pypi_assets.crawl.visiting import visit_workload
from pypi_assets.devindex.server import running
from pypi_assets.index.errors import TransientError
from pypi_assets_tests.crawl.failing_requests import fail, xmlrpc_answer
from pypi_assets_tests.naming import naming
from pypi_assets_tests.served_index import ServedIndex, live


def shown_states(catalog: Catalog, index_serial: int | None = None) -> list[ShownState]:
    with catalog.read() as connection:
        found = range_statuses(connection, catalog.clock(), index_serial=index_serial)
    return [status.state for status in found]


@pytest.mark.nightly
def test_backlog_is_split_by_events_and_done_in_any_order(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = replace(index.crawler(catalog), range_events=7)
    crawl_full(crawler)
    baseline = index.serial
    shown = {baseline: index.shown()}
    for version in range(2, 9):
        index.wheel("one", f"{version}.0")
        shown[index.serial] = index.shown()
        index.sdist(f"new-{version}", "1.0")
        shown[index.serial] = index.shown()
    index.history.remove_release("one", "2.0")
    shown[index.serial] = index.shown()

    ranges = allocate_next_ranges(crawler)
    assert ranges[0].start == baseline
    assert ranges[-1].end == index.serial
    assert all(before.end == after.start for before, after in pairwise(ranges))
    with catalog.read() as connection:
        counts = [count_events(connection, serials).events for serials in ranges]
    assert counts[:-1] == [7] * (len(ranges) - 1)
    assert 0 < counts[-1] <= 7
    assert allocate_next_ranges(crawler) == []

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda serials: crawl_range(crawler, serials), reversed(ranges)))
    with catalog.read() as connection:
        assert complete_serial(connection) == index.serial
    for serial, expected in shown.items():
        assert live(catalog, serial) == expected


def test_backlog_can_be_stored_a_few_pages_at_a_time(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawl_full(index.crawler(catalog))
    baseline = index.serial
    for version in range(2, 8):
        index.wheel("one", f"{version}.0")
    with running(index.folder / "index", page_rows=5) as url:
        client = index.client(changelog_url=url.replace("/simple/", "/pypi"))
        crawler = replace(index.crawler(catalog), index=client)
        assert allocate_next_ranges(crawler, changelog_pages=1) == [SerialRange(baseline, baseline + 5)]
        assert allocate_next_ranges(crawler, changelog_pages=5) == [SerialRange(baseline + 5, index.serial)]


def test_failed_range_shows_its_error_and_can_be_rerun(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    index.wheel("one", "2.0")
    [serials] = allocate_next_ranges(crawler)
    assert shown_states(catalog) == [ShownState.COMPLETE, ShownState.WAITING]

    def fail(*_: object) -> None:
        raise TransientError("HTTP 503", "https://index.example.org/pypi")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pypi_assets.crawl.incremental_crawl.catch_up", fail)
        with pytest.raises(TransientError):
            crawl_range(crawler, serials)
    assert shown_states(catalog, index.serial + 3) == [ShownState.COMPLETE, ShownState.FAILED, ShownState.MISSING]
    with catalog.read() as connection:
        assert "HTTP 503" in (range_statuses(connection, catalog.clock())[1].error_text or "")

    store_changelog(crawler, serials)  # a new run clears the error, and no later step has started
    assert shown_states(catalog) == [ShownState.COMPLETE, ShownState.WAITING]
    crawl_range(crawler, serials)
    assert shown_states(catalog) == [ShownState.COMPLETE, ShownState.COMPLETE]
    with catalog.read() as connection:
        assert [status.serials for status in range_statuses(connection, catalog.clock(), complete=1)] == [serials]


@pytest.mark.nightly
def test_range_is_running_from_start_to_end(index: ServedIndex, catalog: Catalog):
    seen: list[tuple[str, list[ShownState]]] = []
    failing = ["/simple/one/", ".whl"]

    def look(at: str) -> None:
        seen.append((at, shown_states(catalog)))

    def wait(_: float) -> None:
        look("waiting")
        del failing[:1]

    def fail_until_it_waits(request: Request) -> Response | None:
        look(next((part for part in ("/simple/", "/packages/") if part in request.url.path), request.url.path))
        return Response(status_code=503) if failing and failing[0] in request.url.path else None

    index.wheel("one", "1.0")
    index.wheel("not-changed", "1.0")
    crawler = index.crawler(catalog, retry_deadline_s=60, page_attempts=50, revisit_share=100.0, sleep=wait)
    crawler = replace(crawler, report=lambda progress: look(progress.stage))
    index.faults = fail_until_it_waits
    crawl_full(crawler)
    assert {"/packages/", "waiting", "visits", "reads", "listing"} <= {at for at, _ in seen}
    assert {tuple(states) for _, states in seen} == {(), (ShownState.RUNNING,)}
    index.faults = None
    index.wheel("one", "2.0")
    index.wheel("two", "1.0")
    [serials] = allocate_next_ranges(crawler)
    assert shown_states(catalog) == [ShownState.COMPLETE, ShownState.WAITING]
    seen.clear()
    failing += ["/simple/one/", ".whl"]
    index.faults = fail_until_it_waits
    crawl_range(crawler, serials)
    assert {"/simple/", "/packages/", "waiting", "visits", "audit", "reads"} <= {at for at, _ in seen}
    states_before_the_last_audit = [states for at, states in seen if at != "audit"]
    assert all(states == [ShownState.COMPLETE, ShownState.RUNNING] for states in states_before_the_last_audit)
    assert shown_states(catalog) == [ShownState.COMPLETE, ShownState.COMPLETE]
    assert failing == []


def test_range_stopped_by_a_user_is_interrupted(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    index.wheel("one", "2.0")
    [serials] = allocate_next_ranges(crawler)

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        crawl_range(replace(crawler, report=stop), serials)
    assert shown_states(catalog) == [ShownState.COMPLETE, ShownState.INTERRUPTED]
    with claiming(crawler, range_workload(serials)):
        with pytest.raises(KeyboardInterrupt):
            crawl_range(replace(crawler, report=stop), serials)
        assert shown_states(catalog) == [ShownState.COMPLETE, ShownState.RUNNING]  # the other process runs it
    with catalog.read() as connection:
        assert workloads_at_work(connection, catalog.clock()) == set()


def test_index_that_went_backwards_allocates_no_range(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    stale = (
        '<?xml version="1.0"?><methodResponse><params><param><value>'
        f"<int>{index.serial - 1}</int></value></param></params></methodResponse>"
    )
    index.faults = lambda request: Response(stale, media_type="text/xml") if request.url.path == "/pypi" else None
    with pytest.raises(Exception, match=naming(index.serial - 1, index.serial)):
        allocate_next_ranges(crawler)
    assert shown_states(catalog) == [ShownState.COMPLETE]


def test_range_ends_if_its_only_project_always_fails(index: ServedIndex, catalog: Catalog):
    for name in ("good", "bad"):
        index.wheel(name, "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    for name in ("good", "bad", "fine"):
        index.wheel(name, "2.0")
    index.faults = fail("/simple/bad/")
    [result] = crawl_incremental(crawler)
    assert (result.visits.done, result.visits.exhausted) == (2, 1)
    with catalog.read() as connection:
        assert complete_serial(connection) == index.serial
        [failure] = list_failures(connection, 50, "visit")
    assert (failure.project, failure.outcome) == ("bad", "gave up")
    assert "503" in failure.text
    status = catalog_status(catalog)
    assert status.failed_visits == 1
    assert status.outcomes["data"] == 4
    assert status.outcomes["gave up"] == 1  # known from its event alone, until its page answers
    assert live(catalog) == index.shown()  # known from the events

    index.faults = None
    with catalog.write() as connection:
        [workload] = retry_failed_visits(connection, "bad")
    visit_workload(crawler, workload)
    read_workload(crawler, workload)
    status = catalog_status(catalog)
    assert (status.failed_visits, status.outcomes["data"], status.outcomes["gave up"]) == (0, 5, 0)


def test_unknown_actions_are_counted(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    index.wheel("one", "2.0")

    def rename_one_action(request):
        if request.url.path == "/pypi" and b"changelog_since" in request.state.body:
            rows = [["one", None, 1, "frobnicate thoroughly", index.serial - 1], ["one", "2.0", 1, ADD, index.serial]]
            return Response(xmlrpc_answer(rows), media_type="text/xml")
        return None

    index.faults = rename_one_action
    [result] = crawl_incremental(crawler)
    assert result.events.unknown == 1
    assert live(catalog) == index.shown()


ADD = "add py3 file one-2.0-py3-none-any.whl"


def test_range_before_a_full_crawl_or_outside_the_ledger_is_rejected(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    with pytest.raises(CatalogError, match="full crawl"):
        crawl_incremental(crawler)
    crawl_full(crawler)
    with pytest.raises(UnknownRangeError, match="5-900"):
        crawl_range(crawler, SerialRange(5, 900))


def test_range_is_incomplete_before_its_projects_are_visited(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    before = index.serial
    index.wheel("one", "2.0")
    [serials] = allocate_next_ranges(crawler)
    with pytest.raises(CatalogError, match=naming(serials)):
        read_range(crawler, serials)
    store_changelog(crawler, serials)
    with pytest.raises(CatalogError, match=naming(serials)):
        read_range(crawler, serials)
    with catalog.read() as connection:
        assert complete_serial(connection) == before
    visit_range(crawler, serials)
    read_range(crawler, serials)
    with catalog.read() as connection:
        assert complete_serial(connection) == index.serial
    assert live(catalog) == index.shown()


def test_single_range_can_be_visited(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    index.wheel("one", "2.0")
    [serials] = allocate_next_ranges(crawler)
    assert visit_range(crawler, serials).done == 1
