"""The journal as Kafka topics: the asset exists if Kafka is configured, and runs once the journal has grown."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.definitions import build_defs
from pypi_assets.defs import journal_topics
from pypi_assets.journal.kafka import KafkaError, topic_of
from pypi_assets.journal.publishing import write_missing
from pypi_assets.journal.record_reader import Journal
from pypi_assets.settings import load_settings
from pypi_assets_tests.defs.conftest import Pipeline, failure_text, settings_for
from pypi_assets_tests.journal.written import records_of
from pypi_assets_tests.kafka_brokers import mock_brokers
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex

SENSOR, JOB = "new_journal_records", "publish_journal"


@pytest.fixture
def published(index: ServedIndex, tmp_path: Path) -> Iterator[Pipeline]:
    with dg.DagsterInstance.ephemeral() as instance, mock_brokers() as brokers:
        made = Pipeline(settings_for(index.url, tmp_path / "home", kafka_bootstrap_servers=brokers), instance)
        yield made
        made.close()


@pytest.mark.nightly
def test_run_publishes_new_journal_records(index: ServedIndex, published: Pipeline) -> None:
    published.crawled()
    published.skipped(SENSOR)
    list(write_missing(published.catalog, published.storage))
    first = published.tick(SENSOR)
    assert isinstance(first, dg.RunRequest)
    assert published.run(JOB).success
    count = len(records_of(Journal(published.storage)))
    numbers = published.metadata("journal_topics")
    assert (numbers["messages"], numbers["serial"]) == (count, index.serial)
    assert numbers["topics"] == ", ".join(topic_of("pypi-assets", stream) for stream in JournalStream)
    assert unnamed(published.skipped(SENSOR), index.serial) == []
    index.wheel("newcomer", "1.0")
    (key,) = published.requested("new_serial_range")
    assert published.run("incremental_crawl", key).success
    second = published.tick(SENSOR)
    assert isinstance(second, dg.RunRequest)
    assert second.run_key != first.run_key


def test_failed_run_reports_the_reason_and_is_requested_again(
    published: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    published.crawled()
    list(write_missing(published.catalog, published.storage))

    def refuse(*_: object) -> object:
        raise KafkaError("the brokers refuse it")

    monkeypatch.setattr(journal_topics, "open_producer", refuse)
    result = published.run(JOB, raise_on_error=False)
    assert failure_text(result) == "the brokers refuse it"
    published.skipped(SENSOR)
    published.ahead_s = 61.0
    assert isinstance(published.tick(SENSOR), dg.RunRequest)


def test_asset_is_absent_without_brokers_or_client(monkeypatch: pytest.MonkeyPatch) -> None:
    def has(**settings: object) -> bool:
        keys = build_defs(load_settings(**settings)).resolve_asset_graph().get_all_asset_keys()
        return dg.AssetKey("journal_topics") in keys

    assert not has()
    assert has(kafka_bootstrap_servers="kafka.example.org:9092")
    monkeypatch.setattr(journal_topics, "find_spec", lambda _name: None)
    assert not has(kafka_bootstrap_servers="kafka.example.org:9092")
