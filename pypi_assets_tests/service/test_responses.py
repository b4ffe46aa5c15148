"""Entity tags, encodings and conditional requests of responses. Streams follow the client's pace and end with it."""

import asyncio
import gc
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import zstandard

from pypi_assets.service.operations import respond
from pypi_assets.service.responses import (
    Lasting,
    StreamedAnswer,
    WholeAnswer,
    best_encoding,
    compressed,
    compressed_chunks,
    redirect,
)
from pypi_assets.service.service import Service
from pypi_assets_tests.service.published import Published

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


def test_best_accepted_encoding_is_chosen(subtests: pytest.Subtests):
    for accepted, encoding in ENCODINGS:
        with subtests.test(accepted=accepted, encoding=encoding):
            assert best_encoding(accepted) == encoding


@pytest.mark.parametrize("encoding", ["identity", "gzip", "zstd"])
def test_encodings_have_the_same_body_and_different_tags(encoding: str):
    answer = WholeAnswer(LONG)
    body, headers = answer.form(encoding)
    assert unpacked(body, encoding) == LONG
    assert dict(headers)[b"content-length"] == str(len(body)).encode()
    assert dict(headers)[b"etag"] == f'"{answer.tag}-{encoding}"'.encode()
    assert WholeAnswer(LONG).form(encoding) == (body, headers)


def test_tags_depend_on_the_bytes():
    assert WholeAnswer(b"1").tag == WholeAnswer(b"1", serial=2).tag != WholeAnswer(b"2").tag


def test_short_bodies_and_problems_are_not_compressed():
    assert WholeAnswer(LONG).encoding_for("gzip") == "gzip"
    assert WholeAnswer(b"{}").encoding_for("gzip") == "identity"
    assert WholeAnswer(LONG, status=404).encoding_for("gzip") == "identity"


def test_client_with_the_current_answer_is_recognized():
    answer = WholeAnswer(LONG, modified=MODIFIED)
    tag = f'"{answer.tag}-gzip"'
    assert answer.is_known(tag, None)
    assert answer.is_known(f'"other", W/{tag}', None)
    assert answer.is_known("*", None)
    assert not answer.is_known('"other"', "Sun, 01 Mar 2026 12:00:00 GMT")  # the tag takes precedence
    assert answer.is_known(None, "Sun, 01 Mar 2026 12:00:00 GMT")
    assert not answer.is_known(None, "Sun, 01 Mar 2026 11:59:59 GMT")
    assert not answer.is_known(None, "nonsense")
    assert not answer.is_known(None, None)
    assert not WholeAnswer(LONG, status=404, modified=MODIFIED).is_known("*", None)


def test_headers_describe_the_response():
    answer = WholeAnswer(b"{}", serial=7, modified=MODIFIED, lasting=Lasting.IMMUTABLE, varies=("Accept",))
    headers = dict(answer.form("identity")[1])
    assert headers[b"x-pypi-last-serial"] == b"7"
    assert headers[b"last-modified"] == b"Sun, 01 Mar 2026 12:00:00 GMT"
    assert headers[b"cache-control"] == b"public, max-age=31536000, immutable"
    assert headers[b"vary"] == b"Accept, Accept-Encoding"
    assert dict(StreamedAnswer(iter([])).head("gzip"))[b"content-encoding"] == b"gzip"


def test_redirect_has_its_location_and_is_cached_for_a_minute():
    headers = dict(redirect("/at/7/").form("identity")[1])
    assert (headers[b"location"], headers[b"cache-control"]) == (b"/at/7/", b"public, max-age=60")


@pytest.mark.parametrize("encoding", ["identity", "gzip", "zstd"])
def test_stream_chunks_are_readable_on_arrival(encoding: str):
    chunks = [b"one\n", b"two\n" * 1_000, b"three\n"]
    unpack = {"zstd": zstandard.ZstdDecompressor().decompressobj(), "gzip": zlib.decompressobj(31)}
    read = unpack[encoding].decompress if encoding in unpack else bytes
    sent = list(compressed_chunks(iter(chunks), encoding))
    assert [read(chunk) for chunk in sent[:3]] == chunks
    assert b"".join(map(read, sent[3:])) == b""


def test_compression_is_deterministic():
    assert compressed(LONG, "gzip") == compressed(LONG, "gzip")


@pytest.mark.nightly
def test_garbage_collector_does_not_traverse_cached_answers():
    answer = WholeAnswer(LONG, serial=1, modified=MODIFIED)
    kept = [(answer, "route"), *(answer.form(encoding) for encoding in ("identity", "gzip"))]
    for _ in range(4):  # each run stops tracking the objects that it found without cycles
        gc.collect()
    assert not any(map(gc.is_tracked, (answer, *kept, answer._forms)))


class Connection:
    """A client that reads `takes` parts of an answer and then hangs up."""

    def __init__(self, takes: int = 1_000) -> None:
        self.messages: list[dict[str, Any]] = []
        self._takes = takes
        self._gone = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if len(self.messages) >= self._takes:
            self._gone.set()
            await asyncio.sleep(0)
            return
        self.messages.append(message)

    async def take(self, service: Service, answer: WholeAnswer | StreamedAnswer, method: str = "GET") -> None:
        await respond(service, {"type": "http", "method": method}, self.receive, self.send, answer, {})


class Lines:
    """An iterator of lines that records how many were read and whether it was closed."""

    def __init__(self, count: int) -> None:
        self.read, self.is_closed, self._count = 0, False, count

    def __call__(self) -> Iterator[bytes]:
        try:
            for number in range(self._count):
                self.read += 1
                yield b"%d\n" % number
        finally:
            self.is_closed = True


def test_stream_is_written_to_its_end(published: Published):
    async def run() -> None:
        connection, lines = Connection(), Lines(3)
        await connection.take(service, StreamedAnswer(lines()))
        assert [message.get("body", b"") for message in connection.messages[1:]] == [b"0\n", b"1\n", b"2\n", b""]
        assert lines.is_closed

    with published.service() as service:
        asyncio.run(run())


def test_stream_ends_when_the_client_hangs_up(published: Published):
    async def run() -> None:
        connection, lines = Connection(takes=3), Lines(1_000_000)
        await connection.take(service, StreamedAnswer(lines()))
        assert lines.read < 20
        assert lines.is_closed

    with published.service() as service:
        asyncio.run(run())


def test_head_does_not_read_the_stream(published: Published):
    async def run() -> None:
        connection, lines = Connection(), Lines(3)
        await connection.take(service, StreamedAnswer(lines()), "HEAD")
        assert [message.get("body", b"") for message in connection.messages[1:]] == [b""]
        assert lines.read == 0

    with published.service() as service:
        asyncio.run(run())
