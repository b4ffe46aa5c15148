"""Which serials have an answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import insert, update

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.reports.answerable_serials import answerable_serial
from pypi_assets.catalog.tables import catalog_state, full_crawls
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


@pytest.fixture
def small(tmp_path: Path, database_url: str) -> Iterator[SmallCatalog]:
    made = small_catalog(tmp_path, database_url)
    yield made
    made.catalog.close()


def crawled(small: SmallCatalog, exact_from: int) -> None:
    with small.catalog.write() as connection:
        crawl = {"serial": 10, "selection": "[]", "opened_at": 0.0, "listed_at": 0.0, "completed_at": 0.0}
        connection.execute(insert(full_crawls).values(**crawl))
        connection.execute(update(catalog_state).values(exact_from=exact_from))
    small.complete(10)


def test_none_before_a_full_crawl_is_complete(small: SmallCatalog) -> None:
    for serial in (None, 0, 10):
        with pytest.raises(CatalogError, match="no full crawl is complete yet"):
            answerable_serial(small.catalog, serial)


def test_those_from_the_first_exact_one_to_the_complete_one(small: SmallCatalog) -> None:
    crawled(small, exact_from=10)
    small.complete(25)
    assert [answerable_serial(small.catalog, serial) for serial in (None, 10, 17, 25)] == [25, 10, 17, 25]
    for serial in (0, 9, 26):
        with pytest.raises(CatalogError, match=f"no answer for serial {serial}, only for serials 10 to 25"):
            answerable_serial(small.catalog, serial)


def test_none_but_the_present_while_pages_were_newer_than_the_ranges_reach(small: SmallCatalog) -> None:
    crawled(small, exact_from=15)
    assert answerable_serial(small.catalog) == 10
    with pytest.raises(
        CatalogError, match="exact from serial 15 on, and complete up to 10; run `pypi-assets crawl inc"
    ):
        answerable_serial(small.catalog, 10)
