"""The LevelDB versions in `published.json`: the newest, and while these differ those of one serial."""

import orjson
import pytest

from pypi_assets.leveldbs.versions import leveldb_manifest
from pypi_assets.leveldbs.versions.input_lists import InputList, write_input_list
from pypi_assets.leveldbs.versions.leveldb_manifest import publish_leveldbs
from pypi_assets.storage.published import PUBLISHED
from pypi_assets.storage.store import open_storage


def test_while_datasets_differ_a_whole_set_is_named_too(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = open_storage("memory:///")
    monkeypatch.setattr(leveldb_manifest, "DATASETS", ("modules", "hashes", "simple"))

    def publish(dataset: str, version: int, serial: int) -> dict[str, list[str]]:
        write_input_list(storage, InputList(dataset, version, f"{version:05d}", "0" * 64, serial, ()))
        publish_leveldbs(storage)
        found = orjson.loads(storage.get(PUBLISHED))["leveldbs"]
        return {name: [one["path"].rpartition("/")[2] for one in entries] for name, entries in found.items()}

    assert publish("modules", 1, 10) == {"modules": ["00001"]}
    assert publish("hashes", 1, 10) == {"modules": ["00001"], "hashes": ["00001"]}
    assert publish("modules", 2, 20) == {"modules": ["00001", "00002"], "hashes": ["00001"]}
    assert publish("hashes", 2, 20) == {"modules": ["00002"], "hashes": ["00002"]}
    assert publish("modules", 3, 30) == {"modules": ["00002", "00003"], "hashes": ["00002"]}
    assert publish("simple", 4, 40) == {"modules": ["00003"], "hashes": ["00002"], "simple": ["00004"]}
