"""Dumps from a real catalog into a real folder: their contents, and the state after a kill at any step."""

import gzip
import hashlib
import json
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_columns import COLUMNS, DumpKind
from pypi_assets.catalog.publications.dump_registry import (
    DumpError,
    DumpState,
    begin_commit,
    committed_dumps,
    committing_dumps,
    dumps_that_hold,
    known_dumps,
    open_full_dump,
)
from pypi_assets.dumps import dump_writer
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.dumps.dump_manifest import committed_directories, file_path, manifest_path, shard_of
from pypi_assets.dumps.dump_reader import iter_dump, iter_rows, read_rows_frame
from pypi_assets.dumps.dump_writer import commit, commit_pending_dumps, missing_shards, write_range, write_shard
from pypi_assets.dumps.full_dump import ShardsFailedError, full_dump
from pypi_assets.storage.published import PUBLISHED, part_path
from pypi_assets.storage.store import Storage, StorageError, open_storage
from pypi_assets_tests.dumps.conftest import fill
from pypi_assets_tests.naming import naming
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


def test_full_dump_holds_live_files_sharded_and_sorted(small: SmallCatalog, storage: Storage) -> None:
    manifest = full_dump(small.catalog, storage, shards=16)
    assert (manifest.directory, manifest.kind, manifest.shards, manifest.rows) == ("0-100", DumpKind.FULL, 16, 15)
    seen = []
    for file in manifest.files:
        rows = list(iter_rows(storage, "0-100", file))
        keys = [(row["normalized"], row["version"], row["filename"]) for row in rows]
        assert keys == sorted(keys)
        assert {shard_of(str(row["normalized"]), 16) for row in rows} <= {file.shard}
        content = storage.get(file_path("0-100", file.name))
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file.size, file.sha256)
        assert len(json.loads(gzip.decompress(content))) == file.rows
        seen += rows
    demo = next(row for row in seen if row["filename"] == "demo_pkg-1.0.tar.gz")
    assert list(demo) == list(COLUMNS)
    assert (demo["project"], demo["normalized"]) == ("Demo.Pkg", "demo-pkg")
    assert (demo["modules"], demo["requires_dist"]) == (["demo", "demo.a"], ["other>=1"])
    assert sorted(str(row["filename"]) for row in iter_dump(storage, "0-100")) == sorted(
        str(row["filename"]) for row in seen
    )


def test_both_databases_give_equal_bytes(
    small: SmallCatalog, storage: Storage, tmp_path: Path, postgres_database_url: str
) -> None:
    other, elsewhere = small_catalog(tmp_path, postgres_database_url), open_storage((tmp_path / "other").as_uri())
    fill(other)
    for one in (small, other):  # names that sort differently by language than by bytes
        for filename in ("Zed-1.zip", "a_b-1.zip", "a-b-1.zip", "aB-1.zip", "é-1.zip"):
            one.add(60, "Mixed", "1", filename)
    assert full_dump(small.catalog, storage, 16) == full_dump(other.catalog, elsewhere, 16)
    for one, where in ((small, storage), (other, elsewhere)):
        one.remove(110, "other-2.tar.gz")
        write_range(one.catalog, where, one.complete(150))
    paths = sorted(stored.path for stored in storage.list())
    assert len(paths) == 21  # with published.json and its part
    assert {path: storage.get(path) for path in paths} == {path: elsewhere.get(path) for path in paths}
    other.catalog.close()


JSON_TYPES = {"string": str, "integer": int, "boolean": bool, "array of strings": list, "null": type(None)}


def test_rows_have_the_types_of_their_columns(small: SmallCatalog, storage: Storage) -> None:
    full_dump(small.catalog, storage, shards=1)
    for row in iter_dump(storage, "0-100"):
        for name, value in row.items():
            assert type(value) in {JSON_TYPES[one] for one in COLUMNS[name].type.split(" or ")}, name
            assert not isinstance(value, list) or all(isinstance(item, str) for item in value)


def test_range_dump_holds_rows_and_tombstones(small: SmallCatalog, storage: Storage) -> None:
    full_dump(small.catalog, storage, shards=1)
    small.remove(110, "other-2.tar.gz")
    small.yank(120, "demo_pkg-1.0.tar.gz")
    serials = small.complete(150)
    manifest = write_range(small.catalog, storage, serials)
    yanked, gone = iter_dump(storage, "100-150")
    assert (yanked["filename"], yanked["yanked"], yanked["tombstone"]) == ("demo_pkg-1.0.tar.gz", True, False)
    assert gone == {
        "project": "other",
        "normalized": "other",
        "version": "2",
        "filename": "other-2.tar.gz",
        "tombstone": True,
    }
    assert cover(small.catalog).directories == ("0-100", "100-150")
    assert write_range(small.catalog, storage, serials) == manifest
    assert write_range(small.catalog, storage, serials, again=True).directory == "100-150.2"
    assert cover(small.catalog).directories == ("0-100", "100-150.2")
    frame = read_rows_frame(storage, "100-150", ["filename", "tombstone"])
    assert frame.to_dict("list") == {
        "filename": ["demo_pkg-1.0.tar.gz", "other-2.tar.gz"],
        "tombstone": [False, True],
    }
    assert list(read_rows_frame(storage, "0-100").columns) == list(COLUMNS)


def test_corrupt_range_is_written_again(small: SmallCatalog, storage: Storage) -> None:
    full_dump(small.catalog, storage, shards=1)
    small.remove(110, "other-2.tar.gz")
    serials = small.complete(150)
    manifest = write_range(small.catalog, storage, serials)
    storage.delete(file_path(manifest.directory, manifest.files[0].name))
    assert write_range(small.catalog, storage, serials).directory == "100-150.2"


def test_stopped_full_dump_continues_with_missing_shards(small: SmallCatalog, storage: Storage) -> None:
    dump = open_full_dump(small.catalog, 16)
    kept = [write_shard(small.catalog, storage, dump, shard) for shard in (0, 3, 5)]
    storage.put(file_path(dump.directory, kept[1].name), b"cut")
    storage.delete(file_path(dump.directory, kept[2].name))
    assert set(missing_shards(small.catalog, storage, dump)) == set(range(16)) - {0}
    assert committed_directories(storage) == []
    manifest = full_dump(small.catalog, storage, 16)
    assert manifest.directory == dump.directory
    assert manifest.files[0] == kept[0]
    assert [manifest.files[shard].name for shard in (1, 3, 5)] == [
        "python_distribution_data0001.json.gz",
        "python_distribution_data0003.2.json.gz",
        "python_distribution_data0005.2.json.gz",
    ]
    assert len(list(iter_dump(storage, dump.directory))) == 15


def test_shard_with_unrecorded_bytes_is_written_again(
    small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    dump = open_full_dump(small.catalog, 16)
    kept = [write_shard(small.catalog, storage, dump, shard) for shard in range(16)]
    damaged = next(file for file in kept if file.rows)
    path = file_path(dump.directory, damaged.name)
    content = bytearray(storage.get(path))
    content[-20] ^= 1
    storage.put(path, bytes(content))
    assert missing_shards(small.catalog, storage, dump) == []  # it has the right size
    written: list[str] = []
    put = Storage.put
    monkeypatch.setattr(Storage, "put", lambda self, path, content: (written.append(path), put(self, path, content)))
    manifest = full_dump(small.catalog, storage, 16, concurrency=3)
    again = file_path(dump.directory, damaged.name.replace(".json", ".2.json"))
    assert written == [again, manifest_path(dump.directory), part_path("dumps"), PUBLISHED]
    assert storage.get(again) != bytes(content)
    assert [file.sha256 for file in manifest.files] == [file.sha256 for file in kept]
    assert len(list(iter_dump(storage, dump.directory))) == 15


def test_any_concurrency_gives_equal_bytes(small: SmallCatalog, tmp_path: Path) -> None:
    stored = []
    for concurrency in (1, 5):
        storage = open_storage((tmp_path / f"storage{concurrency}").as_uri())
        manifest = full_dump(small.catalog, storage, 16, concurrency=concurrency)
        stored.append([storage.get(file_path(manifest.directory, file.name)) for file in manifest.files])
    assert stored[0] == stored[1]


def test_shard_that_cannot_be_stored_stops_no_other(
    small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = Storage.put

    def failing(self: Storage, path: str, content: bytes) -> None:
        if "data0003" in path:
            raise StorageError(f"cannot write {path}")
        put(self, path, content)

    with monkeypatch.context() as patch:
        patch.setattr(Storage, "put", failing)
        with pytest.raises(ShardsFailedError, match=naming(3, "0-100")):
            full_dump(small.catalog, storage, 16, concurrency=4)
    (dump,) = (dump for dump in known_dumps(small.catalog) if dump.state == DumpState.OPEN)
    assert missing_shards(small.catalog, storage, dump) == [3]
    assert full_dump(small.catalog, storage, 16).rows == 15


def test_incomplete_dump_is_not_committed(small: SmallCatalog, storage: Storage) -> None:
    dump = open_full_dump(small.catalog, 16)
    file = write_shard(small.catalog, storage, dump, 0)
    with pytest.raises(DumpError, match=naming(15)):
        commit(small.catalog, storage, dump)
    storage.delete(file_path(dump.directory, file.name))
    with pytest.raises(DumpDamagedError):
        commit(small.catalog, storage, dump)
    assert committed_directories(storage) == []


def test_dump_killed_before_its_manifest_is_settled_with_equal_bytes(small: SmallCatalog, storage: Storage) -> None:
    dump = open_full_dump(small.catalog, 1)
    write_shard(small.catalog, storage, dump, 0)
    begin_commit(small.catalog, dump)
    write_shard(small.catalog, storage, dump, 0)  # a writer that resumes late changes nothing
    assert [one.state for one in committing_dumps(small.catalog)] == [DumpState.COMMITTING]
    assert cover(small.catalog).dumps == ()
    manifest = full_dump(small.catalog, storage, 1)
    assert manifest.directory == dump.directory
    assert manifest.files[0].name == "python_distribution_data0000.json.gz"
    written = storage.get(manifest_path(dump.directory))
    assert commit(small.catalog, storage, dump) == manifest
    assert storage.get(manifest_path(dump.directory)) == written
    assert [one.directory for one in committed_dumps(small.catalog)] == ["0-100"]
    assert commit_pending_dumps(small.catalog, storage) == []


def test_failing_store_leaves_no_manifest(small: SmallCatalog, storage: Storage, tmp_path: Path) -> None:
    (tmp_path / "storage" / "data_dumps").write_text("in the way")
    with pytest.raises(StorageError, match="data_dumps"):
        full_dump(small.catalog, storage, 1)
    assert committed_dumps(small.catalog) == []
    (tmp_path / "storage" / "data_dumps").unlink()
    assert full_dump(small.catalog, storage, 1).rows == 15


def of_ends(ends: tuple[int, int]) -> SerialRange:
    return SerialRange(min(ends), max(ends) + 1)


ENDS = st.tuples(st.integers(0, 12), st.integers(0, 12)).map(of_ends)


@given(st.sets(st.integers(0, 12), min_size=2), st.lists(ENDS, max_size=8))
def test_undumped_ranges_are_found(bounds: set[int], held: list[SerialRange]) -> None:
    ends = sorted(bounds)
    wanted = [SerialRange(start, end) for start, end in pairwise(ends)]
    expected = [one for one in wanted if not any(other.holds(one) for other in held)]
    assert dump_writer._not_held(wanted, held) == expected


def test_many_ranges_beyond_a_gap_are_checked_once() -> None:
    ranges = [SerialRange(start, start + 1) for start in range(20_000)]
    began = time.process_time()
    assert dump_writer._not_held(ranges, ranges[:9_000] + ranges[9_001:]) == [ranges[9_000]]
    assert time.process_time() - began < 5  # pairwise comparison takes minutes


def test_newest_dump_of_a_range_comes_first(small: SmallCatalog, storage: Storage) -> None:
    catalog = small.catalog
    full_dump(catalog, storage, shards=1)
    serials = small.complete(150)
    assert dumps_that_hold(catalog, serials) == []
    for again in (False, True):
        write_range(catalog, storage, serials, again=again)
    assert [dump.directory for dump in dumps_that_hold(catalog, serials)] == ["100-150.2", "100-150"]
    assert dumps_that_hold(catalog, SerialRange(serials.start, serials.end + 1)) == []
