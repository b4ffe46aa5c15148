"""`pypi-assets journal publish`: the journal is published to Kafka, once or continuously."""

import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator

import pytest

from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.cli import journal_deliver
from pypi_assets.journal.kafka import KafkaTransientError
from pypi_assets_tests.cli.commands import PROCESS, Commands
from pypi_assets_tests.kafka_brokers import mock_brokers
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with mock_brokers() as addresses:
        monkeypatch.setenv("PYPI_ASSETS_KAFKA_BOOTSTRAP_SERVERS", addresses)
        yield addresses


@pytest.fixture
def journal(commands: Commands, index: ServedIndex) -> ServedIndex:
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    commands.done("journal", "write")
    return index


@pytest.mark.usefixtures("journal", "brokers")
def test_publish_sends_new_records_and_is_a_consumer(commands: Commands):
    streams = (part for stream in JournalStream for part in ("--stream", stream.value))
    every = commands.done("journal", "tail", "--json", *streams).stdout.splitlines()
    assert commands.json("journal", "publish") == {"messages": len(every), "consumer": "kafka"}
    assert commands.json("journal", "publish") == {"messages": 0, "consumer": "kafka"}
    assert commands.json("journal", "publish", "--consumer", "other", "--since", "now")["messages"] == 0
    assert {one["name"] for one in commands.json("journal", "consumers")} == {"kafka", "other"}


@pytest.mark.nightly
def test_publish_follows_until_stopped(commands: Commands, journal: ServedIndex, brokers: str):
    del brokers
    command = [*PROCESS, "journal", "publish", "--follow", "--json"]
    with subprocess.Popen(command, env=os.environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["messages"] > 0
        journal.wheel("demo", "2.0")
        commands.done("crawl", "incremental")
        commands.done("journal", "write")
        assert json.loads(process.stdout.readline())["messages"] > 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


@pytest.mark.usefixtures("journal", "brokers")
def test_usage_error_names_accepted_values(commands: Commands, monkeypatch: pytest.MonkeyPatch):
    assert "--since" in commands.refused("journal", "publish", "--since", "soon", exit_code=2)
    monkeypatch.setenv("PYPI_ASSETS_KAFKA_PROPERTIES", "missing.properties")
    assert "missing.properties" in commands.refused("journal", "publish", exit_code=2)
    monkeypatch.delenv("PYPI_ASSETS_KAFKA_PROPERTIES")
    monkeypatch.delenv("PYPI_ASSETS_KAFKA_BOOTSTRAP_SERVERS")
    assert "PYPI_ASSETS_KAFKA_BOOTSTRAP_SERVERS" in commands.refused("journal", "publish", exit_code=2)


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed: apt-get install kcat")
@pytest.mark.usefixtures("journal")
def test_kcat_lists_the_topics_with_the_prefix(commands: Commands, brokers: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYPI_ASSETS_KAFKA_TOPIC_PREFIX", "pypi.changes")
    commands.done("journal", "publish")
    found = subprocess.run(["kcat", "-b", brokers, "-L", "-J"], capture_output=True, check=True, timeout=60)
    topics = {one["topic"] for one in json.loads(found.stdout)["topics"]}
    assert topics <= {"pypi.changes.index", "pypi.changes.observed", "pypi.changes.content"}
    assert "pypi.changes.content" in topics


class Unreached:
    """A publisher that cannot reach its brokers the first time."""

    def __init__(self, stopping: threading.Event) -> None:
        self.producer, self.stopping, self.calls = "first", stopping, 0

    def publish(self) -> int:
        self.calls += 1
        if self.calls == 1:
            raise KafkaTransientError("not reached")
        self.stopping.set()
        return 7


def test_unreachable_brokers_are_retried_by_a_new_client(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(journal_deliver, "_LONGEST_PAUSE_S", 0.01)
    one = Unreached(threading.Event())
    journal_deliver._publish_and_follow(one, lambda: "second", one.stopping, as_json=False)
    assert (one.calls, one.producer) == (2, "second")
    assert unnamed(capsys.readouterr().err, "7") == []
