"""A mock cluster of librdkafka whose brokers can go down and come back with their data."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import confluent_kafka

_PRODUCER = 0
_BROKERS = 3
_ERROR_BYTES = 512


class MockCluster:
    """Mock brokers of a dedicated client, controlled by the C interface of the library that Python's client ships."""

    def __init__(self) -> None:
        [library] = (Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs").glob("librdkafka*")
        self._c = ctypes.CDLL(str(library))
        for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_mock_cluster_new"):
            getattr(self._c, name).restype = ctypes.c_void_p
        self._c.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        conf = ctypes.c_void_p(self._c.rd_kafka_conf_new())
        self._client = ctypes.c_void_p(self._c.rd_kafka_new(_PRODUCER, conf, error, ctypes.c_size_t(_ERROR_BYTES)))
        assert self._client, error.value
        self._cluster = ctypes.c_void_p(self._c.rd_kafka_mock_cluster_new(self._client, _BROKERS))
        self.addresses: str = self._c.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: type[BaseException] | None, _e: BaseException | None, _t: TracebackType | None) -> None:
        self._c.rd_kafka_mock_cluster_destroy(self._cluster)
        self._c.rd_kafka_destroy(self._client)

    @contextmanager
    def down(self, *brokers: int) -> Iterator[None]:
        """Disconnect the given brokers (1 to 3), or all of them, and reject connections until the block ends."""
        named = brokers or range(1, _BROKERS + 1)
        for broker in named:
            self._c.rd_kafka_mock_broker_set_down(self._cluster, broker)
        try:
            yield
        finally:
            for broker in named:
                self._c.rd_kafka_mock_broker_set_up(self._cluster, broker)
