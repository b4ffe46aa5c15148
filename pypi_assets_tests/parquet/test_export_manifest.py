"""Manifests, paths and files of exports."""

import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet
import pytest

from pypi_assets.catalog.publications.dump_columns import COLUMNS
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_manifest import manifest_path as dump_manifest_path
from pypi_assets.dumps.dump_manifest import read_manifest
from pypi_assets.parquet import parquet_writer
from pypi_assets.parquet.export import export_parquet
from pypi_assets.parquet.export_manifest import (
    CHANGES_NAME,
    PARQUET_COLUMNS,
    ROWS_NAME,
    export_path,
    file_path,
    manifest_path,
    read_export,
)
from pypi_assets.storage.store import Storage
from pypi_assets_tests.demo_catalog import add_range
from pypi_assets_tests.dump_rows import dump_row
from pypi_assets_tests.parquet.exports import committed_exports
from pypi_assets_tests.small_catalog import SmallCatalog

PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
DOCUMENT = PAGE.partition("\n## Parquet exports\n")[2].partition("\n## ")[0]


def test_all_types_are_documented() -> None:
    assert {column.type for column in PARQUET_COLUMNS.values()} <= set(re.findall(r"`([^`\n]+)`", DOCUMENT))


def test_manifest_describes_the_export(small: SmallCatalog, storage: Storage) -> None:
    export = export_parquet(small.catalog, storage).export
    fields = json.loads(storage.get(manifest_path("0-100")))
    assert (fields["format"], fields["columns_version"], fields["serial"], fields["rows"]) == (2, 1, 100, 3)
    assert (fields["cover"], fields["buckets"], fields["bytes"]) == (["0-100"], 1, export.size)
    [layer] = fields["layers"]
    assert (layer["layer"], layer["live"], layer["held"]) == (0, 3, ["0-100"])
    [file] = layer["files"]
    assert (file["shard"], file["name"], file["rows"]) == (0, "0-100/bucket=0000/rows.parquet", 3)
    assert list(fields["columns"]) == [name for name in COLUMNS if name != "tombstone"]
    assert fields["columns"]["modules"] == {
        "type": "list<string>",
        "nullable": True,
        "meaning": COLUMNS["modules"].meaning,
    }
    assert {name: str(field.type).replace("element: string not null", "string") for name, field in _fields()} == {
        name: column["type"] for name, column in fields["columns"].items()
    }
    assert export.encode() == storage.get(manifest_path("0-100"))


def test_manifest_counts_followed_projects_of_scopes(small: SmallCatalog, storage: Storage) -> None:
    """The count comes from the last dump of the cover. It is missing without scopes."""
    assert "followed_projects" not in json.loads(export_parquet(small.catalog, storage).export.encode())
    directory = cover(small.catalog).directories[-1]
    manifest = read_manifest(storage, directory)
    storage.put(dump_manifest_path(directory), replace(manifest, followed_projects=2).encode())
    export = export_parquet(small.catalog, storage, force=True).export
    assert (export.followed_projects, json.loads(export.encode())["followed_projects"]) == (2, 2)
    assert read_export(storage, export.directory) == export


def _fields() -> Iterator[tuple[str, pyarrow.Field]]:
    for field in parquet_writer.SCHEMA:
        yield field.name, field


def test_exports_are_ordered_by_age(small: SmallCatalog, storage: Storage) -> None:
    for _ in range(10):
        export_parquet(small.catalog, storage, force=True)
    add_range(small, storage, 100)
    add_range(small, storage, 150)
    export_parquet(small.catalog, storage)
    storage.put(manifest_path("a copy of mine"), storage.get(manifest_path("0-100")))
    assert committed_exports(storage) == ["0-100", *(f"0-100.{attempt}" for attempt in range(2, 11)), "0-200"]


def test_files_are_in_folders_of_exports() -> None:
    assert export_path("0-1350.2") == "parquet/python_distribution_data/0-1350.2"
    assert manifest_path("0-1350.2") == f"{export_path('0-1350.2')}/_MANIFEST.json"
    rows, changes = (name.format(directory="0-1350.2", bucket=7) for name in (ROWS_NAME, CHANGES_NAME))
    assert file_path(rows) == f"{export_path('0-1350.2')}/bucket=0007/rows.parquet"
    assert file_path(changes) == f"{export_path('0-1350.2')}/changes/changes0007.parquet"


def test_row_groups_are_bounded_by_rows_and_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_writer, "ROW_GROUP_ROWS", 5_000)
    monkeypatch.setattr(parquet_writer, "ROW_GROUP_BYTES", 2_000_000)
    many = (dump_row("a", "1", f"a-{number:05}.zip") for number in range(12_000))
    great = (dump_row("b", "1", f"b-{number:05}.zip", modules=["m" * 50_000] * 10) for number in range(12))
    counts: list[int] = []
    for rows, groups in ((many, [4_000, 4_000, 4_000]), (great, [12])):
        buffer = io.BytesIO()
        parquet_writer.write_rows(buffer, rows, counts.append)
        metadata = pyarrow.parquet.read_metadata(buffer)
        assert [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)] == groups
    assert counts[-1] == 12
