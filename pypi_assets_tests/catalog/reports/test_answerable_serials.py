"""Which serials have an answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import insert, update

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.reports.live_files import live_files
from pypi_assets.catalog.reports.moments import answerable_serial, pinned_answer
from pypi_assets.catalog.tables import catalog_state, full_crawls
from pypi_assets_tests.naming import naming
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
        with pytest.raises(CatalogError, match=naming("crawl full")):
            answerable_serial(small.catalog, serial)


def test_those_from_the_first_exact_one_to_the_complete_one(small: SmallCatalog) -> None:
    crawled(small, exact_from=10)
    small.complete(25)
    assert [answerable_serial(small.catalog, serial) for serial in (None, 10, 17, 25)] == [25, 10, 17, 25]
    for serial in (0, 9, 26):
        with pytest.raises(CatalogError, match=naming(serial, 10, 25)):
            answerable_serial(small.catalog, serial)


def test_none_but_the_present_while_pages_were_newer_than_the_ranges_reach(small: SmallCatalog) -> None:
    crawled(small, exact_from=15)
    assert answerable_serial(small.catalog) == 10
    with pytest.raises(CatalogError, match=naming(15, 10, "crawl incremental")):
        answerable_serial(small.catalog, 10)


def test_an_answer_that_changes_meanwhile_is_given_again(small: SmallCatalog) -> None:
    """So what it shows is never of another epoch than the one that is named."""
    small.add(5, "demo", "1.0", "demo-1.0.tar.gz", modules=None)
    small.complete(10)
    shown: list[str] = []

    def answer() -> str:
        [file] = live_files(small.catalog, 10)
        shown.append(file.outcome)
        if len(shown) == 1:
            small.read("demo-1.0.tar.gz", ("demo",), ())
        return file.outcome

    assert pinned_answer(small.catalog, 10, answer) == ("data", 11)
    assert shown == ["error", "data"]
