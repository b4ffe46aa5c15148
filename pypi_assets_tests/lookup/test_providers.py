"""Providers of a name: by name, by prefix, and for releases that the catalog names."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from pypi_assets.leveldbs.datasets.provided_names import names_of_files
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError
from pypi_assets.leveldbs.format.open_leveldb import open_leveldb
from pypi_assets.leveldbs.versions.leveldb_manifest import read_published
from pypi_assets.leveldbs.versions.private_copy import copy_published, private_folder
from pypi_assets.lookup import ModulesReader, open_latest
from pypi_assets.lookup.providers import Provider, all_providers, providers, providers_of_releases
from pypi_assets.lookup.reader import Closing, OpenVersion
from pypi_assets_tests.dump_rows import dump_row
from pypi_assets_tests.leveldbs.built_records import build
from pypi_assets_tests.lookup.publisher import Publisher


def test_module_without_its_record_is_corruption(publisher: Publisher) -> None:
    published = read_published(publisher.storage, "modules", 1)
    with private_folder(publisher.storage.root / ".private") as folder:  # type: ignore[operator]
        copy_published(publisher.storage, published, folder / "leveldb")
        with open_leveldb(folder / "leveldb", "a test") as db:
            assert db.get(b"m\0demo\0demo") == b"demo"
            db.delete(b"g\0demo\0demo")

            class OneVersion:
                dataset, skipped = "modules", dict[int, str]()

                def open_newest(self, *, check_hashes: bool, beyond: int = 0) -> OpenVersion:
                    return OpenVersion(db, "a test", 1, 100, check_hashes, Closing(ExitStack()))

            with ModulesReader(OneVersion(), check_hashes=True) as reader:
                assert len(reader.module("demo.b").results) == 1
                with pytest.raises(LeveldbDamagedError):
                    reader.module("demo")
                with pytest.raises(LeveldbDamagedError):
                    list(reader.modules("demo"))


MODULES = [
    dump_row("demo", "1.10", "demo-1.10.zip", project="Demo", modules=["demo", "demo.a"]),
    dump_row("demo", "1.9", "demo-1.9.zip", project="Demo", modules=["demo", "é"]),
    dump_row("demo-b", "1", "demo_b-1.zip", modules=["demo"]),
    dump_row("other", "1", "other-1.zip", modules=None),
]


def test_names_and_prefixes_find_providers(tmp_path: Path) -> None:
    build(tmp_path / "db", "modules", [MODULES])
    both = [Provider("demo", "demo", "Demo", ["1.9", "1.10"]), Provider("demo", "demo-b", "demo-b", ["1"])]
    below = Provider("demo.a", "demo", "Demo", ["1.10"])
    accent = Provider("é", "demo", "Demo", ["1.9"])
    with open_leveldb(tmp_path / "db", "x") as db:
        assert list(providers(db, "demo")) == both
        assert list(providers(db, "é")) == [accent]
        assert list(all_providers(db, "demo")) == [*both, below]
        assert list(all_providers(db, "demo.")) == [below]
        assert list(all_providers(db, "")) == [*both, below, accent]
        for unknown in ("", "dem", "demo.", "demo\0demo", "demo.a.b"):
            assert list(providers(db, unknown)) == []
        assert list(all_providers(db, "x")) == []


def test_names_and_providers_are_read(publisher: Publisher) -> None:
    publisher.publish()
    with open_latest(ModulesReader, publisher.storage) as modules:
        assert [provider.normalized for provider in modules.some_providers("demo", 9)] == ["demo", "other"]
        assert modules.some_providers("demo", 1) == [Provider("demo", "demo", "demo", ["1.0"])]
        assert modules.names_of("Demo_B", 9) == ["demo.b"]
        assert modules.names_of("demo", 0) == modules.names_of("nope", 9) == modules.some_providers("nope", 9) == []


def test_releases_are_grouped_by_project() -> None:
    releases = [("other", "other", "1"), ("demo", "Demo", "1.10"), ("demo", "Demo", "1.9"), ("demo", "Demo", "1.9")]
    assert list(providers_of_releases("m", releases)) == [
        Provider("m", "demo", "Demo", ["1.9", "1.10"]),
        Provider("m", "other", "other", ["1"]),
    ]
    assert list(providers_of_releases("m", [])) == []


def test_files_have_their_own_names_and_stubs(tmp_path: Path) -> None:
    stubs = dump_row("stubs", "1", "stubs-1.zip", modules=[], stubs=["demo.a", "demo"])
    build(tmp_path / "db", "modules", [[*MODULES, stubs]])
    with open_leveldb(tmp_path / "db", "x") as db:
        names = names_of_files(db, "demo", ["demo-1.10.zip", "demo-1.9.zip", "none.zip"])
        assert {name: one and one.names for name, one in names.items()} == {
            "demo-1.10.zip": ("demo", "demo.a"),
            "demo-1.9.zip": ("demo", "é"),
        }
        assert names_of_files(db, "other", ["other-1.zip"]) == {"other-1.zip": None}
        assert names_of_files(db, "stubs", ["stubs-1.zip"]) == {"stubs-1.zip": ((), ("demo", "demo.a"))}
