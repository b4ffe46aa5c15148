"""`pypi-assets journal deliver` and `journal letters`: configured webhooks receive all changes, even after a kill."""

import json
import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing

import pytest

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.forked import COMMAND_LINE, ForkedProgram
from pypi_assets_tests.journal.hook_receiver import SECRET, Receiver, receiving
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex
from pypi_assets_tests.waiting import until


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """Run a receiver, and configure it as a webhook for records of the stream index."""
    with receiving() as one:
        hook = {"name": "mine", "url": one.url, "secret": SECRET, "filter": {"stream": "index"}}
        monkeypatch.setenv("PYPI_ASSETS_WEBHOOKS", json.dumps([hook]))
        monkeypatch.setenv("PYPI_ASSETS_WEBHOOKS_PRIVATE", "1")
        yield one


@pytest.fixture
def journal(commands: Commands, index: ServedIndex) -> ServedIndex:
    index.wheel("demo", "1.0")
    commands.done("crawl", "full", "--with-history")
    commands.done("journal", "write")
    return index


def publish(commands: Commands, index: ServedIndex, version: str) -> None:
    index.wheel("demo", version)
    commands.done("crawl", "incremental")
    commands.done("journal", "write")


def files(receiver: Receiver) -> list[str]:
    return [one["version"] for body in receiver.letters for one in body["changes"] if one["kind"] == "add file"]


def execute(commands: Commands, statement: str) -> None:
    with closing(sqlite3.connect(commands.home / "catalog.sqlite")) as connection, connection:
        connection.execute(statement)


@pytest.mark.nightly
def test_published_records_are_posted(commands: Commands, journal: ServedIndex, receiver: Receiver):
    assert unnamed(commands.done("journal", "deliver").stderr, "mine", "0") == []
    publish(commands, journal, "2.0")
    assert unnamed(commands.done("journal", "deliver").stderr, "mine", "1", "0") == []
    assert files(receiver) == ["2.0"]
    [consumer] = commands.json("journal", "consumers")
    assert (consumer["name"], consumer["lag_serials"]) == ("webhook mine", 0)
    assert commands.done("journal", "letters").stderr


def test_waiting_and_dead_letters_are_listed_and_resent(commands: Commands, journal: ServedIndex, receiver: Receiver):
    commands.done("journal", "deliver")
    publish(commands, journal, "2.0")
    receiver.status = lambda _body: 500
    printed = commands.done("journal", "deliver").stderr
    assert unnamed(printed, "mine", "0", "1") == []
    [letter] = commands.json("journal", "letters")
    assert (letter["consumer"], letter["project"], letter["attempts"]) == ("webhook mine", "demo", 1)
    assert unnamed(letter["error"], "500") == []
    assert [one["version"] for one in letter["changes"] if one["kind"] == "add file"] == ["2.0"]
    assert commands.done("journal", "letters", "--dead", "--webhook", "mine").stderr
    assert commands.json("journal", "letters", "--webhook", "webhook mine") == [letter]  # as printed in the list
    for options in (("--dead",), ("--resend",)):
        refused = commands.refused("journal", "letters", *options, "--webhook", "other", exit_code=2)
        assert unnamed(refused, "'other'", "journal consumers") == []
    assert commands.done("journal", "letters").stdout.split("\t")[1:4] == ["webhook mine", "demo", "1"]
    assert not letter["is_dead"]
    execute(commands, "UPDATE journal_letters SET is_dead = 1")
    assert "\tdead\t" in commands.done("journal", "letters", "--dead").stdout
    assert unnamed(commands.done("journal", "letters", "--resend", "--webhook", "mine").stderr, "1") == []
    execute(commands, "UPDATE journal_letters SET is_dead = 1")
    resent = commands.done("journal", "letters", "--resend", "--letter", letter["id"])
    assert unnamed(resent.stderr, "1") == []
    receiver.status = lambda _body: 200
    commands.done("journal", "deliver")
    assert files(receiver) == ["2.0"]


@pytest.mark.nightly
def test_killed_deliverer_loses_nothing(commands: Commands, journal: ServedIndex, receiver: Receiver):
    """Kill the process once before any delivery was answered, and once after one was."""
    commands.done("journal", "deliver")
    receiver.may_answer.clear()
    for number, has_come in ((2, receiver.arrived), (3, receiver.deliveries)):
        started = ForkedProgram(COMMAND_LINE, "journal", "deliver", "--follow", stderr=subprocess.DEVNULL, strict=True)
        publish(commands, journal, f"{number}.0")
        until(lambda expected=has_come: bool(expected))
        os.kill(started.pid, signal.SIGKILL)
        started.wait()
        receiver.may_answer.set()
        until(lambda: len(receiver.deliveries) == len(receiver.arrived))
        receiver.deliveries.clear()
        receiver.arrived.clear()
        execute(commands, "DELETE FROM leases")  # as if a minute had passed
    commands.done("journal", "deliver")
    assert list(dict.fromkeys(files(receiver))) == ["2.0", "3.0"]


@pytest.mark.nightly
def test_deliver_follows_until_stopped(commands: Commands, journal: ServedIndex, receiver: Receiver):
    commands.done("journal", "deliver")
    started = ForkedProgram(COMMAND_LINE, "journal", "deliver", "--follow", stderr=subprocess.PIPE, strict=True)
    publish(commands, journal, "2.0")
    until(lambda: bool(files(receiver)))
    os.kill(started.pid, signal.SIGINT)
    _, printed = started.communicate(timeout=60)
    assert started.returncode == 130
    assert unnamed(printed, "mine", "1") == []
    assert files(receiver) == ["2.0"]


def test_error_without_webhooks_or_journal_names_the_missing_one(
    commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch
):
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    assert unnamed(commands.refused("journal", "deliver", exit_code=2), "PYPI_ASSETS_WEBHOOKS", "JSON") == []
    monkeypatch.setenv("PYPI_ASSETS_WEBHOOKS", json.dumps([{"url": "http://127.0.0.1:9/", "secret": SECRET}]))
    assert unnamed(commands.refused("journal", "deliver"), "journal write") == []
    monkeypatch.setenv("PYPI_ASSETS_WEBHOOKS", json.dumps([{"url": "http://127.0.0.1:9/"}]))
    assert unnamed(commands.refused("journal", "deliver", exit_code=2), "1") == []
    assert unnamed(commands.refused("journal", "letters", "--letter", 1, exit_code=2), "--letter", "--resend") == []
    resend = ("journal", "letters", "--resend", "--letter", 99)
    assert unnamed(commands.refused(*resend, exit_code=2), "99", "journal letters --dead") == []
