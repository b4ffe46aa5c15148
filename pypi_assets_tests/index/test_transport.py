"""Requests respect rates, retry transient failures, follow checked redirects, and raise typed errors."""

import io
import socket
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from pypi_assets.index.client import IndexClient
from pypi_assets.index.errors import NotOnIndexError, RefusedError, TransientError
from pypi_assets.index.models import ProjectPage
from pypi_assets.index.rate import Rates
from pypi_assets.index.transport import LONGEST_PAUSE_S, Retries, Timeouts, retry_after_s, user_agent
from pypi_assets_tests.index.clients import DATA, JSON, PAGE, FakeTime, client_of, fault, fetch, rate_of
from pypi_assets_tests.index.loopback import Answer, Request, answering, serving
from pypi_assets_tests.naming import naming

# Politeness


def test_requests_name_the_client() -> None:
    with answering(PAGE) as loopback, client_of(loopback, contact="ops@example.org") as client:
        client.project_page("demo")
        headers = loopback.received[0].headers
    assert headers["user-agent"] == user_agent("ops@example.org")
    assert "pypi-assets/" in headers["user-agent"]
    assert "ops@example.org" in headers["user-agent"]
    assert headers["accept"] == "application/vnd.pypi.simple.v1+json"


def test_contact_cannot_inject_headers() -> None:
    with pytest.raises(ValueError, match="X-Evil"):
        user_agent("a\r\nX-Evil: 1")


def test_threads_share_the_connections_and_keep_them() -> None:
    at_once: list[int] = []
    gate = threading.Semaphore(0)
    counter = threading.Lock()
    open_now = 0

    def answer(_: Request) -> Answer:
        nonlocal open_now
        with counter:
            open_now += 1
            at_once.append(open_now)
            if len(at_once) >= 3:  # the first three wait for each other, so that three are open at once
                gate.release(100)
        gate.acquire(timeout=60)
        with counter:
            open_now -= 1
        return PAGE

    with (
        serving(answer) as loopback,
        client_of(loopback, max_connections=3) as client,
        ThreadPoolExecutor(12) as pool,
    ):
        assert len(list(pool.map(client.project_page, ["demo"] * 60))) == 60
    assert max(at_once) == 3


def test_unused_bodies_do_not_cost_a_connection() -> None:
    answers = [Answer(301, b"away", {"Location": "/simple/demo/"}), PAGE, Answer(304, headers={"Content-Length": ""})]
    with answering(*answers, Answer(404, b"x" * 10_000)) as loopback, client_of(loopback) as client:
        client.project_page("demo")
        client.project_page("demo", etag='"e"')
        for _ in range(3):
            with pytest.raises(NotOnIndexError):
                client.project_page("demo")
        assert (len(loopback.received), loopback.connections) == (6, 1)


def test_all_requests_share_one_rate() -> None:
    clock = FakeTime()
    with answering(PAGE) as loopback, client_of(loopback, clock, rates=Rates(rate_of(clock, 10.0))) as client:
        for _ in range(31):
            client.project_page("demo")
    assert clock.now - 1000 == pytest.approx(3, abs=0.2)


@pytest.mark.parametrize(
    ("trouble", "requested_pause_s"),
    [
        (Answer(429, headers={"Retry-After": "7"}), 7),
        (Answer(503, headers={"Retry-After": "11"}), 11),
        (Answer(500), 0),
        (Answer(502, b"<html>", {"Content-Type": "text/html"}), 0),
        (Answer(200, b"<html>hello", {"Content-Type": "text/html"}), 0),
        (Answer(200, PAGE.body[:-9], JSON), 0),
        (Answer(200, PAGE.body[:-9], JSON | {"Content-Length": str(len(PAGE.body))}, is_last=True), 0),
        (Answer(200, b'4\r\n{"me\r\n40\r\nta', JSON | {"Transfer-Encoding": "chunked"}, is_last=True), 0),
        (Answer(200, b"no gzip", JSON | {"Content-Encoding": "gzip"}), 0),
    ],
    ids=["429", "503", "500", "502", "html", "broken json", "cut short", "cut chunk", "no gzip"],
)
def test_transient_failures_are_retried(trouble: Answer, requested_pause_s: float) -> None:
    clock = FakeTime()
    with answering(trouble, trouble, PAGE) as loopback, client_of(loopback, clock) as client:
        assert isinstance(client.project_page("demo"), ProjectPage)
        assert len(loopback.received) == 3
    first, second = clock.slept
    assert first >= max(1, requested_pause_s)
    assert second >= max(2, requested_pause_s)
    assert first <= max(2, requested_pause_s)
    assert second <= max(3, requested_pause_s)


def test_exhausted_retries_raise_with_the_pause() -> None:
    clock = FakeTime()
    trouble = Answer(429, headers={"Retry-After": "7"})
    with answering(trouble) as loopback, client_of(loopback, clock, retries=Retries(3)) as client:
        with pytest.raises(TransientError, match=naming(429)) as caught:
            client.project_page("demo")
        assert len(loopback.received) == 3
    assert caught.value.retry_after_s == 7.0


def test_long_retry_after_is_not_retried() -> None:
    clock = FakeTime()
    with answering(Answer(503, headers={"Retry-After": "3600"})) as loopback, client_of(loopback, clock) as client:
        with pytest.raises(TransientError) as caught:
            client.project_page("demo")
        assert len(loopback.received) == 1
    assert caught.value.retry_after_s == 3600.0
    assert clock.slept == []


def test_429_pauses_all_threads() -> None:
    clock = FakeTime()
    trouble = Answer(429, headers={"Retry-After": "30"})
    with answering(trouble, PAGE) as loopback, client_of(loopback, clock, retries=Retries(1)) as client:
        with pytest.raises(TransientError):
            client.project_page("demo")
        client.project_page("demo")
    assert clock.slept == [pytest.approx(30, abs=0.1)]


class Holds:
    """A shared rate that records its calls."""

    def __init__(self) -> None:
        self.calls: list[float | None] = []

    def wait(self) -> None:
        self.calls.append(None)

    def hold(self, seconds: float) -> None:
        self.calls.append(seconds)


def test_shared_rate_is_held_when_limits_are_exceeded() -> None:
    pages, changelog = Holds(), Holds()
    troubles = [
        Answer(429, headers={"Retry-After": "7"}),
        Answer(429, headers={"Retry-After": "7200"}),
        fault(-32500, "HTTPTooManyRequests: ... Limit may reset in 42 seconds."),
        fault(-32500, "HTTPTooManyRequests: ... Limit may reset in 3000 seconds."),
    ]
    with (
        answering(*troubles) as loopback,
        client_of(loopback, rates=Rates(pages, changelog), retries=Retries(1)) as client,
    ):
        for request in (client.listing, client.listing, client.last_serial, client.last_serial):
            with pytest.raises(TransientError):
                request()
    assert pages.calls == [None, 7.0, None, LONGEST_PAUSE_S, None, None]
    assert changelog.calls == [None, 42.0, None, LONGEST_PAUSE_S]


def test_retry_after_is_seconds_or_a_date(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 11, 20, 10, 0, 0, tzinfo=UTC)
    monkeypatch.setattr(time, "time", now.timestamp)
    assert retry_after_s("7") == 7.0
    assert retry_after_s(" 7 ") == 7.0
    assert retry_after_s("100000") == 100_000.0
    assert retry_after_s("Fri, 20 Nov 2026 10:01:30 GMT") == 90.0
    assert retry_after_s("Fri Nov 20 10:01:30 2026") == 90.0
    assert retry_after_s("Fri, 20 Nov 2026 09:00:00 GMT") == 0.0
    assert retry_after_s("soon") is None
    assert retry_after_s("-1") is None
    assert retry_after_s("9" * 5000) is None
    assert retry_after_s("Fri, 20 Nov 99999999999999999999 10:00:00 GMT") is None
    assert retry_after_s(None) is None


def test_each_redirect_is_checked() -> None:
    with serving(lambda _: Answer(200, DATA)) as loopback, client_of(loopback) as client:
        with answering(Answer(302, headers={"Location": f"{loopback.other_url}/f"})) as door:
            with pytest.raises(RefusedError, match="localhost"):
                fetch(client, f"{door.url}/f")
            assert loopback.received == []
        with answering(Answer(302, headers={"Location": f"{loopback.url}/f"})) as door:
            assert fetch(client, f"{door.url}/f") == DATA
        with answering(Answer(302, headers={"Location": "/again"})) as door:
            with pytest.raises(RefusedError, match=naming(5)):
                fetch(client, f"{door.url}/f")
            assert len(door.received) == 6


@pytest.mark.parametrize(
    "location",
    [
        "file:///etc/passwd",
        "http://[::1",
        "http://[127.0.0.1]/f",
        "http://[a@127.0.0.1/f",
        "http://127.0.0.1\\@files.example.org/f",
        "http://127.0.0.1:99999/f",
        "http://\xe2\x84\x80@127.0.0.1/f",
        "http://\xff/f",
        "//",
    ],
)
def test_invalid_redirect_is_rejected(location: str) -> None:
    with (
        answering(Answer(302, headers={"Location": location})) as loopback,
        client_of(loopback) as client,
        pytest.raises(RefusedError),
    ):
        fetch(client, f"{loopback.url}/f")


def test_dripping_body_is_not_waited_for() -> None:
    class SlowTime(FakeTime):
        def __call__(self) -> float:
            self.now += 900  # one chunk may take that long, but two may not
            return self.now

    with (
        answering(Answer(200, b"x" * 2_000_000)) as loopback,
        client_of(loopback, SlowTime(), retries=Retries(1), timeouts=Timeouts(read_s=1000)) as client,
        pytest.raises(TransientError, match=naming(1024)),
    ):
        fetch(client, f"{loopback.url}/f", sha256=None, size=None, max_bytes=10_000_000)


def test_slow_consumer_does_not_count_as_slow_body() -> None:
    clock = FakeTime()

    class SlowSink(io.BytesIO):
        def write(self, data: Any) -> int:
            clock.now += 3600
            return super().write(data)

    big = b"x" * 2_000_000
    with answering(Answer(200, big)) as loopback, client_of(loopback, clock, retries=Retries(1)) as client:
        assert fetch(client, f"{loopback.url}/f", SlowSink(), sha256=None, size=None, max_bytes=10_000_000) == big


# Failures before any answer, and what errors must not reveal


@contextmanager
def resetting() -> Iterator[str]:
    """Yield the URL of a server that resets every connection at the first request."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def reset() -> None:
            with suppress(OSError):
                while True:
                    with server.accept()[0] as connection:
                        connection.recv(1)
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        thread = threading.Thread(target=reset)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_reset_connections_are_retried() -> None:
    with answering(PAGE) as loopback, resetting() as url:
        clock = FakeTime()
        with (
            client_of(loopback, clock, index_url=f"{url}/simple/", retries=Retries(3)) as client,
            pytest.raises(TransientError),
        ):
            client.project_page("demo")
    assert len(clock.slept) == 2


def test_unreachable_server_is_named() -> None:
    with answering(PAGE) as loopback:
        pass
    with client_of(loopback, retries=Retries(2)) as client, pytest.raises(TransientError) as caught:
        client.project_page("demo")
    assert f"{loopback.url}/simple/demo/" in str(caught.value)


def test_unknown_host_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    url = "http://index.invalid"
    with (
        IndexClient(f"{url}/simple/", changelog_url=f"{url}/pypi", retries=Retries(1)) as client,
        pytest.raises(TransientError) as caught,
    ):
        client.project_page("demo")
    assert "index.invalid" in str(caught.value)


def test_silent_server_times_out() -> None:
    done = threading.Event()

    def answer(_: Request) -> Answer:
        done.wait(60)
        return PAGE

    impatient = {"retries": Retries(1), "timeouts": Timeouts(read_s=0.05)}
    with serving(answer) as loopback, client_of(loopback, **impatient) as client:
        with pytest.raises(TransientError):
            client.project_page("demo")
        done.set()


def test_credentials_are_sent_only_to_their_origin_and_hidden_from_errors() -> None:
    with answering(Answer(403)) as other, serving(lambda _: Answer(403)) as loopback:
        secret = loopback.url.replace("http://", "http://me:hush%21@")
        with client_of(loopback, index_url=f"{secret}/simple/", changelog_url=f"{secret}/pypi") as client:
            for request in (
                lambda: client.project_page("demo"),
                client.last_serial,
                client.listing,
                lambda: fetch(client, f"{loopback.url}/f"),
                lambda: fetch(client, f"{other.url}/f"),
                lambda: fetch(client, f"{other.url.replace('http://', 'http://you:hush%21@')}/f"),
            ):
                with pytest.raises(RefusedError) as caught:
                    request()
                assert "hush" not in str(caught.value)
                assert "me:" not in repr(caught.value)
        assert [request.headers.get("authorization") for request in loopback.received] == ["Basic bWU6aHVzaCE="] * 4
        assert [request.headers.get("authorization") for request in other.received] == [None, "Basic eW91Omh1c2gh"]
