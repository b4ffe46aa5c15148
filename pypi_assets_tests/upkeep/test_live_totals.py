"""Totals over all that is live follow from counts that are kept, and counting again corrects these."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import delete

from pypi_assets.catalog.counters import add_counts
from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.tables import counters
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.upkeep.live_totals import LiveTotals, live_totals, recount
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


def test_totals_follow_each_range(index: ServedIndex, catalog: Catalog) -> None:
    assert live_totals(catalog) == LiveTotals(live=2, read=1, failed=1)
    index.wheel("demo", "2.0")
    index.history.remove_project("broken")
    crawl_incremental(index.crawler(catalog))
    assert live_totals(catalog) == LiveTotals(live=2, read=2, failed=0)
    assert recount(catalog) == {}


def test_counting_again_corrects_what_differs(catalog: Catalog) -> None:
    with catalog.write() as connection:
        connection.execute(delete(counters).where(counters.c.name == "live: data"))
        add_counts(connection, {"reads in the queue": 5})
    assert live_totals(catalog).read == 0
    assert recount(catalog) == {"live: data": 1, "reads in the queue": -5}
    assert live_totals(catalog) == LiveTotals(live=2, read=1, failed=1)
    assert recount(catalog) == {}
