"""The dumps in `published.json` are those of the cover, whatever was committed or deleted."""

import hashlib

import orjson

from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_manifest import manifest_path
from pypi_assets.storage.published import PUBLISHED
from pypi_assets_tests.upkeep.simulated_upkeep import Upkeep


def named(upkeep: Upkeep) -> list[str]:
    part = orjson.loads(upkeep.storage.get(PUBLISHED))["dumps"]
    for one in part["manifests"]:
        content = upkeep.storage.get(one["path"])
        assert (one["size"], one["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    assert part["serial"] == cover(upkeep.catalog).serial
    return [one["path"] for one in part["manifests"]]


def test_each_commit_is_named_and_a_clean_up_mends_what_a_kill_left_out(upkeep: Upkeep) -> None:
    def covered() -> list[str]:
        return [manifest_path(directory) for directory in cover(upkeep.catalog).directories]

    assert named(upkeep) == covered()
    for _ in range(3):
        upkeep.dump_range()
    assert named(upkeep) == covered()
    assert len(covered()) == 4
    upkeep.storage.delete(PUBLISHED)
    upkeep.clean()
    assert named(upkeep) == covered()
