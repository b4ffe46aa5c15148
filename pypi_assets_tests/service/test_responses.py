"""How answers are written: streams follow the client, and end with it."""

import asyncio
from collections.abc import Iterator
from typing import Any

from pypi_assets.service.answers import Answer, StreamedAnswer
from pypi_assets.service.responses import respond
from pypi_assets.service.service import Service
from pypi_assets_tests.service.published import Published


class Connection:
    """A client that takes `takes` parts of an answer, and then hangs up."""

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

    async def take(self, service: Service, answer: Answer | StreamedAnswer, method: str = "GET") -> None:
        await respond(service, {"type": "http", "method": method}, self.receive, self.send, answer, {})


class Lines:
    """An iterator of lines that records how far it was read, and whether it was closed."""

    def __init__(self, count: int) -> None:
        self.read, self.is_closed, self._count = 0, False, count

    def __call__(self) -> Iterator[bytes]:
        try:
            for number in range(self._count):
                self.read += 1
                yield b"%d\n" % number
        finally:
            self.is_closed = True


def test_a_stream_is_written_to_its_end(published: Published):
    async def run() -> None:
        connection, lines = Connection(), Lines(3)
        await connection.take(service, StreamedAnswer(lines()))
        assert [message.get("body", b"") for message in connection.messages[1:]] == [b"0\n", b"1\n", b"2\n", b""]
        assert lines.is_closed

    with published.service() as service:
        asyncio.run(run())


def test_a_client_that_hangs_up_ends_the_stream(published: Published):
    async def run() -> None:
        connection, lines = Connection(takes=3), Lines(1_000_000)
        await connection.take(service, StreamedAnswer(lines()))
        assert lines.read < 20
        assert lines.is_closed

    with published.service() as service:
        asyncio.run(run())


def test_head_reads_nothing_of_a_stream(published: Published):
    async def run() -> None:
        connection, lines = Connection(), Lines(3)
        await connection.take(service, StreamedAnswer(lines()), "HEAD")
        assert [message.get("body", b"") for message in connection.messages[1:]] == [b""]
        assert lines.read == 0

    with published.service() as service:
        asyncio.run(run())
