"""A record of the journal as answers have it: with its time in ISO 8601 in addition."""

import re
from typing import NotRequired, TypedDict

from pypi_assets.times import utc_text

_AT = re.compile(rb'"at":([0-9]+|null)')


class Change(TypedDict):
    """One change. Each kind has further fields: docs/journal.md describes them.

    It happened at `of_serial`, and became known at `serial`. `at` is in unix seconds, and `time` the same in ISO 8601.
    """

    serial: int
    of_serial: int
    ordinal: int
    stream: str
    kind: str
    at: int | None
    time: str | None
    project: str | None
    normalized: str | None
    version: NotRequired[str | None]
    filename: NotRequired[str | None]


def with_time(line: bytes) -> bytes:
    """Return a record of the journal with its `at` also in ISO 8601, as `time`.

    >>> with_time(b'{"serial":7,"at":1772539200,"project":"six"}')
    b'{"serial":7,"at":1772539200,"time":"2026-03-03T12:00:00Z","project":"six"}'
    """
    match = _AT.search(line)  # the first one: what precedes it in a record holds no text of an index
    if match is None:
        return line
    text = "null" if match[1] == b"null" else f'"{utc_text(int(match[1]))}"'
    return b'%s,"time":%s%s' % (line[: match.end()], text.encode(), line[match.end() :])
