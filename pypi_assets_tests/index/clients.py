"""Clients of local servers that neither pause nor wait, and the pages of such servers."""

import hashlib
import io
import json
import math
import xmlrpc.client
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pypi_assets.index.client import IndexClient
from pypi_assets.index.rate import RateLimit, Rates
from pypi_assets.index.transport import Clock, Retries
from pypi_assets_tests.index.loopback import Answer, Loopback

JSON = {"Content-Type": "application/vnd.pypi.simple.v1+json"}
META = {"api-version": "1.4", "_last-serial": 7}
PAGE = Answer(200, json.dumps({"meta": META, "name": "demo", "files": []}).encode(), JSON)
XML = {"Content-Type": "text/xml"}
DATA = b"not a real wheel" * 100
SHA256 = hashlib.sha256(DATA).hexdigest()


@contextmanager
def unhurried_client(root_url: str, **options: Any) -> Iterator[IndexClient]:
    """Return a client of the index at `root_url`/simple/."""
    settings: dict[str, Any] = {
        "changelog_url": f"{root_url}/pypi",
        "rates": Rates(RateLimit(math.inf), RateLimit(math.inf)),
        "retries": Retries(1),
    }
    with IndexClient(options.pop("index_url", f"{root_url}/simple/"), **(settings | options)) as client:
        yield client


class FakeTime:
    """A clock that advances only while a client sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def rate_of(clock: FakeTime, per_second: float) -> RateLimit:
    return RateLimit(per_second, clock=clock, sleep=clock.sleep)


@contextmanager
def client_of(loopback: Loopback, clock: FakeTime | None = None, **options: Any) -> Iterator[IndexClient]:
    clock = clock or FakeTime()
    unhurried = rate_of(clock, math.inf)
    settings = {
        "rates": Rates(unhurried, unhurried),
        "changelog_url": f"{loopback.url}/pypi",
        "clock": Clock(clock, clock.sleep),
    }
    url = options.pop("index_url", f"{loopback.url}/simple/")
    with IndexClient(url, **(settings | options)) as client:
        yield client


def events(value: object) -> Answer:
    return Answer(200, xmlrpc.client.dumps((value,), methodresponse=True, allow_none=True).encode(), XML)


def fault(code: int, text: str) -> Answer:
    return Answer(200, xmlrpc.client.dumps(xmlrpc.client.Fault(code, text)).encode(), XML)


def fetch(client: IndexClient, url: str, sink: io.BytesIO | None = None, **options: Any) -> bytes:
    sink = sink or io.BytesIO()
    client.fetch_file(url, sink, **({"sha256": SHA256, "size": len(DATA), "max_bytes": 10_000} | options))
    return sink.getvalue()
