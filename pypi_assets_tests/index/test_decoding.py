"""Compressed bodies: all real encodings are decoded, and neither bombs nor empty blocks cost more than a moment."""

import contextlib
import gzip
import time
import tracemalloc
import zlib
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.index.bounds import PIECE_BYTES, BodyDecoder
from pypi_assets.index.errors import RefusedError, TooLargeError, TransientError

URL = "https://index.example.org/simple/"
BODY = b'{"name": "demo"}' * 1000
GZIP_START = b"\x1f\x8b\x08\x00\0\0\0\0\0\x03"
EMPTY_BLOCK = b"\0\0\0\xff\xff"


def gzipped(body: bytes) -> bytes:
    """Compress without a timestamp, since parametrized tests are named after the bytes and all workers need the same
    names.
    """
    return gzip.compress(body, mtime=0)


def raw_deflate(body: bytes) -> bytes:
    return zlib.compress(body, wbits=-15)


def decoded(encoding: str, packed: bytes, step: int = 1000) -> bytes:
    decoder = BodyDecoder(encoding, URL)
    chunks = (packed[at : at + step] for at in range(0, len(packed), step))
    return b"".join(piece for chunk in chunks for piece in decoder.decode(chunk))


def test_encodings_of_servers_are_decoded(subtests: pytest.Subtests) -> None:
    cases_of_encoding = [
        ("gzip", gzipped(BODY)),
        ("x-gzip", gzipped(BODY)),
        ("gzip", gzipped(BODY[:9]) + gzipped(b"") + gzipped(BODY[9:])),
        ("gzip", gzipped(BODY) + b"no member"),
        ("gzip", gzipped(BODY) + bytes(100)),
        ("gzip", GZIP_START.replace(b"\x08\0", b"\x08\x08") + b"name\0" + raw_deflate(BODY) + bytes(8)),
        ("deflate", zlib.compress(BODY)),
        ("deflate", raw_deflate(BODY)),
        ("deflate", zlib.compress(BODY) + b"rest"),
        ("gzip, gzip", gzipped(gzipped(BODY))),
        ("deflate,gzip", gzipped(zlib.compress(BODY))),
    ]
    for step in [1, 7, 1000, 10**9]:
        for encoding, packed in cases_of_encoding:
            with subtests.test(encoding=encoding, packed=packed, step=step):
                if packed.endswith(bytes(8)) and b"name\0" in packed:
                    packed = packed[:-8] + zlib.crc32(BODY).to_bytes(4, "little") + len(BODY).to_bytes(4, "little")
                assert decoded(encoding, packed, step) == BODY


@given(st.binary(max_size=500), st.sampled_from(["gzip", "deflate"]), st.integers(1, 200))
def test_any_bytes_are_decoded_or_rejected(packed: bytes, encoding: str, step: int) -> None:
    with contextlib.suppress(TransientError, TooLargeError):
        decoded(encoding, packed, step)


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, br", "compress", "gzip," * 6 + "gzip", "gzip" * 99_999])
def test_unrequested_encoding_is_rejected(encoding: str) -> None:
    with pytest.raises(RefusedError) as caught:
        BodyDecoder(encoding, URL)
    assert len(str(caught.value)) < 200


def test_large_pieces_are_split() -> None:
    body = Random(0).randbytes(50_000) * 100
    pieces = list(BodyDecoder("gzip", URL).decode(gzipped(body)))
    assert b"".join(pieces) == body
    assert max(map(len, pieces)) == PIECE_BYTES


def test_excessive_and_empty_output_is_rejected_early(subtests: pytest.Subtests) -> None:
    cases = [
        ("deflate", b"\x78\x9c" + EMPTY_BLOCK * 200_000),
        ("deflate", EMPTY_BLOCK * 200_000),
        ("gzip", GZIP_START + EMPTY_BLOCK * 200_000),
        ("gzip", GZIP_START.replace(b"\x08\0", b"\x08\x08") + b"n" * 1_000_000),
        ("gzip", GZIP_START.replace(b"\x08\0", b"\x08\x10") + b"n" * 1_000_000),
        ("gzip", gzipped(b"") * 50_000),
        ("gzip", gzipped(b"x") * 50_000),
        ("deflate", zlib.compress(b"") + b"x" * 1_000_000),
        ("gzip", gzipped(BODY) + b"x" * 1_000_000),
        ("deflate", zlib.compress(bytes(20_000_000))),
        ("gzip, gzip", gzipped(gzipped(bytes(20_000_000)))),
        ("gzip, gzip", gzipped(GZIP_START + EMPTY_BLOCK * 2_000_000)),
        ("gzip, gzip, gzip, gzip, gzip", gzipped(gzipped(GZIP_START + EMPTY_BLOCK * 1_000_000))),
    ]
    for encoding, packed in cases:
        with subtests.test(encoding=encoding, packed=packed):
            tracemalloc.start()
            started = time.process_time()
            try:
                with pytest.raises((TooLargeError, TransientError)):
                    decoded(encoding, packed, 256 * 1024)
                assert tracemalloc.get_traced_memory()[1] < 16_000_000
            finally:
                tracemalloc.stop()
            assert time.process_time() - started < 2


@pytest.mark.parametrize("packed", [b"no gzip at all", gzipped(BODY)[:40] + b"\xff" * 400])
def test_broken_data_is_retried(packed: bytes) -> None:
    with pytest.raises(TransientError):
        decoded("gzip", packed)
