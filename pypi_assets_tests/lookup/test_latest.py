"""Lookups in published versions: in a folder and on S3, with corrupt versions, and without a catalog."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.dumps.dump_writer import write_range
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbError, NoVersionError
from pypi_assets.leveldbs.versions.leveldb_manifest import LeveldbFile, check_file, read_published
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.leveldbs.versions.verify import verify
from pypi_assets.lookup.latest import open_latest
from pypi_assets.lookup.modules_reader import ModulesReader
from pypi_assets.storage.store import Storage, StorageError, open_storage
from pypi_assets_tests.lookup.publisher import Publisher
from pypi_assets_tests.s3_server import BUCKET, s3_server
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallCatalog]:
    small = small_catalog(tmp_path)
    small.add(1, "Demo.Pkg", "1.10", "demo_pkg-1.10.tar.gz", modules=("demo", "demo.a"), requires_dist=("other>=1",))
    small.add(2, "Demo.Pkg", "1.9.0", "demo_pkg-1.9.0-py3-none-any.whl", requires_python=">=3.8")
    small.add(3, "Demo.Pkg", "1.9.0", "demo_pkg-1.9.0-cp311-cp311-win_amd64.whl")
    small.add(4, "demo", "2", "demo-2.tar.gz", modules=None, requires_dist=None)
    small.add(5, "another", "1", "another-1.tar.gz")
    small.complete(100)
    yield small
    small.catalog.close()


@pytest.fixture(params=["file", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    if request.param == "file":
        yield open_storage((tmp_path / "storage").as_uri())
    else:
        with s3_server(monkeypatch):
            yield open_storage(f"s3://{BUCKET}/root")


def publish(small: SmallCatalog, storage: Storage, tmp_path: Path) -> None:
    for dataset in ("modules", "depgraph"):
        build_version(dataset, storage=storage, catalog=small.catalog, work_dir=tmp_path / "work")


def test_published_version_answers_lookups(small: SmallCatalog, storage: Storage, tmp_path: Path) -> None:
    full_dump(small.catalog, storage, 1)
    publish(small, storage, tmp_path)
    with open_latest("modules", storage, tmp_path / "cache") as modules:
        answer = modules.module("demo")
        assert (answer.version, answer.serial, modules.skipped) == (1, 100, ())
        assert answer.results == (
            {"module": "demo", "project": "another", "versions": ["1"]},
            {"module": "demo", "project": "Demo.Pkg", "versions": ["1.9.0", "1.10"]},
        )
        assert modules.module("demo.a").results == ({"module": "demo.a", "project": "Demo.Pkg", "versions": ["1.10"]},)
        for unknown in ("dem", "demo.", "", "unknown", "demo\0"):
            assert modules.module(unknown).results == ()
    with open_latest("depgraph", storage, tmp_path / "cache") as depgraph:
        results = depgraph.project("demo_PKG").results
        assert [row["filename"] for row in results] == [
            "demo_pkg-1.9.0-cp311-cp311-win_amd64.whl",
            "demo_pkg-1.9.0-py3-none-any.whl",
            "demo_pkg-1.10.tar.gz",
        ]
        assert [row["requires_dist"] for row in results] == [[], [], ["other>=1"]]
        assert (results[0]["platform"], results[0]["abi"], results[1]["requires_python"]) == (
            "win_amd64",
            "cp311",
            ">=3.8",
        )
        assert (results[2]["project"], results[2]["yanked"], results[2]["kind"]) == ("Demo.Pkg", False, "sdist")
        assert [row["version"] for row in depgraph.project("Demo.Pkg", "v1.9").results] == ["1.9.0", "1.9.0"]
        assert depgraph.dependents("Other").results == (
            {"required": "other", "normalized": "demo-pkg", "always": ["1.10"], "marker": [], "extra": []},
        )
        assert depgraph.dependents("demo").results == ()
        assert depgraph.project("demo").results[0]["requires_dist"] is None
        assert depgraph.project("demo", "3").results == depgraph.project("unknown").results == ()
    small.remove(110, "demo_pkg-1.10.tar.gz")
    write_range(small.catalog, storage, small.complete(150))
    publish(small, storage, tmp_path)
    for dataset in ("modules", "depgraph"):
        newest = read_published(storage, dataset, {"modules": 3, "depgraph": 4}[dataset]).manifest
        assert newest.base_version is not None
        base = read_published(storage, dataset, newest.base_version).manifest
        assert {file for file in base.files if file.name.endswith(".ldb")} <= set(newest.files)
        assert verify(dataset, newest.version, storage=storage, deep=True, work_dir=tmp_path / "work").ok
    with open_latest("modules", storage, tmp_path / "cache") as modules:
        assert (modules.version, modules.serial) == (3, 150)
        assert modules.module("demo.a").results == ()
    assert list((tmp_path / "cache").glob(".private/*")) == []
    if storage.root is None:
        assert len(list((tmp_path / "cache" / "modules" / "versions").iterdir())) == 2
        with open_latest("modules", storage) as modules:  # without a cache
            assert modules.serial == 150


@pytest.mark.parametrize("storage", ["file"], indirect=True)
def test_missing_version_error_names_the_command(storage: Storage) -> None:
    with pytest.raises(NoVersionError, match=r"modules.*`pypi-assets leveldb update`"):
        open_latest("modules", storage)
    with pytest.raises(LeveldbError, match="other"):
        open_latest("other", storage)  # type: ignore[call-overload]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("storage", "change"),
    [("file", "cut"), ("file", "flip"), ("file", "delete"), ("file", "manifest"), ("s3", "flip")],
    indirect=["storage"],
)
def test_corrupt_version_is_skipped_and_reported(
    small: SmallCatalog, storage: Storage, tmp_path: Path, change: str
) -> None:
    full_dump(small.catalog, storage, 1)
    publish(small, storage, tmp_path)
    build_version("modules", storage=storage, catalog=small.catalog, from_scratch=True, work_dir=tmp_path / "work")
    published = read_published(storage, "modules", 3)
    table = max(published.manifest.files, key=lambda file: file.size)
    path = f"{published.path}/{'_MANIFEST.json' if change == 'manifest' else table.name}"
    content = storage.get(path)
    storage.delete(path)
    if change == "cut":
        storage.put(path, content[:-1])
    elif change in {"flip", "manifest"}:
        storage.put(path, bytes(byte ^ 1 for byte in content))
    with open_latest("modules", storage, tmp_path / "cache") as modules:
        assert modules.version == 1
        assert len(modules.skipped) == 1
        assert "3" in modules.skipped[0]
        assert len(modules.module("demo").results) == 2
    storage.delete("modules/input_lists/00001")
    with pytest.raises(NoVersionError, match=r"version 3.*`pypi-assets leveldb update`"):
        open_latest("modules", storage, tmp_path / "empty cache")


@pytest.mark.parametrize("name", ["CURRENT", "ldb"])
@pytest.mark.parametrize("storage", ["file"], indirect=True)
def test_version_deleted_during_its_copy_is_skipped(
    small: SmallCatalog, storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    full_dump(small.catalog, storage, 1)
    publish(small, storage, tmp_path)
    newest = build_version("modules", storage=storage, catalog=small.catalog, from_scratch=True)

    def check_and_delete(path: Path, file: LeveldbFile, **options: bool) -> None:
        check_file(path, file, **options)
        if path.name.endswith(name) and f"{newest.version:05d}" in path.parts:
            path.unlink()

    monkeypatch.setattr("pypi_assets.leveldbs.versions.private_copy.check_file", check_and_delete)
    with open_latest("modules", storage) as modules:
        assert modules.version == 1
        assert modules.skipped[0]
        assert len(modules.module("demo").results) == 2


@pytest.mark.parametrize("storage", ["file"], indirect=True)
def test_readers_and_a_publisher_do_not_interfere(small: SmallCatalog, storage: Storage, tmp_path: Path) -> None:
    full_dump(small.catalog, storage, 1)
    publish(small, storage, tmp_path)
    manifest = read_published(storage, "modules", 1).manifest
    with (
        open_latest("modules", storage, tmp_path / "cache") as one,
        open_latest("modules", storage, tmp_path / "cache", check_hashes=False) as other,
    ):
        small.remove(110, "another-1.tar.gz")
        write_range(small.catalog, storage, small.complete(150))
        publish(small, storage, tmp_path)
        assert one.module("demo") == other.module("demo")
        with open_latest("modules", storage, tmp_path / "cache") as newest:
            assert len(newest.module("demo").results) == len(one.module("demo").results) - 1
    assert read_published(storage, "modules", 1).manifest == manifest
    assert verify("modules", 1, storage=storage, work_dir=tmp_path / "work").ok


def test_lookup_needs_no_catalog() -> None:
    code = "import sys, pypi_assets.lookup.latest; print([m for m in sys.modules if m.startswith('pypi_assets.')])"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert "pypi_assets.leveldbs.datasets.modules" in loaded
    assert "pypi_assets.catalog" not in loaded
    assert "pypi_assets.dumps" not in loaded


def test_storage_can_be_given_as_a_path(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    root = publisher.storage.root
    assert root is not None
    monkeypatch.chdir(root.parent)
    monkeypatch.setenv("HOME", str(root.parent))
    for named in (root, str(root), f"{root}/", Path("storage"), "storage", "~/storage", root.as_uri()):
        with open_latest(ModulesReader, named) as modules:
            assert modules.module("demo").results, named
    with pytest.raises(StorageError, match="/nothing"):
        open_latest(ModulesReader, "nothing")
    for wrong in (5, b"storage"):
        with pytest.raises(TypeError):
            open_latest(ModulesReader, wrong)  # type: ignore[call-overload]
