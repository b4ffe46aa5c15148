"""No server holds a request for longer than twice the timeout, regardless of what it sends or how slowly."""

import io
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import trustme

from pypi_assets.index.addresses import UnknownAddressError, resolve
from pypi_assets.index.client import IndexClient
from pypi_assets.index.connections import Network
from pypi_assets.index.deadlines import Watchdog
from pypi_assets.index.errors import PackageIndexError, RefusedError, TransientError
from pypi_assets.index.models import ProjectPage
from pypi_assets.index.transport import Timeouts, WaitAllowance
from pypi_assets_tests.index.clients import JSON, PAGE, unhurried_client
from pypi_assets_tests.index.hostile_servers import GOOD, HOLDS, LONG, PAUSE_S, Hold, Holding, holding
from pypi_assets_tests.index.loopback import Answer, answering
from pypi_assets_tests.naming import mentions, naming


def test_addresses_match_the_system_resolver() -> None:
    assert resolve("127.0.0.1") == ["127.0.0.1"]
    assert "127.0.0.1" in resolve("localhost")
    with pytest.raises(UnknownAddressError):
        resolve("no-such-name.invalid")
    with pytest.raises(UnicodeError):
        resolve("a" * 64 + ".example.org")


def test_hanging_resolver_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    done, real = threading.Event(), socket.getaddrinfo

    def hang(host: Any, *args: Any, **options: Any) -> Any:
        if options.get("flags") != socket.AI_NUMERICHOST:
            done.wait(30)
        return real(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        resolve("index.example.org", 0.1)
    for network in (Network(), Network(proxy="http://proxy.invalid:3128")):
        with (
            unhurried_client("http://index.invalid", network=network, timeouts=Timeouts(0.3, 0.3)) as client,
            pytest.raises(TransientError, match=naming("index.invalid")),
        ):
            client.project_page("demo")
    assert time.monotonic() - started < 10  # out of 30
    done.set()


TIMEOUT_S = 0.5
LATE_S = 2 * TIMEOUT_S
Ended = tuple[PackageIndexError, float]
"""How a request ended, and after how many seconds."""
FLOODS = sorted(name for name in HOLDS if "flood" in name or "endless" in name)
DRIPS = sorted(set(HOLDS) - set(FLOODS))


@contextmanager
def impatient(root_url: str, **options: Any) -> Iterator[IndexClient]:
    with unhurried_client(root_url, timeouts=Timeouts(TIMEOUT_S, TIMEOUT_S), **options) as client:
        yield client


def failure(request: Callable[[], object]) -> Ended:
    started = time.monotonic()
    with pytest.raises(PackageIndexError) as caught:
        request()
    return caught.value, time.monotonic() - started


def quickest(end: Callable[[], Ended], limit_s: float = LATE_S, least_s: float = 0.0) -> Ended:
    """Repeat a request that ended too late, or too early.

    A busy machine delays some requests, a holding server delays all. A delay of the server itself can end them early.
    """
    ended = end()
    for _ in range(9):
        if least_s < ended[1] < limit_s:
            break
        ended = end()
    return ended


def wait_until_left(server: Holding) -> None:
    """Wait until the server notices that the client disconnected, at its next drip at the latest."""
    with server.changed:
        assert server.changed.wait_for(lambda: server.open_now == 0, 60)


def requests_of(client: IndexClient, url: str) -> list[Callable[[], object]]:
    wheel: dict[str, Any] = {"sha256": None, "size": 5_000, "max_bytes": 10_000}
    ranges = client.open_ranges(f"{url}/f", **wheel, metadata_sha256=None, has_sidecar=True)
    return [
        client.listing,
        client.last_serial,
        lambda: client.fetch_file(f"{url}/f", io.BytesIO(), **wheel),
        lambda: ranges.read_at(100, 1_000),
        ranges.sidecar,
    ]


def held(name: str) -> Ended:
    """Return the error of a request for a page and its duration, after the server has closed the connection."""
    with holding(HOLDS[name]) as server, impatient(server.url) as client:
        ended = failure(lambda: client.project_page("demo"))
        wait_until_left(server)
    return ended


def held_at_once(
    ends: Sequence[Callable[[], tuple[PackageIndexError, float]]],
) -> list[tuple[PackageIndexError, float]]:
    """Run all requests at once. They wait without using the processor, so together they take as long as one."""
    with ThreadPoolExecutor(len(ends)) as pool:
        ended = list(pool.map(lambda end: end(), ends))
    return [result if result[1] < LATE_S else quickest(end) for result, end in zip(ended, ends, strict=True)]


def test_dripping_servers_do_not_hold_a_request() -> None:
    ends = dict(zip(DRIPS, held_at_once([partial(held, name) for name in DRIPS]), strict=True))
    late = {name: f"{error} after {seconds:.2f} s" for name, (error, seconds) in ends.items() if seconds >= LATE_S}
    assert not late
    refused = {name for name, (error, _) in ends.items() if not isinstance(error, TransientError)}
    bodies = {"redirects with dripped bodies", "dripped body of an error", "dripped body of a demand for a login"}
    assert refused <= bodies  # these are rejected before their bodies are read


@pytest.mark.parametrize("name", FLOODS)
def test_flooding_servers_do_not_hold_a_request(name: str) -> None:
    error, seconds = quickest(partial(held, name))
    assert seconds < LATE_S, error


@pytest.mark.parametrize("name", ["dripped headers", "dripped chunk size", "dripped body without a length"])
def test_other_kinds_of_request_are_not_held(name: str) -> None:
    def end(kind: int) -> Ended:
        with holding(HOLDS[name]) as server, impatient(server.url) as client:
            return failure(requests_of(client, server.url)[kind])

    for error, seconds in held_at_once([partial(end, kind) for kind in range(5)]):
        assert isinstance(error, TransientError)
        assert seconds < LATE_S


def test_ten_concurrent_requests_end_as_soon_as_one() -> None:
    with holding(HOLDS["dripped headers"]) as server, impatient(server.url, max_connections=10) as client:
        ends = held_at_once([partial(failure, partial(client.project_page, f"demo{number}")) for number in range(10)])
    assert max(seconds for _, seconds in ends) < LATE_S


def trickle(bytes_per_s: int) -> Hold:
    def hold(connection: socket.socket) -> None:
        connection.sendall(GOOD + LONG)
        while True:
            connection.sendall(b"[" * int(bytes_per_s * PAUSE_S))
            time.sleep(PAUSE_S)

    return hold


def test_body_below_the_minimum_rate_fails() -> None:
    with holding(trickle(512)) as server, impatient(server.url) as client:
        error, seconds = quickest(partial(failure, partial(client.project_page, "demo")), 1.5 * LATE_S)
    assert mentions(str(error), 1024)
    assert seconds < 1.5 * LATE_S  # half the rate earns the same time again


def test_body_above_the_minimum_rate_fails_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pypi_assets.index.transport.LONGEST_BODY_S", 2 * TIMEOUT_S)
    with holding(trickle(5_000)) as server, impatient(server.url) as client:
        request = partial(failure, partial(client.project_page, "demo"))
        error, seconds = quickest(request, 1.5 * LATE_S, least_s=2 * TIMEOUT_S)
    assert isinstance(error, TransientError)
    assert 2 * TIMEOUT_S < seconds < 1.5 * LATE_S


def test_pausing_body_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def hold(connection: socket.socket) -> None:
        connection.sendall(GOOD + LONG + b"[" * 100_000)  # this many bytes would earn 97 seconds
        connection.recv(1)  # until the client disconnects

    with holding(hold) as server, impatient(server.url) as client:
        error, seconds = quickest(partial(failure, partial(client.project_page, "demo")))
    assert "timed out" in str(error)
    assert seconds < LATE_S


# Before any answer


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def drip_a_handshake(connection: socket.socket) -> None:
    """Send the start of a TLS record of 16 KB, and then its bytes one by one."""
    connection.recv(65536)
    connection.sendall(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc")
    while True:
        connection.sendall(b"\0")
        time.sleep(PAUSE_S)


def test_slow_handshake_fails(authority: trustme.CA) -> None:
    with holding(drip_a_handshake, reads_request=False) as server:
        url = server.url.replace("http:", "https:")
        with authority.cert_pem.tempfile() as file, impatient(url, network=Network(ca_file=file)) as client:
            error, seconds = quickest(partial(failure, partial(client.project_page, "demo")))
    assert isinstance(error, TransientError)
    assert seconds < LATE_S


@pytest.mark.parametrize("name", ["dripped headers", "endless empty deflate blocks"])
def test_deadlines_apply_to_tls(authority: trustme.CA, name: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with holding(HOLDS[name], tls=context) as server:
        url = server.url.replace("http:", "https:")
        with authority.cert_pem.tempfile() as file, impatient(url, network=Network(ca_file=file)) as client:
            _, seconds = quickest(partial(failure, partial(client.project_page, "demo")))
    assert seconds < LATE_S


@pytest.mark.parametrize("root", ["http://index.invalid", "https://index.invalid"])
@pytest.mark.parametrize("start", [b"HTTP/1.1 200 OK\r\n", b""])
def test_slow_proxy_fails(root: str, start: bytes) -> None:
    """Forwarding and opening a tunnel for TLS both end."""

    def hold(connection: socket.socket) -> None:
        connection.sendall(start)
        while True:
            connection.sendall(b"X: y\r\n")
            time.sleep(PAUSE_S)

    with holding(hold) as proxy, impatient(root, network=Network(proxy=proxy.url)) as client:
        error, seconds = quickest(partial(failure, partial(client.project_page, "demo")))
    assert isinstance(error, TransientError)
    assert seconds < LATE_S


def test_server_that_never_accepts_fails() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        port = server.getsockname()[1]
        waiting = [socket.socket() for _ in range(3)]
        for connection in waiting:  # fill its queue
            connection.setblocking(False)
            connection.connect_ex(("127.0.0.1", port))
        with impatient(f"http://127.0.0.1:{port}") as client:
            error, seconds = quickest(partial(failure, partial(client.project_page, "demo")))
        for connection in waiting:
            connection.close()
    assert "timed out" in str(error)
    assert seconds < LATE_S


# Cases that the deadline does not affect


def test_kept_connection_is_reused() -> None:
    with answering(PAGE) as loopback, impatient(loopback.url) as client:
        for _ in range(3):
            assert isinstance(client.project_page("demo"), ProjectPage)
        assert loopback.connections == 1


def test_interim_answer_is_retried_on_another_connection() -> None:
    with answering(Answer(103, headers={"Content-Length": ""}), PAGE) as loopback, impatient(loopback.url) as client:
        with pytest.raises(TransientError, match=naming(103)):
            client.project_page("demo")
        assert isinstance(client.project_page("demo"), ProjectPage)
        assert loopback.connections == 2


def test_unrequested_encoding_is_rejected() -> None:
    with (
        answering(Answer(200, PAGE.body, JSON | {"Content-Encoding": "br"})) as loopback,
        impatient(loopback.url) as client,
        pytest.raises(RefusedError, match=naming("br")),
    ):
        client.project_page("demo")


def test_only_the_block_past_its_deadline_ends() -> None:
    dog = Watchdog()
    held, other = socket.socketpair(), socket.socketpair()
    with held[0], held[1], other[0], other[1]:
        with dog.within(600, lambda: other[0]):
            with pytest.raises(TimeoutError), dog.within(0.05, lambda: held[0]):
                assert held[0].recv(1) == b""  # would wait forever
            other[1].sendall(b"x")
            assert other[0].recv(1) == b"x"
        assert held[1].recv(1) == b""


def test_block_without_a_socket_at_its_deadline_ends_as_soon_as_it_has_one() -> None:
    dog, pair = Watchdog(), socket.socketpair()
    asked = threading.Event()
    found: list[socket.socket] = []

    def find() -> socket.socket | None:
        asked.set()
        return found[0] if found else None

    def wait() -> None:
        with dog.within(0, find):
            assert asked.wait(60)
            found.append(pair[0])
            assert pair[0].recv(1) == b""

    with pair[0], pair[1], pytest.raises(TimeoutError):
        wait()


def test_failure_after_the_deadline_is_a_timeout() -> None:
    dog, pair = Watchdog(), socket.socketpair()

    def fail(seconds: float) -> None:
        with dog.within(seconds, lambda: pair[0]):
            if seconds == 0:
                pair[0].recv(1)
            raise KeyError(seconds)

    with pair[0], pair[1]:
        with pytest.raises(KeyError):
            fail(600)
        with pytest.raises(TimeoutError) as caught:
            fail(0)
        assert isinstance(caught.value.__cause__, KeyError)


def test_only_waits_spend_an_allowance(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    allowance = WaitAllowance(10)
    now[0] += 4
    with allowance.spent():
        now[0] += 2
    now[0] += 4
    assert allowance.left_s == 8
