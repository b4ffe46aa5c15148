"""The type of a journal record in answers, which have its time in ISO 8601 too."""

import re
from typing import NotRequired, TypedDict

from pypi_assets.times import utc_text

_AT = re.compile(rb'"at":([0-9]+|null)')


class Change(TypedDict):
    """One change. Each kind has further fields, described in docs/journal.md.

    The change happened at `of_serial` and became known at `serial`. `at` is in unix seconds, and `time` is the same
    time in ISO 8601.
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
    """Return a journal record with its `at` also in ISO 8601, as `time`.

    >>> with_time(b'{"serial":7,"at":1772539200,"project":"six"}')
    b'{"serial":7,"at":1772539200,"time":"2026-03-03T12:00:00Z","project":"six"}'
    """
    match = _AT.search(line)  # the first match: the fields before `at` contain no text from an index
    if match is None:
        return line
    text = "null" if match[1] == b"null" else f'"{utc_text(int(match[1]))}"'
    return b'%s,"time":%s%s' % (line[: match.end()], text.encode(), line[match.end() :])
