"""The lag of look-ups, totals over all live files, and errors that can disappear by themselves."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import delete
from sqlalchemy.exc import IntegrityError, OperationalError

from pypi_assets.catalog.coordination.leases import LeaseTakenError
from pypi_assets.catalog.counters import add_counts
from pypi_assets.catalog.database import Catalog, CatalogError, open_catalog
from pypi_assets.catalog.tables import counters
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.index.errors import RefusedError, TransientError
from pypi_assets.leveldbs.versions.build_need import BuildNeed, Need
from pypi_assets.storage.store import StorageError
from pypi_assets.upkeep.answers import AnswersLag, answers_lag
from pypi_assets.upkeep.due import DatasetDue
from pypi_assets.upkeep.live_totals import LiveTotals, live_totals, recount
from pypi_assets.upkeep.transient import is_transient
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.served_index import ServedIndex, served_index

NOW = 10_000.0


def dataset(serial: int | None, lacks_since: float | None = None) -> DatasetDue:
    need = BuildNeed("demo", Need.HELD if serial else Need.NO_VERSION, "", None if serial is None else 1, serial)
    return DatasetDue(need, lacks_since, lags_dumps=False, full_dump_at=None)


def lag(index_serial: int | None, lagging_since: float | None = None, **datasets: DatasetDue) -> AnswersLag:
    return answers_lag(datasets, index_serial, lagging_since, NOW)


def test_lookups_as_new_as_the_index_do_not_lag() -> None:
    found = lag(100, modules=dataset(100), hashes=dataset(100))
    assert (found.serial, found.serials, found.seconds, found.without_version) == (100, 0, 0.0, ())


def test_lag_is_the_largest_of_all_datasets() -> None:
    found = lag(100, modules=dataset(100), hashes=dataset(90, NOW - 60), depgraph=dataset(95, NOW - 20))
    assert (found.serial, found.serials, found.seconds) == (90, 10, 60.0)


def test_lag_counts_events_missing_from_the_catalog() -> None:
    found = lag(103, NOW - 7, modules=dataset(100))
    assert (found.serials, found.seconds) == (3, 7.0)


def test_unknown_lag_is_none() -> None:
    assert (lag(None, modules=dataset(100)).serials, lag(None, modules=dataset(100)).seconds) == (None, None)
    assert lag(None, modules=dataset(100, NOW - 9)).seconds == 9.0
    assert lag(105, modules=dataset(100)).seconds is None


def test_datasets_without_a_version_are_reported() -> None:
    found = lag(100, NOW - 5, modules=dataset(100), hashes=dataset(None))
    assert (found.serial, found.without_version) == (100, ("hashes",))
    none = lag(100, NOW - 5, hashes=dataset(None))
    assert (none.serial, none.serials, none.seconds) == (None, None, None)


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


def test_totals_are_updated_by_each_range(index: ServedIndex, catalog: Catalog) -> None:
    assert live_totals(catalog) == LiveTotals(live=2, read=1, failed=1)
    index.wheel("demo", "2.0")
    index.history.remove_project("broken")
    crawl_incremental(index.crawler(catalog))
    assert live_totals(catalog) == LiveTotals(live=2, read=2, failed=0)
    assert recount(catalog) == {}


def test_recount_corrects_differences(catalog: Catalog) -> None:
    with catalog.write() as connection:
        connection.execute(delete(counters).where(counters.c.name == "live: data"))
        add_counts(connection, {"reads in the queue": 5})
    assert live_totals(catalog).read == 0
    assert recount(catalog) == {"live: data": 1, "reads in the queue": -5}
    assert live_totals(catalog) == LiveTotals(live=2, read=1, failed=1)
    assert recount(catalog) == {}


TRANSIENT = [
    TransientError("down", "url"),
    StorageError("down"),
    LeaseTakenError("taken"),
    OperationalError("SELECT 1", {}, Exception("gone")),
]


@pytest.mark.parametrize("error", TRANSIENT, ids=lambda error: type(error).__name__)
def test_errors_that_others_may_repair_are_transient(error: Exception):
    assert is_transient(error)
    wrapped = CatalogError("that failed")
    wrapped.__cause__ = error
    assert is_transient(wrapped)


@pytest.mark.parametrize(
    "error",
    [CatalogError("gone backwards"), RefusedError("403", "url"), IntegrityError("INSERT", {}, Exception()), KeyError()],
    ids=lambda error: type(error).__name__,
)
def test_errors_that_need_an_operator_are_not_transient(error: Exception):
    assert not is_transient(error)
