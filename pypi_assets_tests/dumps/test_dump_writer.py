"""Dumps from a real catalog into a real folder: what is in them, and what a kill at any step leaves behind."""

import gzip
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_columns import COLUMNS
from pypi_assets.catalog.publications.dump_files import DumpKind
from pypi_assets.catalog.publications.dump_registry import (
    DumpError,
    DumpState,
    begin_commit,
    committed_dumps,
    committing_dumps,
    open_dumps,
    open_full_dump,
    open_range_dump,
)
from pypi_assets.dumps.concurrency import ShardsFailedError
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.dumps.dump_manifest import committed_directories, read_manifest
from pypi_assets.dumps.dump_paths import file_path, manifest_path, shard_of
from pypi_assets.dumps.dump_reader import iter_dump, iter_rows, read_rows_frame
from pypi_assets.dumps.dump_writer import commit, missing_shards, settle, write_range, write_shard
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.dumps.restore import restore_index
from pypi_assets.storage.store import Storage, StorageError, StoredObject, open_storage
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


def fill(small: SmallCatalog) -> None:
    small.add(1, "Demo.Pkg", "1.0", "demo_pkg-1.0.tar.gz", modules=("demo", "demo.a"), requires_dist=("other>=1",))
    small.add(2, "Demo.Pkg", "1.0", "demo_pkg-1.0-py3-none-any.whl")
    small.add(3, "other", "2", "other-2.tar.gz", modules=None, requires_dist=None, requires_python=">=3.8")
    for number in range(12):
        small.add(10 + number, f"many{number}", "1", f"many{number}-1.tar.gz")
    small.complete(100)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallCatalog]:
    small = small_catalog(tmp_path)
    fill(small)
    yield small
    small.catalog.close()


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage((tmp_path / "storage").as_uri())


def test_a_full_dump_holds_what_is_live_sharded_and_sorted(small: SmallCatalog, storage: Storage) -> None:
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


def test_both_databases_give_the_same_bytes(
    small: SmallCatalog, storage: Storage, tmp_path: Path, postgres_database_url: str
) -> None:
    other, elsewhere = small_catalog(tmp_path, postgres_database_url), open_storage((tmp_path / "other").as_uri())
    fill(other)
    for one in (small, other):  # names that languages, but not bytes, would sort otherwise
        for filename in ("Zed-1.zip", "a_b-1.zip", "a-b-1.zip", "aB-1.zip", "é-1.zip"):
            one.add(60, "Mixed", "1", filename)
    assert full_dump(small.catalog, storage, 16) == full_dump(other.catalog, elsewhere, 16)
    for one, where in ((small, storage), (other, elsewhere)):
        one.remove(110, "other-2.tar.gz")
        write_range(one.catalog, where, one.complete(150))
    paths = sorted(stored.path for stored in storage.list())
    assert len(paths) == 19
    assert {path: storage.get(path) for path in paths} == {path: elsewhere.get(path) for path in paths}
    other.catalog.close()


def test_the_manifest_says_what_a_dump_is(small: SmallCatalog, storage: Storage) -> None:
    manifest = full_dump(small.catalog, storage, shards=1)
    fields = json.loads(storage.get(manifest_path("0-100")))
    assert (fields["format"], fields["columns_version"], list(fields["columns"])) == (1, 1, list(COLUMNS))
    assert (fields["kind"], fields["range"], fields["rows"]) == ("full", "0-100", 15)
    assert fields["files"][0]["name"] == "python_distribution_data0000.json.gz"
    assert read_manifest(storage, "0-100") == manifest


JSON_TYPES = {"string": str, "integer": int, "boolean": bool, "array of strings": list, "null": type(None)}


def test_rows_have_the_types_that_the_columns_promise(small: SmallCatalog, storage: Storage) -> None:
    full_dump(small.catalog, storage, shards=1)
    for row in iter_dump(storage, "0-100"):
        for name, value in row.items():
            assert type(value) in {JSON_TYPES[one] for one in COLUMNS[name].type.split(" or ")}, name
            assert not isinstance(value, list) or all(isinstance(item, str) for item in value)


def test_a_range_holds_rows_and_tombstones(small: SmallCatalog, storage: Storage) -> None:
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


def test_a_damaged_range_is_written_again(small: SmallCatalog, storage: Storage) -> None:
    full_dump(small.catalog, storage, shards=1)
    small.remove(110, "other-2.tar.gz")
    serials = small.complete(150)
    manifest = write_range(small.catalog, storage, serials)
    storage.delete(file_path(manifest.directory, manifest.files[0].name))
    assert write_range(small.catalog, storage, serials).directory == "100-150.2"


def test_a_stopped_full_dump_goes_on_with_the_missing_shards(small: SmallCatalog, storage: Storage) -> None:
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


def test_a_shard_whose_bytes_are_not_those_that_were_recorded_is_written_again(
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
    assert written == [again, manifest_path(dump.directory)]
    assert storage.get(again) != bytes(content)
    assert [file.sha256 for file in manifest.files] == [file.sha256 for file in kept]
    assert len(list(iter_dump(storage, dump.directory))) == 15


def test_any_concurrency_gives_the_same_bytes(small: SmallCatalog, tmp_path: Path) -> None:
    stored = []
    for concurrency in (1, 5):
        storage = open_storage((tmp_path / f"storage{concurrency}").as_uri())
        manifest = full_dump(small.catalog, storage, 16, concurrency=concurrency)
        stored.append([storage.get(file_path(manifest.directory, file.name)) for file in manifest.files])
    assert stored[0] == stored[1]


def test_a_shard_that_cannot_be_stored_stops_no_other_one(
    small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = Storage.put

    def failing(self: Storage, path: str, content: bytes) -> None:
        if "data0003" in path:
            raise StorageError(f"cannot write {path}")
        put(self, path, content)

    with monkeypatch.context() as patch:
        patch.setattr(Storage, "put", failing)
        with pytest.raises(ShardsFailedError, match="shard 3 of dump 0-100 is not written: cannot write"):
            full_dump(small.catalog, storage, 16, concurrency=4)
    (dump,) = open_dumps(small.catalog)
    assert missing_shards(small.catalog, storage, dump) == [3]
    assert full_dump(small.catalog, storage, 16).rows == 15


def test_a_dump_without_all_shards_or_files_is_not_committed(small: SmallCatalog, storage: Storage) -> None:
    dump = open_full_dump(small.catalog, 16)
    file = write_shard(small.catalog, storage, dump, 0)
    with pytest.raises(DumpError, match="15 shards missing"):
        commit(small.catalog, storage, dump)
    storage.delete(file_path(dump.directory, file.name))
    with pytest.raises(DumpDamagedError, match="write the shard again"):
        commit(small.catalog, storage, dump)
    assert committed_directories(storage) == []


def test_a_dump_killed_before_its_manifest_is_settled_with_the_same_bytes(
    small: SmallCatalog, storage: Storage
) -> None:
    dump = open_full_dump(small.catalog, 1)
    write_shard(small.catalog, storage, dump, 0)
    begin_commit(small.catalog, dump)
    write_shard(small.catalog, storage, dump, 0)  # a writer that wakes up late changes nothing
    assert [one.state for one in committing_dumps(small.catalog)] == [DumpState.COMMITTING]
    assert cover(small.catalog).dumps == ()
    manifest = full_dump(small.catalog, storage, 1)
    assert manifest.directory == dump.directory
    assert manifest.files[0].name == "python_distribution_data0000.json.gz"
    written = storage.get(manifest_path(dump.directory))
    assert commit(small.catalog, storage, dump) == manifest
    assert storage.get(manifest_path(dump.directory)) == written
    assert [one.directory for one in committed_dumps(small.catalog)] == ["0-100"]
    assert settle(small.catalog, storage) == []


def test_a_store_that_fails_leaves_no_manifest(small: SmallCatalog, tmp_path: Path) -> None:
    storage = open_storage((tmp_path / "storage").as_uri())
    (tmp_path / "storage" / "data_dumps").write_text("in the way")
    with pytest.raises(StorageError, match="data_dumps"):
        full_dump(small.catalog, storage, 1)
    assert committed_dumps(small.catalog) == []
    (tmp_path / "storage" / "data_dumps").unlink()
    assert full_dump(small.catalog, storage, 1).rows == 15


def test_a_file_that_goes_after_it_was_asked_for_its_size_is_missing(
    small: SmallCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage("memory:///")
    manifest = full_dump(small.catalog, storage, 1)
    head = Storage.head

    def gone_then(self: Storage, path: str) -> StoredObject:
        stored = head(self, path)
        self.delete(path)
        return stored

    monkeypatch.setattr(Storage, "head", gone_then)
    with pytest.raises(DumpDamagedError, match="is missing, though"):
        list(iter_dump(storage, manifest.directory))


def test_what_changed_after_the_manifest_is_noticed(small: SmallCatalog, storage: Storage) -> None:
    manifest = full_dump(small.catalog, storage, 1)
    path = file_path(manifest.directory, manifest.files[0].name)
    text = gzip.decompress(storage.get(path)).replace(b"demo.a", b"demo.b")
    storage.put(path, gzip.compress(text))
    with pytest.raises(DumpDamagedError, match="not the file that its manifest names"):
        list(iter_dump(storage, manifest.directory))
    storage.delete(path)
    with pytest.raises(DumpDamagedError, match="is missing, though"):
        list(iter_dump(storage, manifest.directory))
    storage.put(manifest_path(manifest.directory), b'{"format": 99}')
    with pytest.raises(DumpDamagedError, match="not a manifest that this version reads"):
        read_manifest(storage, manifest.directory)
    storage.delete(manifest_path(manifest.directory))
    with pytest.raises(DumpDamagedError, match="no committed dump in 0-100"):
        read_manifest(storage, manifest.directory)


def test_the_index_is_rebuilt_from_the_storage(small: SmallCatalog, storage: Storage, tmp_path: Path) -> None:
    full_dump(small.catalog, storage, 16)
    small.remove(110, "other-2.tar.gz")
    write_range(small.catalog, storage, small.complete(150))
    open_range_dump(small.catalog, SerialRange(100, 150))
    storage.put(manifest_path("150-160"), b"{}")
    (tmp_path / "new").mkdir()
    fresh = small_catalog(tmp_path / "new")
    for _ in range(2):
        index = restore_index(fresh.catalog, storage)
        assert index.restored == ("0-100", "100-150")
        assert len(index.damaged) == 1
        assert "150-160" in index.damaged[0]
        assert cover(fresh.catalog).directories == cover(small.catalog).directories
    restored, known = committed_dumps(fresh.catalog), committed_dumps(small.catalog)
    assert [(one.kind, one.serials, one.sequence, one.shards) for one in restored] == [
        (one.kind, one.serials, one.sequence, one.shards) for one in known
    ]
    fresh.catalog.close()


@pytest.mark.parametrize(("shards", "shard"), [(256, 0x2A), (16, 0x2), (1, 0)])
def test_shards_go_by_the_first_hex_digits(shards: int, shard: int) -> None:
    assert hashlib.sha256(b"demo").hexdigest().startswith("2a")
    assert shard_of("demo", shards) == shard
