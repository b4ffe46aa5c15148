"""What the docs name is there: tests, files, settings and commands."""

import re
from pathlib import Path

import click
import pytest

from pypi_assets.catalog.tables import metadata
from pypi_assets.cli import cli
from pypi_assets.settings import ENV_PREFIX, Settings

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "deploy").glob("*.md"))]


def names(pattern: str, text: str) -> set[str]:
    return set(re.findall(pattern, text))


def commands(group: click.Group, prefix: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    found = set()
    for name, command in group.commands.items():
        found.add((*prefix, name))
        if isinstance(command, click.Group):
            found |= commands(command, (*prefix, name))
    return found


def test_every_test_that_the_rules_name_is_there():
    text = (ROOT / "docs" / "design.md").read_text()
    defined = set()
    for path in Path(__file__).parent.rglob("test_*.py"):
        defined |= names(r"def (test_\w+)\(", path.read_text())
    named = names(r"`[\w/.]*(test_\w+)`", text) | names(r"::(test_\w+)", text)
    assert len(named) > 15
    assert named - defined == set()
    for path in names(r"`([\w/]+\.py)(?:::|`)", text):
        assert any(str(one).endswith(f"/{path}") for one in ROOT.glob("pypi_assets*/**/*.py")), path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_name_only_what_there_is(page: Path):
    text = page.read_text()
    settings = {ENV_PREFIX + name.upper() for name in Settings.model_fields}
    assert names(rf"{ENV_PREFIX}[A-Z_]+[A-Z]", text) - settings == set()
    known = commands(cli)
    for line in names(r"pypi-assets ((?:[a-z]+[a-z-]* ?){1,2})", text):
        words = tuple(line.split())
        if words[0] in {name for name, *_ in known}:
            assert words[:1] in known
            if any(len(name) > 1 and name[0] == words[0] for name in known) and len(words) > 1:
                assert words in known, f"pypi-assets {line}"
    for link in names(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / link).exists(), link


def test_every_rule_that_a_record_can_name_is_explained():
    text = (ROOT / "docs" / "reading.md").read_text()
    named = r'(?:Installed\(|\bby = |\bby=|\.by\b[^"\n]*= (?:declared\.by or )?|Requirements\([^"]*, )("[^,()\n]+)'
    sources = [path.read_text() for path in (ROOT / "pypi_assets" / "distributions").rglob("*.py")]
    rules = {rule for source in sources for some in names(named, source) for rule in names(r'"([^"]+)"', some)}
    assert len(rules) > 30
    assert [name for name in sorted(rules) if f"`{name}`" not in text] == []


def test_every_table_is_told_of():
    [section] = re.findall(r"## The catalog\n(.*?)\n## ", (ROOT / "docs" / "formats.md").read_text(), re.DOTALL)
    told = [
        name
        for line in section.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    ]
    assert sorted(told) == sorted(metadata.tables)
