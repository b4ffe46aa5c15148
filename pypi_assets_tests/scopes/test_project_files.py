"""pyproject.toml: each table that states requirements, and files that are rejected."""

from pathlib import Path

import pytest

from pypi_assets.scopes.root_files import Roots, RootsError, read_project_file
from pypi_assets_tests.naming import mentions, naming

FULL = """
[project]
name = "My.Project"
dependencies = ["requests[socks]>=2", "local @ https://example.org/local.whl"]
dynamic = ["version", "optional-dependencies"]
[project.optional-dependencies]
docs = ["sphinx"]
all = ["my-project[docs]"]
[dependency-groups]
test = ["pytest>8", {include-group = "Typing"}]
typing = ["mypy"]
"""
POETRY = """
[tool.poetry]
name = "mine"
[tool.poetry.dependencies]
python = "^3.11"
Requests = {version = "^2.0", extras = ["socks"], optional = true}
many = [{version = "1", python = "<3.12"}, {version = "2", python = ">=3.12"}]
own = {path = "../own"}
[tool.poetry.dev-dependencies]
black = "*"
[tool.poetry.group.docs.dependencies]
sphinx = "^7"
forked = {git = "https://example.org/forked.git"}
"""


def read(tmp_path: Path, text: str) -> Roots:
    path = tmp_path / "pyproject.toml"
    path.write_text(text)
    return read_project_file(path)


def test_dependencies_extras_and_groups_are_roots_but_not_the_project(tmp_path: Path) -> None:
    roots = read(tmp_path, FULL)
    assert list(roots.extras) == ["mypy", "pytest", "requests", "sphinx"]
    assert roots.extras["requests"] == {"socks"}
    assert ["dynamic" in text for text in roots.skipped] == [True, False]
    assert mentions(roots.skipped[1], "local @ https://example.org/local.whl")


def test_poetry_tables_are_read(tmp_path: Path) -> None:
    roots = read(tmp_path, POETRY)
    assert list(roots.extras) == ["black", "many", "requests", "sphinx"]
    assert roots.extras["requests"] == {"socks"}
    assert [text.partition(": ")[2].partition(" ")[0] for text in roots.skipped] == [
        "tool.poetry.dependencies.own",
        "tool.poetry.group.docs.dependencies.forked",
    ]


def test_file_without_requirements_has_no_roots(tmp_path: Path) -> None:
    assert read(tmp_path, "[tool.ruff]\nline-length = 120\n") == Roots()


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("[project]\ndependencies = 'six'", ["project.dependencies", "six"]),
        ("[project]\ndependencies = ['six', 1]", ["project.dependencies", 1]),
        ("[project]\ndependencies = ['six >']", ["project.dependencies", "six >"]),
        ("[project.optional-dependencies]\nx = 'six'", ["project.optional-dependencies.x"]),
        ("[dependency-groups]\nx = 'six'", ["dependency-groups", "x"]),
        ("[dependency-groups]\nx = ['six >']", ["dependency-groups"]),
        ("[dependency-groups]\nx = [{include-group = 'y'}]", ["dependency-groups", "y"]),
        (
            "[dependency-groups]\nx = [{include-group = 'y'}]\ny = [{include-group = 'x'}]",
            ["dependency-groups", "x", "y"],
        ),
        ("[project", ["pyproject.toml"]),
    ],
)
def test_invalid_entry_is_reported_with_its_key(tmp_path: Path, text: str, values: list[object]) -> None:
    with pytest.raises(RootsError, match=naming(*values)):
        read(tmp_path, text)
