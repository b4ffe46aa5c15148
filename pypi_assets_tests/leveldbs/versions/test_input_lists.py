"""An input list names all inputs of a version. Invalid input lists are rejected."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError
from pypi_assets.leveldbs.versions.input_lists import (
    InputList,
    input_list_path,
    input_lists_path,
    leveldb_path,
    leveldbs_path,
    newest_serials,
    published_versions,
    read_input_list,
    stored_input_lists,
    version_name,
    write_input_list,
)
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.demo_catalog import add_range
from pypi_assets_tests.leveldbs.versions.demo_versions import build
from pypi_assets_tests.naming import naming
from pypi_assets_tests.small_catalog import SmallCatalog


@pytest.mark.parametrize(
    ("version", "name"), [(1, "00001"), (42, "00042"), (99_999, "99999"), (100_000, "100000"), (1_234_567, "1234567")]
)
def test_version_names_have_at_least_five_digits(version: int, name: str) -> None:
    assert version_name(version) == name
    assert int(name) == version


def test_paths_match_the_docs() -> None:
    assert input_lists_path("modules") == "modules/input_lists"
    assert input_list_path("modules", 42) == "modules/input_lists/00042"
    assert leveldbs_path("modules") == "modules/leveldbs"
    assert leveldb_path("modules", "00042.2") == "modules/leveldbs/00042.2"


def test_names_sort_by_version() -> None:
    versions = [1, 9, 10, 99, 100, 4_321, 99_999]
    assert sorted(map(version_name, versions)) == [version_name(version) for version in versions]


LIST = InputList("modules", 7, "00007.2", "ab" * 32, 150, ("data_dumps/d/0-100/a.gz", "data_dumps/d/100-150/b.gz"))


def test_input_list_names_the_dump_files(small: SmallCatalog, storage: Storage) -> None:
    add_range(small, storage, 100)
    build(small, storage)
    text = storage.get("modules/input_lists/00001").decode()
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert comments[0] == "# leveldb: 00001"
    assert comments[2] == "# serial: 150"
    assert [line for line in text.splitlines() if not line.startswith("#")] == [
        "data_dumps/python_distribution_data/0-100/python_distribution_data0000.json.gz",
        "data_dumps/python_distribution_data/100-150/python_distribution_data0000.json.gz",
    ]
    manifest = json.loads(storage.get("modules/leveldbs/00001/_MANIFEST.json"))
    assert manifest["cover"] == ["0-100", "100-150"]
    assert manifest["held"] == ["0-100", f"100-150:1:{hashlib.sha256(b'100-150').hexdigest()}"]
    assert (manifest["serial"], manifest["base_version"]) == (150, None)


@pytest.mark.parametrize("inputs", [LIST, replace(LIST, inputs=()), replace(LIST, version=123_456, directory="123456")])
def test_input_list_round_trips(tmp_path: Path, inputs: InputList) -> None:
    storage = open_storage((tmp_path / "storage").as_uri())
    write_input_list(storage, inputs)
    assert read_input_list(storage, "modules", inputs.version) == inputs
    assert published_versions(storage, "modules") == [inputs.version]
    (tmp_path / "storage").rename(tmp_path / "moved")
    moved = open_storage((tmp_path / "moved").as_uri())
    assert read_input_list(moved, "modules", inputs.version) == inputs


def test_versions_with_an_input_list_are_published() -> None:
    storage = open_storage("memory:///")
    assert published_versions(storage, "modules") == []
    for version in (100_000, 2, 99_999):
        write_input_list(storage, replace(LIST, version=version, serial=version))
    write_input_list(storage, replace(LIST, dataset="depgraph", version=3, serial=3))
    for other in ("00004.tmp", "4", "0000x", "00005/00006"):
        storage.put(f"modules/input_lists/{other}", b"")
    assert published_versions(storage, "modules") == [2, 99_999, 100_000]
    assert [stored.path for stored in stored_input_lists(storage, "modules").values()] == [
        input_list_path("modules", version) for version in (2, 99_999, 100_000)
    ]
    assert newest_serials(storage, ["modules", "commands", "depgraph"]) == [100_000, 3]


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.replace(b"# serial: 150\n", b""),
        lambda content: content.replace(b"# leveldb:", b"# folder:"),
        lambda content: content.replace(b"150", b"many", 1),
        lambda content: content + b"/etc/c.gz\n",
        lambda content: content + b"file:///elsewhere/c.gz\n",
        lambda content: content + b"\xff",
        lambda _: b"",
    ],
)
def test_invalid_input_list_is_corruption(change: Callable[[bytes], bytes]) -> None:
    storage = open_storage("memory:///")
    write_input_list(storage, LIST)
    path = input_list_path("modules", 7)
    content = change(storage.get(path))
    assert content != storage.get(path)
    storage.put(path, content)
    for read in (lambda: read_input_list(storage, "modules", 7), lambda: newest_serials(storage, ["modules"])):
        with pytest.raises(LeveldbDamagedError, match=naming(storage.uri(path))):
            read()


def test_version_without_input_list_does_not_exist() -> None:
    with pytest.raises(LeveldbDamagedError, match=naming("modules", 7, "00007")):
        read_input_list(open_storage("memory:///"), "modules", 7)
