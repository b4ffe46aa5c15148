"""The due work of each stage, from the catalog and the storage."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from sqlalchemy import create_engine, event

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.crawl.full_crawl import crawl_full, list_index
from pypi_assets.crawl.incremental_crawl import allocate_next_ranges, crawl_incremental
from pypi_assets.dumps.dump_writer import write_missing_ranges
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.journal.publishing import write_missing
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.parquet.export import export_parquet
from pypi_assets.upkeep.due import (
    STAGES,
    Due,
    JournalDue,
    due_full_dump,
    due_journal,
    require_other_names,
    what_is_due,
)
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.served_index import ServedIndex, served_index

NOTHING = dict.fromkeys(
    (
        "full_crawl",
        "scopes",
        "ranges",
        "journal",
        "full_dump",
        "range_dumps",
        "late_dump",
        "compaction",
        *DATASETS,
        "parquet",
        "tables",
        "redump",
        "retry",
    ),
    0,
)


class UnwritableCatalog(Catalog):
    """A catalog that rejects write transactions. It counts transactions and reads of the dumps."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__(create_engine(catalog.engine.url), catalog.clock)
        self.seen: Counter[str] = Counter()
        event.listen(self.engine, "connect", lambda connection, _: connection.execute("PRAGMA query_only = ON"))
        event.listen(self.engine, "begin", lambda _: self.seen.update(["transactions"]))
        event.listen(self.engine, "before_cursor_execute", self._count)

    def _count(self, _connection: object, _cursor: object, statement: str, *_: object) -> None:
        assert statement.startswith(("SELECT", "WITH"))
        self.seen["reads of dumps"] += statement.count("FROM dumps")

    def write(self) -> NoReturn:
        raise AssertionError("a transaction that writes")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[ServedIndex]:
    with served_index(tmp_path / "served") as served:
        served.wheel("demo", "1.0")
        yield served


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    catalog = open_catalog(sqlite_database(tmp_path / "catalog.sqlite"))
    yield catalog
    catalog.close()


def due(index: ServedIndex, catalog: Catalog) -> Due:
    return what_is_due(catalog, index.storage)


def counts(index: ServedIndex, catalog: Catalog) -> dict[str, int]:
    """Return the counts of due work, without zeros."""
    found = due(index, catalog).counts
    assert found.keys() == NOTHING.keys()
    return {work: count for work, count in found.items() if count}


def test_each_stage_makes_the_next_due(index: ServedIndex, catalog: Catalog) -> None:
    crawler = index.crawler(catalog)
    assert counts(index, catalog) == {"full_crawl": 1}
    list_index(crawler)
    found = due(index, catalog)
    assert found.crawl.open is not None
    assert not found.crawl.is_followable
    crawl_full(crawler)
    assert counts(index, catalog) == {"full_dump": 1}
    assert due(index, catalog).full_dump.serial == index.serial
    full_dump(catalog, index.storage, 1)
    built = dict.fromkeys(DATASETS, 1)
    assert counts(index, catalog) == built
    for dataset in DATASETS:
        build_version(dataset, storage=index.storage, catalog=catalog)
    assert counts(index, catalog) == {}

    index.wheel("demo", "2.0")
    [serials] = allocate_next_ranges(crawler)
    assert counts(index, catalog) == {"ranges": 1}
    assert due(index, catalog).ranges.all == [serials]
    crawl_incremental(crawler)
    assert counts(index, catalog) == {"range_dumps": 1}
    list(write_missing_ranges(catalog, index.storage))
    assert counts(index, catalog) == built


def test_parquet_is_due_once_the_export_is_older_than_the_dumps(index: ServedIndex, catalog: Catalog) -> None:
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    full_dump(catalog, index.storage, 1)
    assert not due(index, catalog).is_parquet_due
    export_parquet(catalog, index.storage)
    assert not due(index, catalog).is_parquet_due
    index.wheel("demo", "2.0")
    crawl_incremental(crawler)
    list(write_missing_ranges(catalog, index.storage))
    assert due(index, catalog).is_parquet_due


def test_journal_is_due_once_started(index: ServedIndex, catalog: Catalog) -> None:
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    assert due_journal(catalog) == JournalDue()
    list(write_missing(catalog, index.storage))
    begun = index.serial
    assert due_journal(catalog) == JournalDue(begun)
    index.wheel("demo", "2.0")
    crawl_incremental(crawler)
    found = due_journal(catalog)
    assert (found.serial, [one.end for one in found.missing]) == (begun, [index.serial])
    assert found.lacks_since is not None
    assert what_is_due(catalog, None).counts["journal"] == 1
    list(write_missing(catalog, index.storage))
    assert due_journal(catalog) == JournalDue(index.serial)


def test_catalog_stages_are_reported_without_a_storage(catalog: Catalog) -> None:
    found = what_is_due(catalog, None)
    assert (found.datasets, found.counts["full_crawl"]) == ({}, 1)


def test_due_reads_one_state_without_write_transactions(index: ServedIndex, catalog: Catalog) -> None:
    unwritable = UnwritableCatalog(catalog)

    def assert_reads_once(**work: int) -> None:
        unwritable.seen.clear()
        assert what_is_due(unwritable, None).counts == dict.fromkeys(STAGES, 0) | work
        assert unwritable.seen == {"transactions": 1, "reads of dumps": 1}
        unwritable.seen.clear()
        assert counts(index, unwritable).items() >= work.items()
        assert unwritable.seen == {"transactions": 2, "reads of dumps": 1}  # the catalog's stages, and all datasets

    assert_reads_once(full_crawl=1)
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    assert_reads_once(full_dump=1)
    assert due_full_dump(unwritable).serial == index.serial
    full_dump(catalog, index.storage, 1)
    assert_reads_once()
    index.wheel("demo", "2.0")
    crawl_incremental(crawler)
    assert_reads_once(range_dumps=1)
    unwritable.close()


def test_no_dataset_is_named_like_a_stage() -> None:
    assert set(STAGES).isdisjoint(DATASETS)
    assert {*STAGES, *DATASETS} == NOTHING.keys()
    with pytest.raises(ValueError, match=r"parquet, ranges"):
        require_other_names([*DATASETS, "ranges", "parquet"])
