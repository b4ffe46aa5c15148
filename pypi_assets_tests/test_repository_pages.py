"""Links in the repository's pages outside docs/ work, and the rules for prose find their examples."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from pypi_assets_tests.ci_scripts import load_script
from pypi_assets_tests.test_docs import ROOT, anchors, names

PAGES = [
    ROOT / "CODE_OF_CONDUCT.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "benchmarks" / "README.md",
    ROOT / "benchmarks" / "corpora" / "differences.md",
    *sorted((ROOT / ".github").rglob("*.md")),
]


@pytest.fixture(scope="module")
def check_prose() -> ModuleType:
    return load_script("check_prose")


def test_links_lead_to_files_and_headings(subtests: pytest.Subtests) -> None:
    for page in PAGES:
        with subtests.test(page=page):
            for target, anchor in re.findall(r"\]\(([^)#:]*)#?([^):]*)\)", page.read_text()):
                path = page.parent / target if target else page
                assert path.exists(), target
                assert not anchor or anchor in anchors(path), f"{target}#{anchor}"


def test_changelog_follows_keep_a_changelog() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"(?m)^## (.*)$", text)
    assert versions
    assert all(
        re.fullmatch(r"\[(Unreleased|\d+\.\d+\.\d+)\]( - (\d{4}-\d\d-\d\d|Unreleased))?", one) for one in versions
    )
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert names(r"(?m)^### (.*)$", text) <= kinds


def test_prose_rules_find_their_examples(check_prose: ModuleType, subtests: pytest.Subtests) -> None:
    _, rules = check_prose.read_rules()
    assert len({rule.name for rule in rules}) == len(rules) > 5
    for rule in rules:
        with subtests.test(rule=rule.name):
            assert rule.wrong
            assert rule.right
            assert [text for text in rule.wrong if not rule.finds(text)] == []
            assert [text for text in rule.right if rule.finds(text)] == []


def test_prose_check_ignores_code_and_keeps_line_numbers(check_prose: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("A `what is due` [link](what-is-due).\n\n```\nwhat is due\n```\n\nIt shows what is due.\n")
    [text] = check_prose.texts_of(page)
    lines = text.content.splitlines()
    assert [number for number, line in enumerate(lines, 1) if "what is due" in line] == [7]
    module = tmp_path / "module.py"
    module.write_text('"""A module."""\n\n\ndef due():\n    """What is due."""\n')
    assert [(text.line, text.kind) for text in check_prose.texts_of(module)] == [(1, "others"), (5, "docstrings")]


def test_hooks_run_existing_programs() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = {hook["id"]: hook["entry"] for repo in config["repos"] for hook in repo["hooks"]}
    assert hooks.keys() == {"ruff-check", "ruff-format", "mypy", "prose"}
    for entry in hooks.values():
        program, *arguments = entry.split()
        assert program == "python" or program in {".venv/bin/ruff", ".venv/bin/mypy"}
        assert all((ROOT / one).exists() for one in arguments if one.endswith(".py"))


@pytest.mark.skipif(importlib.util.find_spec("proselint") is None, reason="proselint is installed only by pre-commit")
def test_prose_check_names_the_line_and_fails(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("It is read.\n\nThe text is no name.\n")
    command = [sys.executable, str(ROOT / ".ci" / "check_prose.py"), str(page)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stdout.startswith(f"{page}:3: is-no: ")


def test_issue_forms_are_valid() -> None:
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*_*.yml"))
    assert len(forms) == 2
    for form in forms:
        content = yaml.safe_load(form.read_text())
        assert content["name"]
        assert content["description"]
        ids = [part["id"] for part in content["body"] if part["type"] != "markdown"]
        assert len(ids) == len(set(ids)) > 2
