"""Loading a full dump gives the same records as applying its rows project by project."""

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.generated import SERIAL, changed_rows, generate_projects, write_full_dump, write_range_dump
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.dumps.dump_format import Row
from pypi_assets.dumps.dump_manifest import DumpManifest
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.dumps.later_rows import later_rows
from pypi_assets.dumps.restore import restore_index
from pypi_assets.leveldbs.build import loading
from pypi_assets.leveldbs.build.builder import Builder, by_project
from pypi_assets.leveldbs.build.loading import is_worth_loading, load_runs, reduce_dump, sampled_bounds
from pypi_assets.leveldbs.build.sorted_runs import RunWriter, cut, sizes_of
from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbError
from pypi_assets.leveldbs.format.open_leveldb import open_leveldb
from pypi_assets.leveldbs.versions.publish import apply_dumps, build_version
from pypi_assets.leveldbs.versions.verify import verify
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.dump_rows import dump_row, histories, in_order
from pypi_assets_tests.examples import examples
from pypi_assets_tests.leveldbs.built_records import FILES, Records, build, rows_of
from pypi_assets_tests.naming import naming
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

RUN_BYTES = 1024


def load(folder: Path, dataset: Dataset, shards: Sequence[list[Row]], ranges: int) -> Records:
    """Load `shards` in this process, with separate runs for each shard, and return all records of the LevelDB."""
    folder.mkdir()
    records = [
        [dataset.change(None, project, rows)[1] for project, rows in by_project(in_order(shard), "a dump")]
        for shard in shards
    ]
    bounds = cut(sizes_of({key: value for shard in records for each in shard for key, value in each.items()}), ranges)
    assert len(bounds) < ranges
    runs = []
    for number, shard in enumerate(records):
        with RunWriter(folder / f"{number}.runs", bounds, RUN_BYTES) as writer:
            for each in shard:
                writer.add(each)
            runs.append(writer.finish())
    with open_leveldb(folder / "db", "a test", create=True) as db:
        builder = Builder(db, dataset)
        builder.add_loaded(load_runs(db, dataset, runs, sum(map(len, shards)), RUN_BYTES, int))
        builder.finish(9)
        return dict(db.iterator())


@pytest.mark.parametrize("dataset", DATASETS.values(), ids=DATASETS)
@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=histories(FILES, rows_of, most=8), ranges=st.integers(1, 20), shards=st.integers(1, 3))
def test_loading_equals_applying(
    tmp_path_factory: pytest.TempPathFactory,
    dataset: Dataset,
    history: tuple[list[list[Row]], list[Row]],
    ranges: int,
    shards: int,
) -> None:
    live = history[1]
    folder = tmp_path_factory.mktemp("dbs")
    of_shard: list[list[Row]] = [[] for _ in range(shards)]
    for row in live:
        of_shard[sum(str(row["normalized"]).encode()) % shards].append(row)
    assert load(folder / "loaded", dataset, of_shard, ranges) == build(folder / "applied", dataset.name, [live])


def test_project_in_two_files_is_rejected(tmp_path: Path) -> None:
    row = dump_row("demo", "1", "demo-1.zip", modules=["demo"])
    with pytest.raises(LeveldbError, match=naming(6)):
        load(tmp_path / "db", DATASETS["modules"], [[row], [row]], 2)


@pytest.mark.parametrize("dataset", DATASETS.values(), ids=DATASETS)
def test_loading_in_processes_gives_the_same_records(
    tmp_path: Path, storage: Storage, dump: DumpManifest, dataset: Dataset
) -> None:
    reported: list[int] = []
    (tmp_path / "runs").mkdir()
    found = []
    for name in ("loaded", "applied"):
        with open_leveldb(tmp_path / name, name, create=True) as db:
            builder = Builder(db, dataset)
            if name == "loaded":
                runs = reduce_dump([dataset], storage, dump, folder=tmp_path / "runs", rows_done=reported.append)
                builder.add_loaded(load_runs(db, dataset, runs[dataset.name], dump.rows, RUN_BYTES, reported.append))
            else:
                apply_dumps(builder, storage, [dump])
            builder.finish(9)
            found.append((builder.rows, builder.written, dict(db.iterator())))
    assert found[0] == found[1]
    assert reported[-1] == dump.rows == max(reported)


@pytest.mark.parametrize("dataset", DATASETS.values(), ids=DATASETS)
def test_loading_with_later_rows_gives_the_records_after_all_ranges(
    tmp_path: Path, storage: Storage, dump: DumpManifest, dataset: Dataset
) -> None:
    projects = list(generate_projects(dump.rows))
    ranges = [
        write_range_dump(
            storage, changed_rows(projects, 40, SERIAL + end, seed=end), SerialRange(end - 1, end), sequence=end
        )
        for end in (2, 3)
    ]
    later_path = tmp_path / "later.sqlite"
    with later_rows(dump.shards, later_path) as later:
        later.add_dumps(storage, [manifest.directory for manifest in ranges], lambda: None)
    (tmp_path / "runs").mkdir()
    found = []
    for name in ("loaded", "applied"):
        with open_leveldb(tmp_path / name, name, create=True) as db:
            builder = Builder(db, dataset)
            if name == "loaded":
                runs = reduce_dump(
                    [dataset], storage, dump, folder=tmp_path / "runs", later=later_path, rows_done=lambda _rows: None
                )
                builder.add_loaded(load_runs(db, dataset, runs[dataset.name], dump.rows, RUN_BYTES, lambda _rows: None))
            else:
                apply_dumps(builder, storage, [dump, *ranges])
            builder.finish(9)
            found.append(dict(db.iterator()))
    assert found[0] == found[1]


@pytest.mark.parametrize("dataset", DATASETS)
def test_build_by_processes_leaves_no_files_behind(
    small: SmallCatalog, monkeypatch: pytest.MonkeyPatch, storage: Storage, dataset: str
) -> None:
    monkeypatch.setattr(loading, "LEAST_ROWS", 1)
    for number in range(20):
        small.add(number + 1, f"project{number}", "1", f"project{number}-1.tar.gz")
    small.complete(100)
    full_dump(small.catalog, storage, 16)
    result = build_version(dataset, storage=storage, catalog=small.catalog)
    assert result.rows == 20
    assert verify(dataset, result.version, storage=storage, deep=True).problems == ()
    assert list((storage.root or Path()).glob(".private/*")) == []


def test_bounds_are_sampled_even_from_a_single_large_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storage: Storage
) -> None:
    dump = write_full_dump(storage, generate_projects(1_500), shards=1)
    datasets = [DATASETS["modules"]]
    whole = sampled_bounds(datasets, storage, dump, 100_000)["modules"]
    monkeypatch.setattr(loading, "_SAMPLE_ROWS", 100)
    sampled = sampled_bounds(datasets, storage, dump, 100_000)["modules"]
    assert sampled == sorted(sampled) != whole
    assert len(whole) / 4 < len(sampled) < len(whole) * 4


def test_few_rows_or_a_store_in_memory_use_no_processes(storage: Storage, dump: DumpManifest) -> None:
    many = replace(dump, files=dump.files * 1_000)
    assert is_worth_loading(storage, many.rows)
    assert not is_worth_loading(storage, dump.rows)
    assert not is_worth_loading(open_storage("memory:///"), many.rows)


def test_build_from_scratch_keeps_few_tables_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storage: Storage
) -> None:
    """Each open table keeps its index and filter in memory, which would take more memory for a larger index."""
    monkeypatch.setattr(loading, "LEAST_ROWS", 1)
    monkeypatch.setattr(loading, "_BATCH_BYTES", 32 * 1024)
    write_full_dump(storage, generate_projects(8_000), shards=4)
    small = small_catalog(tmp_path)
    small.complete(SERIAL)
    restore_index(small.catalog, storage)
    tables = set[str]()
    most = 0

    def look(_: int) -> None:
        nonlocal most
        mapped = set(re.findall(r"\S+\.ldb", Path("/proc/self/maps").read_text()))
        tables.update(mapped)
        most = max(most, len(mapped))

    build_version("modules", storage=storage, catalog=small.catalog, write_buffer_bytes=64 * 1024, progress=look)
    small.catalog.close()
    assert len(tables) > 100
    assert most <= 70


class SlowDatabase:
    """A database that pauses after each batch. `most_waiting` is the peak number of batches not yet taken."""

    def __init__(self) -> None:
        self.most_waiting = self.records = 0
        self.waiting: set[SlowBatch] = set()

    def write_batch(self) -> "SlowBatch":
        return SlowBatch(self)


class SlowBatch:
    def __init__(self, db: SlowDatabase) -> None:
        self.db, self.records = db, 0

    def put(self, key: bytes, value: bytes) -> None:
        self.records += 1
        self.db.waiting.add(self)
        self.db.most_waiting = max(self.db.most_waiting, len(self.db.waiting))

    def write(self) -> None:
        time.sleep(0.002)
        self.db.waiting.discard(self)
        self.db.records += self.records


def test_memory_is_bounded_if_writing_is_slower_than_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_BATCH_BYTES", 100)
    keys = [b"m%04d" % number for number in range(1_000)]
    with RunWriter(tmp_path / "0.runs", keys[::10], 10_000) as writer:
        writer.add(dict.fromkeys(keys, b"x" * 20))
        runs = writer.finish()
    db = SlowDatabase()
    load_runs(db, DATASETS["commands"], [runs], 1_000, 1, lambda _: None)  # type: ignore[arg-type]
    assert db.records == 1_000
    assert db.most_waiting <= 4
