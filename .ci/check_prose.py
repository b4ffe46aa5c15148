"""Check pages and docstrings for habits that make English hard to read: `python .ci/check_prose.py PATH...`.

A path is a Markdown or Python file, or a folder of them. proselint runs its own checks and the rules of
prose_rules.toml; code, addresses and comments of HTML are skipped. Prints each place, and exits with 1 if there is one.
"""

import argparse
import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RULES = Path(__file__).parent / "prose_rules.toml"
SKIPPED = re.compile(
    r"^(```|~~~).*?^ *\1|^ {2,}```.*?^ *```|<!--.*?-->|`[^`\n]+`|\]\([^)]*\)|https?://\S+", re.MULTILINE | re.DOTALL
)
"""Code, comments of HTML, and addresses."""
KINDS = ("pages", "docstrings", "others")
"""Pages, docstrings of functions, and other docstrings, which begin with a noun."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One habit, and the kinds of `Text` that it is searched in."""

    name: str
    pattern: str
    message: str
    kinds: frozenset[str]
    wrong: tuple[str, ...]
    right: tuple[str, ...]

    def finds(self, text: str) -> bool:
        """Return whether the habit is in a text."""
        return re.search(self.pattern, text, re.IGNORECASE) is not None


@dataclass(frozen=True, slots=True)
class Text:
    """A page or a docstring, without code, and the line of its file where it begins."""

    path: Path
    line: int
    kind: str
    content: str


def read_rules() -> tuple[list[str], list[Rule]]:
    """Return the names of proselint's checks that apply, and our rules."""
    fields: dict[str, Any] = tomllib.loads(RULES.read_text(encoding="utf-8"))
    rules = [
        Rule(
            name=rule["name"],
            pattern=rule["pattern"],
            message=rule["message"],
            kinds=frozenset([rule["in"]] if "in" in rule else KINDS),
            wrong=tuple(rule["wrong"]),
            right=tuple(rule["right"]),
        )
        for rule in fields["rule"]
    ]
    return fields["proselint"], rules


def prose_of(text: str) -> str:
    """Return a text with code, addresses and comments replaced by `x` or nothing, in the same lines."""

    def blank(match: re.Match[str]) -> str:
        return "\n" * match[0].count("\n") or ("] " if match[0].startswith("]") else "x")

    return SKIPPED.sub(blank, text)


def texts_of(path: Path) -> Iterator[Text]:
    """Yield the page, or the docstrings of a module."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield Text(path, 1, "pages", prose_of(source))
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node, clean=False)
            if docstring is not None:
                kind = "docstrings" if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else "others"
                yield Text(path, node.body[0].lineno, kind, prose_of(docstring))


def files_of(paths: Iterable[Path]) -> list[Path]:
    """Return the Markdown and Python files among paths and below folders, sorted."""
    found = {file for path in paths for file in ([path] if path.is_file() else path.rglob("*"))}
    return sorted(file for file in found if file.suffix in {".md", ".py"} and file.is_file())


def problems(paths: Iterable[Path]) -> Iterator[str]:
    """Yield a line for each habit that proselint finds."""
    # proselint is installed by pre-commit, and not with the requirements of the tests
    from proselint.checks import __register__
    from proselint.registry import CheckRegistry
    from proselint.registry.checks import Check, Padding, engine, types
    from proselint.tools import LintFile

    names, rules = read_rules()
    registry = CheckRegistry()
    registry.register_many(__register__)
    for rule in rules:
        pattern = types.ExistenceSimple(pattern=Padding.RAW.format(rule.pattern))
        message = rule.message.replace("{", "{{").replace("}", "}}")
        registry.register(Check(check_type=pattern, engine=engine.Fancy(), path=f"ours.{rule.name}", message=message))
    for text in (text for path in files_of(paths) for text in texts_of(path)):
        ours = {f"ours.{rule.name}": True for rule in rules if text.kind in rule.kinds}
        checks = dict.fromkeys(names, True) | ours
        if text.content.strip():
            for found in LintFile(str(text.path), text.content).lint({"max_errors": 1000, "checks": checks}):
                name = found.check_result.check_path.removeprefix("ours.")
                yield f"{text.path}:{text.line + found.pos[0] - 1}: {name}: {found.check_result.message}"


def main() -> None:
    """Print the problems of the paths."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", type=Path, nargs="+")
    found = list(problems(parser.parse_args().paths))
    for line in found:
        print(line)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
