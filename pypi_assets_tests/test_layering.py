"""Imports follow the direction of the data flow, and only the Dagster layer imports Dagster.

Each rule is one test, which names the file of every breach.
"""

import ast
import graphlib
import importlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pypi_assets

PACKAGE = Path(pypi_assets.__file__).parent

MAY_IMPORT = {
    "characters": set(),
    "index": {"characters"},
    "distributions": {"characters"},
    "storage": set(),
    "locks": {"distributions"},
    "scopes": {"distributions", "locks"},
    "indexes": {"scopes"},
    "setting_sources": {"indexes"},
    "settings": {"index", "indexes", "setting_sources"},
    "workspace": {"indexes"},
    "interrupts": set(),
    "sanitize": set(),
    "logs": {"sanitize", "setting_sources"},
    "notices": {"sanitize"},
    "progress": set(),
    "terminal": {"progress", "sanitize", "logs"},
    "catalog": {"index", "distributions", "scopes", "interrupts"},
    "extracts": {"catalog", "distributions", "storage", "progress"},
    "keeping": {"catalog", "storage"},
    "crawl": {"extracts", "keeping", "catalog", "index", "distributions", "scopes", "storage", "progress"},
    "dumps": {"catalog", "storage"},
    "leveldbs": {"dumps", "storage", "catalog", "distributions"},
    "parquet": {"dumps", "storage", "catalog"},
    "iceberg": {"parquet", "leveldbs", "dumps", "storage", "catalog", "distributions"},
    "journal": {"dumps", "storage", "catalog", "distributions", "index"},
    "lookup": {
        "leveldbs",
        "dumps",
        "catalog",
        "distributions",
        "index",
        "sanitize",
        "storage",
        "setting_sources",
        "locks",
    },
    "mirror": {"journal", "leveldbs", "dumps", "catalog", "storage", "index"},
    "resolve": {"lookup", "dumps", "catalog", "distributions", "locks", "storage"},
    "questions": {"distributions", "lookup", "leveldbs", "dumps", "catalog", "locks", "resolve"},
    "export": {"questions", "lookup", "locks", "distributions"},
    "devindex": {"index", "distributions"},
    "components": {
        "setting_sources",
        "settings",
        "index",
        "distributions",
        "catalog",
        "crawl",
        "iceberg",
        "scopes",
        "storage",
        "progress",
    },
    "client": {
        "questions",
        "resolve",
        "journal",
        "lookup",
        "leveldbs",
        "catalog",
        "storage",
        "setting_sources",
        "settings",
        "components",
    },
    "confusion": {"components", "catalog", "distributions", "indexes", "setting_sources", "settings"},
    "upkeep": {
        "settings",
        "components",
        "index",
        "distributions",
        "catalog",
        "extracts",
        "keeping",
        "dumps",
        "leveldbs",
        "parquet",
        "iceberg",
        "journal",
        "lookup",
        "resolve",
        "storage",
    },
    "following": {
        "index",
        "catalog",
        "crawl",
        "dumps",
        "journal",
        "leveldbs",
        "progress",
        "scopes",
        "upkeep",
    },
    "dagster_instance": {"logs"},
    "status": {
        "setting_sources",
        "settings",
        "components",
        "index",
        "distributions",
        "catalog",
        "dagster_instance",
        "dumps",
        "leveldbs",
        "lookup",
        "storage",
        "upkeep",
        "workspace",
    },
    "metrics": {
        "settings",
        "components",
        "catalog",
        "distributions",
        "journal",
        "storage",
        "status",
        "upkeep",
        "dagster_instance",
    },
    "service": {
        "settings",
        "components",
        "index",
        "keeping",
        "distributions",
        "catalog",
        "journal",
        "leveldbs",
        "lookup",
        "locks",
        "mirror",
        "questions",
        "resolve",
        "storage",
        "upkeep",
        "status",
        "metrics",
        "sanitize",
        "logs",
    },
    "mcp_server": {"questions", "service", "settings"},
    "stack": {"distributions", "logs", "settings", "workspace"},
}
"""The parts that each part may import: only parts listed above it. The skins, listed below, import all parts."""

EVERYWHERE = {"errors", "extras", "short_texts", "times", "version_order", "visit_policies"}
"""Parts that every part may import, and that import no other part."""

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
    "scopes": {"tables", "database", "coordination", "ledger", "observed", "reads", "work"},
    "derived": {"tables", "database", "counters", "ledger", "observed", "reads", "work", "scopes"},
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
        "scopes",
        "derived",
        "publications",
    },
}
"""The rooms (subpackages) of the catalog that each room may import: only rooms listed above it."""

LEVELDB_ROOMS = {
    "format": set(),
    "datasets": {"format"},
    "build": {"format", "datasets"},
    "versions": {"format", "datasets", "build"},
}
"""The rooms (subpackages) of leveldbs that each room may import, in the same form."""

SKINS = {"cli": {"defs", "definitions"}, "defs": {"cli", "terminal", "definitions"}, "definitions": {"cli", "terminal"}}
"""The outermost layers, and what they must not import."""

ONLY_IN = {
    "dagster": {"defs", "definitions", "dagster_instance"},
    "click": {"cli", "devindex", "terminal"},
    "rich": {"cli", "terminal"},
}
"""Libraries that only certain parts may import."""


PRIVATE_PARTS_OF_DAGSTER = {
    "defs/expected_errors.py": {"dagster._core.errors"},
    "dagster_instance/run_launcher.py": {
        "dagster._core.errors",
        "dagster._core.launcher",
        "dagster._grpc.types",
        "dagster._serdes",
    },
}
"""The private modules of Dagster that are used, by file. `docs/development.md` gives the reasons."""

LINKS_OF_DELETIONS = [
    "extracts.packs.clean_packs",
    "parquet.export_manifest.clean_exports",
    "iceberg.unused_files.clean_tables",
    "leveldbs.versions.unused_versions.clean_versions",
    "dumps.unused_dumps.clean_dumps",
    "resolve.solvability.clean_days",
    "journal.unused_segments.clean_journal",
    "keeping.unwanted_files.clean_files",
]
"""Functions that only `upkeep/deletion.py` may import."""


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def modules() -> list[Path]:
    paths = [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]
    assert paths, f"no modules below {PACKAGE}"
    return paths


@cache
def statements(path: Path) -> tuple[ast.Import | ast.ImportFrom | ast.withitem, ...]:
    """Return the imports and the `with` items of a module."""
    kinds = (ast.Import, ast.ImportFrom, ast.withitem)
    return tuple(node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, kinds))


@cache
def imports(path: Path) -> tuple[str, ...]:
    found: list[str] = []
    for node in statements(path):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append("." * node.level + (node.module or ""))
    return tuple(found)


def imported_modules(path: Path) -> set[str]:
    """Return the names of everything that a module imports, whether modules or names in modules."""
    found = set(imports(path))
    for node in statements(path):
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def own_imports(path: Path) -> set[str]:
    """Return the parts of pypi_assets that a module imports, except its own part."""
    found = {name.split(".")[1] for name in imports(path) if name.startswith("pypi_assets.")}
    return found - {part(path)}


def assert_allowed(used: dict[Path, set[str]], allowed: Callable[[Path], set[str]]) -> None:
    """Assert that no file uses a name that is not allowed for it. The error lists all breaches."""
    wrong = {name_of(path): sorted(names - allowed(path)) for path, names in used.items()}
    breaches = [f"{name}: {', '.join(names)}" for name, names in wrong.items() if names]
    assert not breaches, "\n".join(breaches)


def test_imports_are_absolute():
    relative = {path: {name for name in imports(path) if name.startswith(".")} for path in modules()}
    assert_allowed(relative, lambda path: set())


def test_imports_follow_the_data_flow():
    everything = EVERYWHERE | set(MAY_IMPORT) | set(SKINS)

    def allowed(path: Path) -> set[str]:
        if part(path) in EVERYWHERE:
            return set()
        if part(path) in SKINS:
            return everything - SKINS[part(path)]
        return EVERYWHERE | MAY_IMPORT.get(part(path), set())

    assert_allowed({path: own_imports(path) for path in modules()}, allowed)


def test_libraries_are_imported_only_by_their_parts():
    libraries = {path: {name.split(".")[0] for name in imports(path)} & ONLY_IN.keys() for path in modules()}
    assert_allowed(libraries, lambda path: {name for name, parts in ONLY_IN.items() if part(path) in parts})


def test_private_modules_of_dagster_are_used_only_as_listed():
    used = {name_of(path): {name for name in imports(path) if re.match(r"dagster\w*\._", name)} for path in modules()}
    assert {file: names for file, names in used.items() if names} == PRIVATE_PARTS_OF_DAGSTER


def test_only_leveldb_binding_module_imports_plyvel():
    users = {name_of(path) for path in modules() if {"plyvel", "plyvel_next"} & set(imports(path))}
    assert users == {"leveldbs/format/leveldb_binding.py"}


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[1].removesuffix(".py")


def modules_in_rooms(of_part: str) -> list[Path]:
    return [path for path in modules() if part(path) == of_part and path != PACKAGE / of_part / "__init__.py"]


def rooms_used(path: Path) -> set[str]:
    start = f"pypi_assets.{part(path)}."
    return {name.split(".")[2] for name in imports(path) if name.startswith(start)} - {room(path)}


def test_tables_of_allowed_imports_are_ordered():
    upwards = []
    for table in (MAY_IMPORT, CATALOG_ROOMS, LEVELDB_ROOMS):
        above: set[str] = set()
        for name, allowed in table.items():
            if not allowed <= above:
                upwards.append(f"{name}: {', '.join(sorted(allowed - above))}")
            above.add(name)
    assert not upwards, "\n".join(upwards)


def test_imports_have_no_cycles():
    names = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path for path in modules()}
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    graph = {name: imported_modules(path) & names.keys() - {name} for name, path in names.items()}
    assert set(graphlib.TopologicalSorter(graph).static_order()) == names.keys()


def test_rooms_import_only_as_allowed():
    for of_part, table in {"catalog": CATALOG_ROOMS, "leveldbs": LEVELDB_ROOMS}.items():
        used = {path: rooms_used(path) for path in modules_in_rooms(of_part)}
        assert used, of_part
        assert_allowed(used, lambda path, table=table: table.get(room(path), set()))


def test_every_part_and_room_is_listed():
    assert {part(path) for path in modules()} == EVERYWHERE | set(MAY_IMPORT) | set(SKINS)
    assert {room(path) for path in modules_in_rooms("catalog")} == set(CATALOG_ROOMS)
    assert {room(path) for path in modules_in_rooms("leveldbs")} == set(LEVELDB_ROOMS)


def test_catalog_folders_have_docstrings():
    undescribed = [
        path.parent.name
        for path in sorted((PACKAGE / "catalog").glob("*/__init__.py"))
        if path.parent.name != "migrations" and not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert undescribed == []


def test_reports_write_nothing():
    names = {
        path: {alias.name for node in statements(path) if isinstance(node, ast.ImportFrom) for alias in node.names}
        for path in modules_in_rooms("catalog")
        if room(path) == "reports"
    }
    assert names
    writing = {"insert", "update", "delete", "insert_missing", "upsert"}
    assert_allowed({path: found & writing for path, found in names.items()}, lambda path: set())


def test_leveldbs_import_only_some_rooms_of_the_catalog():
    start = "pypi_assets.catalog."
    used = {
        path: {name.split(".")[2] for name in imports(path) if name.startswith(start)}
        for path in modules()
        if part(path) == "leveldbs"
    }
    assert_allowed(used, lambda path: {"database", "coordination", "ledger", "publications"})


def importers(module: str, function: str) -> set[str]:
    """Return the files that import the function, its module, or everything from its module."""
    folder, name = f"pypi_assets.{module}".rsplit(".", 1)
    whole = {f"{folder}.{name}": {function, "*"}, folder: {name, "*"}}
    found = set()
    for path in modules():
        for node in statements(path):
            if isinstance(node, ast.Import):
                uses = any(alias.name == f"{folder}.{name}" for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                uses = bool({alias.name for alias in node.names} & whole.get(str(node.module), set()))
            else:
                continue
            if uses:
                found.add(name_of(path))
    return found


def test_deletion_functions_are_called_only_by_the_deletion_chain():
    wrong = []
    for link in LINKS_OF_DELETIONS:
        module, function = link.rsplit(".", 1)
        assert callable(getattr(importlib.import_module(f"pypi_assets.{module}"), function)), link
        if (users := importers(module, function)) != {"upkeep/deletion.py"}:
            wrong.append(f"{link}: {', '.join(sorted(users)) or 'no file'}")
    assert not wrong, "\n".join(wrong)


def test_writes_to_the_catalog_can_be_retried():
    """Only `transact` may open write transactions, since it repeats work that a server has rolled back."""
    written = {}
    for path in modules():
        opened = [node.context_expr for node in statements(path) if isinstance(node, ast.withitem)]
        calls = [part for one in opened for part in ast.walk(one) if isinstance(part, ast.Call)]
        written[path] = {name for call in calls if (name := ast.unparse(call.func)).endswith(".write")}
    del written[PACKAGE / "catalog" / "database.py"]
    assert_allowed(written, lambda path: set())
