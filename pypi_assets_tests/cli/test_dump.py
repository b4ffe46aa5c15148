"""`pypi-assets dump`: the Parquet export, the Iceberg tables, and dumps that are missing from the catalog."""

import sqlite3
from contextlib import closing

import pytest

from pypi_assets.dumps.compaction import GROWTH, MOST
from pypi_assets.iceberg.table_columns import TABLES
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


def test_parquet_is_exported_once_and_then_named(
    commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands.refused("dump", "parquet")
    index.wheel("demo", "1.0")
    index.sdist("demo", "1.0")
    commands.done("crawl", "full")
    assert unnamed(commands.refused("dump", "parquet"), "dump full") == []
    commands.done("dump", "full", "--shards", "1")
    folder = f"{(commands.home / 'storage').as_uri()}/parquet"
    exported = commands.json("dump", "parquet")
    assert exported.pop("bytes") > 1_000
    name = f"0-{index.serial}"
    assert exported == {
        "serial": index.serial,
        "directory": name,
        "published": True,
        "rows": 2,
        "cover": [name],
        "files": 1,
        "changed_rows": 0,
        "latest": f"{folder}/latest.json",
        "views": None,
    }
    again = commands.done("dump", "parquet")
    assert unnamed(again.stdout, name, 2, 1, f"{folder}/latest.json") == []
    assert len(again.stdout.splitlines()) == 1
    assert again.stderr
    assert unnamed(commands.done("dump", "parquet", "--views").stdout, f"{folder}/pypi.duckdb") == []
    assert commands.json("dump", "parquet")["views"] == f"{folder}/pypi.duckdb"
    assert commands.json("dump", "parquet", "--force")["directory"] == f"{name}.2"
    assert commands.json("dump", "clean") == []
    monkeypatch.setenv("PYPI_ASSETS_PARQUET_EXPORTS_KEPT", "1")
    monkeypatch.setenv("PYPI_ASSETS_SUPERSEDED_KEPT_HOURS", "0")
    [removed] = commands.json("dump", "clean")
    assert (removed["path"], removed["reason"]) == (f"parquet/python_distribution_data/{name}", "superseded")
    assert commands.json("dump", "parquet")["directory"] == f"{name}.2"


def test_tables_have_a_snapshot_for_each_dump(commands: Commands, index: ServedIndex) -> None:
    commands.refused("dump", "tables")
    index.wheel("demo", "1.0", requires_dist=["other>=1"])
    commands.done("crawl", "full")
    assert unnamed(commands.refused("dump", "tables"), "dump full") == []
    commands.done("dump", "full", "--shards", "1")
    latest = f"{(commands.home / 'storage').as_uri()}/tables/latest.json"
    made = commands.json("dump", "tables")
    assert (made["serial"], made["latest"]) == (index.serial, latest)
    assert {name: table["snapshots_added"] for name, table in made["tables"].items()} == dict.fromkeys(TABLES, 1)
    assert (made["tables"]["files"]["rows"], made["tables"]["requirements"]["rows"]) == (1, 1)
    again = commands.done("dump", "tables")
    assert unnamed(again.stdout, *(f"pypi.{name}" for name in TABLES), str(index.serial), latest) == []
    assert again.stderr
    index.wheel("demo", "2.0")
    commands.done("crawl", "incremental")
    commands.done("dump", "incremental")
    assert commands.json("status")["due"]["tables"] == 1
    added = commands.json("dump", "tables")
    assert (added["tables"]["files"]["rows"], added["tables"]["files"]["snapshots_added"]) == (2, 1)
    assert commands.json("status")["due"]["tables"] == 0
    assert commands.json("dump", "clean", "--dry-run") == []
    scratch = commands.json("dump", "tables", "--from-scratch")
    assert scratch["tables"]["files"]["snapshots_added"] == 2


def test_dumps_missing_from_the_catalog_are_restored(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    commands.done("dump", "full", "--shards", "1")
    with closing(sqlite3.connect(commands.home / "catalog.sqlite")) as database, database:
        database.execute("DELETE FROM dump_files")
        database.execute("DELETE FROM dumps")
    commands.refused("leveldb", "update")
    assert commands.json("admin", "restore") == {"restored": [f"0-{index.serial}"], "damaged": []}
    commands.done("leveldb", "update")
    manifest = commands.home / "storage/data_dumps/python_distribution_data" / f"0-{index.serial}" / "_MANIFEST.json"
    manifest.write_text("{}")
    result = commands.run("admin", "restore")
    assert (result.exit_code, f"0-{index.serial}" in result.stderr) == (1, True)


def test_compact_help_has_the_defaults_of_compaction(commands: Commands) -> None:
    shown = " ".join(commands.done("dump", "compact", "--help").stdout.split())
    assert unnamed(shown, "1", GROWTH) == []
    assert unnamed(shown, MOST) == []
