"""The documented program reads the edges of a fetched version with safetensors, as our command answers."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.cli.conftest import commands as commands
from pypi_assets_tests.cli.conftest import index as index
from pypi_assets_tests.served_index import ServedIndex

pytestmark = [pytest.mark.deploy, pytest.mark.nightly]
DOCS = Path(__file__).parents[2] / "docs"


def test_example_of_the_docs_lists_our_latest_dependents(
    commands: Commands, index: ServedIndex, tmp_path: Path
) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    subprocess.run([venv / "bin" / "pip", "install", "--quiet", "numpy", "safetensors"], check=True)
    [example] = re.findall(
        r"### The edges of `depgraph`\n.*?```python\n(.*?)```", (DOCS / "formats.md").read_text(), re.DOTALL
    )
    index.wheel("requests", "1.0")
    index.wheel("one", "1.0", requires_dist=["Requests<3"])
    index.wheel("one", "2.0", requires_dist=["requests>=2", "requests[x]; extra == 'x'"])
    index.wheel("two", "1.0", requires_dist=["requests"])
    index.wheel("two", "2.0")
    index.wheel("zwei", "1.0", requires_dist=["requests ; os_name == 'nt'"])
    commands.build_versions()
    commands.done("leveldb", "fetch", "depgraph", "--into", tmp_path / "FOLDER")
    (tmp_path / "example.py").write_text(example)
    lines = subprocess.run(
        [venv / "bin" / "python", "example.py"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert lines == [
        """one 2.0 [['*>=2', "*[x]; extra == 'x'"]]""",
        """zwei 1.0 [["* ; os_name == 'nt'"]]""",
    ]
    rows = commands.json("lookup", "dependents", "requests", "--latest")
    assert [f"{row['normalized']} {(row['always'] or row['marker'])[0]}" for row in rows] == ["one 2.0", "zwei 1.0"]
