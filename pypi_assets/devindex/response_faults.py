"""Damage the index's responses: change, truncate, slow down or withhold them.

The choice of the faulty requests does not belong here, but to pypi_assets.devindex.faults.
"""

import asyncio
import gzip
import socket
import struct
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from pypi_assets.devindex.index_state import IndexState

AsOf = Callable[[IndexState], int]
"""A function that maps the present state to a serial; the response is then as of this serial."""
OwnAnswer = Callable[[AsOf], Response]
"""The index's own response to a request."""

_ABORTING = struct.pack("ii", 1, 0)
_PIECES_PER_S = 10
_GZIP_TRAILER_BYTES = 8


@dataclass(frozen=True, slots=True)
class BufferedAnswer:
    """A complete response; `headers` are in ASGI's form, with names in lower case."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes

    def with_body(self, body: bytes) -> "BufferedAnswer":
        """Return the response with another body, and its Content-Length."""
        return replace(self.with_header("content-length", str(len(body))), body=body)

    def with_header(self, name: str, value: str) -> "BufferedAnswer":
        """Return the response with the header `name` (in lower case) added or replaced."""
        key = name.encode()
        return replace(self, headers=(*(pair for pair in self.headers if pair[0] != key), (key, value.encode())))


def now(state: IndexState) -> int:
    """Return the last serial."""
    return state.last_serial or 0


class Exchange:
    """A request that is being answered, and its connection."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._send = send
        self._gone = asyncio.create_task(_until_disconnected(receive))
        state = Request(scope).state
        self._own: OwnAnswer = state.own_answer
        self._transport: asyncio.Transport = state.transport

    async def own_answer(self, as_of: AsOf = now, *, ignoring: Iterable[str] = ()) -> BufferedAnswer:
        """Return the index's response to the request without the headers `ignoring`."""
        ignored = {name.encode() for name in ignoring}
        headers = [pair for pair in self._scope["headers"] if pair[0] not in ignored]
        parts: list[Message] = []

        async def collect(message: Message) -> None:
            parts.append(message)

        await self._own(as_of)({**self._scope, "headers": headers}, _never, collect)
        start, *body = parts
        return BufferedAnswer(
            start["status"], tuple(start["headers"]), b"".join(part.get("body", b"") for part in body)
        )

    async def begin(self, answer: BufferedAnswer) -> None:
        """Send status and headers of `answer`."""
        await self._send({"type": "http.response.start", "status": answer.status, "headers": list(answer.headers)})

    async def send(self, body: bytes, *, is_last: bool = False) -> None:
        """Send a part of the body."""
        await self._send({"type": "http.response.body", "body": body, "more_body": not is_last})

    async def pause(self, seconds: float) -> bool:
        """Wait; return whether the client is still connected."""
        await asyncio.wait([self._gone], timeout=seconds)
        return not self._gone.done()

    async def close(self) -> None:
        """Close the connection in order after the sent bytes, even if the headers announced more."""
        self._transport.close()
        await self._gone

    async def abort(self) -> None:
        """Reset the connection: the client gets an error instead of an end of the stream."""
        self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORTING)
        self._transport.abort()
        await self._gone

    def forget(self) -> None:
        """Stop watching the client."""
        self._gone.cancel()


class Spoiled(Response):
    """A response that `spoil` produces. It runs in the server's own thread, as the index's own responses do."""

    def __init__(self, spoil: Callable[[Exchange], Awaitable[None]]) -> None:
        super().__init__()
        self._spoil = spoil

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, receive, send)
        try:
            await self._spoil(exchange)
        finally:
            exchange.forget()


def changed(
    change: Callable[[BufferedAnswer], BufferedAnswer] = lambda answer: answer,
    *,
    as_of: AsOf = now,
    ignoring: Iterable[str] = (),
) -> Spoiled:
    """Return the index's own response, changed by `change`; `as_of` and `ignoring` are as in `Exchange.own_answer`."""

    async def spoil(exchange: Exchange) -> None:
        answer = change(await exchange.own_answer(as_of, ignoring=ignoring))
        await exchange.begin(answer)
        await exchange.send(answer.body, is_last=True)

    return Spoiled(spoil)


def compressed(answer: BufferedAnswer, *, broken: bool) -> BufferedAnswer:
    """Compress the body with gzip. A `broken` body has a wrong checksum."""
    if not answer.body:
        return answer
    body = gzip.compress(answer.body, mtime=0)
    if broken:
        body = body[:-_GZIP_TRAILER_BYTES] + bytes(byte ^ 0xFF for byte in body[-_GZIP_TRAILER_BYTES:])
    return answer.with_header("content-encoding", "gzip").with_body(body)


def with_wrong_bytes(answer: BufferedAnswer) -> BufferedAnswer:
    """Replace each byte of the body; keep its length."""
    return replace(answer, body=bytes(byte ^ 0xFF for byte in answer.body))


def with_other_size(answer: BufferedAnswer, more: int) -> BufferedAnswer:
    """Add `more` bytes, or remove some if it is negative, with a Content-Length that agrees."""
    return answer.with_body(answer.body + bytes(more) if more > 0 else answer.body[:more])


def cut_short(sent: float, *, reset: bool) -> Spoiled:
    """Send the headers and a first part of the body, a share of `sent`; then close or reset the connection."""

    async def spoil(exchange: Exchange) -> None:
        answer = await exchange.own_answer()
        await exchange.begin(answer)
        await exchange.send(answer.body[: int(len(answer.body) * sent)])
        await (exchange.abort() if reset else exchange.close())

    return Spoiled(spoil)


def reset_at_once() -> Spoiled:
    """Reset the connection without a response."""
    return Spoiled(Exchange.abort)


def dripping(bytes_per_s: float) -> Spoiled:
    """Send the index's own response, its body at `bytes_per_s`, while the client waits."""
    size = max(1, round(bytes_per_s / _PIECES_PER_S))

    async def spoil(exchange: Exchange) -> None:
        answer = await exchange.own_answer()
        await exchange.begin(answer)
        for start in range(0, len(answer.body), size):
            await exchange.send(answer.body[start : start + size])
            if not await exchange.pause(size / bytes_per_s):
                return
        await exchange.send(b"", is_last=True)

    return Spoiled(spoil)


def hanging(seconds: float) -> Spoiled:
    """Send nothing for `seconds`; then close the connection."""

    async def spoil(exchange: Exchange) -> None:
        if await exchange.pause(seconds):
            await exchange.close()

    return Spoiled(spoil)


async def _until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _never() -> Message:
    """Wait forever, like a client that waits for its response."""
    never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
    return await never
