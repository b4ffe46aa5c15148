"""A service over a journal that tests write themselves, without a catalog, and clients of its streams."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests

from pypi_assets.catalog.reports.journal_format import JournalStream, Record
from pypi_assets.service.service import open_service
from pypi_assets.settings import load_settings
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.journal.written import simple_record, write_streams
from pypi_assets_tests.service.published import Client, client_of


@dataclass
class DrawnJournal:
    """A journal that grows by one segment at a time. Each serial has one record of the stream `index`."""

    home: Path
    through: int = 0
    records: list[Record] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)

    def add(self, count: int = 1, project: str = "demo", **fields: object) -> int:
        """Publish `count` more records and return the serial of the last one."""
        for _ in range(count):
            self.through += 1
            self.records.append(simple_record(self.through, "add file", project, **fields))
        storage = open_storage((self.home / "storage").as_uri())
        write_streams(
            storage, {JournalStream.INDEX: [dict(record) for record in self.records]}, self.through, cuts=self.cuts
        )
        self.cuts.append(self.through)
        return self.through

    @contextmanager
    def client(self, **settings: object) -> Iterator[Client]:
        """Yield a client of a service over this journal."""
        named: dict[str, Any] = {"home": self.home, "index_url": "http://127.0.0.1:9/simple/"}
        service = open_service(load_settings(**(named | {"service_refresh_s": 3600} | settings)))
        try:
            with client_of(service) as client:
                yield client
        finally:
            service.close()


@dataclass(frozen=True)
class Event:
    """An event of a stream: its ID and its data as JSON."""

    id: str
    data: Any


def lines_of(answer: requests.Response) -> Iterator[str]:
    """Yield the lines of a stream as they arrive."""
    incomplete = b""
    for part in answer.iter_content(chunk_size=None):
        *whole, incomplete = (incomplete + part).split(b"\n")
        for line in whole:
            yield line.decode()


def events_of(answer: requests.Response) -> Iterator[Event]:
    """Yield the events of a stream as the HTML standard defines them.

    A block without data is not an event, but its ID counts.
    """
    last, data = "", []
    for line in lines_of(answer):
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id":
            last = value
        elif name == "data":
            data.append(value)
        elif not line:
            if data:
                yield Event(last, json.loads("\n".join(data)))
            data = []


def raw_request(url: str, path: str, receive_buffer: int | None = None) -> socket.socket:
    """Return a connection on which a request was sent and nothing was read."""
    parts = urlsplit(url)
    connection = socket.socket()
    if receive_buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.connect((parts.hostname, parts.port))
    connection.settimeout(30)
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n".encode())
    return connection


def read_to_end(connection: socket.socket) -> bytes:
    """Return everything that arrives until the server closes the connection."""
    parts = []
    while part := connection.recv(65_536):
        parts.append(part)
    connection.close()
    return b"".join(parts)
