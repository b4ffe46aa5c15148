"""The scripts that click prints complete commands, options and values in real shells."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BASH = """
source {script}
complete -p pypi-assets > /dev/null || exit 1
COMP_WORDS=({words})
COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_pypi_assets_completion pypi-assets
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
FISH = """
source {script}
complete -C '{words}'
"""
CASES = {
    "pypi-assets lo": ["lookup"],
    "pypi-assets crawl f": ["full"],
    "pypi-assets crawl full --w": ["--with-history"],
    "pypi-assets leveldb update --dataset h": ["hashes"],
    "pypi-assets lookup mo": ["module"],
    "pypi-assets admin mi": ["migrate"],
    "pypi-assets nope": [],
}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put `pypi-assets` on the PATH, as an installation does."""
    program = tmp_path / "bin" / "pypi-assets"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom pypi_assets.cli import main\nmain()\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))


def script_for(shell: str) -> str:
    environment = os.environ | {"_PYPI_ASSETS_COMPLETE": f"{shell}_source"}
    return subprocess.run(["pypi-assets"], check=True, capture_output=True, text=True, env=environment).stdout


def completed(tmp_path: Path, shell: str, template: str, line: str) -> list[str]:
    script = tmp_path / f"completion.{shell}"
    script.write_text(script_for(shell))
    done = subprocess.run(
        [shell, "-c", template.format(script=script, words=line)], check=True, capture_output=True, text=True
    )
    assert done.stderr == ""
    return [found.partition("\t")[0] for found in done.stdout.splitlines() if found]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize("line", CASES)
@pytest.mark.usefixtures("installed")
def test_bash_completes(tmp_path: Path, line: str) -> None:
    assert completed(tmp_path, "bash", BASH, line) == CASES[line]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize("line", CASES)
@pytest.mark.usefixtures("installed")
def test_fish_completes(tmp_path: Path, line: str) -> None:
    assert completed(tmp_path, "fish", FISH, line) == CASES[line]


@pytest.mark.usefixtures("installed")
def test_zsh_script_is_read_by_compdef() -> None:
    script = script_for("zsh")
    assert script.startswith("#compdef pypi-assets\n")
    assert "compdef _pypi_assets_completion pypi-assets" in script
