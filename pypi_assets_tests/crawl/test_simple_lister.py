"""Following by the project list alone: exact serials, and the meaning of a missing list entry."""

from contextlib import nullcontext
from random import Random
from typing import Any

import pytest
from sqlalchemy import select

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.derived.file_history import LISTED
from pypi_assets.catalog.ledger.range_ledger import SIMPLE, XMLRPC
from pypi_assets.catalog.observed.looks import LIST_AGE_S
from pypi_assets.catalog.observed.projects import find_project
from pypi_assets.catalog.publications.dump_registry import DumpError, open_full_dump
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.catalog.reports.live_files import live_files
from pypi_assets.catalog.reports.moments import answerable_serial
from pypi_assets.catalog.reports.project_history import read_history
from pypi_assets.catalog.tables import changes
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import allocate_next_ranges, crawl_incremental, crawl_range
from pypi_assets.crawl.simple_lister import LIST_PAUSE_S, allocate_listed_ranges
from pypi_assets.index.errors import RefusedError
from pypi_assets_tests.crawl.followers import REFUSED, Follower, SilentIndex, add
from pypi_assets_tests.naming import naming


@pytest.mark.nightly
def test_listed_range_rejects_serials_without_an_answer(auto: Follower) -> None:
    index = auto.index
    add(index, "demo")
    crawl_full(auto.crawler)
    start = index.serial
    index.trouble = REFUSED
    index.record_event("demo", None, "docupdate")
    added = add(index, "demo", "2.0")
    seen_at = index.serial
    index.record_event("demo", None, "docupdate")
    add(index, "other")
    [result] = crawl_incremental(auto.crawler)
    end = index.serial
    assert (result.serials.start, result.serials.end, result.lister) == (start, end, SIMPLE)
    assert (result.events.events, result.visits.done, result.unexplained_changes) == (0, 2, 0)
    assert auto.listers() == [None, SIMPLE]
    assert [serial for serial in range(start, end + 1) if auto.answerable(serial)] == [start, end]
    with pytest.raises(CatalogError, match=naming(end - 1, start, end)):
        answerable_serial(auto.catalog, end - 1)
    assert [(span.start, span.end) for span in catalog_status(auto.catalog).inexact_spans] == [(start, end)]
    with auto.catalog.read() as connection:
        assert set(connection.scalars(select(changes.c.cause).where(changes.c.serial > start))) == {LISTED}
    since = {file.filename: file.live_since for file in live_files(auto.catalog)}
    assert seen_at < since[added] <= end  # the serial of the page, which shows the last event as well
    index.trouble = None
    add(index, "third")
    crawl_incremental(auto.crawler)
    assert {file.filename: file.live_since for file in live_files(auto.catalog)}[added] == seen_at
    assert all(auto.answerable(serial) for serial in range(start, index.serial + 1))
    assert auto.listers() == [None, SIMPLE, XMLRPC]
    auto.require_exact()


def test_end_of_listed_range_is_rejected_if_a_page_was_newer(auto: Follower) -> None:
    index = auto.index
    add(index, "demo")
    crawl_full(auto.crawler)
    index.trouble = REFUSED
    add(index, "demo", "2.0")
    [serials] = allocate_next_ranges(auto.crawler)
    add(index, "demo", "3.0")
    crawl_range(auto.crawler, serials)
    assert auto.complete == serials.end
    assert not auto.answerable(serials.end)
    with pytest.raises(DumpError, match=naming(index.serial)):
        open_full_dump(auto.catalog, 1)
    crawl_incremental(auto.crawler)
    assert auto.answerable(index.serial)
    assert open_full_dump(auto.catalog, 1).serials.end == index.serial
    auto.require_exact()


@pytest.mark.nightly
def test_unlisted_project_is_believed_deleted_at_once_and_listed_404_later(auto: Follower) -> None:
    index = auto.index
    for project in ("gone", "hidden", "newer"):
        add(index, project)
    crawl_full(auto.crawler)
    index.trouble = REFUSED
    index.do("remove-project", "gone")
    index.do("quarantine", "hidden")
    newer = add(index, "newer", "2.0")
    [serials] = allocate_next_ranges(auto.crawler)
    index.do("remove-project", "newer")
    before = auto.now
    result = crawl_range(auto.crawler, serials)
    assert (result.visits.done, result.visits.exhausted) == (3, 0)
    assert 600 <= auto.now - before < 3_600
    assert auto.live() == {("newer-1.0-py3-none-any.whl", False)}  # no page was seen of the later changes
    assert not auto.answerable(serials.end)
    before = auto.now
    crawl_incremental(auto.crawler)
    assert auto.now - before < 600
    assert auto.live() == frozenset()
    index.trouble = None
    add(index, "other")
    crawl_incremental(auto.crawler)
    auto.require_exact()
    assert (newer, False) in auto.live(serials.end)


def test_stale_page_of_unlisted_project_is_awaited(auto: Follower) -> None:
    index = auto.index
    add(index, "demo")
    crawl_full(auto.crawler)
    index.do("quarantine", "demo")
    index.trouble = REFUSED
    index.stale = {"demo"}
    index.random.seed(1)
    crawl_incremental(auto.crawler)
    assert auto.live() == frozenset()


def test_list_is_requested_no_more_often_than_configured(auto: Follower) -> None:
    index = auto.index
    add(index, "demo")
    crawl_full(auto.crawler)
    index.trouble = REFUSED
    add(index, "demo", "2.0")
    assert len(allocate_listed_ranges(auto.crawler, 1_800.0)) == 1
    add(index, "demo", "3.0")
    assert allocate_listed_ranges(auto.crawler, 1_800.0) == []
    auto.now += 1_800
    assert len(allocate_listed_ranges(auto.crawler, 1_800.0)) == 1
    auto.now += 1_800
    assert allocate_listed_ranges(auto.crawler) == []  # nothing has changed


def test_list_without_serials_cannot_be_followed(auto: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    add(auto.index, "demo")
    crawl_full(auto.crawler)
    auto.index.trouble = REFUSED
    monkeypatch.setattr(SilentIndex, "iter_listing", lambda _, newer_than: nullcontext((None, iter(()))))
    with pytest.raises(RefusedError):
        crawl_incremental(auto.crawler)


@pytest.mark.nightly
def test_full_crawl_works_with_the_list_alone(auto: Follower) -> None:
    index = auto.index
    add(index, "demo")
    add(index, "other")
    index.trouble = REFUSED
    result = crawl_full(auto.crawler)
    assert (result.crawl.serial, auto.complete) == (index.serial, index.serial)
    index.do("remove-project", "other")
    crawl_full(auto.crawler)
    assert auto.live() == index.shown[result.crawl.serial]  # a later full crawl keeps the complete serial
    assert auto.live(index.serial) == index.shown[index.serial]
    crawl_incremental(auto.crawler)
    assert auto.live() == index.shown[index.serial]
    index.trouble = None
    add(index, "demo", "2.0")
    crawl_incremental(auto.crawler)
    auto.require_exact()


@pytest.mark.nightly
def test_project_missed_by_the_list_is_read_once_its_events_are_stored(auto: Follower) -> None:
    index = auto.index
    add(index, "demo")
    crawl_full(auto.crawler)
    index.trouble = REFUSED
    add(index, "late")
    add(index, "demo", "2.0")
    with index.iter_listing() as (serial, listed):
        index.listing = (serial, [project for project in listed if project.name != "late"])
    crawl_incremental(auto.crawler)
    index.listing = index.trouble = None
    add(index, "demo", "3.0")
    crawl_incremental(auto.crawler)
    assert auto.live() == index.shown[index.serial]
    assert {fact[6] for fact in auto.data()} == {"data"}


def test_project_that_a_list_loses_keeps_its_files_if_its_page_stays(auto: Follower) -> None:
    index = auto.index
    add(index, "demo")
    add(index, "lost")
    crawl_full(auto.crawler)
    index.trouble = REFUSED
    add(index, "demo", "2.0")
    with index.iter_listing() as (serial, listed):
        index.listing = (serial, [project for project in listed if project.name != "lost"])
    before = auto.now
    [result] = crawl_incremental(auto.crawler)
    assert auto.now - before < 3_600
    assert (result.visits.done, result.visits.exhausted) == (2, 0)
    assert auto.live() == index.shown[index.serial]
    assert not auto.answerable(index.serial)  # the list says otherwise
    index.listing = None
    add(index, "demo", "3.0")
    crawl_incremental(auto.crawler)
    assert auto.live() == index.shown[index.serial]
    assert auto.answerable(index.serial)


def test_list_that_lacks_very_many_projects_counts_only_if_a_later_list_lacks_them_too(
    auto: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pypi_assets.crawl.simple_lister.MOST_LOST", 2)
    index = auto.index
    for number in range(6):
        add(index, f"demo{number}")
    crawl_full(auto.crawler)
    index.trouble, auto.lister = REFUSED, SIMPLE
    updated = add(index, "demo0", "2.0")
    with index.iter_listing() as (serial, listed):
        whole = list(listed)
    index.listing = (serial, whole[:1])
    assert crawl_incremental(auto.crawler) == []
    assert auto.listers() == [None]
    assert len(auto.notified) == 1
    index.listing = (serial, whole)
    assert len(crawl_incremental(auto.crawler)) == 1
    assert auto.live() == index.shown[index.serial]
    for number in range(1, 6):
        index.do("remove-project", f"demo{number}")
    index.listing = None
    assert crawl_incremental(auto.crawler) == []  # the earlier list that lacked them was not confirmed
    auto.now += LIST_PAUSE_S - 1
    assert crawl_incremental(auto.crawler) == []
    auto.now += 1
    assert len(crawl_incremental(auto.crawler)) == 1
    assert auto.live() == {("demo0-1.0-py3-none-any.whl", False), (updated, False)}


def test_change_after_failed_visit_has_no_later_first_time(auto: Follower) -> None:
    """The list shows a change at once, and its page only later: the change is not of after the list in between."""
    index = auto.index
    add(index, "demo")
    add(index, "other")
    crawl_full(auto.crawler)
    index.trouble, auto.lister = REFUSED, SIMPLE
    add(index, "other", "2.0")
    auto.now += 10_000
    crawl_incremental(auto.crawler)
    first_look = auto.now
    auto.now += 10_000
    added, added_at = add(index, "demo", "2.0"), auto.now
    index.stale, index.random = {"demo"}, Oldest()
    auto.now += 10_000
    crawl_incremental(auto.crawler)
    assert (added, False) not in auto.live()
    index.stale = set()
    auto.now += 10_000
    add(index, "other", "3.0")
    crawl_incremental(auto.crawler)
    with auto.catalog.read() as connection:
        project = find_project(connection, "demo")
        assert project is not None
        [item] = [one for one in read_history(connection, project) if added in one.live]
    assert item.not_before == first_look - LIST_AGE_S < added_at
    assert item.at == auto.now


class Oldest(Random):
    """Chooses the oldest page."""

    def choice(self, seq: Any) -> Any:
        return seq[0]
