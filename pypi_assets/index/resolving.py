"""Resolves names of hosts within a deadline, which the system's resolver does not have.

Which addresses may be connected to is decided in `addresses.py`.
"""

import math
import socket
import threading

from pypi_assets.index.deadlines import seconds_left

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
