"""Both listers have one contract: the changelog and, without a changelog, the project list lead to the same state."""

import xmlrpc.client
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from starlette.responses import PlainTextResponse, Response

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.derived.file_history import UNEXPLAINED
from pypi_assets.catalog.ledger.range_ledger import SIMPLE, XMLRPC, inexact_spans
from pypi_assets.catalog.observed.index_state import OvertakenError, changelog_trouble, read_lister_state
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.catalog.tables import changes
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import allocate_next_ranges, crawl_incremental, crawl_range
from pypi_assets.crawl.listers import AUTO, run_lister
from pypi_assets.crawl.simple_lister import ComparedList, SimpleLister
from pypi_assets.index.errors import RefusedError, TransientError
from pypi_assets.index.models import ListedProject
from pypi_assets_tests.crawl.followers import BUSY, REFUSED, Follower, SilentIndex, add, follower, operations
from pypi_assets_tests.examples import examples
from pypi_assets_tests.naming import naming
from pypi_assets_tests.served_index import ServedIndex
from pypi_assets_tests.served_index import live as served_live


def fault(code: int, text: str) -> str:
    return xmlrpc.client.dumps(xmlrpc.client.Fault(code, text), methodresponse=True)


@pytest.mark.nightly
def test_failing_changelog_is_awaited_and_used_again(auto: Follower) -> None:
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


def test_changelog_can_disappear_while_projects_are_visited(auto: Follower) -> None:
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


def test_configured_lister_is_not_replaced(catalog: Catalog) -> None:
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
def test_index_with_rejected_changelog_is_followed_by_the_list(
    index: ServedIndex, catalog: Catalog, refusal: Response
) -> None:
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


steps = st.lists(
    st.tuples(st.lists(operations, max_size=6), st.booleans(), st.booleans(), st.lists(operations, max_size=2)),
    max_size=5,
)
"""Before each crawl: what happens; whether the changelog is off, whether the list is cached; what happens meanwhile."""


@pytest.mark.nightly
@settings(max_examples=examples(20), suppress_health_check=list(HealthCheck))
@given(before=st.lists(operations, max_size=8), steps=steps, starts_off=st.booleans(), seed=st.integers(0, 99))
def test_every_answer_is_true_with_any_lister(before, steps, starts_off, seed):
    auto = follower(AUTO)
    index = auto.index
    for operation in before:
        index.happen(*operation)
    index.trouble = REFUSED if starts_off else None
    crawl_full(auto.crawler)
    for happens, is_off, is_cached, meanwhile in steps:
        for operation in happens:
            index.happen(*operation)
        index.trouble = REFUSED if is_off else None
        index.is_cached = is_cached
        index.random.seed(seed)
        left = list(meanwhile)

        def move(left: list[Any] = left) -> None:
            if left and index.random.random() < 0.3:
                index.happen(*left.pop())

        index.before_answer = move
        crawl_incremental(auto.crawler)
        index.before_answer = lambda: None
        auto.require_exact()
    index.trouble, index.is_cached = REFUSED, False
    for _ in range(2):  # the second list shows the removals during the first crawl
        crawl_incremental(auto.crawler)
    assert auto.live() == index.shown[index.serial]
    auto.require_exact()
    index.trouble = None
    add(index, "delta", "9.0")
    crawl_incremental(auto.crawler)
    assert auto.live() == index.shown[index.serial]
    with auto.catalog.read() as connection:
        assert inexact_spans(connection) == []
        causes = set(connection.scalars(select(changes.c.cause)))
    assert UNEXPLAINED not in causes
    auto.require_exact()
    status = catalog_status(auto.catalog)
    assert all(auto.answerable(serial) for serial in range(status.exact_from, status.complete_serial + 1))


@settings(max_examples=examples(15), suppress_health_check=list(HealthCheck))
@given(history=st.lists(st.lists(operations, max_size=8), min_size=1, max_size=4))
def test_both_listers_produce_the_same_files_flags_and_data(history):
    one, other = follower(XMLRPC), follower(SIMPLE, REFUSED)
    crawl_full(one.crawler)
    crawl_full(other.crawler)
    for happens in history:
        for operation in happens:
            one.index.happen(*operation)
            other.index.happen(*operation)
        crawl_incremental(one.crawler)
        crawl_incremental(other.crawler)
        assert one.data() == other.data()
        assert one.live() == other.live() == one.index.shown[one.index.serial]


def test_one_of_two_concurrent_runs_continues(auto: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    index = auto.index
    for number in range(4):
        add(index, f"demo{number}")
    crawl_full(auto.crawler)
    for number in range(4):
        add(index, f"demo{number}", "2.0")
    monkeypatch.setattr("pypi_assets.crawl.simple_lister._PROJECTS_A_PAGE", 1)
    crawler = auto.crawler
    with index.iter_listing() as (serial, listed), index.iter_listing() as (_, listed_again):
        slower = SimpleLister(crawler, ComparedList(crawler, serial or 0, _after(1, listed, crawler, listed_again)))
        with pytest.raises(OvertakenError):
            run_lister(crawler, slower)
    assert auto.listers() == [None, SIMPLE]
    crawl_incremental(auto.crawler)
    assert auto.live() == index.shown[index.serial]


def _after(
    count: int, listed: Iterable[ListedProject], crawler: Crawler, again: Iterable[ListedProject]
) -> Iterator[ListedProject]:
    """Yield the listed projects. After `count` projects, another run compares the whole list."""
    for position, project in enumerate(listed):
        if position == count:
            run_lister(crawler, SimpleLister(crawler, ComparedList(crawler, crawler.index.last_serial(), again)))
        yield project


def test_killed_listing_is_continued_by_the_next(auto: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    index = auto.index
    for number in range(4):
        add(index, f"demo{number}")
    crawl_full(auto.crawler)
    index.trouble = REFUSED
    for number in range(4):
        add(index, f"demo{number}", "2.0")
    monkeypatch.setattr("pypi_assets.crawl.simple_lister._PROJECTS_A_PAGE", 1)
    crawler = auto.crawler
    with index.iter_listing() as (serial, listed), pytest.raises(KeyError):
        run_lister(crawler, SimpleLister(crawler, ComparedList(crawler, serial or 0, _broken_off(listed))))
    assert auto.listers() == [None]
    with auto.catalog.read() as connection:
        state = read_lister_state(connection, SIMPLE, index.index_url)
    assert (state.content, state.revision) == ({"serial": index.serial, "projects": 2}, 2)
    add(index, "demo0", "3.0")
    crawl_incremental(auto.crawler)
    assert auto.live() == index.shown[index.serial]
    auto.require_exact()


def _broken_off(listed: Iterable[ListedProject]) -> Iterator[ListedProject]:
    rest = iter(listed)
    yield next(rest)
    yield next(rest)
    raise KeyError
