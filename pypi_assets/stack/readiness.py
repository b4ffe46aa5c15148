"""Checks whether a process answers at its address.

An address is `http://...`, `postgresql://...`, or `unix:PATH` for the socket of any other server.
"""

import socket
import urllib.error
import urllib.request

UNIX = "unix:"
_ANSWER_WITHIN_S = 3


def is_ready(address: str) -> bool:
    """Returns whether the server at the address answers: with 200, to a query, or by accepting a connection."""
    if address.startswith("http://"):
        return _answers(address)
    if address.startswith("postgresql://"):
        return _is_database(address)
    return _accepts(address.removeprefix(UNIX))


def _answers(url: str) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # it is on this machine
    try:
        with opener.open(url, timeout=_ANSWER_WITHIN_S) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError, ValueError):
        return False


def _is_database(url: str) -> bool:
    import psycopg  # its import takes 0.1 s, and most processes await no database

    try:
        with psycopg.connect(url, connect_timeout=_ANSWER_WITHIN_S) as connection:
            connection.execute("SELECT 1")
    except psycopg.Error:
        return False
    return True


def _accepts(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_ANSWER_WITHIN_S)
        try:
            probe.connect(path)
        except OSError:
            return False
    return True
