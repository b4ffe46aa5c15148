"""Limits on the content of answers: how far a body expands, how deep its JSON nests, and how long its numbers are.

Bodies are decompressed while they arrive, and JSON is checked before a parser reads it.
"""

import re
import zlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from pypi_assets.index.errors import RefusedError, TooLargeError, TransientError

MAX_DEPTH = 64
MAX_DIGITS = 40
"""The most digits of one number. An index uses 64-bit numbers."""
MAX_ENTRY_BYTES = 4 * 1024**2
"""Roughly the most bytes of one list entry, or of the list's `meta`. Parsers hold an entry in memory."""
MAX_VALUES = 3_000_000
"""The most values of a document that is parsed as a whole. A page of 100,000 files has about half as many."""

_CHUNK_BYTES = MAX_ENTRY_BYTES // 4
_STRUCTURE = b'[]{}"\\'
_NOT_STRUCTURE = bytes(set(range(256)) - set(_STRUCTURE))
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_AS_DIGITS = bytes(ord("0") if chr(byte).isdigit() and byte < 128 else ord("x") for byte in range(256))
_TOO_LONG = b"0" * (MAX_DIGITS + 1)
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_LAST_DIGITS = re.compile(rb"(?<![0-9])[0-9]++\Z")
_IN_BETWEEN = (b"", b"{", b"{[")
"""The brackets that are open at the top level of a list, and between its entries."""


def check_values(document: bytes) -> None:
    """Raise ValueError if `document` holds more than MAX_VALUES values."""
    if sum(map(document.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise ValueError(f"it has more than {MAX_VALUES} values")


def check_list(body: BinaryIO) -> None:
    """Raise ValueError if the JSON list in `body` exceeds one of the limits.

    For most lists, a fast check of the brackets is enough. The others are checked bracket by bracket. Syntax errors are
    not detected here; the parser reports them.
    """
    if not _is_plain(body):
        _follow(body)


def _chunks(body: BinaryIO) -> Iterator[bytes]:
    body.seek(0)
    while chunk := body.read(_CHUNK_BYTES):
        yield chunk


def _is_plain(body: BinaryIO) -> bool:
    """Check whether no number is too long, and each chunk ends between two entries once matching pairs are removed."""
    opened = rest = b""
    for chunk in _chunks(body):
        text = rest + chunk
        end = text.rfind(b"}") + 1
        opened = _without_pairs(opened + _without_pairs(text[:end].translate(None, _NOT_STRUCTURE)))
        if opened not in _IN_BETWEEN or _TOO_LONG in text.translate(_AS_DIGITS):
            return False
        rest = text[end:]
        if len(rest) > _CHUNK_BYTES:
            return False
    return not _without_pairs(opened + rest.translate(None, _NOT_STRUCTURE))


def _without_pairs(brackets: bytes) -> bytes:
    """Return what remains of brackets and quotes once matching pairs are removed.

    Strings that contain a bracket or an escape also leave a remainder.
    """
    for _ in range(3):
        brackets = brackets.replace(b'""', b"").replace(b"{}", b"").replace(b"[]", b"")
    return brackets


def _follow(body: BinaryIO) -> None:
    depth, is_in_list, is_in_string = 0, False, 0
    digits = rest = b""
    away = 0
    for chunk in _chunks(body):
        text, rest = _ESCAPE.sub(b"", rest + chunk), b""
        if text.endswith(b"\\"):
            text, rest = text[:-1], b"\\"
        parts = text.split(b'"')
        outside = (b"" if is_in_string else digits) + b'"'.join(parts[is_in_string::2])
        is_in_string = (is_in_string + len(parts) - 1) % 2
        if _TOO_LONG in outside.translate(_AS_DIGITS):
            raise ValueError(f"it has a number of more than {MAX_DIGITS} digits")
        last = None if is_in_string else _LAST_DIGITS.search(outside[-MAX_DIGITS - 1 :])
        digits = last[0] if last else b""
        away += len(chunk)
        for bracket in outside.translate(None, _NOT_BRACKETS):
            if bracket in b"[{":
                depth += 1
                if depth == 2:
                    is_in_list = bracket == ord("[")
                if depth > MAX_DEPTH:
                    raise ValueError(f"it nests deeper than {MAX_DEPTH} levels")
            else:
                depth -= 1
            if depth < 2 or (depth == 2 and is_in_list):
                away = 0
        if away > MAX_ENTRY_BYTES:
            raise ValueError(f"it has an entry of more than {MAX_ENTRY_BYTES} bytes")


MAX_EXPANSION_RATIO = 200
"""The most bytes that one compressed byte of a body may expand to. An index's JSON and XML stay below 30."""
MAX_SHRINKING_RATIO = 2
"""The most compressed bytes for each byte of a body. Without this limit, a server could send empty blocks forever."""
MAX_LAYERS = 5

PIECE_BYTES = 256 * 1024
_FREELY_EXPANDED_BYTES = 1024**2
_FREELY_EMPTY_BYTES = 64 * 1024
_ZLIB_HEADER_BYTES = 2
_GZIP_BITS = 16 + zlib.MAX_WBITS


class BodyDecoder:
    """Decodes one body by its Content-Encoding: gzip, deflate, or up to MAX_LAYERS of these, separated by commas.

    Raises RefusedError for any other encoding, since it was not requested.

        decoder = BodyDecoder("gzip", url)
        body = b"".join(piece for chunk in chunks for piece in decoder.decode(chunk))
    """

    def __init__(self, encoding: str, url: str) -> None:
        names = [name.strip() for name in encoding.split(",", MAX_LAYERS)]
        if len(names) > MAX_LAYERS or not {"gzip", "x-gzip", "deflate"}.issuperset(names):
            raise RefusedError(f"answers in the encoding {encoding[:40]!r}, which was not requested", url)
        self._layers = [_Layer(is_gzip=name != "deflate") for name in reversed(names)]
        self._url = url
        self._taken = self._given = 0

    def decode(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the decoded `chunk` in non-empty pieces of at most PIECE_BYTES.

        Raises TransientError for broken data, and TooLargeError if the decoded size is far above or below the encoded
        size.
        """
        self._taken += len(chunk)
        try:
            for piece in self._through(self._layers, chunk):
                self._given += len(piece)
                yield piece
        except zlib.error as error:
            raise TransientError("a compressed body is broken", self._url) from error
        if self._taken > _FREELY_EMPTY_BYTES + MAX_SHRINKING_RATIO * self._given:
            raise TooLargeError(f"a compressed body of {self._taken} bytes holds only {self._given}", self._url)

    def _through(self, layers: Sequence["_Layer"], data: bytes) -> Iterator[bytes]:
        for piece in layers[0].inflate(data):
            if layers[0].given > _FREELY_EXPANDED_BYTES + MAX_EXPANSION_RATIO * self._taken:
                raise TooLargeError(f"a compressed body expands more than {MAX_EXPANSION_RATIO} times", self._url)
            if len(layers) == 1:
                yield piece
            else:
                yield from self._through(layers[1:], piece)


class _Layer:
    """One gzip or deflate stream. `given` counts the decoded bytes.

    All gzip members belong to the body. Trailing data that is not a gzip member is ignored, as in other clients.
    """

    def __init__(self, *, is_gzip: bool) -> None:
        self.given = 0
        self._is_gzip = is_gzip
        self._inflater = zlib.decompressobj(_GZIP_BITS if is_gzip else zlib.MAX_WBITS)
        self._start: bytes | None = None if is_gzip else b""
        self._has_member = self._is_over = False

    def inflate(self, data: bytes) -> Iterator[bytes]:
        """Yield the non-empty pieces that `data` decodes to. Raises zlib.error for broken data."""
        data, piece = self._after_start(data), b""
        while not self._is_over and (data or len(piece) == PIECE_BYTES):
            piece, data = self._next_piece(data)
            self.given += len(piece)
            if piece:
                yield piece

    def _after_start(self, data: bytes) -> bytes:
        """Return the part of `data` that can be decoded now, once the stream's header is known.

        Some servers send raw deflate data without the zlib header that the encoding `deflate` requires.
        """
        if self._start is None:
            return data
        self._start += data
        if len(self._start) < _ZLIB_HEADER_BYTES:
            return b""
        start, self._start = self._start, None
        if start[0] & 0xF != zlib.DEFLATED or int.from_bytes(start[:_ZLIB_HEADER_BYTES]) % 31:
            self._inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        return start

    def _next_piece(self, data: bytes) -> tuple[bytes, bytes]:
        """Return the next decoded piece, and the part of `data` that is left."""
        try:
            piece = self._inflater.decompress(data, PIECE_BYTES)
        except zlib.error:
            if not self._has_member:
                raise
            self._is_over = True
            return b"", b""
        if not self._inflater.eof:
            return piece, self._inflater.unconsumed_tail
        rest = self._inflater.unused_data
        self._has_member, self._is_over = True, not self._is_gzip
        self._inflater = zlib.decompressobj(_GZIP_BITS)
        return piece, rest
