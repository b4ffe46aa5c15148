"""Deadlines by the clock for what a thread receives: sockets and look-ups of names that end with them.

A timeout of a socket begins again with each byte, so a server can hold a request for ever. The system's resolver has no
timeout at all. How long an exchange may take is decided in `transport.py`, and which addresses may be connected to in
`addresses.py`.
"""

import math
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer


class _Current(threading.local):
    until = math.inf


_current = _Current()


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What this thread does in the block with a timed socket ends after `seconds`, with a TimeoutError.

    Of blocks in each other, the earliest end counts.

        with within(10.0):
            connection.getresponse()
    """
    before = _current.until
    _current.until = min(before, time.monotonic() + seconds)
    try:
        yield
    finally:
        _current.until = before


def seconds_left() -> float:
    """The seconds until this thread's deadline; infinite where it has none. Raises TimeoutError once it is over."""
    left_s = _current.until - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("timed out")
    return left_s


class Allowance:
    """Seconds that several waits may take together, with any time in between that does not count."""

    def __init__(self, seconds: float) -> None:
        self.left_s = seconds

    @contextmanager
    def spent(self) -> Iterator[None]:
        """A block that ends with what is left, and takes from it."""
        started = time.monotonic()
        try:
            with within(self.left_s):
                yield
        finally:
            self.left_s -= time.monotonic() - started


class _Timed(socket.socket):
    """Each call waits until the thread's deadline at most; without a deadline the socket's own timeout counts."""

    def _limit(self) -> None:
        if _current.until != math.inf:
            left_s = seconds_left()
            self.settimeout(left_s)

    def connect(self, address: Any, /) -> None:
        self._limit()
        super().connect(address)

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        self._limit()
        return super().recv(buflen, flags)

    def recv_into(self, buffer: "WriteableBuffer", nbytes: int | None = 0, flags: int = 0) -> int:
        self._limit()
        return super().recv_into(buffer, nbytes or 0, flags)

    def sendall(self, data: "ReadableBuffer", flags: int = 0, /) -> None:
        self._limit()
        super().sendall(data, flags)


class TimedSocket(_Timed):
    """A plain socket that keeps to the deadlines of `within`."""


class TimedTlsSocket(_Timed, ssl.SSLSocket):
    """A socket with TLS that keeps to them: an SSLContext makes these where it is its `sslsocket_class`."""

    def do_handshake(self, block: bool = False) -> None:
        self._limit()
        super().do_handshake(block)


LONGEST_S = 30.0
"""How long a name is waited for where the thread has no deadline."""

Resolved = tuple[socket.AddressFamily, tuple[str, int]]
"""The family of an address, and the address as `connect` takes it (IPv6 has two more fields)."""


def resolve(host: str, port: int | None) -> list[Resolved]:
    """The addresses of `host`, the preferred one first; never an empty list.

    Raises what `getaddrinfo` raises (OSError, UnicodeError), and TimeoutError after the thread's deadline. The resolver
    cannot be stopped, so it ends later then, in a thread of its own.
    """
    try:
        return _resolve(host, port, socket.AI_NUMERICHOST)  # no resolver takes part, so no time either
    except (OSError, UnicodeError):
        pass
    found: list[Resolved] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            found.extend(_resolve(host, port, 0))
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            failures.append(error)

    left_s = min(seconds_left(), LONGEST_S)
    thread = threading.Thread(target=run, name=f"resolve {host[:40]}", daemon=True)
    thread.start()
    thread.join(None if left_s == math.inf else left_s)
    if failures:
        raise failures[0]
    if thread.is_alive():
        raise TimeoutError("timed out")
    return found


def _resolve(host: str, port: int | None, flags: int) -> list[Resolved]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return [(family, (str(address[0]), *address[1:])) for family, _, _, _, address in found]
