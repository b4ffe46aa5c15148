"""`pypi-assets leveldb`: damage is found, listed and mended."""

import json

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.served_index import ServedIndex


def test_a_damaged_version_fails_to_verify_and_is_listed_as_such(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.build_versions()
    for path in (commands.home / "storage" / "modules" / "leveldbs").rglob("*.ldb"):
        path.chmod(0o644)
        path.write_bytes(b"")
    result = commands.run("leveldb", "verify", "--json")
    assert result.exit_code == 1
    assert {one["dataset"]: one["ok"] for one in json.loads(result.stdout)} == {"modules": False, "depgraph": True}
    assert "modules version 1: " in result.stderr
    assert "run `pypi-assets leveldb update`" in commands.refused("lookup", "module", "demo_module")
    assert commands.json("leveldb", "update")[0]["version"] == 2
    assert len(commands.json("lookup", "module", "demo_module")) == 1
