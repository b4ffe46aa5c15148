"""A manifest is read back as written only if its input list has its hash. Files are checked against the manifest."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from pypi_assets.catalog.publications.dump_columns import Leaves
from pypi_assets.dumps.held_dumps import HeldDumps
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError, UnknownFormatError
from pypi_assets.leveldbs.versions.input_lists import MANIFEST_NAME, InputList, leveldb_path, write_input_list
from pypi_assets.leveldbs.versions.leveldb_manifest import (
    LeveldbFile,
    LeveldbManifest,
    check_file,
    check_sizes,
    file_sha256,
    read_listed,
    read_published,
)
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.naming import naming

CONTENTS = {"000005.ldb": b"an old table", "000007.ldb": b"a new table", "CURRENT": b"MANIFEST-000006\n"}
FILES = tuple(
    LeveldbFile(name, directory, len(CONTENTS[name]), hashlib.sha256(CONTENTS[name]).hexdigest())
    for name, directory in (("000005.ldb", "00001"), ("000007.ldb", "00002.3"), ("CURRENT", "00002.3"))
)
MANIFEST = LeveldbManifest(
    dataset="modules",
    dataset_format=2,
    version=2,
    directory="00002.3",
    serial=150,
    counts={"m": 2, "g": 1},
    content_hash="cd" * 32,
    files=FILES,
    cover=("0-100", "100-150"),
    held=tuple(HeldDumps("0-100", 150, Leaves.of(["100-120", "120-150"])).encode()),
    base_version=1,
    rebuilt_because=None,
)
PATH = f"{leveldb_path('modules', '00002.3')}/{MANIFEST_NAME}"


@pytest.fixture
def storage() -> Storage:
    """Return a storage with the files of a version, without its manifest and input list."""
    storage = open_storage("memory:///")
    for file in FILES:
        storage.put(f"{leveldb_path('modules', file.directory)}/{file.name}", CONTENTS[file.name])
    return storage


def put_manifest(storage: Storage, content: bytes) -> InputList:
    """Write a manifest and the input list with its hash."""
    inputs = InputList("modules", 2, "00002.3", hashlib.sha256(content).hexdigest(), 150, ())
    storage.put(PATH, content)
    write_input_list(storage, inputs)
    return inputs


def test_manifest_round_trips(storage: Storage) -> None:
    inputs = put_manifest(storage, MANIFEST.encode())
    published = read_published(storage, "modules", 2)
    assert published == read_listed(storage, inputs)
    assert (published.manifest, published.inputs) == (MANIFEST, inputs)
    assert (published.name, published.path) == ("version 2 of modules", "modules/leveldbs/00002.3")
    assert [published.path_of(file) for file in FILES] == [
        "modules/leveldbs/00001/000005.ldb",
        "modules/leveldbs/00002.3/000007.ldb",
        "modules/leveldbs/00002.3/CURRENT",
    ]
    assert [file.is_final for file in FILES] == [True, True, False]
    check_sizes(storage, published)


def test_manifest_has_the_number_of_followed_projects_if_scoped(storage: Storage) -> None:
    assert b"followed_projects" not in MANIFEST.encode()
    of_some = replace(MANIFEST, followed_projects=6)
    put_manifest(storage, of_some.encode())
    assert read_published(storage, "modules", 2).manifest == of_some


def test_manifest_with_another_hash_than_its_input_list_is_corruption(storage: Storage) -> None:
    with pytest.raises(LeveldbDamagedError, match=naming("modules", 2)):
        read_published(storage, "modules", 2)
    inputs = put_manifest(storage, MANIFEST.encode())
    storage.put(PATH, MANIFEST.encode() + b" ")
    with pytest.raises(LeveldbDamagedError):
        read_published(storage, "modules", 2)
    storage.delete(PATH)
    with pytest.raises(LeveldbDamagedError, match=naming(MANIFEST_NAME)):
        read_listed(storage, inputs)


@pytest.mark.parametrize("number", [1, 3, "2", None])
def test_manifest_in_another_format_is_not_corruption(storage: Storage, number: object) -> None:
    inputs = put_manifest(storage, json.dumps(json.loads(MANIFEST.encode()) | {"format": number}).encode())
    with pytest.raises(UnknownFormatError, match=naming(MANIFEST_NAME)):
        read_listed(storage, inputs)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"format": 2}',
        json.dumps(json.loads(MANIFEST.encode()) | {"other": 1}).encode(),
        json.dumps(json.loads(MANIFEST.encode()) | {"files": [{"name": "CURRENT"}]}).encode(),
        json.dumps(json.loads(MANIFEST.encode()) | {"cover": None}).encode(),
    ],
)
def test_invalid_manifest_is_corruption(storage: Storage, content: bytes) -> None:
    inputs = put_manifest(storage, content)
    with pytest.raises(LeveldbDamagedError, match=naming(MANIFEST_NAME)):
        read_listed(storage, inputs)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_stored_file_missing_or_of_wrong_size_is_corruption(storage: Storage, file: LeveldbFile) -> None:
    published = read_listed(storage, put_manifest(storage, MANIFEST.encode()))
    path = published.path_of(file)
    storage.put(path, CONTENTS[file.name] + b"x")
    with pytest.raises(LeveldbDamagedError, match=naming(path, file.size, file.size + 1)):
        check_sizes(storage, published)
    storage.delete(path)
    with pytest.raises(LeveldbDamagedError, match=naming(path, file.size)):
        check_sizes(storage, published)


def test_local_file_is_checked_by_size_and_hash(tmp_path: Path) -> None:
    [file, *_] = FILES
    path = tmp_path / file.name
    with pytest.raises(LeveldbDamagedError, match=naming("000005.ldb")):
        check_file(path, file)
    path.write_bytes(CONTENTS[file.name])
    assert file_sha256(path) == file.sha256
    for hashes in (True, False):
        check_file(path, file, hashes=hashes)
    path.write_bytes(CONTENTS[file.name].upper())
    check_file(path, file, hashes=False)
    with pytest.raises(LeveldbDamagedError, match=naming("000005.ldb", "sha256")):
        check_file(path, file)
    path.write_bytes(CONTENTS[file.name][:-1])
    for hashes in (True, False):
        with pytest.raises(LeveldbDamagedError, match=naming("000005.ldb", 12, 11)):
            check_file(path, file, hashes=hashes)
