"""The tools read the exports, or the exports follow the tools' grammar."""

import ast
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yaml import safe_load

from pypi_assets.export.formats import render_deptry, render_fawltydeps, render_gazelle, render_pants
from pypi_assets.export.module_owners import nearest
from pypi_assets.questions.locks import LockedAnswer
from pypi_assets_tests.export.pinned import USUAL, answer, of_modules, with_parents

PROJECT = """
[project]
name = "app"
version = "1"
dependencies = ["{yaml}", "zope.interface>=1"]
"""


def problems(folder: Path, *tables: str, yaml: str = "PyYAML>=6") -> str:
    """Return deptry's report on a project that imports yaml and zope.interface, in an environment without them."""
    (folder / "pyproject.toml").write_text(PROJECT.format(yaml=yaml) + "\n".join(tables))
    (folder / "app.py").write_text("import yaml\nimport zope.interface\n")
    # -I: deptry sees only itself in this environment, so it cannot find an installed PyYAML
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


def test_table_is_part_of_pyproject_toml() -> None:
    table = tomllib.loads(render_deptry(USUAL))["tool"]["deptry"]["package_module_name_map"]
    assert table["PyYAML"] == table["pyyaml"] == ["_yaml", "yaml"]


def test_deptry_uses_the_table(tmp_path: Path) -> None:
    without = problems(tmp_path)
    assert "DEP001 'yaml'" in without
    assert "DEP002 'PyYAML'" in without
    for spelling in ("PyYAML>=6", "pyyaml"):
        reported = problems(tmp_path, render_deptry(USUAL), yaml=spelling)
        assert "DEP00" not in reported
        assert "No dependency issues found" in reported


def checked(folder: Path, *options: str) -> dict[str, Any]:
    """Return FawltyDeps' report on a project that imports yaml and zope.interface, next to an empty environment."""
    (folder / "requirements.txt").write_text("pyyaml==1\nzope.interface==1\ntypes-PyYAML==1\n")
    (folder / "app.py").write_text("import yaml.nodes\nimport zope.interface\n")
    (folder / "empty" / "lib" / "python3.11" / "site-packages").mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "fawltydeps", "--json", "--code", "app.py", "--deps", "requirements.txt"]
    done = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 3, 4}, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.mark.nightly
def test_fawltydeps_uses_the_mapping(tmp_path: Path) -> None:
    without = checked(tmp_path, "--pyenv", "empty")
    assert {unused["name"] for unused in without["unused_deps"]} >= {"types-PyYAML"}
    mapping = tmp_path / "mapping.toml"
    mapping.write_text(render_fawltydeps(USUAL))
    report = checked(tmp_path, "--custom-mapping-file", str(mapping), "--pyenv", "empty")
    assert report["undeclared_deps"] == []
    assert report["unused_deps"] == []
    resolved = report["resolved_deps"]
    assert resolved["pyyaml"]["import_names"] == ["_yaml", "yaml"]
    assert {entry["resolved_with"] for entry in resolved.values()} == {"UserDefinedMapping"}


def test_manifest_has_wheels_sorted_by_module() -> None:
    assert render_gazelle(USUAL) == (
        "# Made by `pypi-assets export gazelle --lock uv.lock`.\n"
        "manifest:\n"
        "  modules_mapping:\n"
        "    _yaml: PyYAML\n"
        "    google.auth: google_auth\n"
        "    google.cloud: google_cloud_storage\n"
        "    google.oauth2: google_auth\n"
        "    google.protobuf: protobuf\n"
        '    "no": old\n'
        '    "null": old\n'
        "    types_pyyaml: types_pyyaml\n"
        "    yaml: PyYAML\n"
        "    zope: zope.interface\n"
        "  pip_repository:\n"
        "    name: pip\n"
    )


def test_empty_manifest() -> None:
    assert safe_load(render_gazelle(answer())) == {
        "manifest": {"modules_mapping": {}, "pip_repository": {"name": "pip"}}
    }


names = st.sets(st.sampled_from(["a", "a.b", "a.b.c", "no", "no.yes", "é"]), max_size=4)


@given(st.dictionaries(st.sampled_from(["one", "two-x", "Three"]), names, max_size=3))
def test_each_module_of_one_wheel_leads_to_it(lock: dict[str, set[str]]) -> None:
    lock = {project: with_parents(modules) for project, modules in lock.items()}
    mapping = safe_load(render_gazelle(of_modules(lock)))["manifest"]["modules_mapping"]
    assert list(mapping) == sorted(mapping)
    for project, modules in lock.items():
        for module in modules.difference(*(others for other, others in lock.items() if other != project)):
            assert nearest(mapping, module) == project.replace("-", "_")


def arguments(locked: LockedAnswer) -> dict[str, Any]:
    [statement] = ast.parse(render_pants(locked)).body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Call)
    assert ast.unparse(statement.value.func) == "python_requirements"
    return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in statement.value.keywords}


def test_target_has_modules_by_normalized_name() -> None:
    assert arguments(USUAL) == {
        "module_mapping": {
            "google-auth": ["google.auth", "google.oauth2"],
            "google-cloud-storage": ["google.cloud"],
            "old": ["no", "null"],
            "protobuf": ["google.protobuf"],
            "pyyaml": ["_yaml", "yaml"],
            "zope-interface": ["zope"],
        },
        "type_stubs_module_mapping": {"types-pyyaml": ["yaml"]},
    }


def test_empty_target() -> None:
    assert arguments(answer()) == {"module_mapping": {}, "type_stubs_module_mapping": {}}


@given(st.dictionaries(st.sampled_from(["one", "two-x", "three"]), names, max_size=3))
def test_each_module_has_one_owner(lock: dict[str, set[str]]) -> None:
    lock = {project: with_parents(modules) for project, modules in lock.items()}
    of_projects = arguments(of_modules(lock))["module_mapping"]
    entered = [(module, project) for project, modules in of_projects.items() for module in modules]
    assert len(entered) == len(dict(entered))
    for project, modules in lock.items():
        for module in modules.difference(*(others for other, others in lock.items() if other != project)):
            assert nearest(dict(entered), module) == project
