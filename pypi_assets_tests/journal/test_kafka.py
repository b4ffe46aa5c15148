"""Kafka: each record is sent at least once, in order for each project, and kills lose no record."""

import json
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.publications.journal_deliveries import find_consumer, move_consumer
from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.journal import kafka
from pypi_assets.journal.consumers import JournalConsumer
from pypi_assets.journal.cursors import Cursor
from pypi_assets.journal.filters import RecordFilter
from pypi_assets.journal.kafka import (
    CONSUMER,
    KafkaError,
    KafkaPublisher,
    KafkaTransientError,
    OvertakenConsumerError,
    open_producer,
    read_properties,
    topic_of,
)
from pypi_assets.journal.record_reader import Journal
from pypi_assets.journal.tailing import Scan, beginning
from pypi_assets.storage.store import Storage
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.journal.written import simple_record, write_streams
from pypi_assets_tests.kafka_brokers import mock_brokers
from pypi_assets_tests.naming import naming

PREFIX = "changes"
TOPICS = [topic_of(PREFIX, stream) for stream in JournalStream]


@pytest.fixture(scope="module")
def brokers() -> Iterator[str]:
    with mock_brokers() as addresses:
        yield addresses


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    opened = open_catalog(sqlite_database(tmp_path / "catalog.sqlite"))
    yield opened
    opened.close()


def made_journal(storage: Storage, serials: int = 60) -> Journal:
    """Write a journal: an index record for each serial, an observed record for every second, records of content
    and visits for every third.
    """
    names = [f"project-{serial % 7}" for serial in range(serials + 1)]
    records = {
        JournalStream.INDEX: [simple_record(one, "add file", names[one]) for one in range(1, serials + 1)],
        JournalStream.OBSERVED: [simple_record(one, "file-added", names[one]) for one in range(2, serials + 1, 2)],
        JournalStream.VISITS: [simple_record(one, "visit full", names[one]) for one in range(3, serials + 1, 3)],
        JournalStream.CONTENT: [
            simple_record(one, "file-read", names[one], modules=["été"]) for one in range(3, serials + 1, 3)
        ],
    }
    return write_streams(storage, records, serials, cuts=(serials // 2,))


def lines_of(journal: Journal) -> list[bytes]:
    return [line for _, line in Scan(journal, beginning(journal), RecordFilter()) if line is not None]


def publisher(catalog: Catalog, journal: Journal, brokers: str, prefix: str) -> KafkaPublisher:
    return KafkaPublisher(catalog, journal, open_producer(brokers, {"log_level": "0"}), prefix)


def received(brokers: str, prefix: str) -> list[Message]:
    """Return all messages of all topics, in order within each partition."""
    reader = Consumer({"bootstrap.servers": brokers, "group.id": prefix, "enable.auto.commit": False, "log_level": 0})
    topics = reader.list_topics(timeout=30).topics
    partitions = [
        TopicPartition(topic, partition, OFFSET_BEGINNING)
        for topic in (topic_of(prefix, stream) for stream in JournalStream)
        for partition in topics[topic].partitions
    ]
    ends = [reader.get_watermark_offsets(partition, timeout=30)[1] for partition in partitions]
    reader.assign(partitions)
    found: list[Message] = []
    while len(found) < sum(ends):
        messages = reader.consume(sum(ends) - len(found), timeout=30)
        assert messages, f"{len(found)} of {sum(ends)} messages came"
        assert [message.error() for message in messages if message.error() is not None] == []
        found += messages
    reader.close()
    return found


def place(message: Message) -> tuple[str, int, int]:
    record = orjson.loads(message.value())
    return record["stream"], record["serial"], record["ordinal"]


def test_each_record_is_a_message_in_its_topic_keyed_by_project(catalog: Catalog, storage: Storage, brokers: str):
    journal, prefix = made_journal(storage), "each"
    lines = lines_of(journal)
    assert publisher(catalog, journal, brokers, prefix).publish() == len(lines)
    messages = received(brokers, prefix)
    assert sorted(message.value() for message in messages) == sorted(lines)
    partitions = defaultdict(set)
    by_project = defaultdict(list)
    for message in messages:
        record = orjson.loads(message.value())
        headers = dict(message.headers())
        assert message.topic() == f"{prefix}.{record['stream']}"
        assert message.key() == record["normalized"].encode()
        assert headers["schema"] == b"pypi-assets.journal.record"
        assert headers["schema-version"] == b"1"
        assert (int(headers["serial"]), int(headers["ordinal"])) == (record["serial"], record["ordinal"])
        assert Cursor.parse(headers["cursor"].decode()) == Cursor.of(record)
        assert message.timestamp()[1] == record["at"] * 1000
        partitions[message.topic(), message.key()].add(message.partition())
        by_project[message.topic(), message.key()].append(place(message))
    assert {len(partition) for partition in partitions.values()} == {1}
    assert all(places == sorted(places) for places in by_project.values())


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed: apt-get install kcat")
def test_kcat_reads_the_same_messages(catalog: Catalog, storage: Storage, brokers: str):
    journal, prefix = made_journal(storage), "cat"
    publisher(catalog, journal, brokers, prefix).publish()
    command = ["kcat", "-b", brokers, "-C", "-e", "-q", "-o", "beginning", "-f", "%k %h %s\n"]
    lines = []
    for stream in JournalStream:
        done = subprocess.run([*command, "-t", topic_of(prefix, stream)], capture_output=True, check=True, timeout=60)
        lines += done.stdout.splitlines()
    assert sorted(line.split(b" ", 2)[2] for line in lines) == sorted(lines_of(journal))
    key, headers, record = lines[0].split(b" ", 2)
    assert key.decode() == orjson.loads(record)["normalized"]
    assert b"schema=pypi-assets.journal.record,schema-version=1,serial=" in headers


def test_publisher_resumes_at_its_position(catalog: Catalog, storage: Storage, brokers: str):
    journal = made_journal(storage, 30)
    first = publisher(catalog, journal, brokers, "on").publish()
    assert publisher(catalog, journal, brokers, "on").publish() == 0
    longer = made_journal(storage, 60)
    assert publisher(catalog, longer, brokers, "on").publish() == len(lines_of(longer)) - first
    with catalog.read() as connection:
        known = find_consumer(connection, CONSUMER)
    assert known is not None
    assert Cursor.parse(known.cursor) == Cursor.after_serial(60)


_PROGRAM = """
import sys
from pypi_assets.catalog.database import open_catalog
from pypi_assets.journal import kafka
from pypi_assets.journal.record_reader import Journal
from pypi_assets.storage.store import open_storage

database, storage, brokers, prefix, moment, count = sys.argv[1:]
kafka.STORE_EVERY_S = 50  # messages: they are its clock

class HeldPublisher(kafka.KafkaPublisher):
    sent = 0

    def hold(self, reached, at):
        if reached == moment and at >= int(count):
            print(self._reached, flush=True)
            sys.stdin.read()  # until it is killed

    def _produce(self, cursor, line):
        super()._produce(cursor, line)
        self.sent += 1
        self.hold("sent", self.sent)
        while len(self._waiting) > 20:  # so that no more than this is sent before what is acknowledged is noticed
            self._await_acknowledgements(0.1)

    def _store(self):
        self.hold("acknowledged", self.acknowledged)
        super()._store()
        self.hold("stored", self.acknowledged)

producer = kafka.open_producer(brokers, {"linger.ms": "1", "batch.num.messages": "20", "log_level": "0"})
publisher = HeldPublisher(open_catalog(database), Journal(open_storage(storage)), producer, prefix)
publisher.clock = lambda: publisher.acknowledged
publisher.publish()
"""


@pytest.mark.nightly
def test_killed_publisher_repeats_but_never_loses_records(catalog: Catalog, storage: Storage, brokers: str):
    journal, prefix = made_journal(storage, 600), "killed"
    lines = lines_of(journal)

    def stored() -> str | None:
        with catalog.read() as connection:
            known = find_consumer(connection, CONSUMER)
        return None if known is None else known.cursor

    def killed(moment: str, count: int) -> str:
        """Kill a publisher at this moment after `count` messages and return its last acknowledged position."""
        command = [sys.executable, "-c", _PROGRAM, str(catalog.engine.url), storage.url, brokers, prefix]
        with subprocess.Popen(
            [*command, moment, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            reached = process.stdout.readline().strip()
            process.kill()
        return reached

    reached = Cursor.parse(killed("acknowledged", 1))
    assert Cursor.of(orjson.loads(lines[0])) <= reached
    assert stored() is None
    assert killed("stored", 200) == stored()
    first = Cursor.parse(stored() or "")
    assert Cursor.of(orjson.loads(lines[199])) <= first < Cursor.of(orjson.loads(lines[280]))
    reached = Cursor.parse(killed("acknowledged", 200))
    second = Cursor.parse(stored() or "")
    assert first < second < reached < Cursor.of(orjson.loads(lines[560]))
    killed("sent", 100)
    assert second <= Cursor.parse(stored() or "") < Cursor.of(orjson.loads(lines[680]))

    publisher(catalog, journal, brokers, prefix).publish()
    messages = received(brokers, prefix)
    assert {message.value() for message in messages} == set(lines)
    assert len(messages) > len(lines)
    first_seen = defaultdict(dict)
    for message in messages:
        first_seen[message.topic(), message.key()].setdefault(place(message))
    assert all(list(places) == sorted(places) for places in first_seen.values())


class FakeProducer:
    """A producer that acknowledges all messages except failing ones and queues at most `room` messages."""

    def __init__(self, room: int = 1_000, failing: Sequence[int] = (), fault: object = None) -> None:
        self.room, self.failing, self.fault = room, failing, fault
        self.waiting: list[tuple[int, object]] = []
        self.taken = self.most = 0
        self.last_first = False

    def produce(self, topic: str, *, on_delivery: object, **_: object) -> None:
        if len(self.waiting) >= self.room:
            raise BufferError
        self.waiting.append((self.taken, on_delivery))
        self.taken += 1
        self.most = max(self.most, len(self.waiting))

    def poll(self, timeout: float) -> int:
        if timeout == 0.0 and len(self.waiting) < self.room:
            return 0
        for number, delivered in reversed(self.waiting) if self.last_first else self.waiting:
            delivered(self.fault if number in self.failing else None, None)
        self.waiting.clear()
        return 1

    def flush(self, timeout: float) -> int:
        return 0

    def purge(self) -> None:
        self.waiting.clear()


class Fault:
    def __init__(self, name: str, *, retriable: bool = False) -> None:
        self._name, self._retriable = name, retriable

    def name(self) -> str:
        return self._name

    def retriable(self) -> bool:
        return self._retriable


def of_fake(catalog: Catalog, storage: Storage, producer: FakeProducer) -> KafkaPublisher:
    return KafkaPublisher(catalog, made_journal(storage), producer, PREFIX)


def test_queue_is_limited_by_the_producer(catalog: Catalog, storage: Storage):
    producer = FakeProducer(room=10)
    one = of_fake(catalog, storage, producer)
    assert one.publish() == len(lines_of(one.journal))
    assert producer.most == 10


def test_position_is_never_after_an_unacknowledged_message(
    catalog: Catalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(kafka, "STORE_EVERY_S", 0.0)
    producer = FakeProducer(room=10, failing=[25], fault=Fault("MSG_SIZE_TOO_LARGE"))
    producer.last_first = True
    one = of_fake(catalog, storage, producer)
    stream = orjson.loads(lines_of(one.journal)[25])["stream"]
    with pytest.raises(KafkaError, match=naming(f"changes.{stream}")) as failure:
        one.publish()
    assert not isinstance(failure.value, KafkaTransientError)
    with catalog.read() as connection:
        known = find_consumer(connection, CONSUMER)
    assert known is not None
    lines = lines_of(one.journal)
    assert Cursor.parse(known.cursor) < Cursor.of(orjson.loads(lines[25]))
    again = of_fake(catalog, storage, FakeProducer())
    assert again.publish() >= len(lines) - 25


@pytest.mark.parametrize("fault", [Fault("_TRANSPORT"), Fault("NOT_LEADER", retriable=True)])
def test_unreachable_brokers_are_a_transient_error(catalog: Catalog, storage: Storage, fault: Fault):
    one = of_fake(catalog, storage, FakeProducer(failing=[3], fault=fault))
    with pytest.raises(KafkaTransientError):
        one.publish()
    one.producer = FakeProducer()
    assert one.publish() == len(lines_of(one.journal))


def test_missing_topic_is_named(catalog: Catalog, storage: Storage):
    one = of_fake(catalog, storage, FakeProducer(failing=[0], fault=Fault("UNKNOWN_TOPIC_OR_PART")))
    with pytest.raises(KafkaError, match=naming("changes.index")):
        one.publish()


def test_other_process_with_the_same_name_is_an_error(catalog: Catalog, storage: Storage):
    one = of_fake(catalog, storage, FakeProducer(room=5))
    moved = Cursor.after_serial(1)
    one.journal.head("index")
    original = one._find

    def find_then_move() -> JournalConsumer:
        found = original()
        move_consumer(catalog, CONSUMER, str(moved), moved.serial)
        return found

    one._find = find_then_move
    with pytest.raises(OvertakenConsumerError):
        one.publish()


def test_new_consumer_begins_at_the_given_position(catalog: Catalog, storage: Storage):
    one = of_fake(catalog, storage, FakeProducer())
    one.begin_at = Cursor.after_serial(50)
    assert one.publish() == sum(json.loads(line)["serial"] > 50 for line in lines_of(one.journal))


def test_properties_are_read_but_guarantees_cannot_be_overridden(tmp_path: Path):
    path = tmp_path / "kafka.properties"
    path.write_text("# TLS\nsecurity.protocol = SSL\n\nssl.ca.location=/ca.pem\n")
    assert read_properties(path) == {"security.protocol": "SSL", "ssl.ca.location": "/ca.pem"}
    for text, values in {
        "sasl.password": [path, 1],
        "acks=0": [path, 1, "acks"],
        "enable.idempotence=false": [path, 1, "enable.idempotence"],
    }.items():
        path.write_text(text)
        with pytest.raises(KafkaError, match=naming(*values)):
            read_properties(path)
    with pytest.raises(KafkaError, match=naming("missing")):
        read_properties(tmp_path / "missing")


def test_invalid_property_raises_its_own_error():
    with pytest.raises(KafkaError, match=naming("no.such.property")):
        open_producer("127.0.0.1:9", {"no.such.property": "1"})


def test_missing_client_error_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(KafkaError, match=naming("kafka")):
        open_producer("127.0.0.1:9", {})
