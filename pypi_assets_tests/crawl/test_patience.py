"""Rule 4: every distribution and every visit has an outcome, and a failure keeps no other one waiting."""

import time
import xmlrpc.client
from dataclasses import replace

import pytest
from starlette.responses import PlainTextResponse, Response

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.ledger.range_ledger import UnknownRangeError, allocate_range, complete_serial
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.events import events_through
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.catalog.reports.failures import list_failures
from pypi_assets.catalog.work.full_crawls import find_open_crawl
from pypi_assets.catalog.work.retries import retry_failed_reads, retry_failed_visits
from pypi_assets.crawl.full_crawl import crawl_full, list_index
from pypi_assets.crawl.incremental_crawl import crawl_incremental, crawl_range
from pypi_assets.crawl.reading import read_scope
from pypi_assets.crawl.retry import retry
from pypi_assets.crawl.stored_events import catch_up
from pypi_assets.crawl.visiting import visit_scope
from pypi_assets.index.errors import TransientError
from pypi_assets.progress import Progress
from pypi_assets_tests.served_index import JSON, ServedIndex, live, logged_changes, served_index


def fail(path: str, *, status: int = 503, times: int = 10**9):
    """Faults: the first `times` requests for paths that hold `path` are answered with `status`."""
    left = [times]

    def answer(request):
        if path not in request.url.path or left[0] == 0:
            return None
        left[0] -= 1
        return PlainTextResponse("out of order", status)

    return answer


def test_a_range_whose_one_project_always_fails_ends(index: ServedIndex, catalog: Catalog):
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
        [scope] = retry_failed_visits(connection, "bad")
    visit_scope(crawler, scope)
    read_scope(crawler, scope)
    status = catalog_status(catalog)
    assert (status.failed_visits, status.outcomes["data"], status.outcomes["gave up"]) == (0, 5, 0)


def test_what_fails_for_a_while_is_tried_again(index: ServedIndex, catalog: Catalog):
    reported: list[Progress] = []
    crawler = index.crawler(catalog, retry_pause_s=1.0, retry_deadline_s=60, report=reported.append)
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


@pytest.mark.parametrize("path", ["/simple/one/", "/one-1.0-"])
def test_nothing_is_requested_again_before_the_index_allows_it(index: ServedIndex, catalog: Catalog, path: str):
    index.wheel("one", "1.0")
    now = time.time()
    requested_at = []

    def pass_time(seconds: float) -> None:
        nonlocal now
        now += seconds

    def answer(request):
        if path not in request.url.path:
            return None
        requested_at.append(now)
        return PlainTextResponse("later", 503, {"Retry-After": "1000"}) if len(requested_at) == 1 else None

    index.faults = answer
    in_time = replace(catalog, clock=lambda: now)
    result = crawl_full(index.crawler(in_time, sleep=pass_time, retry_deadline_s=5_000))
    assert result.reads.data == 1
    assert [at - requested_at[0] >= 1_000 for at in requested_at] == [False, True]


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


def test_a_stale_page_is_retried_until_it_is_new_enough(index: ServedIndex, catalog: Catalog):
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


def test_a_page_still_stale_at_the_deadline_is_judged_by_events_alone(index: ServedIndex, catalog: Catalog):
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


def test_a_404_that_an_event_explains_is_true_at_once(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    index.wheel("two", "1.0")
    crawler = index.crawler(catalog, retry_deadline_s=10**6)
    crawl_full(crawler)
    index.history.remove_project("one")
    crawl_incremental(crawler)
    assert live(catalog) == index.shown()


def test_a_404_after_other_failures_is_not_believed_at_the_deadline(index: ServedIndex, catalog: Catalog):
    """It may be a cache's, and one answer is no proof: the visit is exhausted, and retried later."""
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

    later = replace(catalog, clock=lambda: sum(passed))  # by these steps alone
    [result] = crawl_incremental(index.crawler(later, sleep=pass_time, retry_deadline_s=1800))
    assert result.visits.exhausted == 1
    assert live(catalog) == index.shown()  # known from the events
    index.faults = None
    retry(crawler)
    assert catalog_status(catalog).failed_visits == 0
    assert live(catalog) == index.shown()


def test_a_404_that_no_event_explains_is_believed_at_the_deadline(index: ServedIndex, catalog: Catalog):
    wheel = index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    index.wheel("one", "2.0")
    index.faults = fail("/simple/one/", status=404)
    crawl_incremental(crawler)
    assert live(catalog) == set()
    assert (wheel, "unexplained") in {(filename, cause) for filename, _, cause in logged_changes(catalog, "one")}


def test_unknown_actions_are_counted(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    index.wheel("one", "2.0")

    def rename_one_action(request):
        if request.url.path == "/pypi" and b"changelog_since" in request.state.body:
            rows = [["one", None, 1, "frobnicate thoroughly", index.serial - 1], ["one", "2.0", 1, ADD, index.serial]]
            return Response(_xmlrpc(rows), media_type="text/xml")
        return None

    index.faults = rename_one_action
    [result] = crawl_incremental(crawler)
    assert result.events.unknown == 1
    assert live(catalog) == index.shown()


ADD = "add py3 file one-2.0-py3-none-any.whl"


def test_an_index_that_goes_backwards_changes_nothing(index: ServedIndex, catalog: Catalog, tmp_path):
    index.wheel("one", "1.0")
    index.wheel("two", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    index.faults = lambda request: (
        Response(_xmlrpc(3), media_type="text/xml")
        if request.url.path == "/pypi" and b"last_serial" in request.state.body
        else None
    )
    before = live(catalog)
    with pytest.raises(CatalogError, match="backwards"):
        crawl_incremental(crawler)
    with pytest.raises(CatalogError, match="backwards"):
        crawl_full(crawler)
    assert live(catalog) == before
    with catalog.read() as connection:
        assert find_open_crawl(connection) is None


def test_an_index_that_goes_backwards_stops_a_full_crawl_that_is_open(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    list_index(crawler)
    index.faults = lambda request: (
        Response(_xmlrpc(index.serial - 1), media_type="text/xml") if request.url.path == "/pypi" else None
    )
    with pytest.raises(CatalogError, match="gone backwards"):
        crawl_full(crawler)
    assert live(catalog) == set()


def test_an_index_that_went_backwards_and_on_again_is_noticed(index: ServedIndex, catalog: Catalog, tmp_path):
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
        with pytest.raises(CatalogError, match="is not what the catalog has"):
            catch_up(index.crawler(catalog, index=restored.client()), restored.serial)
    assert live(catalog) == before
    with catalog.read() as connection:
        assert events_through(connection) == serial


def test_ranges_are_refused_before_a_full_crawl_and_beyond_the_ledger(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    with pytest.raises(CatalogError, match="full crawl"):
        crawl_incremental(crawler)
    crawl_full(crawler)
    with pytest.raises(UnknownRangeError, match="5-900"):
        crawl_range(crawler, SerialRange(5, 900))


def test_a_selection_limits_listing_and_ranges(index: ServedIndex, catalog: Catalog):
    for name in ("one", "two", "Three.x"):
        index.wheel(name, "1.0")
    crawler = index.crawler(catalog, selection=Selection(frozenset({"one", "three-x", "absent"})))
    result = crawl_full(crawler)
    assert result.listing.missing == ("absent",)
    assert {name.split("-")[0] for name, _ in live(catalog)} == {"one", "three_x"}
    index.wheel("two", "2.0")
    index.wheel("one", "2.0")
    crawl_incremental(crawler)
    assert {name for name, _ in live(catalog)} == {
        "one-1.0-py3-none-any.whl",
        "one-2.0-py3-none-any.whl",
        "three_x-1.0-py3-none-any.whl",
    }
    more = replace(crawler, selection=Selection(frozenset({"one", "three-x", "absent", "two"})))
    with pytest.raises(CatalogError, match="PYPI_ASSETS_PROJECTS"):
        crawl_incremental(more)
    crawl_full(more)
    status = catalog_status(catalog)
    assert status.exact_from == index.serial
    crawl_incremental(more)
    assert live(catalog) == index.shown()
    index.wheel("two", "3.0")
    crawl_incremental(more)
    assert live(catalog) == index.shown()
    with pytest.raises(CatalogError, match="two"):
        crawl_full(crawler)


def test_another_index_is_refused(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawl_full(index.crawler(catalog))
    elsewhere = index.crawler(catalog, index=replace_url(index))
    with pytest.raises(CatalogError, match="PYPI_ASSETS_INDEX_URL"):
        crawl_incremental(elsewhere)


def replace_url(index: ServedIndex):
    other = ServedIndex.client(index)
    other.index_url = index.url.replace("127.0.0.1", "localhost")
    return other


def _xmlrpc(value: object) -> str:
    return xmlrpc.client.dumps((value,), methodresponse=True, allow_none=True)  # type: ignore[arg-type]


def test_a_crawl_that_has_begun_waits_for_the_list_and_for_the_changelog(index: ServedIndex, catalog: Catalog):
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


def test_a_crawl_that_cannot_begin_fails_at_once(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    index.faults = fail("/pypi")
    with pytest.raises(TransientError, match="503"):
        crawl_full(index.crawler(catalog, retry_deadline_s=30.0, lister="xmlrpc"))
