"""Names and prose keep to plain English: docs/development.md lists the words that have a plainer one."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
STYLE = ROOT / "docs" / "development.md"
SECTION = "## Plain English"
CODE = ("pypi_assets", "pypi_assets_tests", "benchmarks", "demo")
PROSE = ("pypi_assets", "docs", "deploy")
MIGRATIONS = ROOT / "pypi_assets" / "catalog" / "migrations" / "versions"
"""Migrations never change, so neither do the comments of columns in them."""
SUFFIXES = {".py", ".md", ".yaml", ".toml", ".example", ""}
MOST_IN_PROSE = 20

FIXED = {
    "gave_up": "field of JSON answers",
    "visits_given_up": "field of JSON answers",
    "given_up_warn_percent": "setting",
    "given_up_fail_percent": "setting",
    "tell": "method of file objects",
}
"""Names that cannot change, with the reason."""


def style_section() -> str:
    return STYLE.read_text().split(f"\n{SECTION}\n")[1].split("\n## ")[0]


def unwanted_words() -> list[str]:
    """The words and phrases of the first column of the table of style."""
    rows = re.findall(r"^\| (.+?) \|", style_section(), re.MULTILINE)
    return [phrase.strip() for row in rows[1:] for phrase in row.split(",")]


class Phrases:
    """Finds phrases. Few texts contain the first word of any, so most are compared with nothing more."""

    def __init__(self, phrases: list[str]) -> None:
        self._first_words = {phrase.split()[0] for phrase in phrases}
        self._pattern = re.compile(r"\b(" + "|".join(map(re.escape, phrases)) + r")\b", re.IGNORECASE)

    def found_in(self, text: str) -> list[str]:
        if self._first_words.isdisjoint(re.findall(r"[a-z]+", text.lower())):
            return []
        return self._pattern.findall(text)


def words_of(name: str) -> str:
    """The words of a name in snake_case or CamelCase, separated by spaces."""
    return " ".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)).lower()


def defined_names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every name that the code defines, with its line; not the names that it only uses."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, node.lineno
            case ast.alias(asname=str(name)):
                yield name, node.lineno


def prose_of(path: Path) -> Iterator[tuple[int, str]]:
    """The comments and strings of Python code, else all lines, each with its number."""
    text = path.read_text()
    if path == STYLE:
        text = text.replace(style_section(), "")
    if path.suffix != ".py":
        yield from enumerate(text.splitlines(), 1)
        return
    middle = getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in {tokenize.COMMENT, tokenize.STRING, middle}:
            yield from enumerate(token.string.splitlines(), token.start[0])


@pytest.mark.parametrize("folder", CODE)
def test_names_are_plain_english(folder: str) -> None:
    unwanted = Phrases(unwanted_words())
    paths = sorted((ROOT / folder).rglob("*.py"))
    assert paths
    found = []
    for path in paths:
        lines = dict([*defined_names(ast.parse(path.read_text())), (path.stem, 0)])
        wrong = {name: line for name, line in lines.items() if name not in FIXED and unwanted.found_in(words_of(name))}
        found += [f"{path.relative_to(ROOT)}:{line}: {name}" for name, line in wrong.items()]
    assert not found, "\n".join(found)


def test_prose_is_plain_english() -> None:
    unwanted = Phrases(unwanted_words())
    paths = [ROOT / "README.md", *(path for folder in PROSE for path in sorted((ROOT / folder).rglob("*")))]
    found = [
        f"{path.relative_to(ROOT)}:{line}: {word}: {text.strip()}"
        for path in paths
        if path.is_file() and path.suffix in SUFFIXES and MIGRATIONS not in path.parents
        for line, text in prose_of(path)
        for word in unwanted.found_in(text)
    ]
    assert len(found) <= MOST_IN_PROSE, "\n".join(found)


def test_the_table_of_words_is_read() -> None:
    words = unwanted_words()
    assert {"told", "nobody", "hands out"} <= set(words)
    assert len(words) > 30
    unwanted = Phrases(words)
    assert unwanted.found_in(words_of("_ToldByUs")) == ["told"]
    assert unwanted.found_in(words_of("hand_out_file")) == ["hand out"]
    assert unwanted.found_in("what was Told, and by whom") == ["Told"]
    assert unwanted.found_in(words_of("storytelling")) == []
