"""Inflates the bodies of answers while they arrive, and counts what goes in as well as what comes out.

How many bytes a body may have, and how slowly they may come, is decided in `transport.py`.
"""

import zlib
from collections.abc import Iterator, Sequence

from pypi_assets.index.errors import RefusedError, TooLargeError, TransientError

MAX_EXPANSION_RATIO = 200
"""The most bytes that one compressed byte of a body may become; JSON and XML of an index stay below 30."""
MAX_SHRINKING_RATIO = 2
"""The most compressed bytes for each byte of a body: without this, empty blocks could come for ever."""
MAX_LAYERS = 5

PIECE_BYTES = 256 * 1024
_FREELY_EXPANDED_BYTES = 1024**2
_FREELY_EMPTY_BYTES = 64 * 1024
_ZLIB_HEADER_BYTES = 2
_GZIP_BITS = 16 + zlib.MAX_WBITS


class BodyDecoder:
    """Decodes one body by its Content-Encoding: gzip, deflate, or up to MAX_LAYERS of these, separated by commas.

    Raises RefusedError for an encoding that was not requested.

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
        """What `chunk` becomes, in pieces of at most PIECE_BYTES, none of them empty.

        Raises TransientError for broken data, and TooLargeError where far more or far less comes out than goes in.
        """
        self._taken += len(chunk)
        try:
            for piece in self._through(self._layers, chunk):
                self._given += len(piece)
                yield piece
        except zlib.error as error:
            raise TransientError("a compressed body is broken", self._url) from error
        if self._taken > _FREELY_EMPTY_BYTES + MAX_SHRINKING_RATIO * self._given:
            raise TooLargeError(f"a compressed body of which {self._taken} bytes hold {self._given}", self._url)

    def _through(self, layers: Sequence["_Layer"], data: bytes) -> Iterator[bytes]:
        for piece in layers[0].inflate(data):
            if layers[0].given > _FREELY_EXPANDED_BYTES + MAX_EXPANSION_RATIO * self._taken:
                raise TooLargeError(f"a compressed body of more than {MAX_EXPANSION_RATIO} times its size", self._url)
            if len(layers) == 1:
                yield piece
            else:
                yield from self._through(layers[1:], piece)


class _Layer:
    """One gzip or deflate stream; `given` are the bytes that came out.

    All gzip members belong to the body. What follows them and is none is ignored, as other clients do.
    """

    def __init__(self, *, is_gzip: bool) -> None:
        self.given = 0
        self._is_gzip = is_gzip
        self._inflater = zlib.decompressobj(_GZIP_BITS if is_gzip else zlib.MAX_WBITS)
        self._start: bytes | None = None if is_gzip else b""
        self._has_member = self._is_over = False

    def inflate(self, data: bytes) -> Iterator[bytes]:
        """The pieces that `data` becomes, none of them empty. Raises zlib.error for broken data."""
        data, piece = self._after_start(data), b""
        while not self._is_over and (data or len(piece) == PIECE_BYTES):
            piece, data = self._next_piece(data)
            self.given += len(piece)
            if piece:
                yield piece

    def _after_start(self, data: bytes) -> bytes:
        """What of `data` can be inflated now. Some servers send deflate without its header, as its name suggests."""
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
        """The next piece, and what of `data` is left."""
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
