"""Totals over all that is live: counted each time on a small catalog, and once an hour on a large one."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.upkeep import live_totals as module
from pypi_assets.upkeep.live_totals import RECOUNTED_AFTER_S, LiveTotals, live_totals
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.served_index import ServedIndex, served_index


@pytest.fixture
def index(tmp_path: Path) -> Iterator[ServedIndex]:
    with served_index(tmp_path / "served") as served:
        served.wheel("demo", "1.0")
        served.raw("broken-1.0-py3-none-any.whl", b"no zip")
        yield served


@pytest.fixture
def catalog(index: ServedIndex, tmp_path: Path) -> Iterator[Catalog]:
    opened = open_catalog(sqlite_database(tmp_path / "catalog.sqlite"))
    crawl_full(index.crawler(opened))
    yield opened
    opened.close()


def test_a_small_catalog_is_counted_each_time(index: ServedIndex, catalog: Catalog) -> None:
    first = live_totals(catalog, None)
    assert (first.live, first.read, first.failed) == (2, 1, 1)
    index.wheel("demo", "2.0")
    index.history.remove_project("broken")
    crawl_incremental(index.crawler(catalog))
    now = live_totals(catalog, first)
    assert (now.live, now.read, now.failed) == (2, 2, 0)


def test_a_large_catalog_is_counted_once_an_hour(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COUNTED_EACH_TIME", 1)
    before = LiveTotals(10, 9, 1, counted_at=catalog.clock() - RECOUNTED_AFTER_S + 60)
    assert live_totals(catalog, before) == before
    old = replace(before, counted_at=before.counted_at - 61)
    assert live_totals(catalog, old).live == 2
