"""deptry itself reads the table, and finds what a small project imports."""

import subprocess
import sys
import tomllib
from pathlib import Path

from pypi_assets.export.formats import render_deptry
from pypi_assets_tests.export.pinned import USUAL

PROJECT = """
[project]
name = "app"
version = "1"
dependencies = ["{yaml}", "zope.interface>=1"]
"""


def problems(folder: Path, *tables: str, yaml: str = "PyYAML>=6") -> str:
    """What deptry reports of a project that imports yaml and zope.interface, in an environment that has neither."""
    (folder / "pyproject.toml").write_text(PROJECT.format(yaml=yaml) + "\n".join(tables))
    (folder / "app.py").write_text("import yaml\nimport zope.interface\n")
    # -I: nothing of this environment is known to deptry but itself, so that it cannot see an installed PyYAML
    blinded = (
        "import importlib.metadata as m, importlib.util as u, sys\n"
        "known = m.distribution\n"
        "def hidden(name):\n"
        "    if name.lower() in {'pyyaml', 'yaml', 'zope.interface', 'zope'}: raise m.PackageNotFoundError(name)\n"
        "    return known(name)\n"
        "m.distribution = hidden\n"
        "u.find_spec = lambda name: None\n"
        "from deptry.cli import cli\n"
        "cli(sys.argv[1:])\n"
    )
    command = [sys.executable, "-I", "-c", blinded, ".", "--no-ansi"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stderr
    return done.stderr


def test_the_table_is_one_of_pyproject_toml() -> None:
    table = tomllib.loads(render_deptry(USUAL))["tool"]["deptry"]["package_module_name_map"]
    assert table["PyYAML"] == table["pyyaml"] == ["_yaml", "yaml"]


def test_deptry_finds_what_the_table_names(tmp_path: Path) -> None:
    without = problems(tmp_path)
    assert "DEP001 'yaml'" in without
    assert "DEP002 'PyYAML'" in without
    for spelling in ("PyYAML>=6", "pyyaml"):
        found = problems(tmp_path, render_deptry(USUAL), yaml=spelling)
        assert "DEP00" not in found
        assert "No dependency issues found" in found
