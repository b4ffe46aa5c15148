"""Versions are built from real dumps of a real catalog, published, corrupted, killed midway, and verified."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from pypi_assets.catalog.coordination.leases import LeaseTakenError, lease
from pypi_assets.catalog.publications.allocated_names import UnknownVersionError, allocate_version
from pypi_assets.catalog.publications.dump_columns import Leaves
from pypi_assets.catalog.publications.dump_registry import committed_dumps
from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.dumps.dump_manifest import file_path
from pypi_assets.dumps.dump_writer import write_missing_ranges
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.dumps.held_dumps import HeldDumps
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.open_leveldb import open_leveldb
from pypi_assets.leveldbs.versions import build_need
from pypi_assets.leveldbs.versions.input_lists import (
    MANIFEST_NAME,
    input_list_path,
    published_versions,
    read_input_list,
)
from pypi_assets.leveldbs.versions.leveldb_manifest import read_published
from pypi_assets.leveldbs.versions.private_copy import copy_published
from pypi_assets.leveldbs.versions.publish import BuildResult, NoCoverError
from pypi_assets.leveldbs.versions.verify import verify
from pypi_assets.lookup import NoVersionError, open_latest
from pypi_assets.storage.published import PUBLISHED, part_path
from pypi_assets.storage.store import Storage, StorageError, open_storage
from pypi_assets_tests.compaction import compact
from pypi_assets_tests.demo_catalog import add_range
from pypi_assets_tests.leveldbs.versions.demo_versions import assert_verified, build
from pypi_assets_tests.naming import mentions, naming
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


@pytest.mark.parametrize("dataset", DATASETS)
def test_incremental_versions_equal_their_rebuild(small: SmallCatalog, storage: Storage, dataset: str) -> None:
    first = build(small, storage, dataset)
    assert (first.version, first.published, first.serial, first.base_version) == (1, True, 100, None)
    assert first.rebuilt_because
    add_range(small, storage, 100)
    add_range(small, storage, 150)
    second = build(small, storage, dataset)
    assert (second.version, second.serial, second.base_version, second.rebuilt_because) == (2, 200, 1, None)
    assert second.rows == 4
    again = build(small, storage, dataset)
    assert (again.published, again.version) == (False, 2)
    assert mentions(again.reason, "version 2")
    scratch = build(small, storage, dataset, from_scratch=True)
    assert (scratch.version, scratch.base_version) == (3, None)
    assert scratch.rebuilt_because not in {None, first.rebuilt_because}
    assert scratch.content_hash == second.content_hash
    for result in (first, second, scratch):
        assert_verified(storage, result)
    assert published_versions(storage, dataset) == [1, 2, 3]


@pytest.mark.parametrize("remote", [False, True])
def test_only_new_files_are_put_and_tables_keep_their_paths(
    small: SmallCatalog, storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, remote: bool
) -> None:
    if remote:
        storage = open_storage("memory:///")
        full_dump(small.catalog, storage, 1)
    build(small, storage, work_dir=tmp_path / "work")
    add_range(small, storage, 100)
    put: list[str] = []
    for name in ("put", "put_linked"):
        method = getattr(Storage, name)

        def counted(self: Storage, path: str, content: object, method: Callable[..., None] = method) -> None:
            put.append(path)
            method(self, path, content)

        monkeypatch.setattr(Storage, name, counted)
    build(small, storage, work_dir=tmp_path / "work")
    first, second = (read_published(storage, "modules", version) for version in (1, 2))
    tables = [{file for file in one.manifest.files if file.is_final} for one in (first, second)]
    assert tables[0] < tables[1]
    assert all(file.directory == "00001" for file in tables[0])
    new = [file for file in second.manifest.files if file.directory == "00002"]
    assert tables[1] - tables[0] <= set(new)
    assert {file.name[:7] for file in new if not file.is_final} == {"CURRENT", "MANIFES"}
    expected = [*map(second.path_of, new), f"{second.path}/{MANIFEST_NAME}", input_list_path("modules", 2)]
    assert set(put) == {*expected, part_path("leveldbs"), PUBLISHED}
    assert {stored.path for stored in storage.list(second.path)} == set(expected[:-1])
    assert_verified(storage, build(small, storage, force=True, work_dir=tmp_path / "work"))


def test_storage_root_can_move(small: SmallCatalog, storage: Storage, tmp_path: Path) -> None:
    build(small, storage)
    (tmp_path / "storage").rename(tmp_path / "moved")
    moved = open_storage((tmp_path / "moved").as_uri())
    assert verify("modules", 1, storage=moved, deep=True).ok
    add_range(small, moved, 100)
    assert build(small, moved).base_version == 1


def test_build_without_a_full_dump_is_impossible(small: SmallCatalog, tmp_path: Path) -> None:
    with pytest.raises(NoCoverError, match=naming("pypi-assets dump full")):
        build(small, open_storage((tmp_path / "empty").as_uri()))


@pytest.mark.parametrize("dataset", DATASETS)
def test_version_is_rebuilt_only_if_many_rows_have_changed(
    small: SmallCatalog, storage: Storage, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build(small, storage, dataset)
    serials = count(first.serial + 1)

    def publish(files: int) -> BuildResult:
        for _ in range(files):
            serial = next(serials)
            small.add(serial, f"project{serial}", "1", f"project{serial}-1.tar.gz")
        small.complete(next(serials))
        list(write_missing_ranges(small.catalog, storage))
        return build(small, storage, dataset)

    base = publish(40)
    assert base.base_version == first.version  # so few rows are always applied
    monkeypatch.setattr(build_need, "LEAST_ROWS_TO_REBUILD", 1)
    for files, is_rebuilt in ((3, False), (60, True), (3, False)):
        result = publish(files)
        assert result.base_version == (None if is_rebuilt else base.version)
        assert (result.rebuilt_because is not None) is is_rebuilt
        assert_verified(storage, result)
        base = result


def test_new_full_dump_is_built_from_scratch(small: SmallCatalog, storage: Storage) -> None:
    build(small, storage)
    add_range(small, storage, 100)
    full_dump(small.catalog, storage, 16)
    rebuilt = build(small, storage)
    assert rebuilt.base_version is None
    assert mentions(rebuilt.rebuilt_because, "version 1", "modules")
    assert_verified(storage, rebuilt)


def test_compaction_is_held_if_all_its_inputs_are(small: SmallCatalog, storage: Storage) -> None:
    ranges = [add_range(small, storage, start) for start in (100, 150)]
    assert build(small, storage).serial == 200
    compact(small.catalog, storage, *ranges)
    assert not build(small, storage).published
    add_range(small, storage, 200)
    following = build(small, storage)
    assert (following.base_version, following.rows) == (1, 2)
    manifest = read_published(storage, "modules", 2).manifest
    assert manifest.cover == ("0-100", "100-200", "200-250")
    assert HeldDumps.decode(manifest.held) == HeldDumps("0-100", 250, Leaves.of([*ranges, "200-250"]))
    assert_verified(storage, following)


def test_compaction_beyond_held_dumps_is_built_from_scratch(small: SmallCatalog, storage: Storage) -> None:
    first = add_range(small, storage, 100)
    build(small, storage)
    compact(small.catalog, storage, first, add_range(small, storage, 150))
    rebuilt = build(small, storage)
    assert rebuilt.base_version is None
    assert_verified(storage, rebuilt)


def test_version_numbers_come_from_the_catalog(small: SmallCatalog, storage: Storage) -> None:
    with pytest.raises(UnknownVersionError):
        build(small, storage, version=7)
    early, late = allocate_version(small.catalog, 100), allocate_version(small.catalog, 100)
    assert build(small, storage, version=late).version == late == 2
    again = build(small, storage, version=late, force=True)
    assert not again.published
    assert mentions(again.reason, late)
    overtaken = build(small, storage, version=early)
    assert not overtaken.published
    assert mentions(overtaken.reason, "version 2", "version 1")
    assert published_versions(storage, "modules") == [late]
    assert build(small, storage, version=early, force=True).published


def test_only_one_build_publishes_at_a_time(small: SmallCatalog, storage: Storage) -> None:
    with lease(small.catalog, "publish modules"):
        with pytest.raises(LeaseTakenError):
            build(small, storage)
        assert build(small, storage, "depgraph").published


def test_build_without_input_list_is_repeated_in_another_directory(
    small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    number = allocate_version(small.catalog, 100)
    with monkeypatch.context() as patch:
        patch.setattr("pypi_assets.leveldbs.versions.publish.write_input_list", killed)
        with pytest.raises(KeyboardInterrupt):
            build(small, storage, version=number)
    assert published_versions(storage, "modules") == []
    result = build(small, storage, version=number)
    assert (result.version, result.published) == (number, True)
    assert read_input_list(storage, "modules", number).directory == "00001.2"
    assert_verified(storage, result)


def test_expired_lease_holder_publishes_nothing(
    small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pypi_assets.leveldbs.versions.shared_reading.LEASE_TTL_S", -1.0)

    def take_over(_rows: int) -> None:
        with lease(small.catalog, "publish modules"):
            pass

    with pytest.raises(LeaseTakenError):
        build(small, storage, progress=take_over)
    assert published_versions(storage, "modules") == []


def damage(storage: Storage, version: int, *, same_size: bool) -> None:
    published = read_published(storage, "modules", version)
    table = max(published.manifest.files, key=lambda file: file.size)
    path = f"{published.path}/{table.name}"
    content = storage.get(path)
    storage.delete(path)
    storage.put(path, bytes(byte ^ 1 for byte in content) if same_size else content[:-1])


@pytest.mark.parametrize("same_size", [True, False])
def test_corrupt_version_is_not_built_on(small: SmallCatalog, storage: Storage, same_size: bool) -> None:
    build(small, storage)
    damage(storage, 1, same_size=same_size)
    assert not verify("modules", 1, storage=storage).ok
    add_range(small, storage, 100)
    rebuilt = build(small, storage)
    assert rebuilt.base_version is None
    assert mentions(str(rebuilt.rebuilt_because), 1)
    assert_verified(storage, rebuilt)


@pytest.mark.parametrize("dataset", DATASETS)
def test_version_in_an_older_format_is_not_built_on(
    small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch, dataset: str
) -> None:
    known = DATASETS[dataset]
    with monkeypatch.context() as earlier:
        earlier.setitem(DATASETS, dataset, replace(known, format=known.format - 1))
        build(small, storage, dataset)
    add_range(small, storage, 100)
    rebuilt = build(small, storage, dataset)
    assert rebuilt.base_version is None
    assert mentions(str(rebuilt.rebuilt_because), "version 1", dataset, f"format {known.format - 1}")
    assert_verified(storage, rebuilt)
    storage.delete(input_list_path(dataset, 2))
    with pytest.raises(NoVersionError, match=naming(known.format - 1)):
        open_latest(dataset, storage)


@pytest.fixture
def large(tmp_path: Path) -> Iterator[SmallCatalog]:
    """Return a catalog with enough files for tables of many blocks."""
    small = small_catalog(tmp_path)
    for number in range(300):
        modules = tuple(f"m{number * digit % 977}.x{digit}" for digit in range(3, 11))
        small.add(1, f"p{number:03}", "1.0", f"p{number:03}-1.0.tar.gz", modules=modules)
    small.add(1, "zz", "1.0", "zz-1.0.tar.gz", modules=("zz.last",))
    small.complete(100)
    yield small
    small.catalog.close()


@pytest.mark.nightly
def test_corruption_that_no_build_reads_is_still_detected(large: SmallCatalog, tmp_path: Path) -> None:
    storage = open_storage((tmp_path / "storage").as_uri())
    full_dump(large.catalog, storage, 1)
    build(large, storage)
    first = read_published(storage, "modules", 1)
    table = max(first.manifest.files, key=lambda file: file.size)
    path = tmp_path / "storage" / first.path_of(table)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1  # not in the last block, since each build reads that
    path.unlink()
    path.write_bytes(content)
    add_range(large, storage, 100)
    second = build(large, storage)
    assert second.base_version == 1
    assert table in read_published(storage, "modules", 2).manifest.files  # with its original hash
    for version in (1, 2):
        assert "sha256 differs" in verify("modules", version, storage=storage).problems[0]
    with pytest.raises(NoVersionError):
        open_latest("modules", storage)
    assert_verified(storage, build(large, storage, from_scratch=True))


@pytest.mark.nightly
def test_corrupt_cache_is_repaired_and_built_on(large: SmallCatalog, tmp_path: Path) -> None:
    storage, cache = open_storage("memory:///"), tmp_path / "work" / "modules" / "files"
    full_dump(large.catalog, storage, 1)
    build(large, storage, work_dir=tmp_path / "work")
    table = max(read_published(storage, "modules", 1).manifest.files, key=lambda file: file.size)
    content = (cache / table.sha256).read_bytes()
    (cache / table.sha256).write_bytes(bytes(byte ^ 1 for byte in content))
    add_range(large, storage, 100)
    second = build(large, storage, work_dir=tmp_path / "work")
    assert second.base_version == 1
    assert (cache / table.sha256).read_bytes() == content
    assert_verified(storage, second)


@pytest.mark.nightly
def test_build_fetches_none_of_its_own_files(
    large: SmallCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, work_dir = open_storage("memory:///"), tmp_path / "work"
    full_dump(large.catalog, storage, 1)
    build(large, storage, work_dir=work_dir)
    fetched: list[str] = []
    get_range = Storage.get_range

    def counted(self: Storage, path: str, offset: int, size: int) -> bytes:
        if path.startswith("modules/"):
            fetched.append(path)
        return get_range(self, path, offset, size)

    monkeypatch.setattr(Storage, "get_range", counted)
    for start in range(100, 400, 50):
        add_range(large, storage, start)
        build(large, storage, work_dir=work_dir)
    assert fetched == []
    with open_latest("modules", storage, work_dir) as reader:
        assert reader.version == 7
    assert verify("modules", 7, storage=storage, work_dir=work_dir, cached=True).ok
    assert fetched == []
    put = read_published(storage, "modules", 7)
    content = storage.get(path := put.path_of(put.manifest.files[0]))
    storage.put(path, content[:-1])
    assert "bytes, not" in verify("modules", 7, storage=storage, work_dir=work_dir, cached=True).problems[0]
    storage.put(path, content)
    shutil.rmtree(work_dir)
    add_range(large, storage, 400)
    last = build(large, storage, work_dir=work_dir)
    base = read_published(storage, "modules", 7)
    assert set(fetched) == set(map(base.path_of, base.manifest.files))
    assert_verified(storage, last)


@pytest.mark.nightly
def test_opening_a_version_merges_no_tables(large: SmallCatalog, tmp_path: Path) -> None:
    storage = open_storage((tmp_path / "storage").as_uri())
    full_dump(large.catalog, storage, 1)
    for start in range(100, 600, 50):
        result = build(large, storage)
        copy_published(storage, read_published(storage, "modules", result.version), tmp_path / f"copy {start}")
        with open_leveldb(tmp_path / f"copy {start}", "a copy") as db:
            assert int(db.get_property(b"leveldb.num-files-at-level0") or 0) < 4
        assert not any(path.stat().st_size for path in (tmp_path / f"copy {start}").glob("*.log"))
        add_range(large, storage, start)


def test_corrupt_dump_publishes_nothing(small: SmallCatalog, storage: Storage) -> None:
    build(small, storage)
    directory = add_range(small, storage, 100)
    path = file_path(directory, "python_distribution_data0000.json.gz")
    storage.put(path, storage.get(path)[:-4])
    with pytest.raises(DumpDamagedError, match="100-150"):
        build(small, storage)
    assert published_versions(storage, "modules") == [1]
    assert [path.name for path in (storage.root or Path()).glob(".private/*")] == []


def test_failing_storage_publishes_nothing(small: SmallCatalog, storage: Storage) -> None:
    (storage.root or Path()).joinpath("modules").write_text("in the way")
    with pytest.raises(StorageError):
        build(small, storage)
    assert len(committed_dumps(small.catalog)) == 1
