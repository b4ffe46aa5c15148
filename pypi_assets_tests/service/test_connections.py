"""Over a raw socket: what is no HTTP, what servers could read in different ways, and requests that arrive slowly."""

import json
import socket
import time
from collections.abc import Iterator

import pytest

from pypi_assets.service import connections
from pypi_assets.service.connections import ServiceConnection
from pypi_assets_tests.service.published import Client, Published

GET = b"GET /v1/modules/yaml HTTP/1.1\r\n"
HOST = b"Host: service.test\r\n"
POST = b"POST /v1/hashes HTTP/1.1\r\n" + HOST


def connect(client: Client) -> socket.socket:
    host, port = client.url.removeprefix("http://").rstrip("/").split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def sent(client: Client, *parts: bytes) -> bytes:
    """All that is answered to these bytes, until the server ends the connection or is quiet."""
    with connect(client) as connection:
        for part in parts:
            connection.sendall(part)
        connection.settimeout(2)
        answer = b""
        try:
            while more := connection.recv(65_536):
                answer += more
        except TimeoutError:
            pass
        return answer


def statuses(answer: bytes) -> list[int]:
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(b"nonsense\r\n\r\n", id="no HTTP"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01", id="TLS"),
        pytest.param(GET + b"\r\n", id="no host"),
        pytest.param(GET + HOST + b"Host: other.test\r\n\r\n", id="two hosts"),
        pytest.param(GET + HOST + b"Bad Name: x\r\n\r\n", id="a blank in a name"),
        pytest.param(GET + HOST + b"Name : x\r\n\r\n", id="a blank before the colon"),
        pytest.param(GET + HOST + b"X: a\x00b\r\n\r\n", id="NUL in a header"),
        pytest.param(POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n[]x", id="two lengths"),
        pytest.param(POST + b"Content-Length: 2, 3\r\n\r\n[]x", id="a list of lengths"),
        pytest.param(POST + b"Content-Length: +2\r\n\r\n[]", id="a sign before the length"),
        pytest.param(POST + b"Content-Length: -1\r\n\r\n", id="a negative length"),
        pytest.param(POST + b"Content-Length: 0x2\r\n\r\n[]", id="a length in hex"),
        pytest.param(
            POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /readyz HTTP/1.1\r\n\r\n",
            id="length and chunks",
        ),
        pytest.param(
            POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", id="chunks and length"
        ),
        pytest.param(POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", id="an unknown transfer encoding"),
        pytest.param(
            POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", id="chunks that end with no size"
        ),
        pytest.param(POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", id="twice"),
        pytest.param(POST + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n\r\n", id="a size of no hex"),
        pytest.param(b"GET /v1/modules/%zz HTTP/1.1\r\n" + HOST + b"\r\n", id="no hex after a percent sign"),
        pytest.param(b"GET /v1/modules/% HTTP/1.1\r\n" + HOST + b"\r\n", id="nothing after a percent sign"),
        pytest.param(b"GET /v1/modules/%c3%28 HTTP/1.1\r\n" + HOST + b"\r\n", id="no UTF-8"),
        pytest.param(b"GET /v1/modules/a\xffb HTTP/1.1\r\n" + HOST + b"\r\n", id="bytes in the path"),
        pytest.param(b"GET /v1/modules/%00 HTTP/1.1\r\n" + HOST + b"\r\n", id="NUL in the path"),
    ],
)
def test_what_is_refused_is_a_problem_and_ends_the_connection(client: Client, request_: bytes):
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


def test_a_body_in_chunks_is_read(client: Client):
    request = POST + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    answer = sent(client, request, b'8\r\n{"hashes\r\n', b'5\r\n":[]}\r\n', b"0\r\n\r\n")
    assert statuses(answer) == [200]


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


def test_connections_above_the_limit_are_refused(impatient: Client):
    impatient.session.close()
    time.sleep(0.1)
    with connect(impatient), connect(impatient), connect(impatient):
        assert statuses(sent(impatient, GET + HOST + b"\r\n")) == [503]
    time.sleep(0.1)
    assert impatient.get("/v1/modules/yaml").status_code == 200
