"""FawltyDeps itself reads the mapping, and finds what a small project imports."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pypi_assets.export.formats import render_fawltydeps
from pypi_assets_tests.export.pinned import USUAL


def checked(folder: Path, *options: str) -> dict[str, Any]:
    """What FawltyDeps reports of a project that imports yaml and zope.interface, next to an empty environment."""
    (folder / "requirements.txt").write_text("pyyaml==1\nzope.interface==1\ntypes-PyYAML==1\n")
    (folder / "app.py").write_text("import yaml.nodes\nimport zope.interface\n")
    (folder / "empty" / "lib" / "python3.11" / "site-packages").mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "fawltydeps", "--json", "--code", "app.py", "--deps", "requirements.txt"]
    done = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 3, 4}, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.nightly
def test_fawltydeps_finds_what_the_mapping_names(tmp_path: Path) -> None:
    without = checked(tmp_path, "--pyenv", "empty")
    assert {one["name"] for one in without["unused_deps"]} >= {"types-PyYAML"}
    mapping = tmp_path / "mapping.toml"
    mapping.write_text(render_fawltydeps(USUAL))
    found = checked(tmp_path, "--custom-mapping-file", str(mapping), "--pyenv", "empty")
    assert found["undeclared_deps"] == []
    assert found["unused_deps"] == []
    resolved = found["resolved_deps"]
    assert resolved["pyyaml"]["import_names"] == ["_yaml", "yaml"]
    assert {one["resolved_with"] for one in resolved.values()} == {"UserDefinedMapping"}
