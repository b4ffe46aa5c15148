"""Answers of handlers and their HTTP responses: entity tags, conditional requests, encodings, caching.

A `WholeAnswer` is whole in memory, and a `StreamedAnswer` is sent in chunks. Neither depends on the request.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any

import msgspec
import zstandard
from isal import isal_zlib

from pypi_assets.short_texts import cached_if_short

JSON = "application/json"
NDJSON = "application/x-ndjson"
_LEAST_COMPRESSED_BYTES = 500
_GZIP_LEVEL, _GZIP_WINDOW = 2, 31
_ZSTD_LEVEL = 1
_ENCODINGS = ("zstd", "gzip")
"""The supported encodings, the best first."""
_LONGEST_HEADER = 1_000
Header = tuple[bytes, bytes]
_Form = tuple[str, bytes, tuple[Header, ...]]
"""An encoding, the body in this encoding, and the headers of the response."""
CROSS_ORIGIN: tuple[Header, ...] = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"X-PyPI-Last-Serial, X-Request-ID, ETag, Last-Modified, Link, Retry-After"),
)
"""Headers that allow pages of other sites to read an answer."""
to_json = msgspec.json.Encoder().encode
"""Return JSON in UTF-8."""


class Lasting(StrEnum):
    """Values of Cache-Control: how long caches may keep an answer."""

    SHORT = "public, max-age=15"
    REDIRECT = "public, max-age=60"
    IMMUTABLE = "public, max-age=31536000, immutable"
    REVALIDATED = "public, no-cache"
    NO_STORE = "no-store"


class WholeAnswer(msgspec.Struct, gc=False):  # the collector would traverse thousands of cached answers
    """An answer that is whole in memory.

    `serial` is the serial of the answer, and `modified` is the time since which it is valid. `last_serial` replaces it
    in the header X-PyPI-Last-Serial, which has the last event of a project on its page. `varies` are the request
    headers that it depends on, besides Accept-Encoding. `set_id` is the set of datasets, if the answer depends on
    nothing else: then it is cached as long as this set is the current one.
    """

    body: bytes
    media_type: str = JSON
    status: int = 200
    serial: int | None = None
    modified: datetime | None = None
    lasting: Lasting = Lasting.SHORT
    headers: Sequence[tuple[str, str]] = ()
    varies: Sequence[str] = ()
    set_id: str | None = None
    last_serial: int | None = None
    _tag: str = ""
    _forms: tuple[_Form, ...] = ()

    @property
    def tag(self) -> str:
        """Return the first part of the entity tags of all encodings, a hash of the body."""
        self._tag = self._tag or hashlib.sha256(self.body).hexdigest()[:32]
        return self._tag

    def form(self, encoding: str) -> tuple[bytes, tuple[Header, ...]]:
        """Return the body in an encoding (`identity` is unchanged), with the headers of its response."""
        for known, body, headers in self._forms:
            if known == encoding:
                return body, headers
        body, headers = self._make_form(encoding)
        self._forms = (*self._forms, (encoding, body, headers))
        return body, headers

    def has_form(self, encoding: str) -> bool:
        """Check whether the body was encoded in this encoding before."""
        return any(known == encoding for known, _, _ in self._forms)

    def _make_form(self, encoding: str) -> tuple[bytes, tuple[Header, ...]]:
        body = self.body if encoding == "identity" else compressed(self.body, encoding)
        headers = _headers(self, encoding)
        if self.status == 200:
            headers.append((b"etag", f'"{self.tag}-{encoding}"'.encode()))
        headers.append((b"content-length", str(len(body)).encode()))
        return body, tuple(headers)

    def encoding_for(self, accept_encoding: str) -> str:
        """Return the encoding to send the answer in. Short answers are not compressed."""
        if len(self.body) < _LEAST_COMPRESSED_BYTES or self.status != 200:
            return "identity"
        return best_encoding(accept_encoding)

    def is_known(self, if_none_match: str | None, if_modified_since: str | None) -> bool:
        """Check whether the client has this answer, in any encoding. Dates only count if no tag is sent (RFC 9110)."""
        return self.status == 200 and _is_known(self.tag, self.modified, if_none_match, if_modified_since)


@dataclass(slots=True)
class StreamedAnswer:
    """An answer that is sent in chunks.

    Each chunk is made in a thread once the client has taken the previous one. The iterator is always closed. `tag` is
    the first part of its entity tags, if the content is known before it is made: then requests can be conditional.
    With a `length` in bytes, the chunks are sent as they are, and not compressed, and `tag` is the whole entity tag.
    """

    chunks: Iterator[bytes]
    media_type: str = NDJSON
    serial: int | None = None
    modified: datetime | None = None
    lasting: Lasting = Lasting.SHORT
    headers: Sequence[tuple[str, str]] = ()
    varies: Sequence[str] = ()
    status: int = 200
    tag: str | None = None
    length: int | None = None

    def encoding_for(self, accept_encoding: str) -> str:
        """Return the encoding to send the answer in."""
        return best_encoding(accept_encoding) if self.length is None else "identity"

    def head(self, encoding: str) -> list[Header]:
        """Return the headers of the response."""
        headers = _headers(self, encoding)
        if self.length is not None:
            headers.append((b"content-length", str(self.length).encode()))
        if self.tag is not None:
            of_encoding = f"-{encoding}" if self.length is None else ""
            headers.append((b"etag", f'"{self.tag}{of_encoding}"'.encode()))
        return headers

    def is_known(self, if_none_match: str | None, if_modified_since: str | None) -> bool:
        """Check whether the client has this answer, as `WholeAnswer.is_known` does."""
        return self.tag is not None and _is_known(self.tag, self.modified, if_none_match, if_modified_since)


def redirect(location: str, lasting: Lasting = Lasting.REDIRECT, status: int = 307) -> WholeAnswer:
    """Return a redirect to `location`, which is percent-encoded. A relative location works behind any prefix."""
    return WholeAnswer(b"", "text/plain", status, lasting=lasting, headers=[("Location", location)])


def compressed(body: bytes, encoding: str) -> bytes:
    """Return `body` in `encoding`. The result is reproducible."""
    if encoding == "zstd":
        return zstandard.ZstdCompressor(_ZSTD_LEVEL).compress(body)
    packer = isal_zlib.compressobj(_GZIP_LEVEL, isal_zlib.DEFLATED, _GZIP_WINDOW)
    return bytes(packer.compress(body) + packer.flush())


def compressed_chunks(chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Yield the chunks of a stream in `encoding`. A client can decode each chunk as soon as it arrives."""
    if encoding == "identity":
        yield from chunks
        return
    packer: Any
    if encoding == "zstd":
        packer, block = zstandard.ZstdCompressor(_ZSTD_LEVEL).compressobj(), zstandard.COMPRESSOBJ_FLUSH_BLOCK
    else:
        packer = isal_zlib.compressobj(_GZIP_LEVEL, isal_zlib.DEFLATED, _GZIP_WINDOW)
        block = isal_zlib.Z_SYNC_FLUSH
    for chunk in chunks:
        yield packer.compress(chunk) + packer.flush(block)
    yield packer.flush()


@cached_if_short(maxsize=256)
def best_encoding(accept_encoding: str) -> str:
    """Return the encoding that the header Accept-Encoding prefers.

    >>> best_encoding("gzip, zstd;q=0.5")
    'gzip'
    """
    accepted: dict[str, float] = {}
    for item in accept_encoding[:_LONGEST_HEADER].lower().split(","):
        name, _, parameters = item.partition(";")
        accepted[name.strip()] = quality(parameters)
    any_other = accepted.get("*", 0.0)
    weights = {name: accepted.get(name, any_other) for name in _ENCODINGS}
    best = max(_ENCODINGS, key=lambda name: weights[name])
    return best if weights[best] > 0 and weights[best] >= accepted.get("identity", 0.0) else "identity"


def quality(parameters: str) -> float:
    """Return the weight `q` of one item in a header such as Accept. `parameters` is the text after the item's name."""
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(max(float(value), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0


def _headers(answer: WholeAnswer | StreamedAnswer, encoding: str) -> list[Header]:
    last_serial = answer.last_serial if isinstance(answer, WholeAnswer) else None
    serial = answer.serial if last_serial is None else last_serial
    shared = _shared_headers(answer.media_type, answer.lasting, tuple(answer.varies), serial, answer.modified, encoding)
    own = [(name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in answer.headers]
    return [*shared, *own]


@lru_cache(maxsize=256)
def _shared_headers(
    media_type: str,
    lasting: Lasting,
    varies: tuple[str, ...],
    serial: int | None,
    modified: datetime | None,
    encoding: str,
) -> tuple[Header, ...]:
    """Return the headers that most answers of a serial share."""
    headers = [
        (b"content-type", media_type.encode()),
        (b"cache-control", lasting.encode()),
        (b"vary", ", ".join((*varies, "Accept-Encoding")).encode()),
        (b"x-content-type-options", b"nosniff"),  # no answer may be run as a script of a page
        *CROSS_ORIGIN,
    ]
    if serial is not None:
        headers.append(serial_header(serial))
    if encoding != "identity":
        headers.append((b"content-encoding", encoding.encode()))
    if modified is not None:
        headers.append((b"last-modified", format_datetime(modified.astimezone(UTC), usegmt=True).encode()))
    return tuple(headers)


def serial_header(serial: int) -> Header:
    """Return the header with the serial of an answer."""
    return b"x-pypi-last-serial", str(serial).encode()


def _is_known(tag: str, modified: datetime | None, if_none_match: str | None, if_modified_since: str | None) -> bool:
    if if_none_match is not None:
        return if_none_match.strip() == "*" or any(f'"{tag}{end}' in if_none_match for end in '-"')
    if if_modified_since is None or modified is None:
        return False
    since = _parsed_date(if_modified_since)
    return since is not None and modified.replace(microsecond=0) <= since


def _parsed_date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
