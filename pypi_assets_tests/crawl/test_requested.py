"""Requested visits have one place in the queue and one answer, whoever makes them."""

from collections.abc import Iterator

import pytest

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.reports.next_visits import next_visits
from pypi_assets.catalog.reports.visit_requests import RequestedVisit, RequestState, find_request
from pypi_assets.catalog.work.requested_visits import UnknownProjectsError, request_visits
from pypi_assets.catalog.work.visit_queue import REQUESTED, workload_progress
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.requested import request_now, run_requested
from pypi_assets.index.errors import TransientError
from pypi_assets_tests.crawl.followers import Follower, SilentIndex, add
from pypi_assets_tests.crawl.model_following import draining_in_place
from pypi_assets_tests.crawl.test_second_crawl import change_page
from pypi_assets_tests.served_index import ServedIndex


@pytest.fixture
def follower(catalog: Catalog) -> Iterator[Follower]:
    """Yield a follower of an index with three projects, after its full crawl."""
    follower = Follower(SilentIndex(), catalog)
    for name in ("demo", "other", "third"):
        add(follower.index, name)
    with draining_in_place():
        crawl_full(follower.crawler)
        yield follower


def request(follower: Follower, *names: str) -> list[int]:
    return follower.catalog.transact(lambda connection: request_visits(connection, names, follower.now))


def answer(catalog: Catalog, id_: int, now: float) -> RequestedVisit:
    with catalog.read() as connection:
        found = find_request(connection, id_, now)
    assert found is not None
    return found


def changes(found: RequestedVisit) -> set[tuple[str, str]]:
    return {(one.change, one.filename) for one in found.changed}


def test_project_requested_twice_keeps_its_place(follower: Follower) -> None:
    [first] = request(follower, "demo")
    [third, second] = request(follower, "third", "other")
    assert request(follower, "Demo", "other", "demo") == [first, second]
    found = {id_: answer(follower.catalog, id_, follower.now) for id_ in (first, second, third)}
    assert [(found[id_].state, found[id_].place) for id_ in (first, second, third)] == [
        (RequestState.QUEUED, 1),
        (RequestState.QUEUED, 2),
        (RequestState.QUEUED, 3),
    ]
    with follower.catalog.read() as connection:
        assert workload_progress(connection, REQUESTED).todo == 3
        queued = [one for one in next_visits(connection, 20) if one.workload == REQUESTED]
    assert {one.project: one.place for one in queued} == {one.project: one.place for one in found.values()}


def test_done_visit_answers_what_changed(follower: Follower) -> None:
    index = follower.index
    [demo, other] = request(follower, "demo", "other")
    add(index, "demo", "2.0")
    index.do("yank", "demo", "1.0")
    assert run_requested(follower.crawler) == 2
    found = answer(follower.catalog, demo, follower.now)
    assert (found.state, found.place, found.outcome, found.error) == (RequestState.DONE, None, "full", None)
    assert {change for change, _ in changes(found)} == {"came", "yanked"}
    assert changes(answer(follower.catalog, other, follower.now)) == set()
    assert run_requested(follower.crawler) == 0
    [again] = request(follower, "demo")
    assert again > demo
    index.do("remove-release", "demo", "2.0")
    run_requested(follower.crawler)
    assert {change for change, _ in changes(answer(follower.catalog, again, follower.now))} == {"went"}
    assert answer(follower.catalog, demo, follower.now) == found  # an answer does not change
    with follower.catalog.read() as connection:
        assert workload_progress(connection, REQUESTED).total == 0


def test_next_crawl_makes_requested_visits(follower: Follower) -> None:
    [demo] = request(follower, "demo")
    crawl_incremental(follower.crawler)
    assert answer(follower.catalog, demo, follower.now).state == RequestState.DONE


def test_visit_in_progress_is_running(follower: Follower) -> None:
    [demo] = request(follower, "demo")
    crawler, states = follower.crawler, []
    page = crawler.index.project_page

    def observed_page(project: str) -> object:
        states.append(answer(follower.catalog, demo, follower.now).state)
        return page(project)

    follower.index.project_page = observed_page  # type: ignore[method-assign,assignment]
    run_requested(crawler)
    assert states == [RequestState.RUNNING]


def test_failed_page_stays_queued_with_its_error(follower: Follower) -> None:
    [demo] = request(follower, "demo")

    def failing(_project: str) -> object:
        raise TransientError("HTTP 429", "https://index.example.org/simple/demo/")

    page = follower.index.project_page
    follower.index.project_page = failing  # type: ignore[method-assign,assignment]
    assert run_requested(follower.crawler) == 0
    found = answer(follower.catalog, demo, follower.now)
    assert (found.state, found.place) == (RequestState.QUEUED, 1)
    assert "HTTP 429" in (found.error or "")
    assert found.retry_at is not None
    assert found.retry_at > follower.now
    follower.index.project_page = page  # type: ignore[method-assign]
    follower.now = found.retry_at
    assert run_requested(follower.crawler) == 1
    assert answer(follower.catalog, demo, follower.now).outcome == "full"


def test_unknown_project_is_learnt_from_the_index_or_named(follower: Follower) -> None:
    with pytest.raises(UnknownProjectsError) as raised:
        request(follower, "demo", "new")
    assert raised.value.names == ("new",)
    add(follower.index, "new")
    [new] = request_now(follower.crawler, ["new"])
    run_requested(follower.crawler)
    assert {change for change, _ in changes(answer(follower.catalog, new, follower.now))} == {"came"}
    with pytest.raises(UnknownProjectsError):
        request_now(follower.crawler, ["nowhere"])


def test_catalog_without_a_crawl_makes_no_visits(catalog: Catalog) -> None:
    with pytest.raises(CatalogError):
        request_now(Follower(SilentIndex(), catalog).crawler, ["demo"])


def test_change_without_an_event_is_found(index: ServedIndex, catalog: Catalog) -> None:
    gone = index.wheel("one", "1.0")
    crawl_full(index.crawler(catalog))
    change_page(index, "one", **{gone: None})
    [one] = request_now(index.crawler(catalog), ["one"])
    run_requested(index.crawler(catalog))
    assert changes(answer(catalog, one, catalog.clock())) == {("went", gone)}
