"""plyvel or plyvel-next is imported when the first LevelDB is opened. If both are missing, an error names them."""

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement

from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.format.leveldb_binding import binding_errors, open_database, require_binding
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError, MissingBindingError
from pypi_assets.leveldbs.format.open_leveldb import flush, open_leveldb
from pypi_assets.leveldbs.format.records import records_of
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.leveldbs.versions.verify import verify
from pypi_assets.lookup.latest import open_latest
from pypi_assets.storage.store import Storage
from pypi_assets_tests.leveldb_bindings import INSTALLED, hide_bindings
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

PROJECT = Path(__file__).parents[3] / "pyproject.toml"
IMPORT_ALL = """
import importlib, pkgutil, sys
sys.modules["plyvel"] = sys.modules["plyvel_next"] = None
import pypi_assets
for module in pkgutil.walk_packages(pypi_assets.__path__, "pypi_assets."):
    part, room = (*module.name.split(".")[1:], "")[:2]
    if part not in {"defs", "definitions", "dagster_instance"} and room != "migrations":
        importlib.import_module(module.name)
"""
IMPORT_DOOR = """
import sys
before = set(sys.modules)
import pypi_assets.leveldbs.format.leveldb_binding
print(*{name.split(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names))
"""


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallCatalog]:
    small = small_catalog(tmp_path)
    small.add(1, "demo", "1", "demo-1.tar.gz", modules=("demo",))
    small.complete(10)
    yield small
    small.catalog.close()


def output_of(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.strip()


def test_every_binding_with_a_wheel_for_this_python_is_tested() -> None:
    project = tomllib.loads(PROJECT.read_text())["project"]
    lines = map(Requirement, project["dependencies"] + project["optional-dependencies"]["test"])
    required = {
        line.name for line in lines if line.name.startswith("plyvel") and line.marker and line.marker.evaluate()
    }
    assert required == {name.replace("_", "-") for name in INSTALLED}
    assert required


def test_wrapper_matches_each_binding(tmp_path: Path, binding: Any) -> None:
    assert require_binding() is binding
    db = open_database(tmp_path / "db", create_if_missing=True)
    with db.write_batch() as batch:
        batch.put(b"a", b"1")
        batch.put(b"b", b"2")
        batch.delete(b"a")
    db.put(b"c", b"3")
    db.put(b"d", b"4")
    db.delete(b"d")
    assert db.get(b"a") is None
    assert db.get(b"b", verify_checksums=True) == b"2"
    with db.iterator(prefix=b"c", verify_checksums=True) as records:
        assert next(records) == (b"c", b"3")
    with db.iterator() as records:
        assert list(records) == [(b"b", b"2"), (b"c", b"3")]
    db.compact_range(start=b"a", stop=b"z")
    assert db.get_property(b"leveldb.num-files-at-level2") == b"1"
    db.close()


def test_leveldb_errors_are_recognized(tmp_path: Path, binding: Any) -> None:
    assert binding_errors() == (binding.Error,)
    with pytest.raises(binding_errors()) as raised:
        open_database(tmp_path / "missing", create_if_missing=False)
    assert isinstance(raised.value, binding.Error)
    with pytest.raises(LeveldbDamagedError), open_leveldb(tmp_path / "missing", "x"):
        pass


@pytest.mark.parametrize("writer", INSTALLED)
@pytest.mark.parametrize("reader", INSTALLED)
def test_bindings_read_each_others_files(
    tmp_path: Path, writer: str, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = {b"%04d" % number: b"value %d" % number for number in range(3_000)}
    with monkeypatch.context() as hidden:
        hide_bindings(hidden, but=writer)
        with open_leveldb(tmp_path / "db", "x", create=True) as db:
            for key, value in records.items():
                db.put(key, value)
            flush(db)
            db.put(b"last", b"in the log")
    hide_bindings(monkeypatch, but=reader)
    with open_leveldb(tmp_path / "db", "x") as db:
        assert dict(records_of(db, b"")) == {**records, b"last": b"in the log"}
        assert db.get(b"0042", verify_checksums=True) == b"value 42"


def test_plyvel_is_preferred_over_its_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    plyvel, fork = ModuleType("plyvel"), ModuleType("plyvel_next")
    monkeypatch.setitem(sys.modules, "plyvel", plyvel)
    monkeypatch.setitem(sys.modules, "plyvel_next", fork)
    assert require_binding() is plyvel
    monkeypatch.setitem(sys.modules, "plyvel", None)
    assert require_binding() is fork


def test_missing_binding_error_names_both_and_a_supported_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide_bindings(monkeypatch)
    with pytest.raises(MissingBindingError) as raised, open_leveldb(tmp_path / "db", "x", create=True):
        pass
    text = str(raised.value)
    assert [name for name in ("plyvel", "plyvel-next", "3.12", "3.13", "3.14") if name not in text] == []
    assert "\n" not in text
    assert not (tmp_path / "db").exists()
    assert binding_errors() == ()


@pytest.mark.parametrize("broken", ["plyvel", "plyvel_next"])
def test_binding_without_leveldb_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    hide_bindings(monkeypatch)
    monkeypatch.delitem(sys.modules, broken)
    (tmp_path / f"{broken}.py").write_text("raise ImportError('libleveldb.so.1d: cannot open shared object file')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingBindingError) as raised:
        require_binding()
    assert "libleveldb.so.1d" in str(raised.value)


def test_plyvel_without_leveldb_library_falls_back_to_its_fork(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "plyvel", raising=False)
    (tmp_path / "plyvel.py").write_text("raise ImportError('libleveldb.so.1d: cannot open shared object file')")
    monkeypatch.syspath_prepend(tmp_path)
    fork = ModuleType("plyvel_next")
    monkeypatch.setitem(sys.modules, "plyvel_next", fork)
    assert require_binding() is fork


def test_missing_binding_is_reported_before_building_or_copying(
    small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    full_dump(small.catalog, storage, 1)
    with monkeypatch.context() as hidden:
        hide_bindings(hidden)
        with pytest.raises(MissingBindingError):
            build_version("modules", storage=storage, catalog=small.catalog)
    built = build_version("modules", storage=storage, catalog=small.catalog)
    assert built.version == 1  # no version number was allocated before
    with monkeypatch.context() as hidden:
        hide_bindings(hidden)
        monkeypatch.setattr("pypi_assets.lookup.latest.copy_published", None)
        monkeypatch.setattr("pypi_assets.leveldbs.versions.verify.copy_published", None)
        with pytest.raises(MissingBindingError):
            open_latest("modules", storage)
        with pytest.raises(MissingBindingError):  # the version is not reported as corrupt
            verify("modules", 1, storage=storage)


@pytest.mark.nightly
def test_modules_can_be_imported_without_a_binding() -> None:
    """Modules of Dagster are skipped since they take seconds; the LevelDB modules that they import are imported here
    too.
    """
    assert output_of(IMPORT_ALL) == ""


def test_importing_the_wrapper_imports_nothing_else() -> None:
    assert output_of(IMPORT_DOOR) == "pypi_assets"
