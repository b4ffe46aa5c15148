"""Files are streamed to a consumer. The consumer's errors are raised unchanged, network failures are retried."""

import hashlib
import io
from typing import BinaryIO

import pytest
import requests

from pypi_assets.index.errors import ContentError, TooLargeError, TransientError
from pypi_assets.index.transport import Retries
from pypi_assets_tests.index.clients import DATA, SHA256, client_of
from pypi_assets_tests.index.loopback import Answer, answering
from pypi_assets_tests.naming import naming

WHOLE = Answer(200, DATA)
CUT = Answer(200, DATA[:500], {"Content-Length": str(len(DATA))}, is_last=True)
PROMISED = {"sha256": SHA256, "size": len(DATA), "max_bytes": 10_000}


def test_consumer_gets_bytes_on_arrival() -> None:
    def consume(stream: BinaryIO) -> str:
        assert (stream.readable(), stream.seekable(), stream.writable()) == (True, False, False)
        digest = hashlib.sha256(stream.read(1) + stream.read(99))
        while chunk := stream.read(64):
            digest.update(chunk)
        assert stream.read(1) == stream.read() == b""
        return digest.hexdigest()

    with answering(WHOLE) as loopback, client_of(loopback) as client:
        digest, fetched = client.stream_file(f"{loopback.url}/f", consume, **PROMISED)
    assert digest == SHA256
    assert (fetched.bytes, fetched.requests) == (len(DATA), 1)


def test_unread_bytes_are_checked_too() -> None:
    with answering(WHOLE, Answer(200, DATA[:-1] + b"!")) as loopback, client_of(loopback) as client:
        taken, fetched = client.stream_file(f"{loopback.url}/f", lambda stream: stream.read(3), **PROMISED)
        assert (taken, fetched.bytes) == (DATA[:3], len(DATA))
        with pytest.raises(ContentError, match="sha256"):
            client.stream_file(f"{loopback.url}/f", lambda stream: stream.read(3), **PROMISED)


def test_each_attempt_is_consumed_from_the_start() -> None:
    seen: list[bytes] = []

    def consume(stream: BinaryIO) -> int:
        seen.append(b"")
        while chunk := stream.read(100):
            seen[-1] += chunk
        return len(seen)

    with answering(CUT, Answer(503), CUT, WHOLE) as loopback, client_of(loopback) as client:
        result, fetched = client.stream_file(f"{loopback.url}/f", consume, **PROMISED)
    assert (result, fetched.requests) == (3, 4)
    assert seen[-1] == DATA
    assert all(DATA.startswith(part) and len(part) <= 500 for part in seen[:-1])


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no archive"),
        OSError("disk full"),
        requests.ConnectionError("another server"),
        TransientError("another index", "https://index.example.org/"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_consumer_error_is_raised_unchanged(error: Exception) -> None:
    def consume(stream: BinaryIO) -> None:
        stream.read(10)
        raise error from KeyError("why")

    with answering(WHOLE) as loopback, client_of(loopback) as client:
        with pytest.raises(type(error)) as caught:
            client.stream_file(f"{loopback.url}/f", consume, **PROMISED)
        assert len(loopback.received) == 1
    assert caught.value is error
    assert isinstance(error.__cause__, KeyError)


def test_interrupted_stream_does_not_look_like_a_broken_archive() -> None:
    """Archive readers take an OSError for broken bytes, so network failures must look different."""
    with answering(CUT) as loopback, client_of(loopback, retries=Retries(1)) as client:

        def consume(stream: BinaryIO) -> None:
            with pytest.raises(TransientError) as first:
                stream.read()
            assert not isinstance(first.value, OSError)
            with pytest.raises(TransientError) as again:
                stream.read()
            assert again.value is first.value

        with pytest.raises(TransientError):
            client.stream_file(f"{loopback.url}/f", consume, **PROMISED)


def test_result_of_an_interrupted_stream_is_discarded() -> None:
    def swallow(stream: BinaryIO) -> str:
        try:
            return f"whole: {len(stream.read())}"
        except TransientError:
            return "cut short"

    def disguise(stream: BinaryIO) -> str:
        try:
            return f"whole: {len(stream.read())}"
        except TransientError as error:
            raise ValueError("no archive") from error

    for consume in (swallow, disguise):
        with answering(CUT, WHOLE) as loopback, client_of(loopback) as client:
            result, _ = client.stream_file(f"{loopback.url}/f", consume, **PROMISED)
        assert result == f"whole: {len(DATA)}"


def test_unexpected_bytes_are_reported_at_the_end_of_the_stream() -> None:
    finished: list[bytes] = []
    with answering(Answer(200, DATA[:-1] + b"!")) as loopback, client_of(loopback) as client:
        with pytest.raises(ContentError, match="sha256"):
            client.stream_file(f"{loopback.url}/f", lambda stream: finished.append(stream.read()), **PROMISED)
        assert len(loopback.received) == 1
    assert finished == []


@pytest.mark.parametrize("page", [b"<p>back soon</p>", b"<p>back soon</p>" * 999, None])
def test_html_page_instead_of_a_file_is_rejected(page: bytes | None) -> None:
    """A page with the expected size is accepted, since it may be the file."""
    content = page or DATA[:-1] + b"!"
    shown = Answer(200, content, {"Content-Type": "Text/HTML; charset=utf-8"})
    with answering(shown, WHOLE) as loopback, client_of(loopback) as client:
        if page is None:
            with pytest.raises(ContentError, match="sha256"):
                client.stream_file(f"{loopback.url}/f", lambda stream: stream.read(), **PROMISED)
            return
        content, fetched = client.stream_file(f"{loopback.url}/f", lambda stream: stream.read(), **PROMISED)
        assert (content, fetched.requests) == (DATA, 2)
    with (
        answering(shown) as loopback,
        client_of(loopback, retries=Retries(1)) as client,
        pytest.raises(TransientError, match=naming(1600)),
    ):
        client.stream_file(f"{loopback.url}/f", lambda stream: stream.read(3), **PROMISED)


def test_stream_respects_its_limit() -> None:
    taken = io.BytesIO()
    with answering(WHOLE) as loopback, client_of(loopback) as client:
        with pytest.raises(TooLargeError, match=naming(1000)):
            client.stream_file(
                f"{loopback.url}/f",
                lambda stream: taken.write(stream.read()),
                sha256=None,
                size=None,
                max_bytes=1000,
            )
        with pytest.raises(TooLargeError, match=naming(1000)):
            client.stream_file(f"{loopback.url}/f", taken.write, sha256=None, size=1001, max_bytes=1000)
        assert len(loopback.received) == 1
    assert taken.getvalue() == b""
