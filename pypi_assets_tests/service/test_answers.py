"""Entity tags, encodings and conditional requests of answers."""

import gc
import zlib
from datetime import UTC, datetime

import pytest
import zstandard

from pypi_assets.service.answers import (
    Answer,
    Lasting,
    StreamedAnswer,
    best_encoding,
    compressed,
    compressed_chunks,
    redirect,
)

MODIFIED = datetime(2026, 3, 1, 12, 0, 0, 500_000, tzinfo=UTC)
LONG = b'{"results": [' + b"1," * 1_000 + b"1]}"


def unpacked(content: bytes, encoding: str) -> bytes:
    if encoding == "zstd":
        return zstandard.ZstdDecompressor().decompressobj().decompress(content)
    return zlib.decompress(content, 31) if encoding == "gzip" else content


ENCODINGS = [
    ("", "identity"),
    ("gzip", "gzip"),
    ("gzip, deflate, br, zstd", "zstd"),
    ("gzip;q=1.0, zstd;q=0.5", "gzip"),
    ("zstd;q=0, gzip", "gzip"),
    ("*", "zstd"),
    ("*;q=0", "identity"),
    ("identity, gzip;q=0.5", "identity"),
    ("gzip;q=nonsense", "identity"),
    ("br", "identity"),
]


def test_the_encoding_is_the_best_that_is_accepted(subtests: pytest.Subtests):
    for accepted, encoding in ENCODINGS:
        with subtests.test(accepted=accepted, encoding=encoding):
            assert best_encoding(accepted) == encoding


@pytest.mark.parametrize("encoding", ["identity", "gzip", "zstd"])
def test_a_body_is_the_same_in_each_encoding_and_each_has_a_tag_of_its_own(encoding: str):
    answer = Answer(LONG)
    body, headers = answer.form(encoding)
    assert unpacked(body, encoding) == LONG
    assert dict(headers)[b"content-length"] == str(len(body)).encode()
    assert dict(headers)[b"etag"] == f'"{answer.tag}-{encoding}"'.encode()
    assert Answer(LONG).form(encoding) == (body, headers)


def test_tags_follow_from_the_bytes():
    assert Answer(b"1").tag == Answer(b"1", serial=2).tag != Answer(b"2").tag


def test_short_bodies_and_problems_are_sent_as_they_are():
    assert Answer(LONG).encoding_for("gzip") == "gzip"
    assert Answer(b"{}").encoding_for("gzip") == "identity"
    assert Answer(LONG, status=404).encoding_for("gzip") == "identity"


def test_a_client_that_holds_the_answer_is_recognized():
    answer = Answer(LONG, modified=MODIFIED)
    tag = f'"{answer.tag}-gzip"'
    assert answer.is_known(tag, None)
    assert answer.is_known(f'"other", W/{tag}', None)
    assert answer.is_known("*", None)
    assert not answer.is_known('"other"', "Sun, 01 Mar 2026 12:00:00 GMT")  # the tag counts
    assert answer.is_known(None, "Sun, 01 Mar 2026 12:00:00 GMT")
    assert not answer.is_known(None, "Sun, 01 Mar 2026 11:59:59 GMT")
    assert not answer.is_known(None, "nonsense")
    assert not answer.is_known(None, None)
    assert not Answer(LONG, status=404, modified=MODIFIED).is_known("*", None)


def test_headers_describe_the_answer():
    answer = Answer(b"{}", serial=7, modified=MODIFIED, lasting=Lasting.IMMUTABLE, varies=("Accept",))
    headers = dict(answer.form("identity")[1])
    assert headers[b"x-pypi-last-serial"] == b"7"
    assert headers[b"last-modified"] == b"Sun, 01 Mar 2026 12:00:00 GMT"
    assert headers[b"cache-control"] == b"public, max-age=31536000, immutable"
    assert headers[b"vary"] == b"Accept, Accept-Encoding"
    assert dict(StreamedAnswer(iter([])).head("gzip"))[b"content-encoding"] == b"gzip"


def test_a_redirect_names_its_place_and_lasts_a_minute():
    headers = dict(redirect("/at/7/").form("identity")[1])
    assert (headers[b"location"], headers[b"cache-control"]) == (b"/at/7/", b"public, max-age=60")


@pytest.mark.parametrize("encoding", ["identity", "gzip", "zstd"])
def test_each_chunk_of_a_stream_can_be_read_when_it_is_there(encoding: str):
    chunks = [b"one\n", b"two\n" * 1_000, b"three\n"]
    unpack = {"zstd": zstandard.ZstdDecompressor().decompressobj(), "gzip": zlib.decompressobj(31)}
    read = unpack[encoding].decompress if encoding in unpack else bytes
    sent = list(compressed_chunks(iter(chunks), encoding))
    assert [read(chunk) for chunk in sent[:3]] == chunks
    assert b"".join(map(read, sent[3:])) == b""


def test_compressing_gives_the_same_bytes_each_time():
    assert compressed(LONG, "gzip") == compressed(LONG, "gzip")


@pytest.mark.nightly
def test_the_garbage_collector_does_not_go_through_answers_that_are_kept():
    answer = Answer(LONG, serial=1, modified=MODIFIED)
    kept = [(answer, "route"), *(answer.form(encoding) for encoding in ("identity", "gzip"))]
    for _ in range(4):  # each time, what is in what it has seen to be without a cycle
        gc.collect()
    assert not any(map(gc.is_tracked, (answer, *kept, answer._forms)))
