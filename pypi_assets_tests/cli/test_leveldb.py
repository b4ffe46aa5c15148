"""`pypi-assets leveldb`: damage is found, listed and mended."""

import json

from pypi_assets.assembly import catalog_from, storage_from
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.settings import load_settings
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.first_columns import cut_dumps
from pypi_assets_tests.served_index import ServedIndex


def test_a_damaged_version_fails_to_verify_and_is_listed_as_such(commands: Commands, index: ServedIndex) -> None:
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
    assert "modules version 1: " in result.stderr
    assert "run `pypi-assets leveldb update`" in commands.refused("lookup", "module", "demo_module")
    assert commands.json("leveldb", "update")[0]["version"] == 2
    assert len(commands.json("lookup", "module", "demo_module")) == 1


def test_a_dataset_whose_columns_dumps_lack_is_not_built_yet(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0", entry_points="[console_scripts]\nhello = demo_module:main\n")
    commands.done("crawl", "full")
    [dump] = commands.json("dump", "full", "--shards", "1")
    settings = load_settings()
    catalog = catalog_from(settings)
    cut_dumps(catalog, storage_from(settings), dump["directory"])
    catalog.close()

    message = (
        f"commands is not built yet: 1 dump of the cover ({dump['directory']}) lacks the column console_scripts;"
        " run `pypi-assets reprocess`, `pypi-assets dump redo` and `pypi-assets leveldb update`, in this order"
    )
    other = message.replace("commands", "simple", 1).replace("column console_scripts", "columns notes, project_status")
    built = commands.json("leveldb", "update")
    assert {one["dataset"] for one in built if one["published"]} == set(DATASETS) - {"commands", "simple"}
    assert message in commands.done("leveldb", "update").stderr.splitlines()
    assert message in commands.refused("leveldb", "update", "--dataset", "commands")
    assert message in commands.refused("lookup", "command", "hello", "--json")
    assert len(commands.json("lookup", "module", "demo_module")) == 1
    for verb in ("verify", "list"):
        assert commands.done("leveldb", verb).stderr == f"{message}\n{other}\n"
    assert message in commands.refused("leveldb", "verify", "--dataset", "commands")
    listed = commands.done("leveldb", "list", "--dataset", "commands", "--json")
    assert (listed.stdout, listed.stderr) == ("[]\n", f"{message}\n")

    commands.done("dump", "redo", "--shards", "1")
    assert all(one["published"] for one in commands.json("leveldb", "update"))
    assert commands.json("lookup", "command", "hello")[0]["versions"] == ["1.0"]


def test_a_dataset_without_a_version_is_not_built_yet_in_every_command(commands: Commands, index: ServedIndex) -> None:
    storage = storage_from(load_settings())

    def message(dataset: str, reason: str) -> str:
        return f"{dataset} is not built yet: {reason}"

    nothing = (
        f"there is no full dump in {storage.url}; run `pypi-assets crawl full`, `pypi-assets dump full` and"
        " `pypi-assets leveldb update`, in this order"
    )
    assert commands.done("leveldb", "list").stderr.splitlines() == [message(name, nothing) for name in DATASETS]
    refused = commands.refused("leveldb", "verify")
    assert all(message(name, nothing) in refused for name in DATASETS)
    assert "there is none to verify" in refused
    assert message("hashes", nothing) in commands.refused("lookup", "hash", "00" * 32)

    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    commands.done("dump", "full", "--shards", "1")
    commands.done("leveldb", "update", "--dataset", "modules")
    unpublished = message("hashes", f"no version of it is published in {storage.url}; run `pypi-assets leveldb update`")
    for verb in ("list", "verify"):
        assert unpublished in commands.done("leveldb", verb).stderr.splitlines()
    assert unpublished in commands.refused("leveldb", "verify", "--dataset", "hashes")
    assert unpublished in commands.refused("lookup", "hash", "00" * 32)
