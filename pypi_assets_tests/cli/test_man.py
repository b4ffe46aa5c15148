"""`pypi-assets man`: one page with every command, option, setting and exit code, which man shows as it is."""

import re
import shutil
import subprocess

import pytest

from pypi_assets.cli import cli
from pypi_assets.cli.man import manual_page
from pypi_assets.settings import ENV_PREFIX, Settings
from pypi_assets_tests.cli.commands import Commands, every_command


def as_text(page: str) -> str:
    """The page without its markup, with single spaces."""
    without = re.sub(r"\\f[BR]|\\&", "", page).replace(r"\-", "-").replace(r"\e", "\\")
    return " ".join(re.sub(r"(?m)^\.(SS|TP|PP|SH|EX|EE|nf|fi|B) ?", "", without).split())


def test_the_page_has_what_every_help_has(commands: Commands) -> None:
    shown = as_text(commands.done("man").stdout)
    for path, command in every_command():
        assert f"pypi-assets {' '.join(path)} [OPTIONS]" in shown
        for paragraph in (command.help or "").replace("\b", "").split("\n\n"):
            assert " ".join(paragraph.split()) in shown
        for option in (option for one in command.params for option in one.opts if option.startswith("--")):
            assert option in shown
        assert (command.epilog or "").removeprefix("Example: ") in shown


def test_the_page_has_every_setting_with_what_it_accepts(commands: Commands) -> None:
    shown = as_text(commands.done("man").stdout)
    for name, field in Settings.model_fields.items():
        assert f"{ENV_PREFIX}{name.upper()} {' '.join((field.description or '').split())}" in shown


def test_lines_of_text_are_not_taken_for_requests() -> None:
    page = list(manual_page(cli, "1.0-rc1"))
    assert r'"pypi-assets 1.0\-rc1"' in page[0]
    known = {"TH", "SH", "SS", "TP", "PP", "EX", "EE", "nf", "fi", "B"}
    assert {line[1:].split()[0] for line in page if line.startswith(".")} == known
    assert not [line for line in page if line.startswith("'") or "\n" in line]


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_shows_the_page_without_a_warning(commands: Commands) -> None:
    page = commands.done("man").stdout
    done = subprocess.run(["groff", "-man", "-ww", "-Tutf8"], input=page, check=True, capture_output=True, text=True)
    assert done.stderr == ""
    assert "--with-history" in re.sub(r".\x08", "", done.stdout)  # bold is each character twice
