"""`pypi-assets journal tail` and `journal consumers`: every record in order, from any position, and at least once."""

import json
import os
import signal
from pathlib import Path

import pytest

from pypi_assets.cli import journal_tail
from pypi_assets.journal.cursors import Cursor
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.forked import COMMAND_LINE, ForkedProgram
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex
from pypi_assets_tests.waiting import until


@pytest.fixture
def journal(commands: Commands, index: ServedIndex) -> ServedIndex:
    """Crawl an index with two projects and its history, and write its journal."""
    index.wheel("demo", "1.0", files={"demo_one/__init__.py": ""})
    index.wheel("other", "1.0", files={"other_one/__init__.py": "", "other_one/below.py": ""})
    index.history.yank("demo", "1.0", "bad\x1b[31m\u202e")
    commands.done("crawl", "full", "--with-history")
    commands.done("journal", "write")
    return index


def more(commands: Commands, index: ServedIndex, version: str) -> None:
    index.wheel("demo", version)
    commands.done("crawl", "incremental")
    commands.done("journal", "write")


def lines(commands: Commands, *arguments: object) -> list[dict]:
    return [json.loads(line) for line in commands.done("journal", "tail", "--json", *arguments).stdout.splitlines()]


def test_records_are_printed_in_order_from_each_cursor(commands: Commands, journal: ServedIndex):
    every = lines(commands)
    places = [Cursor.parse(one["cursor"]) for one in every]
    assert places == sorted(set(places))
    assert {one["stream"] for one in every} == {"index", "observed", "content"}
    assert [Cursor.of(one) for one in every] == places
    for number in range(0, len(every), 3):
        assert lines(commands, "--since", every[number]["cursor"]) == every[number + 1 :]
    assert lines(commands, "--since", every[4]["serial"]) == [
        one for one in every if one["serial"] > every[4]["serial"]
    ]
    assert lines(commands, "--since", "now") == []
    assert lines(commands, "--since", "2020-01-01", "--limit", 3) == every[:3]
    assert lines(commands, "--since", every[-1]["cursor"]) == []
    more(commands, journal, "2.0")
    new = lines(commands, "--since", every[-1]["cursor"])
    assert {one["version"] for one in new} == {"2.0"}


def test_stream_that_begins_with_the_first_crawl_is_printed_from_there(commands: Commands, index: ServedIndex):
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    commands.done("journal", "write")
    more(commands, index, "2.0")
    announced = [one for one in lines(commands) if one["stream"] == "index"]
    assert announced
    assert lines(commands, "--stream", "index") == lines(commands, "--kind", "add-file", "--kind", "ignored")
    assert lines(commands, "--stream", "index", "--since", "2020-01-01") == announced


@pytest.mark.nightly
@pytest.mark.parametrize("at_a_time", [1, 4, 1_000])
def test_limit_is_exact_for_any_batch_size(
    commands: Commands, journal: ServedIndex, monkeypatch: pytest.MonkeyPatch, at_a_time: int
):
    every = lines(commands)
    plain = commands.done("journal", "tail").stdout.splitlines()
    monkeypatch.setattr(journal_tail, "_RECORDS_AT_A_TIME", at_a_time)
    assert lines(commands) == every
    assert commands.done("journal", "tail").stdout.splitlines() == plain
    for limit in (1, 4, 5, len(every) - 1, len(every), len(every) + 1):
        assert lines(commands, "--limit", limit) == every[:limit]
    assert lines(commands, "--consumer", "mirror", "--limit", 5) == every[:5]
    assert lines(commands, "--consumer", "mirror") == every[5:]


def test_options_filter_records(commands: Commands, journal: ServedIndex):
    every = lines(commands)
    assert lines(commands, "--project", "Other") == [one for one in every if one["normalized"] == "other"]
    kinds = lines(commands, "--kind", "file-added", "--kind", "yank_release")
    assert [(one["kind"], one["project"]) for one in kinds] == [
        ("file added", "demo"),
        ("file added", "other"),
        ("yank release", "demo"),
    ]
    assert lines(commands, "--stream", "index") == [one for one in every if one["stream"] == "index"]
    compared = [one for one in every if one["kind"] == "release compared"]
    assert lines(commands, "--gained", "modules") == [one for one in compared if "modules" in one["gained"]]
    named = lines(commands, "--module", "other_one.below")
    assert [(one["kind"], one["project"]) for one in named] == [("file read", "other")]


def test_readable_line_has_the_cursor_and_is_inert(commands: Commands, journal: ServedIndex):
    printed = commands.done("journal", "tail", "--kind", "file added", "--kind", "new provider").stdout
    rows = [line.split("\t") for line in printed.splitlines()]
    assert [(row[2], row[3], row[4], row[5]) for row in rows] == [
        ("file added", "demo", "1.0", "demo-1.0-py3-none-any.whl"),
        ("new provider", "demo", "1.0", "demo_one"),
        ("file added", "other", "1.0", "other-1.0-py3-none-any.whl"),
        ("new provider", "other", "1.0", "other_one"),
    ]
    assert rows[0][1].endswith("Z")
    for option in ([], ["--json"]):
        assert "\x1b" not in commands.done("journal", "tail", *option).stdout
        assert "\u202e" not in commands.done("journal", "tail", *option).stdout


@pytest.mark.nightly
def test_consumer_continues_from_its_last_position(commands: Commands, journal: ServedIndex):
    every = lines(commands)
    first = lines(commands, "--consumer", "mirror", "--limit", 4)
    rest = lines(commands, "--consumer", "mirror")
    assert first + rest == every
    assert lines(commands, "--consumer", "mirror") == []
    [consumer] = commands.json("journal", "consumers")
    assert (consumer["name"], consumer["serial"], consumer["lag_serials"]) == ("mirror", journal.serial, 0)
    journal.wheel("demo", "2.0")
    commands.done("crawl", "incremental")
    [consumer] = commands.json("journal", "consumers")
    assert consumer["lag_serials"] > 0
    assert consumer["lag_seconds"] >= 0
    assert commands.done("journal", "consumers").stdout.startswith(f"mirror\t{consumer['serial']}\t")
    commands.done("journal", "write")
    assert {one["version"] for one in lines(commands, "--consumer", "mirror")} == {"2.0"}
    assert lines(commands, "--consumer", "mirror", "--since", every[1]["cursor"], "--limit", 2) == every[2:4]
    assert lines(commands, "--consumer", "mirror", "--limit", 1) == every[4:5]
    assert unnamed(commands.done("journal", "consumers", "--forget", "mirror").stderr, "mirror") == []
    assert unnamed(commands.refused("journal", "consumers", "--forget", "mirror", exit_code=2), "'mirror'") == []
    assert commands.done("journal", "consumers").stderr


@pytest.mark.nightly
def test_killed_consumer_gets_each_record_at_least_once(commands: Commands, journal: ServedIndex, tmp_path: Path):
    output = tmp_path / "output"
    for version in ("2.0", "3.0", "4.0"):
        with output.open("ab") as out:
            started = ForkedProgram(
                COMMAND_LINE, "journal", "tail", "--follow", "--consumer", "mirror", "--json", stdout=out, strict=True
            )
            more(commands, journal, version)
            until(lambda version=version: version.encode() in output.read_bytes())
            os.kill(started.pid, signal.SIGKILL)
            started.wait()
    seen = [json.loads(line) for line in output.read_bytes().splitlines()]
    after = lines(commands, "--consumer", "mirror")
    every = lines(commands)
    received = [one["cursor"] for one in [*seen, *after]]
    assert set(received) == {one["cursor"] for one in every}
    assert list(dict.fromkeys(received)) == [one["cursor"] for one in every]


def test_error_without_a_journal_names_the_command(commands: Commands, index: ServedIndex):
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    assert unnamed(commands.refused("journal", "tail"), "journal write") == []


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--kind", "gone"), ("--kind", "'gone'", "add file")),
        (("--stream", "all"), ("--stream", "'all'", "index", "observed", "content")),
        (("--since", "yesterday"), ("--since", "'yesterday'")),
        (("--since", "2999-01-01"), ("--since", "2999-01-01")),
    ],
)
def test_invalid_option_error_names_accepted_values(
    commands: Commands, journal: ServedIndex, arguments: tuple[str, ...], named: tuple[str, ...]
):
    assert unnamed(commands.refused("journal", "tail", *arguments, exit_code=2), *named) == []


@pytest.mark.nightly
@pytest.mark.parametrize("wrong", ["", "a\nb", "two\nlines"])
def test_consumer_name_must_be_printable(commands: Commands, journal: ServedIndex, wrong: str):
    refused = commands.refused("journal", "tail", "--consumer", wrong, exit_code=2)
    assert unnamed(refused, "--consumer", 1, 200) == []
