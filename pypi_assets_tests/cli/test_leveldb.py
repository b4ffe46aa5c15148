"""`pypi-assets leveldb`: corruption is found, listed and repaired."""

import json
from pathlib import Path

import plyvel

from pypi_assets.components import catalog_from, storage_from
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.settings import load_settings
from pypi_assets_tests.cli.commands import Commands, commands_in
from pypi_assets_tests.fewer_columns import cut_dumps
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


def test_corrupt_version_fails_verification_and_is_listed(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.build_versions()
    for path in (commands.home / "storage" / "modules" / "leveldbs").rglob("*.ldb"):
        path.chmod(0o644)
        path.write_bytes(b"")
    result = commands.run("leveldb", "verify", "--json")
    assert result.exit_code == 1
    assert {one["dataset"]: one["ok"] for one in json.loads(result.stdout)} == {
        dataset: dataset != "modules" for dataset in DATASETS
    }
    assert unnamed(result.stderr, "modules", "1") == []
    assert unnamed(commands.refused("lookup", "module", "demo_module"), "leveldb update") == []
    assert commands.json("leveldb", "update")[0]["version"] == 2
    assert len(commands.json("lookup", "module", "demo_module")) == 1


def test_dataset_without_its_columns_in_dumps_is_not_built_yet(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0", entry_points="[console_scripts]\nhello = demo_module:main\n")
    commands.done("crawl", "full")
    [dump] = commands.json("dump", "full", "--shards", "1")
    settings = load_settings()
    catalog = catalog_from(settings)
    cut_dumps(catalog, storage_from(settings), dump["directory"])
    catalog.close()

    order = ["admin reprocess", "dump redo", "leveldb update"]
    directory = dump["directory"]

    def names(text: str, dataset: str, *columns: str) -> bool:
        return not unnamed(text, dataset, directory, *columns) and commands_in(text) == order

    def names_commands(text: str) -> bool:
        return names(text, "commands", "console_scripts")

    built = commands.json("leveldb", "update")
    assert {one["dataset"] for one in built if one["published"]} == set(DATASETS) - {"commands", "simple"}
    assert any(map(names_commands, commands.done("leveldb", "update").stderr.splitlines()))
    assert names_commands(commands.refused("leveldb", "update", "--dataset", "commands"))
    assert names_commands(commands.refused("lookup", "command", "hello", "--json"))
    assert len(commands.json("lookup", "module", "demo_module")) == 1
    for verb in ("verify", "list"):
        first, second = commands.done("leveldb", verb).stderr.splitlines()
        assert (names_commands(first), names(second, "simple", "notes")) == (True, True)
    assert names_commands(commands.refused("leveldb", "verify", "--dataset", "commands"))
    listed = commands.done("leveldb", "list", "--dataset", "commands", "--json")
    assert (listed.stdout, names_commands(listed.stderr), len(listed.stderr.splitlines())) == ("[]\n", True, 1)

    commands.done("dump", "redo", "--shards", "1")
    assert all(one["published"] for one in commands.json("leveldb", "update"))
    assert commands.json("lookup", "command", "hello")[0]["versions"] == ["1.0"]


def test_dataset_without_a_version_is_not_built_yet(commands: Commands, index: ServedIndex) -> None:
    storage = storage_from(load_settings())

    def names(text: str, dataset: str, *needed: str) -> bool:
        return not unnamed(text, dataset, storage.url) and commands_in(text) == list(needed)

    order = ("crawl full", "dump full", "leveldb update")
    lines = commands.done("leveldb", "list").stderr.splitlines()
    assert [names(line, dataset, *order) for line, dataset in zip(lines, DATASETS, strict=True)] == [True] * len(lines)
    assert unnamed(commands.refused("leveldb", "verify"), *DATASETS, storage.url, *order) == []
    assert names(commands.refused("lookup", "hash", "00" * 32), "hashes", *order)

    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    commands.done("dump", "full", "--shards", "1")
    commands.done("leveldb", "update", "--dataset", "modules")
    for verb in ("list", "verify"):
        lines = commands.done("leveldb", verb).stderr.splitlines()
        assert any(names(line, "hashes", "leveldb update") for line in lines)
    assert names(commands.refused("leveldb", "verify", "--dataset", "hashes"), "hashes", "leveldb update")
    assert names(commands.refused("lookup", "hash", "00" * 32), "hashes", "leveldb update")


def test_fetch_makes_one_folder_and_repeats_safely(commands: Commands, index: ServedIndex, tmp_path: Path) -> None:
    folder = tmp_path / "fetched"
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    commands.done("dump", "full", "--shards", "1")
    missing = commands.refused("leveldb", "fetch", "hashes", "--into", folder)
    assert (unnamed(missing, "hashes"), commands_in(missing)) == ([], ["leveldb update"])
    commands.done("leveldb", "update")
    fetched = commands.json("leveldb", "fetch", "hashes", "--into", folder)
    [listed] = commands.json("leveldb", "list", "--dataset", "hashes")
    assert {name: fetched[name] for name in ("dataset", "version", "serial", "bytes")} == {
        name: listed[name] for name in ("dataset", "version", "serial", "bytes")
    }
    assert (fetched["folder"], fetched["state"], fetched["linked"]) == (str(folder), "fetched", 1)
    with plyvel.DB(str(folder)) as db:
        assert len(list(db.iterator(prefix=b"h\0"))) == 1
    for state in ("fetched", "unchanged"):
        assert commands.json("leveldb", "fetch", "hashes", "--version", "1", "--into", folder)["state"] == state
    assert unnamed(commands.done("leveldb", "fetch", "hashes", "--into", folder).stdout, "hashes", str(folder)) == []
    missing = commands.refused("leveldb", "fetch", "hashes", "--version", "7", "--into", folder)
    assert (unnamed(missing, "7", "hashes"), commands_in(missing)) == ([], ["leveldb list"])
    assert unnamed(commands.refused("leveldb", "fetch", "hashes", "--into", tmp_path), str(tmp_path)) == []
    assert commands.run("leveldb", "fetch", "hashes").exit_code == 2
