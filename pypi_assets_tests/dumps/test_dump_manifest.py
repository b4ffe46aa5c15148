"""Manifests: those that earlier versions wrote stay readable, and each lists the columns of its dump's rows."""

import hashlib
import json
from dataclasses import replace

import pytest

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_facts import COLUMNS, DumpFile, DumpKind
from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.dumps.dump_manifest import Manifest, manifest_path, read_manifest, shard_of
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.fewer_columns import FEWER_COLUMNS
from pypi_assets_tests.naming import naming
from pypi_assets_tests.small_catalog import SmallCatalog


@pytest.mark.parametrize(("shards", "shard"), [(256, 0x2A), (16, 0x2), (1, 0)])
def test_shards_go_by_the_first_hex_digits(shards: int, shard: int) -> None:
    assert hashlib.sha256(b"demo").hexdigest().startswith("2a")
    assert shard_of("demo", shards) == shard


MANIFEST = b"""{
  "format": 1,
  "kind": "incremental",
  "range": "1200-1350",
  "directory": "1200-1350.2",
  "sequence": 17,
  "shards": 1,
  "inputs": [],
  "columns_version": 1,
  "columns": {
    "project": {
      "type": "string",
      "meaning": "the project's name as displayed"
    },
    "normalized": {
      "type": "string",
      "meaning": "the project's normalized name"
    }
  },
  "rows": 211,
  "bytes": 40211,
  "files": [
    {
      "shard": 0,
      "name": "python_distribution_data0000.json.gz",
      "rows": 211,
      "bytes": 40211,
      "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    }
  ]
}
"""
"""With two of the columns."""
FILE = DumpFile(
    0,
    "python_distribution_data0000.json.gz",
    211,
    40211,
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
)


@pytest.fixture
def storage() -> Storage:
    return open_storage("memory:///")


def manifest(columns: tuple[str, ...]) -> Manifest:
    return Manifest(
        DumpKind.INCREMENTAL, SerialRange(1200, 1350), "1200-1350.2", 17, 1, inputs=(), files=(FILE,), columns=columns
    )


def test_a_manifest_is_these_bytes(storage: Storage) -> None:
    storage.put(manifest_path("1200-1350.2"), MANIFEST)
    assert read_manifest(storage, "1200-1350.2") == manifest(("project", "normalized"))
    assert read_manifest(storage, "1200-1350.2").encode() == MANIFEST


def test_a_manifest_has_how_many_projects_are_followed_where_scopes_decide(storage: Storage) -> None:
    of_all = manifest(("project", "normalized"))
    assert b"followed_projects" not in of_all.encode()
    of_some = replace(of_all, followed_projects=0)
    storage.put(manifest_path("1200-1350.2"), of_some.encode())
    assert read_manifest(storage, "1200-1350.2") == of_some


def test_a_manifest_lists_the_columns_of_its_dump(storage: Storage) -> None:
    for columns in (FEWER_COLUMNS, tuple(COLUMNS)):
        storage.put(manifest_path("1200-1350.2"), manifest(columns).encode())
        assert list(json.loads(storage.get(manifest_path("1200-1350.2")))["columns"]) == list(columns)
        assert read_manifest(storage, "1200-1350.2") == manifest(columns)


def test_added_columns_do_not_turn_older_readers_away() -> None:
    """These two fields are all that a reader of the first version compares with what it knows."""
    fields = json.loads(manifest(tuple(COLUMNS)).encode())
    assert (fields["format"], fields["columns_version"]) == (1, 1)


@pytest.mark.parametrize("field", ["format", "columns_version"])
def test_what_only_a_later_version_reads_is_refused(storage: Storage, field: str) -> None:
    fields = json.loads(manifest(tuple(COLUMNS)).encode())
    storage.put(manifest_path("1200-1350.2"), json.dumps(fields | {field: 2}).encode())
    with pytest.raises(DumpDamagedError, match=naming("1200-1350.2")):
        read_manifest(storage, "1200-1350.2")


def test_the_manifest_describes_the_dump(small: SmallCatalog, storage: Storage) -> None:
    manifest = full_dump(small.catalog, storage, shards=1)
    fields = json.loads(storage.get(manifest_path("0-100")))
    assert (fields["format"], fields["columns_version"], list(fields["columns"])) == (1, 1, list(COLUMNS))
    assert (fields["kind"], fields["range"], fields["rows"]) == ("full", "0-100", 15)
    assert fields["files"][0]["name"] == "python_distribution_data0000.json.gz"
    assert read_manifest(storage, "0-100") == manifest
