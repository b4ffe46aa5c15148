"""Tests, files, settings, commands and links named in the docs exist."""

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import click
import pytest

from pypi_assets.catalog.tables import metadata
from pypi_assets.cli import cli
from pypi_assets.setting_sources import FILE_SUFFIX
from pypi_assets.settings import ENV_PREFIX, Settings

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "deploy").glob("*.md")),
]

IN_EXAMPLES = {"a.py", "a/b.py", "shelf_index.py", "tests/shelf_server.py"}
"""Example files in distributions, and in the package of `index new`, that pages mention."""


def names(pattern: str, text: str) -> set[str]:
    return set(re.findall(pattern, text))


def commands(group: click.Group, prefix: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    found = set()
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            found.add((*prefix, name))
            if isinstance(command, click.Group):
                found |= commands(command, (*prefix, name))
    return found


@cache
def sources() -> dict[str, list[Path]]:
    """Return the paths of all Python files by filename."""
    folders = ("pypi_assets", "pypi_assets_tests", "benchmarks", "demo", "deploy")
    found: dict[str, list[Path]] = {"setup.py": [ROOT / "setup.py"]}
    for path in (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))):
        found.setdefault(path.name, []).append(path)
    return found


def files_that_end_in(path: str) -> list[Path]:
    named = sources().get(path.rpartition("/")[2], [])
    return [one for one in named if f"/{one.relative_to(ROOT).as_posix()}".endswith(f"/{path}")]


def defined_in(paths: Iterable[Path]) -> set[str]:
    """Return the functions, classes and methods that these files define."""
    return {name for path in paths for name in names(r"(?:def|class) (\w+)", path.read_text())}


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, derived from their text."""
    headings = names(r"(?m)^#+ (.*)$", page.read_text())
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_tests_named_by_the_rules_exist():
    text = (ROOT / "docs" / "design.md").read_text()
    rules = [line for line in text.splitlines() if re.match(r"\| \d+\. ", line)]
    assert len(rules) >= 8
    for rule in rules:
        path, tests = "", 0
        for file, test in re.findall(r"`([\w/]+\.py)?(?:::)?(test_\w+)?`", rule):
            path = file or path
            assert path, f"no file precedes {test}"
            found = files_that_end_in(f"pypi_assets_tests/{path}")
            assert len(found) == 1, path
            assert not test or test in defined_in(found), f"{path}::{test}"
            tests += bool(test)
        assert tests, rule


def test_files_and_modules_named_by_pages_exist(subtests: pytest.Subtests):
    for page in PAGES:
        with subtests.test(page=page):
            text = page.read_text()
            for path, name in re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", text):
                found = files_that_end_in(path)
                assert found or path in IN_EXAMPLES, path
                assert not name or name in defined_in(found), f"{path}::{name}"
            for module in names(r"(?:-m |import |from |`)((?:pypi_assets|benchmarks)(?:\.\w+)+)", text):
                path = ROOT / module.removesuffix(".md").replace(".", "/")
                assert path.is_dir() or path.with_suffix(".py").is_file(), module


def test_design_lists_every_package_and_module():
    package = ROOT / "pypi_assets"
    [section] = re.findall(r"\n## Packages\n(.*?)\n## ", (ROOT / "docs" / "design.md").read_text(), re.DOTALL)
    cells = names(r"(?m)^\| (`[^|]*`) \|", section)
    named = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    folders = {f"{path.parent.relative_to(package)}/" for path in package.rglob("*/__init__.py")}
    datasets = {folder for folder in folders if folder.startswith("leveldbs/datasets/")} - {"leveldbs/datasets/"}
    modules = {path.name for path in package.glob("*.py")} - {"__init__.py"}
    assert named == folders - datasets | modules


def test_links_lead_to_existing_headings(subtests: pytest.Subtests):
    for page in PAGES:
        with subtests.test(page=page):
            for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
                assert anchor in anchors(page.parent / target if target else page), f"{target}#{anchor}"


def test_metrics_are_documented():
    [section] = re.findall(r"\n## Metrics\n(.*?)\n## ", (ROOT / "docs" / "operations.md").read_text(), re.DOTALL)
    source = (ROOT / "pypi_assets" / "metrics.py").read_text()
    made = {f"pypi_assets_{name}" for name in names(r'_gauge\(\s*"(\w+)"', source)}
    counted = {f"{name}_total" for name in names(r'CounterMetricFamily\("(\w+)"', source)}
    assert len(made) > 10
    assert names(r"`(pypi_assets_\w+)", section) == made | counted | {"pypi_assets_info"}


def test_readme_links_to_every_page():
    linked = names(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text())
    assert {page.relative_to(ROOT).as_posix() for page in PAGES} - {"README.md"} - linked == set()


def glossary() -> list[tuple[list[str], str, str]]:
    """Return the words, meaning and defining place of each row of the glossary."""
    rows = re.findall(r"(?m)^\| (\*\*.*) \| (.*) \| `(.*)` \|$", (ROOT / "docs" / "concepts.md").read_text())
    return [(re.findall(r"\*\*([^*]+)\*\*", terms), meaning, place) for terms, meaning, place in rows]


def test_glossary_explains_few_words_once_each():
    text = (ROOT / "docs" / "concepts.md").read_text()
    words = [word for row, _, _ in glossary() for word in row]
    assert len(words) == text.count("\n| **")
    assert 30 <= len(words) <= 45
    assert len(words) == len(set(words))
    assert [row for row, meaning, _ in glossary() if not meaning.strip()] == []


def test_glossary_places_exist():
    for words, _, place in glossary():
        file, _, name = place.partition("::")
        tree = ast.parse((ROOT / "pypi_assets" / file).read_text())
        defined = {node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        assert not name or name in defined, (words, place)


def test_settings_commands_and_links_of_pages_exist(subtests: pytest.Subtests):
    for page in PAGES:
        with subtests.test(page=page):
            text = page.read_text()
            settings = {ENV_PREFIX + name.upper() for name in Settings.model_fields}
            settings |= {name + FILE_SUFFIX for name in settings}  # variables that name a file with the value
            assert names(rf"(?<!_){ENV_PREFIX}[A-Z_]+[A-Z]", text) - settings == set()  # click has _PYPI_...
            known = commands(cli)
            for line in names(r"pypi-assets ((?:[a-z]+[a-z-]* ?){1,2})", text):
                words = tuple(line.split())
                if words[0] in {name for name, *_ in known}:
                    assert words[:1] in known
                    if any(len(name) > 1 and name[0] == words[0] for name in known) and len(words) > 1:
                        assert words in known, f"pypi-assets {line}"
            for link in names(r"\]\(([^)#:]+)\)", text):
                assert (page.parent / link).exists(), link


def test_rules_named_by_records_are_documented():
    text = (ROOT / "docs" / "reading.md").read_text()
    by = r"\bby = |\bby, \w+ = |\bby="
    named = rf'(?:[Ii]nstalled\(|{by}|\.by\b[^"\n]*= (?:declared\.by or )?|Requirements\([^"]*, )("[^,()\n]+)'
    sources = [path.read_text() for path in (ROOT / "pypi_assets" / "distributions").rglob("*.py")]
    rules = {rule for source in sources for some in names(named, source) for rule in names(r'"([^"]+)"', some)}
    assert len(rules) > 30
    assert [name for name in sorted(rules) if f"`{name}`" not in text] == []


def test_tables_are_documented():
    [section] = re.findall(r"## The catalog\n(.*?)\n## ", (ROOT / "docs" / "formats.md").read_text(), re.DOTALL)
    described = [
        name
        for line in section.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    ]
    assert sorted(described) == sorted(metadata.tables)


def kept_tables() -> list[tuple[list[str], str]]:
    """Return each row of the table of retention times: the names of tables, and how long their rows are kept."""
    [section] = re.findall(
        r"\n## What the catalog keeps\n(.*?)\n## ", (ROOT / "docs" / "operations.md").read_text(), re.DOTALL
    )
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| `")]
    return [(re.findall(r"`(\w+)`", row[1]), row[2].strip()) for row in rows]


def test_retention_of_tables_is_documented():
    assert sorted(name for names, _ in kept_tables() for name in names) == sorted(metadata.tables)


def test_pruned_tables_are_not_documented_as_kept_for_ever():
    pruned = {"visits", "visit_statuses", "read_attempts", "shared_details", "dumps", "dump_files"}
    pruned |= {"name_lists", "module_roots", "required_names", "leveldb_versions", "leveldb_builds"}
    for_ever = {name for names, kept in kept_tables() for name in names if kept.startswith("for ever")}
    assert pruned & for_ever == set()
    assert for_ever >= {"events", "changes", "sightings", "snapshots", "live_intervals", "yanked_intervals"}


def test_the_readme_is_short_and_states_the_figures_of_the_page_on_resolving():
    readme = (ROOT / "README.md").read_text()
    assert len(readme.splitlines()) <= 110
    page = (ROOT / "docs" / "resolving.md").read_text()
    [section] = re.findall(r"\n## Differences from pip and uv\n(.*?)\n### ", page, re.DOTALL)
    shares: dict[bool, list[str]] = {True: [], False: []}
    for row, share in re.findall(r"(?m)^\| (.*) \| ([\d.]+) % \|$", section):
        shares[row.startswith("pip")].append(share)
    assert set(shares[True]) == {"100.0"}
    by_uv = sorted(shares[False], key=float)
    assert len(by_uv) > 5
    assert f"uv for {by_uv[0]} to {by_uv[-1]} % of the pins" in " ".join(readme.split())
