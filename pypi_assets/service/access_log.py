"""The access log: a line of JSON for each request, in the form of `logs.py`, with nothing on which a terminal acts.

It has no query string, no cookies and no credentials. Lines are written together, several times a second.
"""

import asyncio
import time
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import TextIO

from starlette.types import Scope

from pypi_assets.times import utc_text

_EVERY_S = 0.2
_MOST_WAITING = 10_000
_LONGEST_PATH, _LONGEST_AGENT = 500, 200
LOGGER = "pypi_assets.access"
_text = encode_basestring_ascii
"""A string of JSON in ASCII alone."""


@lru_cache(maxsize=4)
def _time_text(seconds: int) -> str:
    return str(utc_text(seconds))


def _begin(level: str) -> str:
    """Return the beginning of a line of JSON, up to the message."""
    return f'{{"time": "{_time_text(int(time.time()))}", "level": "{level}", "logger": "{LOGGER}", "message": '


class AccessLog:
    """Writes to `stream`. What comes faster than it takes is counted, and not kept."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lines: list[str] = []
        self._left_out = 0
        self._is_due = False

    def add(self, scope: Scope, status: int, sent_bytes: int, seconds: float) -> None:
        """Logs a request that was answered; status 0: the client left before."""
        if len(self._lines) >= _MOST_WAITING:
            self._left_out += 1
            return
        client, agent = scope.get("client"), scope["pypi_assets.headers"].get("user-agent", "")
        method, path = scope["method"], scope["path"][:_LONGEST_PATH]
        self._lines.append(
            f'{_begin("INFO")}{_text(f"{method} {path} {status}")}, "request_id": "{scope["pypi_assets.request_id"]}",'
            f' "client": {_text(client[0]) if client else "null"}, "method": {_text(method)}, "path": {_text(path)},'
            f' "route": {_text(scope["pypi_assets.route"])}, "status": {status}, "bytes": {sent_bytes}, "ms":'
            f' {seconds * 1_000:.2f}, "agent": {_text(agent[:_LONGEST_AGENT])}}}'
        )
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(_EVERY_S, self.write)

    def write(self) -> None:
        """Writes what waits."""
        self._is_due = False
        lines, self._lines = self._lines, []
        if self._left_out:
            message = f"{self._left_out} requests are not in this log"
            lines.append(f'{_begin("WARNING")}{_text(message)}, "left_out": {self._left_out}}}')
            self._left_out = 0
        self._stream.write("".join(f"{line}\n" for line in lines))
        self._stream.flush()
