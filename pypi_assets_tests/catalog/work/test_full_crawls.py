"""Entering the index's list of projects into the catalog, and the listed projects that a full crawl visits."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, delete, func, select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.events import store_earlier_events
from pypi_assets.catalog.observed.projects import (
    Selection,
    enter_projects,
    find_project,
    know_from_the_beginning,
    project_bucket,
    project_shard,
)
from pypi_assets.catalog.tables import projects, visit_queue
from pypi_assets.catalog.work import full_crawls
from pypi_assets.catalog.work.full_crawls import (
    CrawlListing,
    FullCrawl,
    complete_crawl,
    find_open_crawl,
    list_projects,
    open_crawl,
    read_crawl,
)
from pypi_assets.catalog.work.visit_queue import shards_with_projects
from pypi_assets.index.models import ListedProject

SERIAL = 100


NAMES = [f"Project_{number}" for number in range(25)]


@pytest.fixture
def crawl(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> FullCrawl:
    """Open a crawl that lists ten projects at a time."""
    monkeypatch.setattr(full_crawls, "_LISTED_AT_A_TIME", 10)
    return open_crawl(catalog, SERIAL, SERIAL, "https://index.example.org/simple/", Selection())


def listed() -> list[ListedProject]:
    return [ListedProject(name, number) for number, name in enumerate(NAMES)]


def queued(catalog: Catalog) -> list[tuple[str, str, int, int, int]]:
    columns = (projects.c.name, projects.c.normalized, projects.c.bucket, projects.c.shard, visit_queue.c.min_serial)
    query = select(*columns).join(visit_queue, visit_queue.c.project_id == projects.c.id)
    with catalog.read() as connection:
        return [tuple(row) for row in connection.execute(query.where(visit_queue.c.shard == projects.c.shard))]


def test_projects_are_entered_with_shards_and_visited_once(catalog: Catalog, crawl: FullCrawl):
    assert list_projects(catalog, crawl, listed(), SERIAL) == CrawlListing(len(NAMES), ())
    normalized = [name.lower().replace("_", "-") for name in NAMES]
    assert sorted(queued(catalog)) == sorted(
        (shown, name, project_bucket(name), project_shard(name), serial)
        for serial, (shown, name) in enumerate(zip(NAMES, normalized, strict=True))
    )
    with catalog.read() as connection:
        assert sum(shards_with_projects(connection, crawl.workload).values()) == len(NAMES)


@pytest.mark.parametrize("came", [0, 5, 10, 24])
def test_stopped_listing_restarts_from_the_beginning(catalog: Catalog, crawl: FullCrawl, came: int):
    def stopped() -> Iterator[ListedProject]:
        yield from listed()[:came]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list_projects(catalog, crawl, stopped(), SERIAL)
    with catalog.read() as connection:
        joined = find_open_crawl(connection)
        assert joined is not None
        assert joined.listed_at is None
        assert connection.scalar(select(func.count()).select_from(visit_queue)) == came // 10 * 10
    assert list_projects(catalog, joined, listed(), SERIAL).projects == len(NAMES)
    assert sorted(row[4] for row in queued(catalog)) == list(range(len(NAMES)))


def test_two_listed_spellings_are_one_project(catalog: Catalog, crawl: FullCrawl):
    twice = [ListedProject("Demo_Pkg", 7), *listed(), ListedProject("demo-pkg", 8)]
    assert list_projects(catalog, crawl, twice, SERIAL).projects == len(NAMES) + 1


def test_no_page_must_be_newer_than_the_crawl(catalog: Catalog, crawl: FullCrawl):
    list_projects(catalog, crawl, [ListedProject("newer", SERIAL + 1), ListedProject("untold", None)], None)
    assert sorted(row[4] for row in queued(catalog)) == [0, SERIAL]


@pytest.mark.parametrize("came", [3, 15, 25])
def test_crawl_is_listed_once(catalog: Catalog, crawl: FullCrawl, came: int):
    """A second process that lists the crawl at the same time adds nothing once the first has listed it."""

    def later() -> Iterator[ListedProject]:
        yield from listed()[:came]
        list_projects(catalog, crawl, listed()[:20], SERIAL, with_history=True)
        yield ListedProject("new", 7)
        yield from listed()[came:]

    assert list_projects(catalog, crawl, later(), SERIAL + 5) == CrawlListing(20, ())
    assert len(queued(catalog)) == 20
    with catalog.read() as connection:
        now = read_crawl(connection, crawl.id)
    assert (now.listed_serial, now.with_history) == (SERIAL, True)


def test_wider_selection_keeps_the_history_of_followed_projects(catalog: Catalog):
    url, few = "https://index.example.org/simple/", Selection(frozenset({"one"}))
    crawl = open_crawl(catalog, SERIAL, SERIAL, url, few)
    list_projects(catalog, crawl, [ListedProject("one", 1)], SERIAL)
    store_earlier_events(catalog, [], 0, SERIAL, few)
    with catalog.write() as connection:
        know_from_the_beginning(connection, few.names)
        connection.execute(delete(visit_queue))
    assert complete_crawl(catalog, crawl)
    with catalog.read() as connection:
        assert known_since(connection, "one") == 0
    open_crawl(catalog, SERIAL + 5, SERIAL, url, Selection(frozenset({"one", "two"})))
    with catalog.write() as connection:
        enter_projects(connection, [("two", SERIAL)])
        assert (known_since(connection, "one"), known_since(connection, "two")) == (0, SERIAL)


def known_since(connection: Connection, name: str) -> int | None:
    project = find_project(connection, name)
    return project and project.known_since
