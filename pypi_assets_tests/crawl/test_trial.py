"""A trial visits a few projects, completes nothing, and a full crawl continues it to the whole index."""

from pathlib import Path

import pytest
from sqlalchemy import select

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.publications.dump_registry import DumpError
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.catalog.tables import projects, read_attempts, visit_queue
from pypi_assets.catalog.work.full_crawls import find_open_crawl, last_completed_crawl
from pypi_assets.components import catalog_from, crawler_from, index_from, storage_from
from pypi_assets.crawl.full_crawl import crawl_full, list_index, read_each_shard, visit_each_shard
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.settings import load_settings
from pypi_assets.upkeep.due import due_crawl
from pypi_assets_tests.served_index import ServedIndex, live, shared_readers
from pypi_assets_tests.served_pages import served_pages

NAMES = ("one", "two", "three", "four", "five")


@pytest.fixture
def filled(index: ServedIndex) -> ServedIndex:
    """Return an index of five projects, of which `five` changed last."""
    for name in NAMES:
        index.wheel(name, "1.0")
    return index


def visited(catalog: Catalog) -> list[str]:
    query = select(projects.c.normalized).where(projects.c.page_serial.is_not(None))
    with catalog.read() as connection:
        return sorted(connection.scalars(query))


def test_trial_visits_the_projects_that_changed_last(filled: ServedIndex, catalog: Catalog) -> None:
    crawler = filled.crawler(catalog)
    result = crawl_full(crawler, limit=2)
    assert (result.listing.projects, result.visits.done, result.reads.data) == (2, 2, 2)
    assert visited(catalog) == ["five", "four"]
    filled.wheel("one", "2.0")  # the trial keeps its projects
    again = crawl_full(crawler, limit=2)
    assert (again.crawl.id, again.visits.done, again.reads.data) == (result.crawl.id, 2, 0)
    assert visited(catalog) == ["five", "four"]
    assert crawl_full(crawler, limit=3).listing.projects == 3
    assert visited(catalog) == ["five", "four", "one"]


def test_trial_never_counts_as_complete(filled: ServedIndex, catalog: Catalog) -> None:
    crawler = filled.crawler(catalog)
    crawl_full(crawler, limit=100)  # even if it has visited every project
    assert visited(catalog) == sorted(NAMES)
    status, due = catalog_status(catalog), due_crawl(catalog)
    assert status.open_crawl is not None
    assert (status.open_crawl.limited_to, status.open_crawl.projects_done) == (100, 5)
    assert not status.complete_serial
    assert (status.exact_from, status.last_crawl_completed_at) == (None, None)
    assert (due.is_due, due.is_followable, due.completed) == (True, False, None)
    with catalog.read() as connection:
        assert not complete_serial(connection)
    with pytest.raises(DumpError, match="100"):
        full_dump(catalog, filled.storage, 1)
    with pytest.raises(CatalogError):
        crawl_incremental(crawler)
    with pytest.raises(CatalogError):
        list(visit_each_shard(crawler, range(1_000)))
    with pytest.raises(CatalogError):
        list(read_each_shard(crawler, range(1_000)))
    with catalog.read() as connection:
        assert last_completed_crawl(connection) is None


@pytest.mark.parametrize("lister", ["xmlrpc", "simple"])
def test_full_crawl_continues_a_trial_to_the_whole(filled: ServedIndex, catalog: Catalog, lister: str) -> None:
    crawler = filled.crawler(catalog, lister=lister)
    trial = crawl_full(crawler, limit=2).crawl
    filled.wheel("five", "2.0")  # changes of projects in the trial and outside it, before the whole list
    filled.history.remove_project("four")
    filled.history.yank("one", "1.0")
    filled.wheel("six", "1.0")
    result = crawl_full(crawler)
    assert result.crawl.id == trial.id
    assert (result.crawl.limited_to, result.visits.exhausted) == (None, 0)
    assert catalog_status(catalog).open_crawl is None
    with catalog.read() as connection:
        attempts = list(connection.scalars(select(read_attempts.c.distribution_id)))
        assert complete_serial(connection) == trial.serial
    assert len(attempts) == len(set(attempts))  # files of the trial are not read again
    crawl_incremental(crawler)
    assert live(catalog) == filled.shown()
    assert full_dump(catalog, filled.storage, 1).rows == len(filled.shown())
    with pytest.raises(CatalogError):
        crawl_full(crawler, limit=2)


def test_shards_continue_a_trial_once_the_index_is_listed(filled: ServedIndex, catalog: Catalog) -> None:
    crawler = filled.crawler(catalog)
    crawl_full(crawler, limit=1)
    crawl, listing = list_index(crawler)
    assert (crawl.limited_to, listing.projects) == (None, len(NAMES))
    visits = sum(one.visits.done for one in visit_each_shard(crawler, range(1_000)))
    assert visits == len(NAMES)
    list(read_each_shard(crawler, range(1_000)))
    with catalog.read() as connection:
        assert find_open_crawl(connection) is None
    crawl_incremental(crawler)
    assert live(catalog) == filled.shown()


def test_smaller_limit_unqueues_pending_visits(filled: ServedIndex, catalog: Catalog) -> None:
    crawler = filled.crawler(catalog)
    list_index(crawler, limit=4)
    _, listing = list_index(crawler, limit=1)
    with catalog.read() as connection:
        query = select(projects.c.normalized).join(visit_queue, visit_queue.c.project_id == projects.c.id)
        assert (listing.projects, list(connection.scalars(query))) == (1, ["five"])


def test_limit_is_rejected_unless_the_catalog_is_new(filled: ServedIndex, catalog: Catalog) -> None:
    with pytest.raises(CatalogError, match="PYPI_ASSETS_PROJECTS"):
        crawl_full(filled.crawler(catalog, selection=Selection(frozenset({"one"}))), limit=1)
    crawler = filled.crawler(catalog)
    list_index(crawler)
    with pytest.raises(CatalogError):
        crawl_full(crawler, limit=1)
    crawl_full(crawler)
    assert live(catalog) == filled.shown()


def test_trial_of_an_observed_index_polls_all_and_reads_a_few(tmp_path: Path) -> None:
    with served_pages(tmp_path / "served") as index:
        for name in NAMES:
            index.wheel(name, "1.0")
        settings = load_settings(
            lister="pages", index_url=index.url, home=tmp_path / "home", poll_shortest_s=0, poll_confirm_s=0
        )
        catalog = catalog_from(settings)
        with index_from(settings, catalog) as opened:
            crawler = crawler_from(settings, opened, catalog, storage_from(settings), shared_readers())
            assert crawl_full(crawler, limit=2).reads.data == 2
            assert catalog_status(catalog).live_distributions == 2
            index.wheel("one", "2.0")
            assert crawl_full(crawler).reads.data >= 3
            crawl_incremental(crawler, everything=True)
            assert live(catalog) == index.shown()
        catalog.close()
