"""Every command shown on a page runs in a fresh home, and prints the output shown on the page."""

import os
import re
from collections.abc import Iterator

import pytest

from pypi_assets_tests.docs.shown import (
    EMPTY_HOME,
    FAILING,
    ROOT,
    SERVICE,
    UNTRIED,
    Prepared,
    commands,
    equal,
    fresh,
    is_compared,
    page_path,
    prepared,
)

PAGES = ["README.md", *sorted(path.name for path in (ROOT / "docs").glob("*.md"))]
COMPARED = {
    "README.md",
    "index.md",
    "concepts.md",
    "ask.md",
    "cli.md",
    "service.md",
    "time-travel.md",
    "resolving.md",
}
"""The pages whose outputs are from the example index. On other pages, commands must only succeed."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    with prepared(tmp_path_factory.mktemp("docs")) as made:
        yield made


@pytest.mark.nightly
@pytest.mark.parametrize("name", PAGES)
def test_commands_of_pages_run(name: str, world: Prepared) -> None:
    text = page_path(name).read_text()
    problems = []
    with world.shell() as shell:
        for part in fresh(shell, text):
            if part == EMPTY_HOME:
                shell.begin_again()
            for command in commands(part):
                if command.untried:
                    continue
                printed = shell.run(command.text)
                if printed.exit_code != FAILING.get(command.text, 0):
                    problems.append(f"exit code {printed.exit_code}: {command.text}\n{printed.text}")
                elif name in COMPARED and is_compared(command) and not equal(command.output or [], printed.text):
                    problems.append(f"other output: {command.text}\n{printed.text}")
    assert problems == [], f"run python -m pypi_assets_tests.docs.shown {name}"


@pytest.mark.nightly
def test_commands_listed_in_the_readme_run(world: Prepared) -> None:
    listed = re.findall(r"(?m)^\|.*\| `(pypi-assets [^`]+)` \|$", page_path("README.md").read_text())
    assert len(listed) == 8
    with world.shell() as shell:
        printed = {command: shell.run(command) for command in listed}
    assert {command: done.text for command, done in printed.items() if done.exit_code or not done.text} == {}


@pytest.mark.nightly
def test_python_client_example_runs(world: Prepared) -> None:
    [section] = re.findall(r"\n## Python\n(.*?)\n## ", page_path("service.md").read_text(), re.DOTALL)
    program = "\n".join(re.findall(r"```python\n(.*?)```", section, re.DOTALL))
    with world.shell() as shell:
        shell.serve()
        (shell.folder / "steps.py").write_text(program.replace(SERVICE, shell.replaced[SERVICE]))
        printed = shell.run("python steps.py")
    assert printed.exit_code == 0, printed.text
    assert "['PyYAML', 'yaml-copy'] as of serial 82" in printed.text
    assert "at serial 8\n" in printed.text
    assert re.search(r"\d+ changes up to ", printed.text)


def test_most_commands_are_run() -> None:
    shown = [command for name in PAGES for command in commands(page_path(name).read_text())]
    own = [command for command in shown if command.text.startswith("pypi-assets ")]
    untried = [command.text for command in own if command.untried]
    assert len(own) > 100
    assert len(untried) < len(own) / 4, untried


def test_exceptions_are_needed() -> None:
    shown = [command.text for name in PAGES for command in commands(page_path(name).read_text())]
    assert [text for text in FAILING if text not in shown] == []
    assert [pattern for pattern in UNTRIED if not any(re.search(pattern, text) for text in shown)] == []


def test_times_and_durations_are_not_compared() -> None:
    assert equal(["took 0.1 s at 2026-11-28T13:35:22Z"], "took 2 s at 2027-01-02T03:04:05Z\nreads: 3 of 3\n")
    assert equal(["a", "...", "c"], "a\nb\nb\nc\n")
    assert equal(["a", "...", "c"], "a\nc\n")
    assert not equal(["a", "c"], "a\nb\nc\n")
    assert not equal(["as of serial 82"], "as of serial 83\n")
    assert os.linesep == "\n"
