"""Publishes the journal to Kafka: one topic for each stream, each message at least once, and a project's in order.

The consumer's stored position moves only once the brokers have acknowledged all messages before it. So a kill at any
moment can repeat messages, but not lose them.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import orjson

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.errors import ExpectedError
from pypi_assets.extras import install_command
from pypi_assets.journal.consumers import JournalConsumer
from pypi_assets.journal.cursors import Cursor
from pypi_assets.journal.record_reader import Journal
from pypi_assets.journal.segment_files import FORMAT
from pypi_assets.journal.tailing import EVERY, Scan, beginning

CONSUMER = "kafka"
SCHEMA = "pypi-assets.journal.record"
MOST_WAITING = 20_000
"""The most messages that were passed to the producer and are not acknowledged yet."""
STORE_EVERY_S = 1.0
_MOST_MESSAGE_BYTES = 16 * 1024**2
_POLL_S = 0.1
_PATIENCE_S = 120.0
_OURS = {
    "acks": "all",
    "enable.idempotence": "true",
    "partitioner": "murmur2_random",  # like Java clients, so that these find a project's partition
    "compression.type": "lz4",
    "linger.ms": "20",
    "message.timeout.ms": "0",  # never time out single messages: see open_producer
    "message.max.bytes": str(_MOST_MESSAGE_BYTES),
    "queue.buffering.max.messages": str(MOST_WAITING),
    "queue.buffering.max.kbytes": "65536",
}
_FIXED = frozenset({"acks", "enable.idempotence", "request.required.acks", "bootstrap.servers", "metadata.broker.list"})
"""Properties that the properties file may not change: delivery guarantees depend on them, or a setting sets them."""
_TIMEOUTS = ("delivery.timeout.ms", "message.timeout.ms")
_NO_TOPIC = frozenset({"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"})
"""The names that brokers and the client use for the error that a topic does not exist."""


class KafkaError(ExpectedError):
    """The brokers rejected a message, or the properties are invalid."""


class KafkaTransientError(KafkaError):
    """A failure that may pass: the brokers could not be reached in time."""


class OvertakenConsumerError(KafkaError):
    """Another process has moved the consumer in the meantime."""


class KafkaFault(Protocol):
    """The used part of an error of Kafka's client."""

    def retriable(self) -> bool: ...
    def name(self) -> str: ...


Header = tuple[str, str | bytes | None]


class Producer(Protocol):
    """The used part of `confluent_kafka.Producer`."""

    def produce(
        self,
        topic: str,
        *,
        value: bytes,
        key: bytes,
        on_delivery: Callable[[Any, Any], None],
        timestamp: int,
        headers: list[Header],
    ) -> None: ...
    def poll(self, timeout: float) -> int: ...
    def flush(self, timeout: float) -> int: ...
    def purge(self) -> None: ...


def read_properties(path: Path) -> dict[str, str]:
    """Return the properties in a file with lines NAME=VALUE, named as in librdkafka. Raises KafkaError."""
    found: dict[str, str] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise KafkaError(f"cannot read the properties of Kafka's client in {path}: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not name:
            # the line itself is not shown, since it can contain a password
            raise KafkaError(f"{path}, line {number}: not NAME=VALUE")
        if name in _FIXED:
            raise KafkaError(f"{path}, line {number}: {name} cannot be changed here")
        found[name] = value
    return found


def patience_of(properties: Mapping[str, str]) -> float:
    """Return for how many seconds the brokers may acknowledge nothing.

    Raises KafkaError if the value is not a number.
    """
    for name in _TIMEOUTS:
        if name in properties:
            try:
                return int(properties[name]) / 1000 or math.inf
            except ValueError:
                raise KafkaError(f"{name} is {properties[name]!r}: it must be a number of milliseconds") from None
    return _PATIENCE_S


def open_producer(servers: str, properties: Mapping[str, str]) -> Producer:
    """Open an idempotent producer.

    Its messages never time out one by one. Otherwise later messages would be delivered before a failed message is
    repeated, and a receiver that skips records older than its last one would lose the repeated message. Instead,
    KafkaPublisher abandons all waiting messages together.

    Raises KafkaError if the client is not installed or rejects a property.
    """
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka import Producer as ConfluentProducer
    except ImportError as error:
        raise KafkaError(
            f"Kafka's client is not installed: install the extra kafka with `{install_command('kafka')}`"
        ) from error
    try:
        theirs = {name: value for name, value in properties.items() if name not in _TIMEOUTS}
        made: Producer = ConfluentProducer({**_OURS, **theirs, "bootstrap.servers": servers})
    except (KafkaException, TypeError, ValueError) as error:
        raise KafkaError(f"Kafka's client rejects its properties: {error}") from error
    return made


def _client_error() -> type[Exception]:
    from confluent_kafka import KafkaException

    return KafkaException


def topic_of(prefix: str, stream: str) -> str:
    """Return the topic of a stream, such as `pypi-assets.index`."""
    return f"{prefix}.{stream}"


@dataclass
class KafkaPublisher:
    """Publishes the records after the position of `consumer` in the journal.

    `progress` receives the number of acknowledged messages, and can raise to stop.

    For example:

        producer = open_producer("localhost:9092", {})
        KafkaPublisher(catalog, Journal(storage), producer, "pypi-assets").publish()
    """

    catalog: Catalog
    journal: Journal
    producer: Producer
    prefix: str
    consumer: str = CONSUMER
    begin_at: Cursor | None = None
    """The position at which a new consumer begins. None means the beginning of the journal."""
    progress: Callable[[int], None] = lambda _: None
    clock: Callable[[], float] = time.monotonic
    patience_s: float = _PATIENCE_S
    """If the brokers acknowledge nothing for this time, all waiting messages are dropped, and published again later."""
    acknowledged: int = 0
    _waiting: "deque[_Sent]" = field(default_factory=deque)
    _reader: JournalConsumer = field(init=False)
    _reached: Cursor | None = None
    _stored_at: float = 0.0
    _moved_at: float = 0.0
    _fault: KafkaError | None = None
    _refusal: type[Exception] = field(default_factory=_client_error)

    def publish(self) -> int:
        """Publish all current records, and return the number of messages.

        Raises KafkaError if the brokers reject a message, KafkaTransientError if they cannot be reached in time,
        OvertakenConsumerError, and the errors of Scan.
        """
        before = self.acknowledged
        self._reader = self._find()
        self._reached = self._reader.cursor
        self._waiting.clear()
        self._fault, self._stored_at = None, self.clock()
        scan = Scan(self.journal, self._reached or self.begin_at or beginning(self.journal), EVERY)
        try:
            for place, line in scan:
                if line is not None:
                    self._produce(Cursor(*place), line)
                    self._await_acknowledgements(0.0)
            while self._waiting:
                self._await_acknowledgements(_POLL_S)
        except BaseException:
            self._abandon()
            raise
        self._reached = scan.end
        self._store()
        return self.acknowledged - before

    def _find(self) -> JournalConsumer:
        return JournalConsumer(self.catalog, self.journal, self.consumer).find()

    def _produce(self, cursor: Cursor, line: bytes) -> None:
        record = orjson.loads(line)
        sent = _Sent(cursor, topic_of(self.prefix, JournalStream(record["stream"]).value))
        headers: list[Header] = [
            ("schema", SCHEMA.encode()),
            ("schema-version", str(FORMAT).encode()),
            ("serial", str(record["serial"]).encode()),
            ("ordinal", str(record["ordinal"]).encode()),
            ("cursor", str(cursor).encode()),
        ]
        if not self._waiting:
            self._moved_at = time.monotonic()
        self._waiting.append(sent)
        while True:
            try:
                self.producer.produce(
                    sent.topic,
                    value=line,
                    key=(record["normalized"] or "").encode(),
                    on_delivery=partial(self._delivered, sent),
                    timestamp=int((record["at"] or 0) * 1000),
                    headers=headers,
                )
            except BufferError:  # the queue is full
                self._await_acknowledgements(_POLL_S)
            except self._refusal as error:
                raise KafkaError(f"the record {cursor.serial}/{cursor.ordinal} cannot be published: {error}") from error
            else:
                return

    def _delivered(self, sent: "_Sent", fault: KafkaFault | None, _message: object) -> None:
        if fault is None:
            sent.is_acknowledged = True
        elif self._fault is None and not sent.is_dropped:
            is_transient = fault.retriable() or fault.name() in {"_TRANSPORT", "_ALL_BROKERS_DOWN"}
            made = KafkaTransientError if is_transient else KafkaError
            hint = f"; create the topic {sent.topic}" if fault.name() in _NO_TOPIC else ""
            self._fault = made(
                f"the brokers did not accept the record {sent.place} for the topic {sent.topic}: {fault}{hint}"
            )

    def _await_acknowledgements(self, wait_s: float) -> None:
        """Process acknowledgements, and regularly store the position up to the first unacknowledged message."""
        self.producer.poll(wait_s)
        if self._fault is not None:
            raise self._fault
        now = time.monotonic()
        while self._waiting and self._waiting[0].is_acknowledged:
            self._reached = self._waiting.popleft().cursor
            self.acknowledged += 1
            self._moved_at = now
        if self._waiting and now - self._moved_at >= self.patience_s:
            first = self._waiting[0]
            raise KafkaTransientError(
                f"the brokers did not acknowledge the record {first.place} for the topic {first.topic} within"
                f" {self.patience_s:g} s"
            )
        if self.clock() - self._stored_at >= STORE_EVERY_S:
            self._store()
            self.progress(self.acknowledged)

    def _store(self) -> None:
        self._stored_at = self.clock()
        if self._reached is None or self._reached == self._reader.cursor:
            return
        if not self._reader.move(self._reached):
            raise OvertakenConsumerError(
                f"another process publishes as the consumer {self.consumer}: some records are published twice"
            )

    def _abandon(self) -> None:
        """Drop all waiting messages. Those acknowledged so far count."""
        for sent in self._waiting:
            sent.is_dropped = True  # the client may still report it later, as purged
        self._waiting.clear()
        self.producer.purge()
        self.producer.poll(0.0)


@dataclass(slots=True)
class _Sent:
    """A message that was passed to the producer, identified by the cursor after its record."""

    cursor: Cursor
    topic: str
    is_acknowledged: bool = False
    is_dropped: bool = False

    @property
    def place(self) -> str:
        """The serial and ordinal of the record, for messages."""
        return f"{self.cursor.serial}/{self.cursor.ordinal}"
