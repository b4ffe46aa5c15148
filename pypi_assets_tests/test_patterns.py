"""Every regular expression applied to foreign text takes linear time, or runs on text of limited size."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pypi_assets
from pypi_assets_tests.pumping import slowest

SIZE = 128 * 1024
LIMIT_S = 0.4
"""Limit of processor time. Linear patterns take some milliseconds, quadratic ones seconds."""
PACKAGES = ("distributions", "index", "characters")
METHODS = {"match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
THROUGHOUT = {"sub", "subn", "split", "findall", "finditer"}
"""Methods that continue after each match."""
ROOT = Path(pypi_assets.__path__[0])

BOUNDED = {
    "distributions.filenames": 1_000,  # MAX_FILENAME_LENGTH
    "distributions.metadata._PLAIN_REQUIREMENT": 4_096,  # MAX_CHECKED_CHARACTERS
    "distributions.metadata._PLAIN_SPECIFIERS": 4_096,
    "index.actions": 2_000,  # LONGEST_ACTION
}
"""The largest number of characters given to the patterns of a module, or to a single pattern."""
IN_TABLES = {
    "distributions.backends.cmake_text._TOKEN": "match",
    "distributions.backends.cmake._FIRST": "match",
    "distributions.setup_script._PYTHON2": "sub",
}
"""The methods called on patterns that are in tables."""
MADE_LATER = {
    "characters.py": "patterns of constant tables",
    "distributions/path_patterns.py": "shell patterns: test_globs.py and test_path_patterns.py",
    "distributions/metadata.py": "plain_requirement(), whose patterns have names",
}
"""Modules that compile patterns in functions, with the reason."""


def sources() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(tuple(f"{package}/" for package in PACKAGES)) or name.removesuffix(".py") in PACKAGES:
            yield name, ast.parse(path.read_text())


def found_patterns() -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Yield the patterns of all modules, also those in tables, with the names of their variables."""
    modules = [importlib.import_module("pypi_assets.characters")]
    for package in PACKAGES[:2]:
        root = importlib.import_module(f"pypi_assets.{package}")
        modules += [
            importlib.import_module(info.name) for info in pkgutil.walk_packages(root.__path__, f"{root.__name__}.")
        ]
    for module in modules:
        for name, value in vars(module).items():
            place = f"{module.__name__.removeprefix('pypi_assets.')}.{name}"
            yield from ((place, pattern) for pattern in _patterns_in(value))


def _patterns_in(value: object, depth: int = 0) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif type(value) is dict and depth < 3:
        yield from _patterns_in(list(value.values()), depth + 1)
    elif type(value) in {tuple, list, set, frozenset} and depth < 3:
        for each in value:  # type: ignore[attr-defined]
            yield from _patterns_in(each, depth + 1)


def used_methods() -> dict[str, set[str]]:
    """Return the methods called on each named pattern: `{"index.pages._SHA256": {"fullmatch"}}`."""
    used: dict[str, set[str]] = {}
    for path, tree in sources():
        module = path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in METHODS and isinstance(node.value, ast.Name):
                used.setdefault(f"{module}.{node.value.id}", set()).add(node.attr)
    return used


def uses() -> list[tuple[str, re.Pattern[Any], str]]:
    """Return each pattern with those of the methods `match`, `fullmatch`, `search`, `findall` that cover its uses."""
    methods = used_methods()
    found: dict[tuple[str, Any, str], re.Pattern[Any]] = {}
    for place, pattern in found_patterns():
        for method in sorted({IN_TABLES[place]} if place in IN_TABLES else methods.get(place, {"match", "findall"})):
            kind = "findall" if method in THROUGHOUT else method
            found.setdefault((place, pattern.pattern, kind), pattern)
    return [(place, pattern, kind) for (place, _, kind), pattern in found.items()]


USES = uses()


def test_patterns_are_found() -> None:
    assert len({pattern for _, pattern, _ in USES}) > 70
    assert {"index.pages._SHA256", "distributions.script_text._TOKEN", "distributions.backends.cmake_text._TOKEN"} <= {
        place for place, _, _ in USES
    }


def test_patterns_take_linear_time(subtests: pytest.Subtests) -> None:
    for package in [*sorted({place.rpartition(".")[0] for place, _, _ in USES})]:
        with subtests.test(package=package):
            for place, pattern, method in USES:
                if place.rpartition(".")[0] == package:
                    size = BOUNDED.get(place, BOUNDED.get(package, SIZE))
                    seconds, pump = slowest(pattern, method, size, LIMIT_S)
                    assert seconds < LIMIT_S, f"{place}.{method} takes {seconds:.2f} s for {size} characters: {pump}"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"%(?:%|\(([^)]+)\)s)", "findall"),
        (r"#[^\n]*|'''(.*?)'''|'((?:[^'\\\n]|\\.)*)'|([^\s])", "findall"),
        (r"(a+)+b", "fullmatch"),
    ],
)
def test_slow_patterns_are_detected(pattern: str, method: str) -> None:
    seconds, _ = slowest(re.compile(pattern), method, SIZE, LIMIT_S)
    assert seconds >= LIMIT_S


def test_patterns_are_compiled_at_module_level() -> None:
    """No test would cover a call like `re.match(...)`, or a pattern that a function compiles."""
    for path, tree in sources():
        in_functions = {
            id(node)
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef | ast.Lambda)
            for node in ast.walk(function)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if not isinstance(node.func.value, ast.Name) or node.func.value.id != "re":
                continue
            place = f"{path}:{node.lineno}: re.{node.func.attr}"
            assert node.func.attr in {"compile", "escape"}, f"{place}: compile it at module level"
            is_later = node.func.attr == "compile" and id(node) in in_functions
            assert not is_later or path in MADE_LATER, f"{place} in a function is not covered by the test"
