"""Shards of a full crawl: processed in groups, joined, and visited again without an open crawl."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.catalog.database import CatalogError, open_catalog
from pypi_assets.catalog.observed.projects import project_shard
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.work.full_crawls import find_open_crawl, last_completed_crawl
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.full_crawl import crawl_full, list_index, read_each_shard, visit_each_shard
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.naming import naming
from pypi_assets_tests.served_index import ServedIndex, live


@pytest.fixture
def crawler(index: ServedIndex, tmp_path: Path) -> Iterator[Crawler]:
    crawler = index.crawler(open_catalog(sqlite_database(tmp_path / "catalog.sqlite")))
    yield crawler
    crawler.catalog.close()


@pytest.mark.parametrize("group_projects", [1, 500])
def test_each_shard_is_yielded_with_its_numbers(
    index: ServedIndex, crawler: Crawler, monkeypatch: pytest.MonkeyPatch, group_projects: int
) -> None:
    monkeypatch.setattr("pypi_assets.crawl.full_crawl._GROUP_PROJECTS", group_projects)
    index.wheel("alpha", "1.0")
    index.sdist("alpha", "1.0")
    index.raw("beta-1.0.tar.gz", b"no archive")
    list_index(crawler)
    shards = list(range(1_000))
    visited = list(visit_each_shard(crawler, shards))
    assert [finished.shard for finished in visited] == shards
    assert [finished.shard for finished in visited if finished.visits.total] == sorted(
        [project_shard("alpha"), project_shard("beta")]
    )
    read = {finished.shard: finished.reads for finished in read_each_shard(crawler, shards)}
    assert read[project_shard("alpha")].outcomes == {ReadOutcome.DATA: 2}
    assert read[project_shard("beta")].outcomes == {ReadOutcome.ERROR: 1}
    assert sum(sum(reads.outcomes.values()) for reads in read.values()) == 3
    assert read[project_shard("alpha")].bytes_fetched > 0
    with crawler.catalog.read() as connection:
        assert last_completed_crawl(connection) is not None


def test_shards_need_a_full_crawl(crawler: Crawler) -> None:
    with pytest.raises(CatalogError, match=naming("crawl full")):
        list(visit_each_shard(crawler, [7]))


def test_shards_without_open_crawl_revisit_later_projects(index: ServedIndex, crawler: Crawler) -> None:
    index.wheel("alpha", "1.0")
    crawl_full(crawler)
    index.wheel("newcomer", "1.0")
    crawl_incremental(crawler)
    index.wheel("newcomer", "2.0")  # not followed yet
    shard = project_shard("newcomer")
    (finished,) = visit_each_shard(crawler, [shard])
    assert (finished.visits.done, finished.visits.todo) == (1, 0)
    (read,) = read_each_shard(crawler, [shard])
    assert read.reads.outcomes == {ReadOutcome.DATA: 2}
    with crawler.catalog.read() as connection:
        assert find_open_crawl(connection) is None
    # the complete serial stays, and the catalog at this serial still equals the index of that time
    assert {filename for filename, _ in live(crawler.catalog)} == {
        "alpha-1.0-py3-none-any.whl",
        "newcomer-1.0-py3-none-any.whl",
    }
    crawl_incremental(crawler)
    assert live(crawler.catalog) == index.shown()
