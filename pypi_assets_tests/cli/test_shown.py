"""All output about an index is inert, in every format, on a terminal and in a pipe.

The commands are discovered, not listed: a new command fails here until it is run, or skipped for a stated reason.
"""

import csv
import io
import json
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import click.testing
import pytest
from click.testing import Result

from pypi_assets.metrics import StatusMetrics
from pypi_assets.questions.question import all_questions
from pypi_assets.settings import load_settings
from pypi_assets_tests.cli.commands import Commands, every_command
from pypi_assets_tests.hostile_index import (
    BEACON,
    BROKEN,
    FIELDS,
    FILENAME,
    HOSTILE,
    PROJECT,
    XML_TEXT,
    HostileAnswers,
    live_in_csv,
    live_in_line,
    live_in_terminal,
    upload,
    upload_broken,
)
from pypi_assets_tests.prometheus import samples
from pypi_assets_tests.served_index import ServedIndex

ADVISORIES = "osv"
WHEEL, SDIST, BAD = f"{FIELDS}-1.0-py3-none-any.whl", f"{FIELDS}-1.0.tar.gz", f"{BROKEN}-1.0-py3-none-any.whl"
PROJECTS = [[PROJECT], [FIELDS], [BROKEN], [XML_TEXT]]
STORED = HOSTILE.replace("\0", "\ufffd")
"""The hostile text as a database stores it, without NUL."""

BY_ARGUMENT = {"PROJECT": PROJECTS, "NAME==VERSION": [[f"{FIELDS}==1.0"], ["good==1"], [XML_TEXT]]}
"""The arguments of questions, by the name of the argument in the command."""
RUNS: dict[str, list[list[str]]] = {
    "index new": [["shelf"], [XML_TEXT]],
    "crawl full": [[]],
    "crawl incremental": [[]],
    "dump full": [["--shards", "1"]],
    "dump incremental": [[]],
    "dump redo": [["--shards", "1"]],
    "dump compact": [[]],
    "dump parquet": [["--force", "--views"]],
    "dump tables": [["--from-scratch"]],
    "admin restore": [[]],
    "leveldb update": [["--force"]],
    "leveldb list": [[]],
    "leveldb fetch": [["modules", "--into", "fetched"], ["modules", "--into", BAD]],
    "leveldb verify": [[]],
    **{
        question.command: BY_ARGUMENT.get(question.argument, [["good"], [XML_TEXT]])
        for question in all_questions()
        if not question.has_body
    },
    "lookup module": [["good"], ["g", "--prefix"], [XML_TEXT]],
    "lookup purl": [[f"pkg:pypi/{FIELDS}"], [XML_TEXT]],
    "lookup project": [*PROJECTS, ["", "--prefix"], [*PROJECTS[0], "--at", "1"]],
    "lookup dependents": [["demo"], ["demo", "--transitive"], ["", "--prefix"], [XML_TEXT]],
    "lookup command": [["good"], ["", "--prefix"], [STORED], [XML_TEXT]],
    "lookup hash": [["--file", WHEEL], ["--file", WHEEL, "--all"], [XML_TEXT]],
    "impact": [["demo"], ["demo", "--transitive"], ["demo", "--at", "1"], [XML_TEXT], ["--osv", ADVISORIES]],
    "lookup breaks": [["demo==9", "--transitive"], ["demo==9", "--at", "2026-01-01"], [f"demo=={XML_TEXT}"]],
    "resolve": [["good"], ["demo", "--unknown", "assume-none"], ["demo", "--at", "1"], [XML_TEXT]],
    "blame": [["demo", "--good", "1"], ["demo", "--good", "1", "--all", "--unknown", "assume-none"], [XML_TEXT]],
    "admin report removals": [[], ["--within", XML_TEXT]],
    "admin report solvability": [[], ["--day", XML_TEXT]],
    "failures list": [[], *(["--project", *project] for project in PROJECTS), ["--kind", "visit"], ["--kind", STORED]],
    "failures show": [*PROJECTS, [BAD], [FILENAME], [f"{FIELDS}==1.0"], [BAD, "--project", XML_TEXT]],
    "failures retry": [[], ["--project", XML_TEXT]],
    "lookup files": [[], *PROJECTS],
    "history": [[*project, *options] for project in PROJECTS for options in ([], ["--all"])],
    "admin where": [[PROJECT]],
    "visits": [*PROJECTS, [PROJECT, "--compare", "1", "2"], ["--state", "never"]],
    "visit": [[PROJECT, "--no-wait"]],
    "admin ranges": [["--all"]],
    "queue": [[], *PROJECTS],
    "admin audit": [["--share", "100"]],
    "status": [[], ["--recount"]],
    "admin inspect": [
        [WHEEL, SDIST, BAD, FILENAME],
        ["--against-pip", BAD],
        ["--from-extract", WHEEL, SDIST, BAD],
        ["--from-extract", FILENAME],
    ],
    "admin reprocess": [["--older-than-version", "1000"], ["--project", XML_TEXT, "--older-than-version", "1000"]],
    "admin extracts clean": [["--dry-run"], []],
    "admin prune": [["--dry-run"], []],
    "dump clean": [["--dry-run"], []],
    "admin migrate": [[]],
    "admin metrics": [[]],
    "files list": [[], ["--scope", XML_TEXT], ["--project", XML_TEXT], ["--forgotten"]],
    "files forget": [["ab" * 32, "--reason", "mine"], ["ab" * 32, "--reason", XML_TEXT], [XML_TEXT, "--reason", "x"]],
    "files verify": [[]],
    "scope create": [["mine", "demo"], ["other", XML_TEXT], ["other", "--roots", BAD], [XML_TEXT, "demo"]],
    "scope run": [[], ["mine"], [XML_TEXT]],
    "scope list": [[]],
    "scope show": [["mine"], [XML_TEXT]],
    "scope why": [["mine", "demo"], ["mine", XML_TEXT], *(["mine", *project] for project in PROJECTS)],
    "scope rules": [["mine"], ["mine", "--set", BAD], [XML_TEXT]],
    "scope set": [["mine", "--tag", XML_TEXT], [XML_TEXT, "--nice", "1"], ["mine", "--most", XML_TEXT]],
    "scope abort": [["mine"], [XML_TEXT]],
    "scope resume": [["mine"], [XML_TEXT]],
    "scope prune": [["mine"], [XML_TEXT]],
    "scope remove": [["mine"], [XML_TEXT]],
    "admin indexes": [[]],
    "lookup confusion": [[]],
    "journal write": [[]],
    "journal tail": [["--since", "0"], ["--project", XML_TEXT], ["--kind", XML_TEXT]],
    "journal consumers": [[], ["--forget", XML_TEXT]],
    "journal verify": [[]],
    "journal sign": [["--key", BAD]],
    "journal restart": [["index"], [XML_TEXT]],
    "journal replay": [["--into", "sqlite:///replayed.sqlite"]],
    "journal deliver": [[]],
    "journal letters": [[]],
    "journal publish": [[]],
    "journal takedown": [["none", "--file", XML_TEXT, "--reason", "x"], [XML_TEXT, "--reason", XML_TEXT]],
    "journal takedowns": [[]],
    "journal prune": [["--before", "1"], ["--before", XML_TEXT]],
}
"""The arguments of each command. A question needs an entry only for its options.

Commands that write come before those that read, and before those that delete.
"""
SKIPPED = {
    "admin settings": "lists settings, which do not depend on an index",
    "init": "writes a file of settings from its own options",
    "devindex": "serves a development index",
    "serve": "answers over HTTP: the tests of service/",
    "mcp": "answers clients of MCP: test_mcp_server.py",
    "export": "prints data in the formats of other tools",
    "follow": "runs until it is stopped: the tests of following/",
    "up": "starts processes that run until they are stopped: the tests of stack/ and deploy/test_up.py",
    "mirror": "copies the files of another instance: the tests of mirror/",
    "lookup collisions": "requires a lock file: the tests of export/",
}
WITH_THE_INDEX = ["crawl full", "crawl incremental", "failures retry", "admin audit", "status", "admin metrics"]
"""Commands that send requests and print the results."""
A_LINE_EACH = {"journal tail"}
"""Commands that print one JSON object per line."""
FORMATS = {"as_json": "--json", "as_csv": "--csv"}


@pytest.fixture
def hostile(commands: Commands, index: ServedIndex, tmp_path: Path) -> HostileAnswers:
    """Crawl an index with hostile texts. Its files are in the working folder."""
    upload(index)
    index.faults = answers = HostileAnswers(index)
    commands.done("crawl", "full")
    upload_broken(index, "4.0")
    commands.done("crawl", "incremental")
    for name in (WHEEL, SDIST, BAD):
        shutil.copy(index.folder / "built" / name, tmp_path)
    shutil.copy(index.folder / "built" / SDIST, tmp_path / FILENAME)
    (tmp_path / ADVISORIES).mkdir()
    (tmp_path / ADVISORIES / f"{FILENAME}.json").write_text(f'{{"id": 1, "{XML_TEXT}": 2}}')
    return answers


def test_every_command_is_run_or_skipped() -> None:
    names = {" ".join(path) for path, _ in every_command()}
    assert names == set(RUNS) | {name for name in names if is_skipped(name)}


def is_skipped(name: str) -> bool:
    return name in SKIPPED or name.partition(" ")[0] in SKIPPED


@pytest.mark.nightly
def test_names_from_an_index_are_inert_in_the_output(
    commands: Commands, hostile: HostileAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[str, list[str]] = {}
    texts: set[str] = set()
    shown = 0
    for fails in (False, True):
        hostile.fails = fails
        for name, result, option in results(commands, WITH_THE_INDEX if fails else list(RUNS), monkeypatch):
            shown += BEACON in result.stdout + result.stderr
            live = live_in_terminal(result.stderr) + live_in_output(result.stdout, option)
            if live:
                found.setdefault(f"{name} {option}", live)
            if option == "--json" and result.stdout:
                documents = result.stdout.splitlines() if name in A_LINE_EACH else [result.stdout]
                texts.update(text for document in documents for text in texts_of(json.loads(document)))
    assert found == {}
    assert shown > 60, "the texts of the index are not in the output"
    assert {STORED, XML_TEXT, FILENAME} <= texts, "JSON lacks the exact texts"


def results(commands: Commands, names: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Result, str]]:
    """Yield the output of each named command, in each of its formats, on a terminal and in a pipe."""
    known = {" ".join(path): command for path, command in every_command()}
    for name in names:
        options = ["", *(FORMATS[str(one.name)] for one in known[name].params if one.name in FORMATS)]
        for arguments in RUNS[name]:
            for option in options:
                yield name, commands.run(*name.split(), *filter(None, [option]), *arguments), option
            with monkeypatch.context() as patch:
                patch.setattr(click.testing._NamedTextIOWrapper, "isatty", lambda self: self.name == "<stdout>")
                yield name, commands.run(*name.split(), *arguments), "on a terminal"


def live_in_output(printed: str, option: str) -> list[str]:
    if option == "--csv":
        return live_in_csv(cell for row in csv.reader(io.StringIO(printed)) for cell in row)
    return live_in_terminal(printed)


def texts_of(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts_of(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from texts_of(item)


def test_metrics_of_hostile_index_are_parsed_by_prometheus(
    commands: Commands, hostile: HostileAnswers, tmp_path: Path
) -> None:
    hostile.fails = True
    path = tmp_path / "pypi-assets.prom"
    commands.done("admin", "metrics", "--file", path)
    taken = StatusMetrics(load_settings())
    taken.take()
    with urllib.request.urlopen(taken.listen("127.0.0.1", 0), timeout=60) as response:
        served = response.read().decode()
    for text in (path.read_text(), served, commands.done("admin", "metrics").stdout):
        assert samples(text)["distributions", "error"] > 0
        assert live_in_line(text) == []


@pytest.mark.nightly
@pytest.mark.parametrize("text", [STORED, f"--{STORED}", "-\x1b[31m\u202e"])
def test_hostile_arguments_are_inert_in_errors(commands: Commands, text: str) -> None:
    """A name can come from a pipe, and a file can have any name. There is no catalog, so each command ends early."""
    for path, command in every_command():
        if is_skipped(" ".join(path)):
            continue
        for arguments in (
            [*path, text],
            [*path[:-1], text],
            *([*path, *option] for option in with_values(command, text)),
        ):
            result = commands.run(*arguments)
            assert live_in_terminal(result.stderr) == [], arguments
            assert result.stdout == "" or not result.exit_code


def with_values(command: click.Command, text: str) -> Iterator[list[str]]:
    for one in command.params:
        if isinstance(one, click.Option) and not one.is_flag:
            yield [one.opts[0], *[text] * one.nargs]
