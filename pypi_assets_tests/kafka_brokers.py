"""Kafka brokers for tests: three brokers of librdkafka's mock cluster."""

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer


@contextmanager
def mock_brokers() -> Iterator[str]:
    """Yield the broker addresses as HOST:PORT,... The brokers run as long as the client that created them."""
    client = Producer({"test.mock.num.brokers": 3, "log_level": 0})
    yield ",".join(f"{one.host}:{one.port}" for one in client.list_topics(timeout=30).brokers.values())
    client.flush(1)
