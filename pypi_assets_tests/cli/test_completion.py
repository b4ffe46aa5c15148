"""`pypi-assets completion`: its scripts complete commands, options and values in real shells."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.named import unnamed

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
    "pypi-assets completion z": ["zsh"],
    "pypi-assets nope": [],
}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`pypi-assets` is a program on the path, as after an installation."""
    program = tmp_path / "bin" / "pypi-assets"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom pypi_assets.cli import main\nmain()\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))


def completed(commands: Commands, tmp_path: Path, shell: str, template: str, line: str) -> list[str]:
    script = tmp_path / f"completion.{shell}"
    script.write_text(commands.done("completion", shell).stdout)
    done = subprocess.run(
        [shell, "-c", template.format(script=script, words=line)], check=True, capture_output=True, text=True
    )
    assert done.stderr == ""
    return [found.partition("\t")[0] for found in done.stdout.splitlines() if found]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize("line", CASES)
@pytest.mark.usefixtures("installed")
def test_bash_completes(commands: Commands, tmp_path: Path, line: str) -> None:
    assert completed(commands, tmp_path, "bash", BASH, line) == CASES[line]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize("line", CASES)
@pytest.mark.usefixtures("installed")
def test_fish_completes(commands: Commands, tmp_path: Path, line: str) -> None:
    assert completed(commands, tmp_path, "fish", FISH, line) == CASES[line]


def test_the_script_of_zsh_is_read_by_compdef(commands: Commands) -> None:
    script = commands.done("completion", "zsh").stdout
    assert script.startswith("#compdef pypi-assets\n")
    assert "compdef _pypi_assets_completion pypi-assets" in script


def test_the_help_names_the_file_of_each_shell(commands: Commands) -> None:
    shown = commands.done("completion", "--help").stdout
    for line in ("completion bash >> ~/.bashrc", "completion zsh >> ~/.zshrc", "completion fish > ~/.config/fish"):
        assert line in shown


def test_another_shell_is_refused(commands: Commands) -> None:
    assert unnamed(commands.refused("completion", "tcsh", exit_code=2), "tcsh", "bash", "zsh", "fish") == []
