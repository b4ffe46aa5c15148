"""Shards that are written at once: their order, and what one that fails, and an interrupt, mean for the others."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.dumps.concurrency import ShardsFailedError, finish_each, spread
from pypi_assets.storage.store import StorageError
from pypi_assets_tests.naming import naming

Report = Callable[[int], None]


def test_seeds_are_spread_evenly_and_each_goes_on_to_the_next() -> None:
    lanes = spread(range(256), 4)
    assert [list(islice(lane, 3)) for lane in lanes] == [[0, 1, 2], [64, 65, 66], [128, 129, 130], [192, 193, 194]]
    assert list(lanes[1]) == [*range(67, 128), *range(131, 192), *range(195, 256), *range(3, 64)]
    assert [list(lane) for lane in lanes] == [[], [], [], []]


@given(
    wanted=st.lists(st.integers(0, 255), unique=True, max_size=30),
    concurrency=st.integers(1, 12),
    turns=st.lists(st.integers(0, 11), max_size=60),
)
def test_each_shard_comes_once_however_it_is_taken(wanted: list[int], concurrency: int, turns: list[int]) -> None:
    lanes = spread(wanted, concurrency)
    assert len(lanes) == min(concurrency, len(wanted))
    starts = [next(lane) for lane in lanes]
    assert starts == [wanted[len(wanted) * lane // len(lanes)] for lane in range(len(lanes))]
    taken = [shard for turn in turns for shard in islice(lanes[turn % len(lanes)] if lanes else iter(()), 1)]
    rest = [shard for lane in lanes for shard in lane]
    assert sorted(starts + taken + rest) == sorted(wanted)


def test_at_most_that_number_is_under_way_at_once() -> None:
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


def test_what_fails_stops_no_other_one_and_is_named() -> None:
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


def test_no_more_is_begun_where_all_fails() -> None:
    tried: list[int] = []

    def finish(shard: int, _report: Report) -> int:
        tried.append(shard)
        raise StorageError("no network")

    with pytest.raises(ShardsFailedError, match=naming("no network", 7)):
        list(finish_each("0-9", spread(range(256), 1), finish))
    assert tried == list(range(8))


def test_an_unexpected_error_is_raised_as_it_is() -> None:
    def finish(shard: int, _report: Report) -> int:
        raise TypeError(f"wrong in {shard}")

    with pytest.raises(TypeError, match="wrong in 0"):
        list(finish_each("0-9", spread(range(256), 1), finish))


def test_what_is_under_way_ends_soon_where_the_caller_stops() -> None:
    begun, ended = threading.Event(), threading.Event()
    tried: list[int] = []

    def finish(shard: int, report: Report) -> int:
        tried.append(shard)
        if shard == 0:
            begun.wait(120)
            return shard
        begun.set()
        try:
            while True:  # as a shard of very many rows would
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
