"""Over a raw socket: what is no HTTP, what servers could read in different ways, and requests that arrive slowly."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest
import uvicorn

from pypi_assets.service import connections
from pypi_assets.service.connections import ServiceConnection
from pypi_assets_tests.following.followers import until
from pypi_assets_tests.service.published import Client, Published

GET = b"GET /v1/modules/yaml HTTP/1.1\r\n"
HOST = b"Host: service.test\r\n"
POST = b"POST /v1/hashes HTTP/1.1\r\n" + HOST
LARGE = 32 * 1024**2


def connect(client: Client) -> socket.socket:
    host, port = client.url.removeprefix("http://").rstrip("/").split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def sent(client: Client, *parts: bytes) -> bytes:
    """All that is answered to these bytes, until the server ends the connection or is quiet."""
    with connect(client) as connection:
        for part in parts:
            connection.sendall(part)
        answer = b""
        try:
            while more := connection.recv(65_536):
                answer += more
        except TimeoutError:
            pass
        return answer


def statuses(answer: bytes) -> list[int]:
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]


REFUSED = {
    "no HTTP": b"nonsense\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01",
    "no host": GET + b"\r\n",
    "two hosts": GET + HOST + b"Host: other.test\r\n\r\n",
    "a blank in a name": GET + HOST + b"Bad Name: x\r\n\r\n",
    "a blank before the colon": GET + HOST + b"Name : x\r\n\r\n",
    "NUL in a header": GET + HOST + b"X: a\x00b\r\n\r\n",
    "two lengths": POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n[]x",
    "a list of lengths": POST + b"Content-Length: 2, 3\r\n\r\n[]x",
    "a sign before the length": POST + b"Content-Length: +2\r\n\r\n[]",
    "a negative length": POST + b"Content-Length: -1\r\n\r\n",
    "a length in hex": POST + b"Content-Length: 0x2\r\n\r\n[]",
    "length and chunks": POST
    + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /readyz HTTP/1.1\r\n\r\n",
    "chunks and length": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "an unknown transfer encoding": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunks that end with no size": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "twice": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a size of no hex": POST + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n\r\n",
    "no hex after a percent sign": b"GET /v1/modules/%zz HTTP/1.1\r\n" + HOST + b"\r\n",
    "nothing after a percent sign": b"GET /v1/modules/% HTTP/1.1\r\n" + HOST + b"\r\n",
    "no UTF-8": b"GET /v1/modules/%c3%28 HTTP/1.1\r\n" + HOST + b"\r\n",
    "bytes in the path": b"GET /v1/modules/a\xffb HTTP/1.1\r\n" + HOST + b"\r\n",
    "NUL in the path": b"GET /v1/modules/%00 HTTP/1.1\r\n" + HOST + b"\r\n",
}
"""Requests that no server answers, by what is wrong with them."""


def test_what_is_refused_is_a_problem_and_ends_the_connection(client: Client, subtests: pytest.Subtests):
    for wrong, request_ in REFUSED.items():
        with subtests.test(wrong=wrong):
            answer = sent(client, request_)
            assert len(statuses(answer)) == 1, answer
            assert 400 <= statuses(answer)[0] < 500
            head, _, body = answer.partition(b"\r\n\r\n")
            assert b"application/problem+json" in head
            assert b"connection: close" in head.lower()
            assert json.loads(body)["status"] == statuses(answer)[0]
            assert b"Traceback" not in answer
            assert client.get("/v1/modules/yaml").status_code == 200


def test_requests_on_one_connection_are_answered_in_their_order(client: Client):
    one = GET + HOST + b"\r\n"
    last = b"GET /nowhere HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
    assert statuses(sent(client, one + one + last)) == [200, 200, 404]


def test_an_older_client_needs_no_host(client: Client):
    assert statuses(sent(client, b"GET /v1/modules/yaml HTTP/1.0\r\n\r\n")) == [200]


STREAMS = (
    "/v1/projects/pyyaml/dependents?format=ndjson",
    "/v1/projects/pyyaml/impact?format=ndjson&transitive=1",
    "/at/12.12/v1/projects/pyyaml/dependents?format=ndjson",
    "/v1/changes/stream?since=0",
)


def test_an_older_client_gets_no_chunks(journaled_client: Client, subtests: pytest.Subtests):
    for path in STREAMS:
        for method in (b"GET", b"HEAD"):
            with subtests.test(path=path, method=method):
                answer = sent(journaled_client, b"%s %s HTTP/1.0\r\n\r\n" % (method, path.encode()))
                head, _, body = answer.partition(b"\r\n\r\n")
                assert head.split()[1] == b"505"
                assert b"transfer-encoding" not in head.lower()
                assert method == b"HEAD" or json.loads(body)["type"] == "/docs#http-version"
    for path in ("/v1/modules/yaml", "/v1/modules/yaml?prefix=1", "/simple/demo/", "/openapi.json", "/", "/metrics"):
        with subtests.test(path=path):
            head, _, body = sent(journaled_client, b"GET %s HTTP/1.0\r\n\r\n" % path.encode()).partition(b"\r\n\r\n")
            [length] = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length: ")]
            assert int(length.partition(b" ")[2]) == len(body)


def test_a_body_in_chunks_is_read(client: Client):
    request = POST + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    answer = sent(client, request, b'8\r\n{"hashes\r\n', b'5\r\n":[]}\r\n', b"0\r\n\r\n")
    assert statuses(answer) == [200]


ENDLESS = {
    "the target": b"GET /v1/modules/" + b"x" * 70_000,
    "a name of a header": GET + HOST + b"x" * 70_000,
    "a header": GET + HOST + b"X: " + b"x" * 70_000,
    "many headers": GET + HOST + b"a: b\r\n" * 12_000,
    "a head that is whole": GET + HOST + b"X: " + b"x" * 70_000 + b"\r\n\r\n",
    "the second head of a connection": GET + HOST + b"\r\n" + GET + HOST + b"X: " + b"x" * 90_000,
    "lines before a request": b"\r\n" * 40_000,
    "the extension of a chunk": POST + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 90_000,
    "extensions of many chunks": POST
    + b"Transfer-Encoding: chunked\r\n\r\n"
    + (b"1;" + b"x" * 300 + b"\r\n \r\n") * 300,
    "trailers": POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"a: b\r\n" * 15_000,
    "one trailer": POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + b"x" * 90_000,
}
"""Requests with too much that is no body."""


def test_a_head_above_the_limit_is_rejected_while_it_arrives(client: Client, subtests: pytest.Subtests):
    for what, request in ENDLESS.items():
        with subtests.test(what=what):
            answer = sent(client, request)
            assert statuses(answer)[-1] == 431
            assert statuses(answer)[:-1] in ([], [200])
            assert json.loads(answer.rpartition(b"\r\n\r\n")[2])["type"] == "/docs#too-large"


def test_a_large_body_in_small_chunks_is_no_head(client: Client):
    body = b'{"hashes":[' + b" " * 100_000 + b"]}"
    request = POST + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    chunks = b"".join(b"1\r\n%c\r\n" % one for one in body) + b"0\r\n\r\n"
    assert statuses(sent(client, request + chunks)) == [200]


def test_a_head_below_the_limit_is_answered(client: Client):
    request = GET + HOST + b"Connection: close\r\nX: " + b"x" * (connections.MOST_HEAD_BYTES - 200) + b"\r\n\r\n"
    assert statuses(sent(client, request)) == [200]


@pytest.fixture
def impatient(published: Published, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A service that waits a quarter of a second for requests, and allows three connections."""
    monkeypatch.setattr(connections, "HEAD_S", 0.25)
    monkeypatch.setattr(connections, "BODY_S", 0.25)
    before = ServiceConnection.most
    with published.client(service_max_connections=3) as client:
        yield client
    ServiceConnection.most = before


def test_a_request_that_arrives_slowly_is_given_no_more_time(impatient: Client):
    assert statuses(sent(impatient)) == [408]
    assert statuses(sent(impatient, GET + b"X: ")) == [408]
    assert sent(impatient, POST + b"Content-Length: 20\r\n\r\n{") == b""
    assert impatient.get("/v1/modules/yaml").status_code == 200


def test_empty_lines_between_requests_keep_no_connection(impatient: Client):
    with connect(impatient) as connection:
        connection.sendall(GET + HOST + b"\r\n")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
        connection.sendall(b"\r\n")
        answer = b""
        while more := connection.recv(65_536):
            answer += more
    assert statuses(answer) == [408]


def test_connections_above_the_limit_are_refused(impatient: Client, monkeypatch: pytest.MonkeyPatch):
    def answered() -> list[int]:
        return statuses(sent(impatient, GET + HOST + b"Connection: close\r\n\r\n"))

    monkeypatch.setattr(connections, "HEAD_S", 60)
    impatient.session.close()
    with connect(impatient), connect(impatient), connect(impatient):
        until(lambda: answered() == [503], 60)
    until(lambda: answered() == [200], 60)


@contextmanager
def large_answers(keep_alive_s: float) -> Iterator[tuple[uvicorn.Server, int]]:
    """A server whose answers no socket holds, and its port."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % LARGE)]})
        await send({"type": "http.response.body", "body": bytes(LARGE)})

    config = uvicorn.Config(
        app,
        http=ServiceConnection,
        log_config=None,
        lifespan="off",
        timeout_keep_alive=keep_alive_s,  # type: ignore[arg-type] - a part of a second will do
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield server, listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(30)
    assert not thread.is_alive()


@pytest.mark.parametrize(
    ("fields", "then", "keep_alive_s"),
    [
        pytest.param(b"", b"", 0.2, id="nothing follows"),
        pytest.param(b"Connection: close\r\n", b"", 60, id="nothing can follow"),
        pytest.param(b"", b"GET", 60, id="the next request never ends"),
        pytest.param(b"", b"nonsense\r\n\r\n", 60, id="no HTTP follows"),
    ],
)
def test_a_client_that_does_not_take_its_last_answer_keeps_no_connection(
    monkeypatch: pytest.MonkeyPatch, fields: bytes, then: bytes, keep_alive_s: float
):
    monkeypatch.setattr(connections, "TAKE_S", 0.5)
    monkeypatch.setattr(connections, "HEAD_S", 0.5)
    with large_answers(keep_alive_s) as (server, port), stalled_client(port) as client:
        client.sendall(b"GET / HTTP/1.1\r\n" + HOST + fields + b"\r\n")
        until(lambda: bool(server.server_state.total_requests), 60)
        assert held(port)
        client.sendall(then)
        until(lambda: not held(port), 60)


def test_what_is_no_http_ends_an_answer_that_is_being_made(caplog: pytest.LogCaptureFixture):
    with large_answers(60) as (_, port), stalled_client(port) as client:
        client.sendall(b"GET / HTTP/1.1\r\n" + HOST + b"\r\nnonsense\r\n\r\n")
        assert client.recv(65_536).startswith(b"HTTP/1.1 400 ")
        until(lambda: not held(port), 60)
    assert not [one for one in caplog.records if one.exc_info]


def test_a_client_that_takes_its_last_answer_slowly_gets_all_of_it(monkeypatch: pytest.MonkeyPatch):
    is_idle = noticed(monkeypatch, "timeout_keep_alive_handler")
    with large_answers(0.2) as (_, port), stalled_client(port) as client:
        client.sendall(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
        assert is_idle.wait(60)
        received = 0
        while more := client.recv(1024**2):
            received += len(more)
        assert received > LARGE


@pytest.mark.parametrize(
    ("fields", "then"),
    [
        pytest.param(b"", b"", id="that keeps its connection"),
        pytest.param(b"Connection: close\r\n", b"", id="whose connection is to end"),
        pytest.param(b"", b"nonsense\r\n\r\n", id="that was refused"),
    ],
)
def test_the_service_stops_in_time_though_a_client_takes_nothing(
    monkeypatch: pytest.MonkeyPatch, fields: bytes, then: bytes
):
    monkeypatch.setattr(connections, "GRACE_S", 0.3)
    monkeypatch.setattr(connections, "_LINGER_S", 0.05)
    has_lingered = noticed(monkeypatch, "_close")
    with large_answers(60) as (server, port), stalled_client(port) as client:
        client.sendall(b"GET / HTTP/1.1\r\n" + HOST + fields + b"\r\n")
        until(lambda: bool(server.server_state.total_requests), 60)
        client.sendall(then)
        assert has_lingered.wait(60) if then else not has_lingered.is_set()
        assert held(port)
        server.should_exit = True
        until(lambda: not held(port), 60)


def noticed(monkeypatch: pytest.MonkeyPatch, method: str) -> threading.Event:
    """Return an event that is set once a connection has called this method of itself."""
    event, original = threading.Event(), getattr(ServiceConnection, method)

    def call(self: ServiceConnection) -> None:
        original(self)
        event.set()

    monkeypatch.setattr(ServiceConnection, method, call)
    return event


@contextmanager
def stalled_client(port: int) -> Iterator[socket.socket]:
    """A client whose socket holds little."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.connect(("127.0.0.1", port))
        client.settimeout(60)
        yield client


def held(port: int) -> bool:
    """Whether this process has a connection of the server at this port."""
    found = psutil.Process().net_connections("tcp")
    return any(one.laddr.port == port and one.status != psutil.CONN_LISTEN for one in found)
