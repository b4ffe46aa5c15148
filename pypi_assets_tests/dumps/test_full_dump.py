"""Full dumps shard by shard, and what their audit counts."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.publications.dump_registry import (
    DumpError,
    DumpState,
    begin_commit,
    committed_dumps,
    find_open_full_dump,
    open_full_dump,
)
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_audit import audit_dump
from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.dumps.dump_writer import commit, write_shard
from pypi_assets.dumps.full_dump import dump_each_shard, full_dump
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.naming import naming
from pypi_assets_tests.served_index import ServedIndex, served_index
from pypi_assets_tests.small_catalog import SmallCatalog


@pytest.fixture
def index(tmp_path: Path) -> Iterator[ServedIndex]:
    with served_index(tmp_path / "served") as served:
        for name in ("alpha", "beta", "gamma"):
            served.wheel(name, "1.0")
        yield served


@pytest.fixture
def catalog(tmp_path: Path, index: ServedIndex) -> Iterator[Catalog]:
    catalog = open_catalog(sqlite_database(tmp_path / "catalog.sqlite"))
    crawl_full(index.crawler(catalog))
    yield catalog
    catalog.close()


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage((tmp_path / "storage").as_uri())


def test_all_shards_together_open_and_commit_a_dump(catalog: Catalog, storage: Storage) -> None:
    finished = list(dump_each_shard(catalog, storage, range(16), 16))
    assert all(one.written for one in finished)
    (dump,) = committed_dumps(catalog)
    audit = audit_dump(catalog, storage, dump)
    assert (audit.rows, audit.expected, audit.ok) == (3, 3, True)
    assert sum(one.file.rows for one in finished) == 3


def test_some_shards_alone_join_an_open_dump_and_the_last_commits_it(catalog: Catalog, storage: Storage) -> None:
    open_full_dump(catalog, 16)
    assert [one.written for one in dump_each_shard(catalog, storage, [0, 1, 2], 16)] == [True] * 3
    assert [one.written for one in dump_each_shard(catalog, storage, [2, 3], 16)] == [False, True]
    assert committed_dumps(catalog) == []
    list(dump_each_shard(catalog, storage, range(4, 16), 16))
    assert len(committed_dumps(catalog)) == 1


def test_a_redone_dump_goes_on_with_none_from_before_and_supersedes_it(catalog: Catalog, storage: Storage) -> None:
    now = 1_000.0
    timed = replace(catalog, clock=lambda: now)
    first = full_dump(timed, storage, 16)
    left = open_full_dump(timed, 16)
    write_shard(timed, storage, left, 0)
    now = 2_000.0
    stopped = dump_each_shard(timed, storage, range(16), 16, since=now)
    assert next(stopped).directory == f"{first.directory}.3"
    stopped.close()
    assert cover(timed).directories == (first.directory,)
    now = 3_000.0
    assert full_dump(timed, storage, 16).directory == f"{first.directory}.3"  # goes on with what was left last
    assert full_dump(timed, storage, 16, since=2_000.0).directory == f"{first.directory}.3"  # which is new enough
    redone = full_dump(timed, storage, 16, since=now)
    assert redone.directory == f"{first.directory}.4"
    assert cover(timed).directories == (redone.directory,)
    # what was left open before has been overtaken, and is neither joined nor in the way of its end
    assert find_open_full_dump(timed, 16) is None
    assert full_dump(timed, storage, 16).directory == f"{first.directory}.5"
    for shard in range(1, 16):
        write_shard(timed, storage, left, shard)
    commit(timed, storage, left)
    assert cover(timed).directories == (f"{first.directory}.5",)


def test_some_shards_alone_verify_the_newest_dump_where_none_is_open(catalog: Catalog, storage: Storage) -> None:
    with pytest.raises(DumpError, match=naming(16)):
        list(dump_each_shard(catalog, storage, [3], 16))
    (first, *_) = dump_each_shard(catalog, storage, range(16), 16)
    assert [one.written for one in dump_each_shard(catalog, storage, [0, 5], 16)] == [False, False]
    path = f"data_dumps/python_distribution_data/{first.directory}/{first.file.name}"
    storage.put(path, b"")
    with pytest.raises(DumpDamagedError, match=first.file.name):
        list(dump_each_shard(catalog, storage, [0], 16))
    assert len(committed_dumps(catalog)) == 1


def test_a_dump_that_lacked_its_manifest_alone_is_committed(catalog: Catalog, storage: Storage) -> None:
    dump = open_full_dump(catalog, 1)
    write_shard(catalog, storage, dump, 0)
    begin_commit(catalog, dump)  # and the process ends
    (finished,) = dump_each_shard(catalog, storage, [0], 1)
    (committed,) = committed_dumps(catalog)
    assert (finished.directory, committed.state) == (dump.directory, DumpState.COMMITTED)


def test_shards_are_counted_as_they_are_written(small: SmallCatalog, storage: Storage) -> None:
    counts: list[int] = []
    full_dump(small.catalog, storage, 16, counts.append)
    assert counts == list(range(1, 17))
