"""Brokers of Kafka that restart, one or all, while records are published: some come again, and none is lost."""

import random
import threading
from collections import defaultdict

import pytest
from confluent_kafka import Message

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.journal_consumers import find_consumer
from pypi_assets.journal import kafka
from pypi_assets.journal.cursors import Cursor
from pypi_assets.journal.kafka import CONSUMER, KafkaPublisher, KafkaTransientError, open_producer
from pypi_assets.storage.store import Storage
from pypi_assets_tests.journal.test_kafka import lines_of, made_journal, place, received
from pypi_assets_tests.kafka_cluster import MockCluster


def publish_while_brokers_restart(
    catalog: Catalog, storage: Storage, prefix: str, draw: random.Random, restarts: int
) -> tuple[list[bytes], list[Message]]:
    """Publish a journal while brokers go down and come back. Return its records and all messages."""
    journal, starts, progress = made_journal(storage, 600), 0, threading.Event()
    properties = {"log_level": "0", "linger.ms": "1", "batch.num.messages": "5", "message.timeout.ms": "2000"}
    with MockCluster() as cluster:
        ended = threading.Event()

        def restart() -> None:
            for _ in range(restarts):
                progress.wait(10)
                progress.clear()
                with cluster.down(*draw.choice(((), (1,), (2, 3)))):
                    ended.wait(draw.choice((0.05, 0.5, 2.5)))

        restarting = threading.Thread(target=restart)
        restarting.start()
        while True:
            starts += 1
            producer = open_producer(cluster.addresses, properties)
            running = KafkaPublisher(catalog, journal, producer, prefix)
            running.clock = lambda running=running: running.acknowledged / 40 * kafka.STORE_EVERY_S
            running.progress = lambda _count: progress.set()
            try:
                running.publish()
            except KafkaTransientError:
                assert starts < 100
                continue
            break
        ended.set()
        progress.set()
        restarting.join()
        return lines_of(journal), received(cluster.addresses, prefix)


@pytest.mark.parametrize("restarts", [2, pytest.param(12, marks=pytest.mark.nightly)])
def test_brokers_that_restart_repeat_records_and_never_lose_one(
    restarts: int, sqlite_catalog: Catalog, storage: Storage
):
    lines, messages = publish_while_brokers_restart(sqlite_catalog, storage, "restarted", random.Random(), restarts)
    assert {one.value() for one in messages} == set(lines)
    first_seen = defaultdict(dict)
    for message in messages:
        first_seen[message.topic(), message.key()].setdefault(place(message))
    assert all(list(places) == sorted(places) for places in first_seen.values())
    with sqlite_catalog.read() as connection:
        known = find_consumer(connection, CONSUMER)
    assert known is not None
    assert Cursor.parse(known.cursor) == Cursor.after_serial(600)
