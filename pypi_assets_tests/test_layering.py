"""Imports run one way, along the flow of the data, and only the Dagster skin imports Dagster."""

import ast
import graphlib
import importlib
from functools import cache
from pathlib import Path

import pytest

import pypi_assets

PACKAGE = Path(pypi_assets.__file__).parent

MAY_IMPORT = {
    "character_ranges": set(),
    "characters": {"character_ranges"},
    "index": {"characters"},
    "scope_tables": set(),
    "indexes": {"scope_tables"},
    "distributions": {"characters"},
    "storage": set(),
    "locks": {"distributions"},
    "scopes": {"distributions", "locks"},
    "setting_variables": {"indexes"},
    "locations": {"setting_variables"},
    "settings": {"index", "indexes", "locations", "setting_variables"},
    "workspace": {"indexes"},
    "env_file": {"index", "setting_variables", "settings"},
    "interrupts": set(),
    "inert": set(),
    "inert_logs": {"inert"},
    "notices": {"inert"},
    "progress": set(),
    "terminal": {"progress", "inert"},
    "catalog": {"index", "distributions", "scopes", "interrupts"},
    "extracts": {"catalog", "distributions", "storage", "progress"},
    "crawl": {"extracts", "catalog", "index", "distributions", "scopes", "storage", "progress"},
    "dumps": {"catalog", "storage"},
    "leveldbs": {"dumps", "storage", "catalog", "distributions"},
    "parquet": {"dumps", "storage", "catalog"},
    "journal": {"dumps", "storage", "catalog", "distributions", "index"},
    "lookup": {"leveldbs", "dumps", "catalog", "distributions", "storage", "locations", "locks"},
    "export": {"lookup", "locks", "distributions"},
    "mirror": {"journal", "leveldbs", "dumps", "catalog", "storage", "index"},
    "resolve": {"lookup", "dumps", "catalog", "distributions", "locks", "storage"},
    "devindex": {"index", "distributions"},
    "assembly": {"setting_variables", "settings", "index", "distributions", "catalog", "crawl", "storage", "progress"},
    "declared_scopes": {"setting_variables", "settings", "scope_tables", "scopes", "catalog", "crawl"},
    "confusion": {"assembly", "catalog", "indexes", "setting_variables", "settings"},
    "upkeep": {
        "settings",
        "assembly",
        "index",
        "distributions",
        "catalog",
        "extracts",
        "dumps",
        "leveldbs",
        "parquet",
        "journal",
        "lookup",
        "resolve",
        "storage",
    },
    "following": {
        "index",
        "catalog",
        "crawl",
        "declared_scopes",
        "dumps",
        "journal",
        "leveldbs",
        "upkeep",
    },
    "status": {
        "settings",
        "assembly",
        "index",
        "distributions",
        "catalog",
        "dumps",
        "leveldbs",
        "lookup",
        "storage",
        "upkeep",
    },
    "metrics": {"settings", "assembly", "catalog", "distributions", "status", "upkeep"},
    "service": {
        "settings",
        "assembly",
        "index",
        "distributions",
        "catalog",
        "journal",
        "leveldbs",
        "lookup",
        "locks",
        "mirror",
        "resolve",
        "storage",
        "upkeep",
        "status",
        "metrics",
        "inert",
        "inert_logs",
    },
    "dagster_instance": set(),
}
"""What each part may import from the others: only what stands above it. The skins, below, import all of them."""

EVERYWHERE = {"errors"}
"""What every part may import, and what imports nothing."""

CATALOG_ROOMS = {
    "tables": set(),
    "database": set(),
    "counters": {"tables", "database"},
    "migrations": {"tables"},
    "coordination": {"tables", "database"},
    "ledger": {"tables", "database"},
    "observed": {"tables", "database", "ledger"},
    "reads": {"tables", "database", "counters", "coordination", "ledger"},
    "work": {"tables", "database", "counters", "coordination", "ledger", "observed", "reads"},
    "derived": {"tables", "database", "counters", "ledger", "observed", "reads", "work"},
    "publications": {"tables", "database", "coordination", "ledger", "observed", "reads"},
    "pruning": {"tables", "database", "ledger", "reads", "publications"},
    "reports": {
        "tables",
        "database",
        "counters",
        "coordination",
        "ledger",
        "observed",
        "reads",
        "work",
        "derived",
        "publications",
    },
}
"""What each room of the catalog may import from the others. Rooms further down may only import those above them."""

LEVELDB_ROOMS = {
    "format": set(),
    "datasets": {"format"},
    "build": {"format", "datasets"},
    "versions": {"format", "datasets", "build"},
}
"""What each room of the LevelDBs may import from the others, in the same way."""

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


@cache
def modules() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]


@cache
def statements(path: Path) -> tuple[ast.Import | ast.ImportFrom | ast.withitem, ...]:
    """The imports of a module, and what its `with` statements open."""
    kinds = (ast.Import, ast.ImportFrom, ast.withitem)
    return tuple(node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, kinds))


@cache
def imports(path: Path) -> tuple[str, ...]:
    found: list[str] = []
    for node in statements(path):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            found.append(f"{node.module}")
    return tuple(found)


def imported_modules(path: Path) -> set[str]:
    """The names of all that a module imports, whether it is a module or something in one."""
    found = set(imports(path))
    for node in statements(path):
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def own_imports(path: Path) -> set[str]:
    """The parts of pypi_assets that a module imports, beside its own and the package itself."""
    found = {name.split(".")[1] for name in imports(path) if name.startswith("pypi_assets.")}
    return found - {part(path)}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_follow_the_flow(path: Path):
    if part(path) in EVERYWHERE:
        assert not own_imports(path)
    elif part(path) in SKINS:
        assert not own_imports(path) & SKINS[part(path)]
    else:
        assert own_imports(path) <= EVERYWHERE | MAY_IMPORT[part(path)]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_libraries_stay_where_they_belong(path: Path):
    for name in imports(path):
        library = name.split(".")[0]
        assert part(path) in ONLY_IN.get(library, {part(path)}), f"{path} imports {name}"


def test_only_the_door_to_leveldb_imports_its_binding():
    users = {
        path.relative_to(PACKAGE).as_posix() for path in modules() if {"plyvel", "plyvel_next"} & set(imports(path))
    }
    assert users == {"leveldbs/format/leveldb_binding.py"}


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[1].removesuffix(".py")


def modules_in_rooms(of_part: str) -> list[Path]:
    return [path for path in modules() if part(path) == of_part and path != PACKAGE / of_part / "__init__.py"]


def rooms_used(path: Path) -> set[str]:
    start = f"pypi_assets.{part(path)}."
    return {name.split(".")[2] for name in imports(path) if name.startswith(start)} - {room(path)}


@pytest.mark.parametrize("table", [MAY_IMPORT, CATALOG_ROOMS, LEVELDB_ROOMS], ids=["parts", "catalog", "leveldbs"])
def test_no_arrow_points_upwards(table: dict[str, set[str]]):
    above: set[str] = set()
    for name, allowed in table.items():
        assert allowed <= above, name
        above.add(name)


def test_no_module_imports_itself_through_others():
    names = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path for path in modules()}
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    graph = {name: imported_modules(path) & names.keys() - {name} for name, path in names.items()}
    assert set(graphlib.TopologicalSorter(graph).static_order()) == names.keys()


@pytest.mark.parametrize("path", modules_in_rooms("catalog"), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_rooms_of_the_catalog_import_one_way(path: Path):
    assert rooms_used(path) <= CATALOG_ROOMS[room(path)]


@pytest.mark.parametrize("path", modules_in_rooms("leveldbs"), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_rooms_of_the_leveldbs_import_one_way(path: Path):
    assert rooms_used(path) <= LEVELDB_ROOMS[room(path)]


def test_every_room_of_the_catalog_is_known_and_described():
    found = {room(path) for path in modules_in_rooms("catalog")}
    assert found == set(CATALOG_ROOMS)
    for name in found - {"tables", "database", "counters", "migrations"}:
        text = (PACKAGE / "catalog" / name / "__init__.py").read_text(encoding="utf-8")
        assert ast.get_docstring(ast.parse(text)), f"catalog/{name}/__init__.py does not say what belongs there"


@pytest.mark.parametrize(
    "path", [path for path in modules_in_rooms("catalog") if room(path) == "reports"], ids=lambda path: path.stem
)
def test_reports_write_nothing(path: Path):
    for node in statements(path):
        if isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            assert not names & {"insert", "update", "delete", "insert_missing", "upsert"}


def test_leveldbs_know_of_the_catalog_only_what_they_need():
    allowed = {"database", "coordination", "ledger", "publications"}
    for path in (PACKAGE / "leveldbs").rglob("*.py"):
        used = {name.split(".")[2] for name in imports(path) if name.startswith("pypi_assets.catalog.")}
        assert used <= allowed, path


@pytest.mark.parametrize(
    "link",
    [
        "extracts.unused_packs.clean_packs",
        "parquet.unused_exports.clean_exports",
        "leveldbs.versions.unused_versions.clean_versions",
        "dumps.unused_dumps.clean_dumps",
        "resolve.old_solvability.clean_days",
        "journal.unused_segments.clean_journal",
    ],
)
def test_only_the_chain_of_deletions_calls_its_links(link: str):
    module, function = link.rsplit(".", 1)
    assert callable(getattr(importlib.import_module(f"pypi_assets.{module}"), function))
    folder, name = f"pypi_assets.{module}".rsplit(".", 1)
    users = set()
    for path in modules():
        for node in statements(path):
            if isinstance(node, ast.Import):
                found = any(alias.name == f"{folder}.{name}" for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                whole = {f"{folder}.{name}": {function, "*"}, folder: {name, "*"}}
                found = bool({alias.name for alias in node.names} & whole.get(str(node.module), set()))
            else:
                continue
            if found:
                users.add(path.relative_to(PACKAGE).as_posix())
    assert users == {"upkeep/deletion.py"}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_what_writes_to_the_catalog_can_run_again(path: Path):
    """A server may roll any transaction back, so all but `transact` itself give it a function."""
    opened = [node.context_expr for node in statements(path) if isinstance(node, ast.withitem)]
    calls = [part for one in opened for part in ast.walk(one) if isinstance(part, ast.Call)]
    written = {ast.unparse(call.func) for call in calls if ast.unparse(call.func).endswith(".write")}
    assert not written or path == PACKAGE / "catalog" / "database.py"


def test_every_part_is_known_here():
    assert {part(path) for path in modules()} == EVERYWHERE | set(MAY_IMPORT) | set(SKINS)
