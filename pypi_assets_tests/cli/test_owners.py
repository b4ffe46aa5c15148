"""Owners of imports are answered on the command line, from published versions and at an earlier serial."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pypi_assets.cli import cli
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


@pytest.fixture
def published(commands: Commands, index: ServedIndex) -> Commands:
    index.wheel("PyYAML", "6.0", files={"yaml/__init__.py": ""})
    index.wheel("copies", "1.0", files={"yaml/__init__.py": "", "tests/__init__.py": ""}, requires_dist=["pyyaml"])
    commands.build_versions()
    return commands


def test_imports_are_ranked_with_their_reasons(published: Commands) -> None:
    result = published.done("owners", "yaml.load", "tests", "unknown")
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert [row[:4] for row in rows] == [
        ["yaml.load", "yaml", "1", "PyYAML"],
        ["yaml.load", "yaml", "2", "copies"],
        ["tests", "tests", "1", "copies"],
    ]
    assert unnamed(rows[0][5], "1") == []
    assert unnamed(rows[2][5], "0") == []
    assert result.stderr


def test_json_has_all_candidates(published: Commands) -> None:
    [yaml] = published.json("owners", "yaml")
    assert list(yaml) == ["import", "module", "serial", "candidates"]
    assert [one["normalized"] for one in yaml["candidates"]] == ["pyyaml", "copies"]
    assert published.json("owners", "unknown")[0]["candidates"] == []
    [best] = published.json("owners", "yaml", "--limit", "1")
    assert best["candidates"] == yaml["candidates"][:1]


def test_owners_at_an_earlier_serial_come_from_the_catalog(published: Commands) -> None:
    [latest] = published.json("owners", "yaml")
    [past] = published.json("owners", "yaml", "--at", latest["serial"])
    assert past.pop("epoch") >= latest["serial"]
    assert past == latest
    assert published.done("owners", "yaml", "--at", latest["serial"]).stderr


def test_names_are_read_from_standard_input(published: Commands) -> None:
    result = CliRunner().invoke(cli, ["owners", "-", "--json"], input="yaml\n\n tests \n")
    assert [one["import"] for one in json.loads(result.stdout)] == ["yaml", "tests"]


def test_table_names_omitted_candidates(published: Commands) -> None:
    result = published.done("owners", "yaml", "--limit", "1")
    assert len(result.stdout.splitlines()) == 1
    assert unnamed(result.stderr, "yaml", "1", "--limit") == []
    assert "--limit" not in published.done("owners", "yaml").stderr


def test_invalid_usage_is_rejected(commands: Commands) -> None:
    commands.refused("owners", exit_code=2)
    commands.refused("owners", "-", "yaml", exit_code=2)
    assert unnamed(commands.refused("owners", " ", exit_code=2), "NAME") == []


def test_imports_of_source_files_are_looked_up(published: Commands, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.py").write_text("import os, yaml, b\nfrom tests import x\n")
    (tmp_path / "work" / "b.py").write_text("import (")
    result = published.done("owners", "--file", tmp_path / "work", "--limit", "1")
    assert [line.split("\t")[:4] for line in result.stdout.splitlines()] == [
        ["tests", "tests", "1", "copies"],
        ["yaml", "yaml", "1", "PyYAML"],
    ]
    assert unnamed(result.stderr, "b.py", "1") == []
    (tmp_path / "work" / "a.py").write_text("import os\n")
    assert published.done("owners", "--file", tmp_path / "work" / "a.py").stderr
    (tmp_path / "empty").mkdir()
    assert published.done("owners", "--file", tmp_path / "empty").stderr
