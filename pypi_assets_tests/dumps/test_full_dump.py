"""Full dumps shard by shard, and the counts of their audit."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from pypi_assets.dumps.full_dump import ShardsFailedError, dump_each_shard, finish_each, full_dump, spread
from pypi_assets.storage.store import Storage, StorageError
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.naming import naming
from pypi_assets_tests.served_index import ServedIndex, served_index
from pypi_assets_tests.small_catalog import SmallCatalog

Report = Callable[[int], None]


def test_lanes_are_spread_evenly_and_continue_into_the_next() -> None:
    lanes = spread(range(256), 4)
    assert [list(islice(lane, 3)) for lane in lanes] == [[0, 1, 2], [64, 65, 66], [128, 129, 130], [192, 193, 194]]
    assert list(lanes[1]) == [*range(67, 128), *range(131, 192), *range(195, 256), *range(3, 64)]
    assert [list(lane) for lane in lanes] == [[], [], [], []]


@given(
    wanted=st.lists(st.integers(0, 255), unique=True, max_size=30),
    concurrency=st.integers(1, 12),
    turns=st.lists(st.integers(0, 11), max_size=60),
)
def test_each_shard_is_taken_once_in_any_order(wanted: list[int], concurrency: int, turns: list[int]) -> None:
    lanes = spread(wanted, concurrency)
    assert len(lanes) == min(concurrency, len(wanted))
    starts = [next(lane) for lane in lanes]
    assert starts == [wanted[len(wanted) * lane // len(lanes)] for lane in range(len(lanes))]
    taken = [shard for turn in turns for shard in islice(lanes[turn % len(lanes)] if lanes else iter(()), 1)]
    rest = [shard for lane in lanes for shard in lane]
    assert sorted(starts + taken + rest) == sorted(wanted)


def test_concurrency_is_bounded() -> None:
    together = threading.Barrier(3, timeout=120)
    under_way: set[int] = set()
    most = 0

    def finish(shard: int, _report: Report) -> int:
        nonlocal most
        under_way.add(shard)
        most = max(most, len(under_way))
        together.wait()
        under_way.discard(shard)
        return shard

    assert sorted(finish_each("0-1", spread(range(12), 3), finish)) == list(range(12))
    assert most == 3


def test_failing_shard_stops_no_other_and_is_reported() -> None:
    def finish(shard: int, report: Report) -> int:
        report(shard)
        if shard in {2, 5}:
            raise StorageError("disk full")
        return shard

    finished: list[int] = []
    counts: list[int] = []
    with pytest.raises(ShardsFailedError, match=naming(2, "0-9", "disk full", "[5]")) as caught:
        finished.extend(finish_each("0-9", spread(range(8), 1), finish, counts.append))
    assert isinstance(caught.value.__cause__, StorageError)
    assert finished == [0, 1, 3, 4, 6, 7]
    assert counts[-1] == sum(range(8))


def test_no_shards_are_started_once_all_fail() -> None:
    tried: list[int] = []

    def finish(shard: int, _report: Report) -> int:
        tried.append(shard)
        raise StorageError("no network")

    with pytest.raises(ShardsFailedError, match=naming("no network", 7)):
        list(finish_each("0-9", spread(range(256), 1), finish))
    assert tried == list(range(8))


def test_unexpected_error_is_raised_unchanged() -> None:
    def finish(shard: int, _report: Report) -> int:
        raise TypeError(f"wrong in {shard}")

    with pytest.raises(TypeError, match="wrong in 0"):
        list(finish_each("0-9", spread(range(256), 1), finish))


def test_running_shards_end_soon_after_the_caller_stops() -> None:
    begun, ended = threading.Event(), threading.Event()
    tried: list[int] = []

    def finish(shard: int, report: Report) -> int:
        tried.append(shard)
        if shard == 0:
            begun.wait(120)
            return shard
        begun.set()
        try:
            while True:  # like a shard with very many rows
                report(1)
        except CancelledError:
            ended.set()
            raise

    def interrupted() -> Iterator[int]:
        for shard in finish_each("0-9", spread(range(100), 2), finish):
            yield shard
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(interrupted())
    assert ended.is_set()
    assert set(tried) <= {0, 1, 50}


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


def test_all_shards_open_and_commit_a_dump(catalog: Catalog, storage: Storage) -> None:
    finished = list(dump_each_shard(catalog, storage, range(16), 16))
    assert all(one.written for one in finished)
    (dump,) = committed_dumps(catalog)
    audit = audit_dump(catalog, storage, dump)
    assert (audit.rows, audit.expected, audit.ok) == (3, 3, True)
    assert sum(one.file.rows for one in finished) == 3


def test_selected_shards_join_an_open_dump_and_the_last_commits_it(catalog: Catalog, storage: Storage) -> None:
    open_full_dump(catalog, 16)
    assert [result.written for result in dump_each_shard(catalog, storage, [0, 1, 2], 16)] == [True] * 3
    assert [result.written for result in dump_each_shard(catalog, storage, [2, 3], 16)] == [False, True]
    assert committed_dumps(catalog) == []
    list(dump_each_shard(catalog, storage, range(4, 16), 16))
    assert len(committed_dumps(catalog)) == 1


def test_redone_dump_continues_no_earlier_dump_and_supersedes_it(catalog: Catalog, storage: Storage) -> None:
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
    assert full_dump(timed, storage, 16).directory == f"{first.directory}.3"  # continues the last unfinished dump
    assert full_dump(timed, storage, 16, since=2_000.0).directory == f"{first.directory}.3"  # it is new enough
    redone = full_dump(timed, storage, 16, since=now)
    assert redone.directory == f"{first.directory}.4"
    assert cover(timed).directories == (redone.directory,)
    # the unfinished earlier dump was overtaken: it is not joined, and does not block the new end
    assert find_open_full_dump(timed, 16) is None
    assert full_dump(timed, storage, 16).directory == f"{first.directory}.5"
    for shard in range(1, 16):
        write_shard(timed, storage, left, shard)
    commit(timed, storage, left)
    assert cover(timed).directories == (f"{first.directory}.5",)


def test_selected_shards_verify_the_newest_dump_if_none_is_open(catalog: Catalog, storage: Storage) -> None:
    with pytest.raises(DumpError, match=naming(16)):
        list(dump_each_shard(catalog, storage, [3], 16))
    (first, *_) = dump_each_shard(catalog, storage, range(16), 16)
    assert [result.written for result in dump_each_shard(catalog, storage, [0, 5], 16)] == [False, False]
    path = f"data_dumps/python_distribution_data/{first.directory}/{first.file.name}"
    storage.put(path, b"")
    with pytest.raises(DumpDamagedError, match=first.file.name):
        list(dump_each_shard(catalog, storage, [0], 16))
    assert len(committed_dumps(catalog)) == 1


def test_dump_missing_only_its_manifest_is_committed(catalog: Catalog, storage: Storage) -> None:
    dump = open_full_dump(catalog, 1)
    write_shard(catalog, storage, dump, 0)
    begin_commit(catalog, dump)  # then the process ends
    (finished,) = dump_each_shard(catalog, storage, [0], 1)
    (committed,) = committed_dumps(catalog)
    assert (finished.directory, committed.state) == (dump.directory, DumpState.COMMITTED)


def test_shards_are_counted_as_they_are_written(small: SmallCatalog, storage: Storage) -> None:
    counts: list[int] = []
    full_dump(small.catalog, storage, 16, counts.append)
    assert counts == list(range(1, 17))
