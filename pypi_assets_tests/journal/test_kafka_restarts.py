"""Kafka brokers restart, one or all, while records are published. Some records are repeated, none is lost."""

import random
import threading
from collections import defaultdict

import pytest
from confluent_kafka import Message

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.journal_deliveries import find_consumer
from pypi_assets.journal import kafka
from pypi_assets.journal.cursors import Cursor
from pypi_assets.journal.kafka import CONSUMER, KafkaPublisher, KafkaTransientError, open_producer
from pypi_assets.storage.store import Storage
from pypi_assets_tests.examples import first_seed
from pypi_assets_tests.journal.test_kafka import lines_of, made_journal, place, received
from pypi_assets_tests.kafka_cluster import MockCluster


def publish_while_brokers_restart(
    catalog: Catalog, storage: Storage, prefix: str, draw: random.Random, restarts: int
) -> tuple[list[bytes], list[Message]]:
    """Publish a journal while brokers go down and come back. Return its records and all messages."""
    journal, starts, progress = made_journal(storage, 600), 0, threading.Event()
    properties = {"log_level": "0", "linger.ms": "1", "batch.num.messages": "5"}
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
            running = KafkaPublisher(catalog, journal, producer, prefix, patience_s=2.0)
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


def test_no_message_is_delivered_after_an_undelivered_one() -> None:
    properties = {"log_level": "0", "linger.ms": "1", "message.timeout.ms": "500", "reconnect.backoff.max.ms": "100"}
    delivered: list[bytes] = []
    with MockCluster() as cluster:
        producer = open_producer(cluster.addresses, properties)

        def publish(value: bytes) -> None:
            producer.produce(
                "order.index",
                value=value,
                key=b"demo",
                on_delivery=lambda fault, message: delivered.append(message.value() if fault is None else b"lost"),
                timestamp=0,
                headers=[],
            )

        publish(b"0")
        assert producer.flush(10) == 0
        with cluster.down():
            publish(b"1")
            assert producer.flush(1.5) == 1  # long after the message timeout
            publish(b"2")
        assert producer.flush(20) == 0
    assert delivered == [b"0", b"1", b"2"]


def test_waiting_messages_are_dropped_together_if_no_broker_answers(sqlite_catalog: Catalog, storage: Storage) -> None:
    journal = made_journal(storage, 20)
    with MockCluster() as cluster:
        producer = open_producer(cluster.addresses, {"log_level": "0"})
        publisher = KafkaPublisher(sqlite_catalog, journal, producer, "dropped", patience_s=0.5)
        with cluster.down(), pytest.raises(KafkaTransientError):
            publisher.publish()
        assert producer.flush(5) == 0
        assert publisher.acknowledged == 0
        publisher.producer = open_producer(cluster.addresses, {"log_level": "0"})
        publisher.patience_s = 30.0
        assert publisher.publish() == len(lines_of(journal))
        assert [one.value() for one in received(cluster.addresses, "dropped")].count(lines_of(journal)[0]) == 1


@pytest.mark.parametrize("restarts", [2, pytest.param(12, marks=pytest.mark.nightly)])
def test_restarting_brokers_repeat_but_never_lose_records(restarts: int, sqlite_catalog: Catalog, storage: Storage):
    lines, messages = publish_while_brokers_restart(
        sqlite_catalog, storage, "restarted", random.Random(first_seed()), restarts
    )
    assert {message.value() for message in messages} == set(lines)
    first_seen = defaultdict(dict)
    for message in messages:
        first_seen[message.topic(), message.key()].setdefault(place(message))
    assert all(list(places) == sorted(places) for places in first_seen.values())
    with sqlite_catalog.read() as connection:
        known = find_consumer(connection, CONSUMER)
    assert known is not None
    assert Cursor.parse(known.cursor) == Cursor.after_serial(600)
