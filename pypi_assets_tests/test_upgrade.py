"""A catalog with its dumps and LevelDBs, made by release 0.1's first tables, is brought up to date and loses nothing.

`previous_version/home.tar.xz` holds an index and what was made of it by the code before dumps had columns for commands
and licences: a home (catalog and storage), the index itself, and what look-ups answered then.
"""

import json
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pypi_assets.devindex.history import History
from pypi_assets.devindex.server import running
from pypi_assets_tests.builders import make_wheel
from pypi_assets_tests.cli.commands import Commands, commands_in
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.served_index import keep_readers

STORED = Path(__file__).parent / "previous_version" / "home.tar.xz"
ENTRY_POINTS = "[console_scripts]\nalpha = zeta.cli:main\n"


@dataclass(frozen=True)
class Previous:
    """What the previous version left: commands that run on its home, its index, and what it answered."""

    commands: Commands
    history: History
    answers: dict[str, Any]
    folder: Path

    def assert_answers_as_before(self) -> None:
        for question, answer in self.answers.items():
            now = self.commands.json(*question.split())
            assert [{name: row[name] for name in known} for row, known in zip(now, answer, strict=True)] == answer, (
                question
            )


@pytest.fixture
def previous(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Previous]:
    with tarfile.open(STORED) as stored:
        stored.extractall(tmp_path, filter="data")
    clear_settings(monkeypatch)
    keep_readers(monkeypatch)
    with running(tmp_path / "index") as url:
        with closing(sqlite3.connect(tmp_path / "home" / "catalog.sqlite")) as catalog, catalog:
            catalog.execute("UPDATE catalog_state SET index_url = ?", (url,))  # it was served at another port then
        for name, value in {"HOME": tmp_path / "home", "INDEX_URL": url, "REQUEST_ATTEMPTS": 1}.items():
            monkeypatch.setenv(f"PYPI_ASSETS_{name}", str(value))
        stored_answers = json.loads((tmp_path / "answers.json").read_text())
        renamed = {question.replace("--at-serial", "--at"): answer for question, answer in stored_answers.items()}
        yield Previous(Commands(tmp_path / "home"), History(tmp_path / "index"), renamed, tmp_path)


def test_a_catalog_of_the_previous_version_is_refused_until_it_is_migrated(previous: Previous) -> None:
    message = previous.commands.refused("files")
    assert "pypi-assets migrate" in message
    assert len(message.splitlines()) == 1
    previous.commands.done("migrate")
    previous.commands.done("leveldb", "update")
    previous.assert_answers_as_before()


def test_what_the_previous_version_published_is_refused_by_its_format_without_its_catalog(previous: Previous) -> None:
    (previous.folder / "home" / "catalog.sqlite").unlink()
    for question in previous.answers:
        if question.startswith(("lookup module", "lookup project", "lookup dependents")):
            assert "leveldb update" in commands_in(previous.commands.refused(*question.split())), question


def test_commands_are_not_built_yet_until_the_dumps_are_made_again(previous: Previous) -> None:
    commands = previous.commands
    commands.done("migrate")
    order = ["reprocess", "dump redo", "leveldb update"]
    for shown in (
        commands.refused("lookup", "command", "alpha"),
        commands.done("leveldb", "update").output,
        commands.refused("lookup", "command", "alpha"),
        commands.done("status").output,
    ):
        assert commands_in(shown)[-3:] == order


def test_an_upgrade_loses_nothing_and_gains_commands(previous: Previous) -> None:
    commands = previous.commands
    commands.done("migrate")
    reprocessed = commands.json("reprocess")
    assert reprocessed["unread"] == 0
    commands.done("dump", "redo", "--shards", "1")
    commands.done("leveldb", "update")
    previous.assert_answers_as_before()
    assert [(row["normalized"], row["versions"]) for row in commands.json("lookup", "command", "alpha")] == [
        ("alpha", ["1.0"]),
        ("epsilon", ["1.0"]),
    ]
    sha256 = previous.answers["lookup project alpha"][0]["sha256"]
    assert [row["filename"] for row in commands.json("lookup", "hash", sha256)] == ["alpha-1.0-py3-none-any.whl"]

    previous.history.add(make_wheel(previous.folder, "zeta", "1.0", entry_points=ENTRY_POINTS))
    previous.history.remove_project("epsilon")
    commands.done("crawl", "incremental")
    commands.done("dump", "incremental")
    commands.done("leveldb", "update")
    assert [row["normalized"] for row in commands.json("lookup", "command", "alpha")] == ["alpha", "zeta"]
    for dataset in ("modules", "depgraph", "commands", "hashes", "simple"):
        commands.done("leveldb", "verify", "--dataset", dataset, "--deep")
