"""plyvel is imported when the first LevelDB is opened; where it is missing, one sentence names what brings it."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import plyvel
import pytest

from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.format.errors import LeveldbDamagedError, MissingBindingError
from pypi_assets.leveldbs.format.leveldb_binding import binding_errors, open_database, require_binding
from pypi_assets.leveldbs.format.open_leveldb import open_leveldb
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.leveldbs.versions.verify import verify
from pypi_assets.lookup.latest import open_latest
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

LINES = (
    "uv python install 3.12",
    "pip install plyvel",
    "apt install g++ libleveldb-dev python3-dev",
    "dnf install gcc-c++ leveldb-devel python3-devel",
    "brew install leveldb",
)
IMPORT_ALL = """
import importlib, pkgutil, sys
sys.modules["plyvel"] = None
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


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage((tmp_path / "storage").as_uri())


def output_of(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.strip()


def hide_plyvel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plyvel", None)


def test_what_the_door_offers_is_what_plyvel_does(tmp_path: Path) -> None:
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


def test_errors_of_leveldb_itself_are_known(tmp_path: Path) -> None:
    with pytest.raises(binding_errors()) as raised:
        open_database(tmp_path / "missing", create_if_missing=False)
    assert isinstance(raised.value, plyvel.Error)
    with pytest.raises(LeveldbDamagedError), open_leveldb(tmp_path / "missing", "x"):
        pass


def test_without_plyvel_one_sentence_names_the_lines_that_bring_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide_plyvel(monkeypatch)
    with pytest.raises(MissingBindingError) as raised, open_leveldb(tmp_path / "db", "x", create=True):
        pass
    text = str(raised.value)
    assert [line for line in LINES if f"`{line}`" not in text] == []
    assert "\n" not in text
    assert ". " not in text
    assert not (tmp_path / "db").exists()
    assert binding_errors() == ()


def test_a_plyvel_whose_leveldb_is_gone_is_named_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "plyvel")
    (tmp_path / "plyvel.py").write_text("raise ImportError('libleveldb.so.1d: cannot open shared object file')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingBindingError, match=r"brew install leveldb.*; libleveldb\.so\.1d: cannot open"):
        require_binding()


def test_nothing_is_built_or_copied_before_plyvel_is_missed(
    small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    full_dump(small.catalog, storage, 1)
    with monkeypatch.context() as hidden:
        hide_plyvel(hidden)
        with pytest.raises(MissingBindingError):
            build_version("modules", storage=storage, catalog=small.catalog)
    built = build_version("modules", storage=storage, catalog=small.catalog)
    assert built.version == 1  # no number was allocated before
    with monkeypatch.context() as hidden:
        hide_plyvel(hidden)
        monkeypatch.setattr("pypi_assets.lookup.latest.copy_published", None)
        monkeypatch.setattr("pypi_assets.leveldbs.versions.verify.copy_published", None)
        with pytest.raises(MissingBindingError):
            open_latest("modules", storage)
        with pytest.raises(MissingBindingError):  # and the version is not called damaged
            verify("modules", 1, storage=storage)


def test_no_module_needs_plyvel_to_be_imported() -> None:
    """Those of Dagster are left out, which take seconds; what they import of LevelDBs is imported here too."""
    assert output_of(IMPORT_ALL) == ""


def test_importing_the_door_imports_nothing_else() -> None:
    assert output_of(IMPORT_DOOR) == "pypi_assets"
