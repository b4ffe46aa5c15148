"""Real local servers that hold a request as long as they can, each in a different way.

`HOLDS` lists them by name. Each serves a connection until the client disconnects, and counts open connections.
"""

import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

PAUSE_S = 0.02
"""Between two drips: far below any timeout of a socket."""
GOOD = b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.pypi.simple.v1+json\r\n"
GZIP = GOOD + b"Content-Encoding: gzip\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
LONG = b"Content-Length: 1000000\r\n\r\n"
GZIP_START = b"\x1f\x8b\x08\x00\0\0\0\0\0\x03"
EMPTY_BLOCK = b"\0\0\0\xff\xff"

Hold = Callable[[socket.socket], None]


def _drip(connection: socket.socket, start: bytes, drops: Iterator[bytes] | bytes = b"x") -> None:
    connection.sendall(start)
    while True:
        for drop in [drops] if isinstance(drops, bytes) else drops:
            connection.sendall(drop)
            time.sleep(PAUSE_S)


def _flood(connection: socket.socket, start: bytes, wave: bytes) -> None:
    connection.sendall(start)
    while True:
        connection.sendall(wave)


def _one_by_one(text: bytes) -> Iterator[bytes]:
    return (text[at : at + 1] for at in range(len(text)))


def _with_empty_deflate(connection: socket.socket, wave: bytes, pause_s: float) -> None:
    connection.sendall(GOOD + b"Content-Encoding: deflate\r\n" + LONG + b"\x78\x9c")
    while True:
        connection.sendall(wave)
        time.sleep(pause_s)


def _redirect_slowly(connection: socket.socket) -> None:
    """Redirect forever. Each redirect takes nearly the client's timeout of half a second."""
    time.sleep(0.4)
    connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: /simple/demo/\r\nContent-Length: 0\r\n\r\n")


def _drip_rest_of_redirect(connection: socket.socket) -> None:
    _drip(connection, b"HTTP/1.1 302 Found\r\nLocation: /simple/demo/\r\nContent-Length: 60000\r\n\r\n")


def _swallow(connection: socket.socket) -> None:
    connection.recv(1)  # until the client disconnects


HOLDS: dict[str, Hold] = {
    "silence": _swallow,
    "dripped status": lambda c: _drip(c, b"", _one_by_one(b"HTTP/1.1 " + b"2" * 60_000)),
    "dripped headers": lambda c: _drip(c, GOOD, b"X: y\r\n"),
    "one dripped header": lambda c: _drip(c, GOOD + b"X: "),
    "a flood of one header": lambda c: _flood(c, GOOD + b"X: ", b"y" * 65536),
    "a flood of headers": lambda c: _flood(c, GOOD, b"X: y\r\n" * 10_000),
    "endless 100 Continue": lambda c: _flood(c, b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    "dripped 100 Continue": lambda c: _drip(c, b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "endless 103 Early Hints": lambda c: _flood(c, b"", b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n" * 1000),
    "dripped body": lambda c: _drip(c, GOOD + LONG, b"["),
    "dripped body without a length": lambda c: _drip(c, GOOD + b"\r\n", b"["),
    "dripped chunk size": lambda c: _drip(c, GOOD + CHUNKED, b"0"),
    "dripped chunk extension": lambda c: _drip(c, GOOD + CHUNKED + b"10;a=", b"b"),
    "a flood of a chunk extension": lambda c: _flood(c, GOOD + CHUNKED + b"10;a=", b"b" * 65536),
    "dripped chunks": lambda c: _drip(c, GOOD + CHUNKED, b"1\r\n[\r\n"),
    "dripped trailers": lambda c: _drip(c, GOOD + CHUNKED + b"2\r\n[]\r\n0\r\n", b"X: y\r\n"),
    "a flood of trailers": lambda c: _flood(c, GOOD + CHUNKED + b"2\r\n[]\r\n0\r\n", b"X: y\r\n" * 10_000),
    "dripped gzip name": lambda c: _drip(c, GZIP + LONG + GZIP_START.replace(b"\x08\0", b"\x08\x08"), b"n"),
    "dripped gzip comment": lambda c: _drip(c, GZIP + LONG + GZIP_START.replace(b"\x08\0", b"\x08\x10"), b"n"),
    "a flood of a gzip name": lambda c: _flood(c, GZIP + b"\r\n" + b"\x1f\x8b\x08\x08\0\0\0\0\0\x03", b"n" * 65536),
    "endless empty deflate blocks": lambda c: _flood(
        c, GOOD + b"Content-Encoding: deflate\r\n\r\n\x78\x9c", EMPTY_BLOCK * 10_000
    ),
    "dripped empty deflate blocks": lambda c: _with_empty_deflate(c, EMPTY_BLOCK * 100, PAUSE_S),
    "endless empty gzip blocks": lambda c: _flood(c, GZIP + b"\r\n" + GZIP_START, EMPTY_BLOCK * 10_000),
    "endless empty gzip members": lambda c: _flood(
        c, GZIP + b"\r\n", (GZIP_START + zlib.compress(b"", wbits=-15) + bytes(8)) * 3_000
    ),
    "slow redirects": _redirect_slowly,
    "redirects with dripped bodies": _drip_rest_of_redirect,
    "dripped body of an error": lambda c: _drip(c, b"HTTP/1.1 404 Not Found\r\nContent-Length: 60000\r\n\r\n"),
    "dripped body of a demand for a login": lambda c: _drip(c, b"HTTP/1.1 401 No\r\nContent-Length: 60000\r\n\r\n"),
}


@dataclass
class Holding:
    """A running server. `open_now` counts its open connections, and `changed` is notified when a connection ends."""

    port: int = 0
    connections: int = 0
    open_now: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def holding(hold: Hold, *, reads_request: bool = True, tls: ssl.SSLContext | None = None) -> Iterator[Holding]:
    """Serve each connection with `hold`: once for each request, or immediately if it does not read requests."""
    running = Holding()

    def serve(connection: socket.socket) -> None:
        with running.changed:
            running.connections += 1
            running.open_now += 1
        try:
            with connection, suppress(OSError):
                connection.settimeout(120)
                with tls.wrap_socket(connection, server_side=True) if tls else connection as served:
                    while not reads_request or _receive_request(served):
                        hold(served)
        finally:
            with running.changed:
                running.open_now -= 1
                running.changed.notify_all()

    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        running.port = server.getsockname()[1]

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield running
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def _receive_request(connection: socket.socket) -> bool:
    received = b""
    while b"\r\n\r\n" not in received:
        part = connection.recv(65536)
        if not part:
            return False
        received += part
    return True
