"""Fetched versions: one folder is one LevelDB, whatever reads it, and nothing there can change the storage."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import orjson
import plyvel
import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError
from pypi_assets.leveldbs.format.records import META_PREFIX, ContentHash
from pypi_assets.leveldbs.versions import private_copy
from pypi_assets.leveldbs.versions.fetched_folder import (
    VERSION_NAME,
    FetchedFolder,
    FetchError,
    FetchState,
    fetch_version,
)
from pypi_assets.leveldbs.versions.input_lists import published_versions
from pypi_assets.leveldbs.versions.leveldb_manifest import PublishedVersion, read_published
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.demo_catalog import add_range
from pypi_assets_tests.forked import ForkedProgram, run_forked
from pypi_assets_tests.kills import DONE, run_and_kill
from pypi_assets_tests.leveldbs.versions.demo_versions import build
from pypi_assets_tests.naming import naming
from pypi_assets_tests.s3_server import BUCKET, s3_server
from pypi_assets_tests.small_catalog import SmallCatalog

_WRITE = """
import sys
import plyvel
with plyvel.DB(sys.argv[1]) as db:
    for key in list(db.iterator(include_value=False)):
        db.delete(key)
    for number in range(2_000):
        db.put(b"%d" % number, b"x" * 100)
    db.compact_range()
plyvel.repair_db(sys.argv[1])
"""
_HOLD = """
import fcntl, sys
import plyvel
if sys.argv[2] == "C++":
    db = plyvel.DB(sys.argv[1])
else:
    lock = open(sys.argv[1] + "/LOCK", "ab")
    fcntl.flock(lock, fcntl.LOCK_EX)
    open(sys.argv[1] + "/LOG", "ab").close()
print("open", flush=True)
sys.stdin.read()
"""
_FETCH = """
import sys
from pathlib import Path
from pypi_assets.leveldbs.versions.fetched_folder import fetch_version
from pypi_assets.leveldbs.versions.leveldb_manifest import read_published
from pypi_assets.storage.store import open_storage
storage = open_storage(sys.argv[1], read_only=True)
for number in range(20):
    fetch_version(storage, read_published(storage, "modules", number % 2 + 1), Path(sys.argv[2]))
"""


def fetch(storage: Storage, folder: Path, dataset: str = "modules", version: int = 0) -> FetchedFolder:
    return fetch_version(storage, newest(storage, dataset, version), folder)


def newest(storage: Storage, dataset: str = "modules", version: int = 0) -> PublishedVersion:
    return read_published(storage, dataset, version or published_versions(storage, dataset)[-1])


def stored(storage: Storage) -> dict[str, tuple[str, int]]:
    """Return the hash and the mode of each file of a local storage."""
    assert storage.root is not None
    files = [path for path in storage.root.rglob("*") if path.is_file()]
    return {str(path): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mode) for path in files}


def version_in(folder: Path) -> int:
    """Return the version in a folder, after a comparison of all its files with the manifest in it."""
    manifest = orjson.loads((folder / VERSION_NAME).read_bytes())
    hashes = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    del hashes[VERSION_NAME]
    hashes.pop("LOCK", None)  # created by a check that no program has the folder open
    assert hashes == {file["name"]: file["sha256"] for file in manifest["files"]}
    return int(manifest["version"])


def hash_of_records(folder: Path) -> str:
    """Return the content hash of the records that another program reads."""
    found = ContentHash()
    with plyvel.DB(str(folder)) as db:
        for key, value in db:
            if not key.startswith(META_PREFIX):
                found.add(key, value)
    return found.hex


@pytest.fixture
def built(small: SmallCatalog, storage: Storage) -> Storage:
    """Return a storage with two versions of `modules`, of which the second has files of both folders."""
    build(small, storage)
    add_range(small, storage, 100)
    build(small, storage)
    assert len({file.directory for file in newest(storage).manifest.files}) == 2
    return storage


def test_each_dataset_is_fetched_as_one_leveldb(small: SmallCatalog, storage: Storage, tmp_path: Path) -> None:
    built = [build(small, storage, dataset) for dataset in DATASETS]
    add_range(small, storage, 100)
    built += [build(small, storage, dataset) for dataset in DATASETS]
    for result in built:
        folder = tmp_path / f"{result.dataset}-{result.version}"
        fetched = fetch(storage, folder, result.dataset, result.version)
        manifest = newest(storage, result.dataset, result.version).manifest
        assert (fetched.version, fetched.serial, fetched.state) == (version_in(folder), result.serial, "fetched")
        assert fetched.linked == len([file for file in manifest.files if file.is_final]) > 0
        assert hash_of_records(folder) == fetched.content_hash == manifest.content_hash
    assert {result.serial for result in built} == {100, 150}


def test_writes_to_a_fetched_folder_leave_the_storage_unchanged(built: Storage, tmp_path: Path) -> None:
    before = stored(built)
    fetch(built, tmp_path / "fetched")
    run_forked(_WRITE, tmp_path / "fetched", check=True)
    assert hash_of_records(tmp_path / "fetched") != newest(built).manifest.content_hash
    assert stored(built) == before


def test_only_tables_are_linked_and_other_files_are_copied(built: Storage, tmp_path: Path) -> None:
    fetch(built, tmp_path / "fetched")
    published = newest(built)
    for file in published.manifest.files:
        source = built.local_path(published.path_of(file))
        assert source is not None
        assert source.samefile(tmp_path / "fetched" / file.name) == file.name.endswith(".ldb"), file.name


def test_folder_on_another_disk_gets_checked_copies(
    built: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def on_another_disk(*_: object) -> None:
        raise OSError(18, os.strerror(18))

    monkeypatch.setattr(os, "link", on_another_disk)
    assert fetch(built, tmp_path / "fetched").linked == 0
    assert version_in(tmp_path / "fetched") == 2
    copyfile = shutil.copyfile

    def miscopied(source: Path, target: Path) -> None:
        copyfile(source, target)
        if target.suffix == ".ldb":
            target.write_bytes(bytes(target.stat().st_size))

    monkeypatch.setattr(private_copy.shutil, "copyfile", miscopied)
    with pytest.raises(LeveldbDamagedError, match=naming("sha256")):
        fetch(built, tmp_path / "other")
    assert sorted(path.name for path in tmp_path.glob("*other*")) == []


@pytest.mark.nightly
def test_version_of_a_remote_storage_is_downloaded(
    small: SmallCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pypi_assets.dumps.full_dump import full_dump

    with s3_server(monkeypatch):
        storage = open_storage(f"s3://{BUCKET}/root")
        full_dump(small.catalog, storage, 1)
        build(small, storage, work_dir=tmp_path / "work")
        for cache in (None, tmp_path / "cache"):
            fetched = fetch_version(storage, newest(storage), tmp_path / "fetched", cache)
            assert fetched.linked == (1 if cache else 0)
            assert hash_of_records(tmp_path / "fetched") == fetched.content_hash


def test_corrupt_or_missing_file_leaves_no_folder(built: Storage, tmp_path: Path) -> None:
    published = newest(built)
    path = next(published.path_of(file) for file in published.manifest.files if file.is_final)
    content = bytearray(built.get(path))
    content[20] ^= 1

    def corrupt() -> None:
        built.put(path, bytes(content))

    changes: list[Callable[[], None]] = [corrupt, lambda: built.delete(path)]
    for change in changes:
        change()
        with pytest.raises(LeveldbDamagedError, match=naming(path)):
            fetch(built, tmp_path / "fetched")
        assert list(tmp_path.glob("*fetch*")) == []


def test_repeated_fetch_keeps_an_unchanged_folder_and_renews_a_changed_one(built: Storage, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "fetched"
    assert fetch(built, folder).state is FetchState.FETCHED
    inode = folder.stat().st_ino
    assert fetch(built, folder).state is FetchState.UNCHANGED
    assert folder.stat().st_ino == inode

    def opened() -> None:
        hash_of_records(folder)

    changes: dict[str, Callable[[], object]] = {
        "opened by a program": opened,
        "written to": lambda: run_forked(_WRITE, folder, check=True),
        "a file is missing": (folder / "CURRENT").unlink,
        "other content": lambda: (folder / "CURRENT").write_bytes(b"MANIFEST-999999\n"),
        "another version": lambda: fetch(built, folder, version=1),
    }
    for name, change in changes.items():
        change()
        assert fetch(built, folder).state is FetchState.FETCHED, name
        assert version_in(folder) == 2, name
    assert fetch(built, folder, version=1).state is FetchState.FETCHED
    assert version_in(folder) == 1
    assert [path.name for path in folder.parent.iterdir()] == ["fetched"]


def test_folder_of_the_storage_or_with_other_files_is_rejected(built: Storage, tmp_path: Path) -> None:
    assert built.root is not None
    before = stored(built)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    (tmp_path / "link").symlink_to(built.root / "modules")
    inside = built.root / "modules" / "leveldbs" / "00002"
    for folder in (tmp_path / "mine", tmp_path / "mine" / "notes.txt", inside, built.root, tmp_path / "link" / "new"):
        with pytest.raises(FetchError, match=naming(folder.resolve())):
            fetch(built, folder)
    with pytest.raises(FetchError):
        fetch(built, Path("/"))
    assert stored(built) == before
    assert (tmp_path / "mine" / "notes.txt").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".fetching")] == []
    (tmp_path / "empty").mkdir()
    assert fetch(built, tmp_path / "empty").state is FetchState.FETCHED
    other = open_storage((tmp_path / "other").as_uri())
    with pytest.raises(FetchError, match="00002"):  # the storage of another instance
        fetch_version(other, newest(built), inside)


def test_fetched_folder_with_files_of_a_user_is_rejected(built: Storage, tmp_path: Path) -> None:
    folder = tmp_path / "fetched"
    for version in (1, 2):  # a version that differs, and the one that the folder has
        fetch(built, folder, version=2)
        for name in ("notes.txt", "000005.ldb.bak", "nested"):
            other = folder / name
            if name == "nested":
                fetch(built, other)
            else:
                other.write_text("mine")
            before = sorted(folder.rglob("*"))
            with pytest.raises(FetchError, match=naming(name)):
                fetch(built, folder, version=version)
            assert sorted(folder.rglob("*")) == before
            shutil.rmtree(other) if other.is_dir() else other.unlink()
    assert fetch(built, folder).state is FetchState.UNCHANGED


def test_folder_within_the_cache_is_rejected(built: Storage, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for folder in (cache, cache / "modules"):
        with pytest.raises(FetchError, match=naming(folder)):
            fetch_version(built, newest(built), folder, cache)
        assert not cache.exists()


def test_open_folder_is_not_replaced(built: Storage, tmp_path: Path) -> None:
    folder = tmp_path / "fetched"
    for lock in ("C++", "Go"):
        fetch(built, folder, version=1)
        with ForkedProgram(_HOLD, folder, lock, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "open\n"
            before = sorted(path.name for path in folder.iterdir())
            with pytest.raises(FetchError, match=naming(folder)):
                fetch(built, folder)
            assert fetch(built, folder, version=1).state is FetchState.IN_USE
            assert sorted(path.name for path in folder.iterdir()) == before
        assert fetch(built, folder).state is FetchState.FETCHED
        assert version_in(folder) == 2


def fetch_beside(_: Catalog, storage: Storage) -> None:
    assert storage.root is not None
    fetch(storage, storage.root.parent / "fetched")


@pytest.mark.nightly
@pytest.mark.parametrize("before", [None, 1])
def test_fetch_killed_at_any_step_leaves_a_whole_version_or_none(
    small: SmallCatalog, built: Storage, tmp_path: Path, before: int | None
) -> None:
    folder = tmp_path / "fetched"
    counted = ((os, "link"), (shutil, "copyfile"), (Path, "write_bytes"), (Path, "rename"))
    for step in range(1, 100):
        if before:
            fetch(built, folder, version=before)
        reached = run_and_kill(fetch_beside, small.catalog, built, step, *counted)
        left = version_in(folder) if folder.exists() else None
        assert left in {None, before, 2}, reached
        fetch(built, folder)
        assert version_in(folder) == 2, reached
        assert list(tmp_path.glob(".*")) == [], reached
        shutil.rmtree(folder)
        if reached == DONE:
            break
    assert step > 10


@pytest.mark.nightly
def test_processes_that_fetch_into_one_folder_take_turns(built: Storage, tmp_path: Path) -> None:
    fetchers = [ForkedProgram(_FETCH, built.url, tmp_path / "fetched") for _ in range(3)]
    assert [fetcher.wait(timeout=120) for fetcher in fetchers] == [0, 0, 0]
    assert version_in(tmp_path / "fetched") == 2
    assert list(tmp_path.glob(".*")) == []
