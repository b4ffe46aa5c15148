"""Imports run one way, along the flow of the data, and only the Dagster skin imports Dagster."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import pypi_assets

PACKAGE = Path(pypi_assets.__file__).parent

MAY_IMPORT = {
    "index": set(),
    "distributions": set(),
    "storage": set(),
    "settings": set(),
    "notices": set(),
    "progress": set(),
    "terminal": {"progress"},
    "catalog": {"index", "distributions"},
    "extracts": {"catalog", "distributions", "storage", "progress"},
    "crawl": {"extracts", "catalog", "index", "distributions", "storage", "progress"},
    "dumps": {"catalog", "storage"},
    "leveldbs": {"dumps", "storage", "catalog"},
    "parquet": {"dumps", "storage", "catalog"},
    "lookup": {"leveldbs", "storage", "settings"},
    "devindex": {"index", "distributions"},
    "assembly": {"settings", "index", "distributions", "catalog", "crawl", "storage", "progress"},
    "metrics": {"settings", "assembly", "catalog", "distributions", "status"},
    "status": {"settings", "assembly", "index", "catalog", "dumps", "leveldbs", "lookup", "storage"},
    "dagster_instance": set(),
}
"""What each part may import beside itself. The two skins, `cli` and `defs` (with `definitions`), import all of them."""

SKINS = {"cli": {"defs", "definitions"}, "defs": {"cli", "terminal", "definitions"}, "definitions": {"cli", "terminal"}}
"""What the skins may not import."""

ONLY_IN = {
    "dagster": {"defs", "definitions", "dagster_instance"},
    "click": {"cli", "devindex", "terminal"},
    "rich": {"cli", "terminal"},
}
"""Libraries that belong to one kind of code."""


def part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def modules() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield f"{node.module}"


def own_imports(path: Path) -> set[str]:
    """The parts of pypi_assets that a module imports, beside its own and the package itself."""
    found = {name.split(".")[1] for name in imports(path) if name.startswith("pypi_assets.")}
    return found - {part(path)}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_follow_the_flow(path: Path):
    if part(path) in SKINS:
        assert not own_imports(path) & SKINS[part(path)]
    else:
        assert own_imports(path) <= MAY_IMPORT[part(path)]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_libraries_stay_where_they_belong(path: Path):
    for name in imports(path):
        library = name.split(".")[0]
        assert part(path) in ONLY_IN.get(library, {part(path)}), f"{path} imports {name}"


def test_leveldbs_know_of_the_catalog_only_what_they_need():
    allowed = {"database", "coordination", "ledger", "publications"}
    for path in (PACKAGE / "leveldbs").rglob("*.py"):
        used = {name.split(".")[2] for name in imports(path) if name.startswith("pypi_assets.catalog.")}
        assert used <= allowed, path


def test_every_part_is_known_here():
    assert {part(path) for path in modules()} == set(MAY_IMPORT) | set(SKINS)
