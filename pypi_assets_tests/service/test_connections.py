"""Raw sockets: input that is not HTTP, ambiguous requests, and limits."""

import json
import socket

import pytest

from pypi_assets.service import middleware
from pypi_assets_tests.service.published import Client, Published
from pypi_assets_tests.waiting import until

GET = b"GET /v1/modules/yaml HTTP/1.1\r\n"
HOST = b"Host: service.test\r\n"
POST = b"POST /v1/hashes HTTP/1.1\r\n" + HOST
LARGE = 32 * 1024**2


def connect(client: Client) -> socket.socket:
    host, port = client.url.removeprefix("http://").rstrip("/").split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def sent(client: Client, *parts: bytes) -> bytes:
    """Return everything received after sending these bytes, until the server closes the connection or is quiet."""
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


def test_rejected_requests_close_the_connection(client: Client, subtests: pytest.Subtests):
    problems = []
    for wrong, request_ in REFUSED.items():
        with subtests.test(wrong=wrong):
            answer = sent(client, request_)
            assert len(statuses(answer)) == 1, answer
            assert 400 <= statuses(answer)[0] < 500
            head, _, body = answer.partition(b"\r\n\r\n")
            assert b"connection: close" in head.lower()
            if b"application/problem+json" in head:
                assert json.loads(body)["status"] == statuses(answer)[0]
                problems.append(wrong)
            assert b"Traceback" not in answer
            assert client.get("/v1/modules/yaml").status_code == 200
    assert {"no host", "two hosts", "NUL in the path", "no UTF-8"} <= set(problems)  # the parser rejects the others


def test_pipelined_requests_are_answered_in_order(client: Client):
    one = GET + HOST + b"\r\n"
    last = b"GET /nowhere HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
    assert statuses(sent(client, one + one + last)) == [200, 200, 404]


def test_http_1_0_client_needs_no_host(client: Client):
    assert statuses(sent(client, b"GET /v1/modules/yaml HTTP/1.0\r\n\r\n")) == [200]


STREAMS = (
    "/v1/projects/pyyaml/dependents?format=ndjson",
    "/v1/projects/pyyaml/impact?format=ndjson&transitive=1",
    "/at/12.12/v1/projects/pyyaml/dependents?format=ndjson",
    "/v1/changes/stream?since=0",
)


def test_http_1_0_client_gets_no_chunks(journaled_client: Client, subtests: pytest.Subtests):
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


def test_chunked_body_is_read(client: Client):
    request = POST + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    answer = sent(client, request, b'8\r\n{"hashes\r\n', b'5\r\n":[]}\r\n', b"0\r\n\r\n")
    assert statuses(answer) == [200]


def test_request_head_is_limited(client: Client):
    for size, expected in ((60_000, 200), (70_000, 431)):
        answer = sent(client, GET + HOST + b"Connection: close\r\nX: " + b"x" * size + b"\r\n\r\n")
        assert statuses(answer) == [expected]


def test_large_body_in_small_chunks_is_read(client: Client):
    body = b'{"hashes":[' + b" " * 100_000 + b"]}"
    request = POST + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    chunks = b"".join(b"1\r\n%c\r\n" % one for one in body) + b"0\r\n\r\n"
    assert statuses(sent(client, request + chunks)) == [200]


def test_slow_body_times_out(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(middleware, "BODY_S", 0.25)
    answer = sent(client, POST + b"Content-Length: 20\r\n\r\n{")
    assert statuses(answer) == [408]
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["type"] == "/docs#too-slow"
    assert client.get("/v1/modules/yaml").status_code == 200


def test_connections_above_the_limit_are_rejected(published: Published):
    with published.client(service_max_connections=3) as client:

        def answered() -> list[int]:
            return statuses(sent(client, GET + HOST + b"Connection: close\r\n\r\n"))

        with connect(client), connect(client), connect(client):
            until(lambda: answered() == [503], 60)
        until(lambda: answered() == [200], 60)
