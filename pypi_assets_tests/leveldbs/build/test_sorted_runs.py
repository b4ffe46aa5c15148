"""Runs come back merged and in order, whatever the order of their records was."""

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.leveldbs.build.sorted_runs import RunWriter, cut, memory_of, merged


def test_runs_are_cut_at_their_bounds_and_come_back_in_order(tmp_path: Path) -> None:
    records = {b"%04d" % (number * 7919 % 10_000): b"x" * (number % 50) for number in range(10_000)}
    bounds = cut(records, 40)
    assert 30 < len(bounds) < 40
    with RunWriter(tmp_path / "runs", bounds, memory_of(records) // 5) as writer:
        for key, value in records.items():
            writer.add({key: value})
        runs = writer.finish()
    parts = list(merged([runs], memory_of(records) // 10))
    assert 8 <= len(parts) <= 12
    assert [one for part in parts for one in part.items()] == sorted(records.items())
    assert runs.counts == {str(digit): 1_000 for digit in range(10)}


def test_a_key_in_several_runs_comes_once(tmp_path: Path) -> None:
    runs = []
    for number in range(2):
        with RunWriter(tmp_path / f"{number}", [b"b"], 1) as writer:
            writer.add({b"a": b"1", b"c": b"3"})
            writer.add({b"b%d" % number: b"2"})
            runs.append(writer.finish())
    assert [list(part.items()) for part in merged(runs, 1)] == [
        [(b"a", b"1")],
        [(b"b0", b"2"), (b"b1", b"2"), (b"c", b"3")],
    ]
    assert [one.counts for one in runs] == [{"a": 1, "b": 1, "c": 1}] * 2
    assert list(merged([], 1)) == []


def test_many_blocks_take_little_memory(tmp_path: Path) -> None:
    """There are as many as runs times ranges: their number grows with the square of what is sorted."""
    ranges, count = 200, 100
    keys = [b"%04d" % number for number in range(ranges)]
    tracemalloc.start()
    try:
        with RunWriter(tmp_path / "runs", keys[1:], 1) as writer:
            for _ in range(count):
                writer.add(dict.fromkeys(keys, b""))
            runs = writer.finish()
            assert list(next(merged([runs], 1))) == [keys[0]]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 120 * ranges * count


def test_a_file_of_runs_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "runs").write_bytes(b"of another process")
    with pytest.raises(FileExistsError):
        RunWriter(tmp_path / "runs", [], 1)
    assert (tmp_path / "runs").read_bytes() == b"of another process"


@given(st.dictionaries(st.binary(min_size=1, max_size=3), st.binary(max_size=200), max_size=30), st.integers(1, 40))
def test_bounds_ascend_and_cut_no_more_ranges_than_wanted(records: dict[bytes, bytes], ranges: int) -> None:
    bounds = cut(records, ranges)
    assert len(bounds) <= ranges
    assert bounds == sorted(set(bounds))
    assert set(bounds) <= set(records)
