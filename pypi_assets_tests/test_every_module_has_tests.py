"""Each module has a test file of its name, in the folder of its name."""

import ast
from pathlib import Path

import pytest

import pypi_assets

PACKAGE = Path(pypi_assets.__file__).parent
TESTS = Path(__file__).parent
MIGRATIONS = PACKAGE / "catalog" / "migrations"
"""`catalog/test_migrations.py` runs all of them."""

DEFINE_ONLY = {
    "character_ranges.py": "tables",
    "catalog/publications/dump_files.py": "values",
    "catalog/publications/written_segments.py": "values",
    "devindex/errors.py": "errors",
    "catalog/reports/simple_page.py": "values",
    "distributions/record.py": "values",
    "leveldbs/datasets/depgraph/files.py": "types",
    "leveldbs/format/errors.py": "errors",
    "mirror/errors.py": "errors",
    "service/names.py": "types",
}
"""Modules that do nothing, and what they define: there is nothing to test about them alone."""

MODULES = [
    path for path in sorted(PACKAGE.rglob("*.py")) if not path.stem.startswith("__") and MIGRATIONS not in path.parents
]


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("path", [path for path in MODULES if name_of(path) not in DEFINE_ONLY], ids=name_of)
def test_a_module_has_a_test_file_of_its_name(path: Path) -> None:
    tests = TESTS / path.relative_to(PACKAGE).parent / f"test_{path.stem}.py"
    assert tests.exists()
    functions = [one for one in ast.walk(ast.parse(tests.read_text())) if isinstance(one, ast.FunctionDef)]
    assert any(one.name.startswith("test_") for one in functions), f"{tests} tests nothing"


@pytest.mark.parametrize("name", DEFINE_ONLY)
def test_a_module_without_tests_does_nothing(name: str) -> None:
    nodes = list(ast.walk(ast.parse((PACKAGE / name).read_text())))
    assert not [node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))]
