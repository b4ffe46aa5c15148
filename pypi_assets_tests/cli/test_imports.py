"""A command imports only what it uses at startup: `--version`, help, completion and lookups."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

import pytest

from pypi_assets.leveldbs.format.leveldb_binding import require_binding
from pypi_assets.questions.question import TOP_LEVEL
from pypi_assets_tests.cli.commands import Commands, every_command
from pypi_assets_tests.served_index import ServedIndex

START = {"click"}
"""Libraries that the list of commands needs."""
LOOKUP = START | {"msgspec", "obstore", "orjson", "packaging", require_binding().__name__, "typing_extensions"}
"""Libraries that a lookup in a local folder needs. `benchmarks/start_up.py` shows their cost."""
PARTS_OF_LOOKUP = {
    "cli",
    "distributions",
    "errors",
    "sanitize",
    "leveldbs",
    "logs",
    "lookup",
    "progress",
    "questions",
    "setting_sources",
    "short_texts",
    "storage",
    "terminal",
    "version_order",
}
"""Parts of pypi_assets that a lookup needs: no catalog and not all settings. `distributions` parses requirements."""

_RUN = """
import atexit, json, os, sys

known = set(sys.modules)
commands = json.load(sys.stdin)
from pypi_assets.cli import main
for arguments in commands:
    if (child := os.fork()) == 0:
        atexit.register(lambda: print("imported:", *set(sys.modules) - known, file=sys.stderr))
        sys.argv[1:] = arguments
        sys.exit(main())
    if os.waitpid(child, 0)[1]:
        sys.exit(f"{arguments} failed")
"""


def imported_by(commands: Sequence[Sequence[str]], variables: Mapping[str, str] | None = None) -> list[set[str]]:
    """Return the names of all modules that each command imports. All commands must succeed.

    Each command runs in a fork of one process, which has imported the list of commands.
    """
    done = subprocess.run(
        [sys.executable, "-c", _RUN],
        env=os.environ | (variables or {}),
        input=json.dumps(commands),
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    words = [line.split() for line in done.stderr.splitlines()]
    found = [set(line[1:]) for line in words if line[:1] == ["imported:"]]
    assert len(found) == len(commands)
    return found


def imported(*arguments: str, variables: Mapping[str, str] | None = None) -> set[str]:
    """Return the names of all modules that one command imports."""
    return imported_by([arguments], variables)[0]


def libraries(modules: set[str]) -> set[str]:
    """Return the libraries among the modules: neither Python's nor this project's. Cython's helpers have no file."""
    names = {name.partition(".")[0] for name in modules} - {"pypi_assets", "cython_runtime"}
    return {name for name in names - sys.stdlib_module_names if not name.startswith("_")}


def parts(modules: set[str]) -> set[str]:
    return {name.split(".")[1] for name in modules if name.startswith("pypi_assets.")}


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_help_list_imports_no_command(option: str) -> None:
    found = imported(option)
    assert libraries(found) == START
    assert parts(found) == {"cli", "errors", "progress", "sanitize", "terminal"}
    assert {name for name in found if name.startswith("pypi_assets.cli.")} == set()


def test_completion_of_a_command_imports_no_command() -> None:
    variables = {"_PYPI_ASSETS_COMPLETE": "bash_complete", "COMP_WORDS": "pypi-assets lo", "COMP_CWORD": "1"}
    found = imported(variables=variables)
    assert libraries(found) == START
    assert {name for name in found if name.startswith("pypi_assets.cli.")} == set()


@pytest.mark.nightly
def test_help_and_completion_import_no_more_than_a_lookup() -> None:
    paths = [path for path, _ in every_command()]
    for path, modules in zip(paths, imported_by([(*path, "--help") for path in paths]), strict=True):
        allowed = LOOKUP if path[0] in {"leveldb", "lookup", *TOP_LEVEL} else START  # which show the declared questions
        assert libraries(modules) <= allowed, path
    words = {"COMP_WORDS": "pypi-assets crawl full --", "COMP_CWORD": "3"}
    assert libraries(imported(variables=words | {"_PYPI_ASSETS_COMPLETE": "bash_complete"})) == START


@pytest.mark.nightly
def test_lookup_imports_only_needed_modules(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0", requires_dist=["other-pkg>=2"])
    commands.build_versions()
    queries = [
        ("module", "demo_module"),
        ("module", "demo", "--prefix"),
        ("project", "demo==1.0"),
        ("dependents", "other-pkg"),
        ("command", "nope"),
        ("hash", "0" * 64),
    ]
    lookups = [("lookup", *query, *options) for query in queries for options in ((), ("--json",))]
    for lookup, found in zip(lookups, imported_by(lookups), strict=True):
        assert libraries(found) <= LOOKUP, lookup
        assert parts(found) <= PARTS_OF_LOOKUP, lookup
        assert {name for name in found if name.startswith("pypi_assets.cli.")} <= {
            "pypi_assets.cli.followed_notes",
            "pypi_assets.cli.lookup",
            "pypi_assets.cli.options",
        }
