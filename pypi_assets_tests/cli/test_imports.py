"""What starting a command imports: `--version`, help, completion and look-ups wait for nothing that they do not use."""

import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

from pypi_assets_tests.cli.commands import Commands, every_command
from pypi_assets_tests.served_index import ServedIndex

START = {"click"}
"""The libraries that the list of commands needs."""
LOOKUP = START | {"msgspec", "obstore", "orjson", "packaging", "plyvel", "typing_extensions"}
"""The libraries that a look-up in a local folder needs. `benchmarks/start_up.py` shows what they cost."""
PARTS_OF_LOOKUP = {
    "cli",
    "distributions",
    "errors",
    "inert",
    "inert_logs",
    "leveldbs",
    "locations",
    "lookup",
    "progress",
    "setting_variables",
    "storage",
    "terminal",
}
"""The parts of pypi_assets that a look-up needs: neither the catalog nor all settings. Of `distributions` it
is what a requirement names."""

_RUN = """
import atexit, sys

known = set(sys.modules)
atexit.register(lambda: print(*set(sys.modules) - known, file=sys.stderr))
from pypi_assets.cli import main
main()
"""


def imported(*arguments: str, variables: Mapping[str, str] | None = None) -> set[str]:
    """The names of all modules that a command imports. It must succeed."""
    done = subprocess.run(
        [sys.executable, "-c", _RUN, *arguments],
        env=os.environ | (variables or {}),
        check=True,
        capture_output=True,
        text=True,
    )
    return set(done.stderr.splitlines()[-1].split())


def libraries(modules: set[str]) -> set[str]:
    """Those that belong neither to Python nor to this project. Cython's helpers have no file of their own."""
    names = {name.partition(".")[0] for name in modules} - {"pypi_assets", "cython_runtime"}
    return {name for name in names - sys.stdlib_module_names if not name.startswith("_")}


def parts(modules: set[str]) -> set[str]:
    return {name.split(".")[1] for name in modules if name.startswith("pypi_assets.")}


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_the_list_of_commands_imports_no_command(option: str) -> None:
    found = imported(option)
    assert libraries(found) == START
    assert parts(found) == {"cli", "errors", "inert", "inert_logs", "progress", "terminal"}
    assert {name for name in found if name.startswith("pypi_assets.cli.")} == set()


def test_completion_of_a_command_imports_no_command() -> None:
    variables = {"_PYPI_ASSETS_COMPLETE": "bash_complete", "COMP_WORDS": "pypi-assets lo", "COMP_CWORD": "1"}
    found = imported(variables=variables)
    assert libraries(found) == START
    assert {name for name in found if name.startswith("pypi_assets.cli.")} == set()


def test_help_and_completion_of_a_command_import_no_more_than_a_look_up() -> None:
    for path, _ in every_command():
        allowed = LOOKUP if path[0] in {"leveldb", "lookup"} else START  # which show what the datasets are
        assert libraries(imported(*path, "--help")) <= allowed, path
    words = {"COMP_WORDS": "pypi-assets crawl full --", "COMP_CWORD": "3"}
    assert libraries(imported(variables=words | {"_PYPI_ASSETS_COMPLETE": "bash_complete"})) == START


def test_a_look_up_imports_only_what_it_needs(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0", requires_dist=["other-pkg>=2"])
    commands.build_versions()
    for arguments in (
        ("module", "demo_module"),
        ("module", "demo", "--prefix"),
        ("project", "demo==1.0"),
        ("dependents", "other-pkg"),
        ("command", "nope"),
        ("hash", "0" * 64),
    ):
        for options in ((), ("--json",)):
            found = imported("lookup", *arguments, *options)
            assert libraries(found) <= LOOKUP, arguments
            assert parts(found) <= PARTS_OF_LOOKUP, arguments
            assert {name for name in found if name.startswith("pypi_assets.cli.")} <= {
                "pypi_assets.cli.followed_notes",
                "pypi_assets.cli.lookup",
                "pypi_assets.cli.options",
            }
