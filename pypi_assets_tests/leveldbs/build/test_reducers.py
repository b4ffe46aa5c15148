"""Reducers: their processes, the rows that they decode, and the sorted runs that they write."""

import os
import signal
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.catalog.publications.dump_columns import DumpFile
from pypi_assets.dumps.dump_format import DumpDamagedError, as_dumped
from pypi_assets.dumps.dump_manifest import DumpManifest, file_path
from pypi_assets.dumps.worker_process import WorkerFailed
from pypi_assets.leveldbs.build.loading import Reducers
from pypi_assets.leveldbs.build.reduce_process import (
    REDUCERS,
    FromReducer,
    ReducedDataset,
    ReducerSetup,
    Rows,
    Written,
    WrittenRuns,
    new_records,
)
from pypi_assets.leveldbs.build.row_decoder import RowDecoder
from pypi_assets.leveldbs.build.sorted_runs import Runs, RunWriter, RunWriters, cut, memory_of, merged, sizes_of
from pypi_assets.leveldbs.datasets.dataset import Change, Dataset
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbError
from pypi_assets.leveldbs.format.records import Records, Row
from pypi_assets.storage.store import Storage
from pypi_assets_tests.dump_rows import dump_row, histories
from pypi_assets_tests.leveldbs.built_records import FILES, rows_of
from pypi_assets_tests.naming import naming

RUN_BYTES = 1024


def setups(storage: Storage, dump: DumpManifest, folder: Path) -> ReducerSetup:
    datasets = [ReducedDataset("modules", str(folder / "runs"), [])]
    return ReducerSetup(datasets, storage.url, dump.directory, RUN_BYTES)


def test_killed_process_ends_the_build(tmp_path: Path, storage: Storage, dump: DumpManifest) -> None:
    with Reducers(2) as reducers:
        os.kill(reducers.processes[1], signal.SIGKILL)
        with pytest.raises(LeveldbError, match=naming("SIGKILL")):
            reducers.reduce(dump.files, lambda number: setups(storage, dump, tmp_path / f"{number}"), int)


def test_corruption_and_a_full_disk_are_reported_as_such(tmp_path: Path, storage: Storage, dump: DumpManifest) -> None:
    with Reducers(1) as reducers, pytest.raises(LeveldbError, match=naming("nowhere/runs", "disk full")):
        reducers.reduce(dump.files, lambda _: setups(storage, dump, tmp_path / "nowhere"), int)
    path = file_path(dump.directory, dump.files[5].name)
    storage.put(path, storage.get(path)[:-20])
    for number in range(2):
        (tmp_path / f"{number}").mkdir()
    with Reducers(2) as reducers, pytest.raises(DumpDamagedError, match=dump.files[5].name):
        reducers.reduce(dump.files, lambda number: setups(storage, dump, tmp_path / f"{number}"), int)


def test_progress_callback_can_end_the_build(tmp_path: Path, storage: Storage, dump: DumpManifest) -> None:
    def lost(_: int) -> None:
        raise LeveldbError("the lease is lost")

    with Reducers(1) as reducers, pytest.raises(LeveldbError):
        reducers.reduce(dump.files, lambda _: setups(storage, dump, tmp_path), lost)


SLOW_TO_IMPORT = ("sqlalchemy", "asyncio", "pandas")
HASHES = DATASETS["hashes"]


def test_process_does_not_import_the_database() -> None:
    program = f"import sys, {REDUCERS.program}; sys.exit(any(name in sys.modules for name in {SLOW_TO_IMPORT}))"
    subprocess.run([sys.executable, "-c", program], check=True)


def reduce_by_process(setup: ReducerSetup, *files: DumpFile) -> list[FromReducer]:
    """Send `files` to a process and return its messages."""
    sent = b"".join(msgspec.json.encode(message) + b"\n" for message in (setup, *files))
    command = [sys.executable, "-m", REDUCERS.program]
    process = subprocess.run(command, input=sent, stdout=subprocess.PIPE, check=True)
    return [msgspec.json.decode(line, type=FromReducer) for line in process.stdout.splitlines()]


@pytest.fixture
def setup(storage: Storage, dump: DumpManifest, tmp_path: Path) -> ReducerSetup:
    datasets = [ReducedDataset("hashes", str(tmp_path / "runs"), ["h", "h\0" + "8"])]
    return ReducerSetup(datasets, storage.url, dump.directory, 100_000)


def test_process_reports_each_file_and_all_records_at_the_end(
    storage: Storage, dump: DumpManifest, setup: ReducerSetup
) -> None:
    files = dump.files[:2]
    *reported, written = reduce_by_process(setup, *files)
    assert reported == [Rows(file.rows, file_ends=True) for file in files]
    assert isinstance(written, Written)
    expected: dict[bytes, bytes] = {}
    for file in files:
        for _, [records] in new_records([HASHES], storage, dump.directory, file):
            expected |= records
    [found] = written.runs
    runs = Runs(Path(setup.datasets[0].path), found.index_offset, found.counts, int(found.hash_sum, 16))
    assert [record for part in merged([runs], 1) for record in part.items()] == sorted(expected.items())
    assert runs.counts == {"f": len(expected) // 2, "h": len(expected) // 2}


def test_process_without_files_writes_nothing(setup: ReducerSetup) -> None:
    assert reduce_by_process(setup) == [Written([WrittenRuns(0, {}, "0")])]


def test_last_message_of_a_process_is_its_error(storage: Storage, dump: DumpManifest, setup: ReducerSetup) -> None:
    storage.delete(file_path(dump.directory, dump.files[0].name))
    path = setup.datasets[0].path
    *_, failed = reduce_by_process(setup, dump.files[0])
    assert isinstance(failed, WorkerFailed)
    assert (failed.error, dump.files[0].name in failed.text) == ("DumpDamagedError", True)
    [failed] = reduce_by_process(
        msgspec.structs.replace(setup, datasets=[ReducedDataset("other", f"{path}.other", [])])
    )
    assert isinstance(failed, WorkerFailed)
    assert (failed.error, "other" in failed.text) == ("LeveldbError", True)
    [failed] = reduce_by_process(setup)  # the file of its runs exists already
    assert isinstance(failed, WorkerFailed)
    assert (failed.error, path in failed.text) == ("LeveldbError", True)


def test_sample_has_every_nth_project(storage: Storage, dump: DumpManifest) -> None:
    [file] = dump.files[:1]

    def records(every: int = 1) -> list[tuple[int, list[Records]]]:
        found = new_records([HASHES], storage, dump.directory, file, every=every)
        return [(rows, list(of_datasets)) for rows, of_datasets in found]

    whole = records()
    assert sum(rows for rows, _ in whole) == file.rows
    assert len(whole) > 3
    assert records(every=2) == whole[::2]


def test_records_of_a_dataset_are_made_when_they_are_asked_for(storage: Storage, dump: DumpManifest) -> None:
    made: list[str] = []

    def spied(name: str) -> Dataset:
        def change(db: Database | None, project: str, rows: list[Row]) -> Change:
            made.append(name)
            return HASHES.change(db, project, rows)

        return replace(HASHES, name=name, change=change)

    for rows, records in new_records([spied("first"), spied("second")], storage, dump.directory, dump.files[0]):
        assert (rows > 0, made) == (True, [])
        next(records)
        assert made == ["first"]
        next(records)
        made.clear()


@given(history=histories(FILES, rows_of, most=8))
def test_columns_of_a_dataset_are_decoded_as_dumped(
    history: tuple[list[list[Row]], list[Row]],
) -> None:
    for dataset in DATASETS.values():
        decode = RowDecoder(dataset.columns).decode
        for dump in history[0]:
            for row in map(as_dumped, dump):
                wanted = {name: row[name] for name in row if name in {"normalized", *dataset.columns}}
                assert decode(line_of(row)) == wanted


def line_of(row: Row) -> bytes:
    return orjson.dumps(row)


def test_files_of_a_project_share_equal_lists() -> None:
    decode = RowDecoder(DATASETS["modules"].columns).decode
    one, other, third = (
        decode(line_of(dump_row("demo", version, f"demo-{version}.zip", modules=modules)))
        for version, modules in (("1", ["a", "b"]), ("2", ["b"]), ("3", ["a", "b"]))
    )
    assert one["modules"] is third["modules"] is not other["modules"]


def test_lists_are_not_shared_between_projects() -> None:
    decode = RowDecoder(DATASETS["modules"].columns).decode
    one, other = (decode(line_of(dump_row(name, "1", f"{name}-1.zip", modules=["a"]))) for name in ("demo", "other"))
    assert one["modules"] == other["modules"] == ["a"]
    assert [row["project"] for row in (one, other)] == ["demo", "other"]


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"null", b'{"project": "demo"'])
def test_invalid_line_is_rejected(line: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        RowDecoder(DATASETS["modules"].columns).decode(line)


def test_runs_are_split_at_bounds_and_read_in_order(tmp_path: Path) -> None:
    records = {b"%04d" % (number * 7919 % 10_000): b"x" * (number % 50) for number in range(10_000)}
    bounds = cut(sizes_of(records), 40)
    assert 30 < len(bounds) < 40
    with RunWriter(tmp_path / "runs", bounds, memory_of(records) // 5) as writer:
        for key, value in records.items():
            writer.add({key: value})
        runs = writer.finish()
    parts = list(merged([runs], memory_of(records) // 10))
    assert 8 <= len(parts) <= 12
    assert [one for part in parts for one in part.items()] == sorted(records.items())
    assert runs.counts == {str(digit): 1_000 for digit in range(10)}


def test_key_in_several_runs_is_read_once(tmp_path: Path) -> None:
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
    assert [run.counts for run in runs] == [{"a": 1, "b": 1, "c": 1}] * 2
    assert list(merged([], 1)) == []


def test_many_blocks_take_little_memory(tmp_path: Path) -> None:
    """There are as many blocks as runs times ranges, so their number grows with the square of the sorted size."""
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


def test_existing_file_of_runs_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "runs").write_bytes(b"of another process")
    with pytest.raises(FileExistsError):
        RunWriter(tmp_path / "runs", [], 1)
    assert (tmp_path / "runs").read_bytes() == b"of another process"


@given(st.dictionaries(st.binary(min_size=1, max_size=3), st.binary(max_size=200), max_size=30), st.integers(1, 40))
def test_bounds_ascend_and_make_at_most_the_requested_ranges(records: dict[bytes, bytes], ranges: int) -> None:
    bounds = cut(sizes_of(records), ranges)
    assert len(bounds) <= ranges
    assert bounds == sorted(set(bounds))
    assert set(bounds) <= set(records)


def test_writers_of_several_datasets_share_the_memory(tmp_path: Path) -> None:
    one, other = ({b"%b%04d" % (letter, number): b"x" * 50 for number in range(500)} for letter in (b"a", b"b"))
    limit = memory_of(one) // 5
    with RunWriters([(tmp_path / "one", [b"a0250"]), (tmp_path / "other", [])], limit) as writers:
        for (key, value), (other_key, other_value) in zip(one.items(), other.items(), strict=True):
            writers.add([{key: value}, {other_key: other_value} if other_key < b"b0100" else {}])
            assert writers.memory < limit
        runs = writers.finish()
    found = [[record for part in merged([of_dataset], 1) for record in part.items()] for of_dataset in runs]
    assert found == [sorted(one.items()), sorted(other.items())[:100]]
