"""How an answer is spoiled: the index's own one, changed, cut short, slowed down or kept back.

Which request meets what is up to pypi_assets.devindex.faults.
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
"""Which serial, given the index's present state: what is answered is what was true then."""
OwnAnswer = Callable[[AsOf], Response]
"""The index's own answer to a request."""

_ABORTING = struct.pack("ii", 1, 0)
_PIECES_PER_S = 10
_GZIP_TRAILER_BYTES = 8


@dataclass(frozen=True, slots=True)
class BufferedAnswer:
    """A whole answer; `headers` are as ASGI has them, their names in lower case."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes

    def with_body(self, body: bytes) -> "BufferedAnswer":
        """Another body, with its length."""
        return replace(self.with_header("content-length", str(len(body))), body=body)

    def with_header(self, name: str, value: str) -> "BufferedAnswer":
        """The header `name` (in lower case) added or replaced."""
        key = name.encode()
        return replace(self, headers=(*(pair for pair in self.headers if pair[0] != key), (key, value.encode())))


def now(state: IndexState) -> int:
    """As of the last serial."""
    return state.last_serial or 0


class Exchange:
    """A request that is being answered, and the connection that it came on."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._send = send
        self._gone = asyncio.create_task(_until_disconnected(receive))
        state = Request(scope).state
        self._own: OwnAnswer = state.own_answer
        self._transport: asyncio.Transport = state.transport

    async def own_answer(self, as_of: AsOf = now, *, ignoring: Iterable[str] = ()) -> BufferedAnswer:
        """What the index answers to the request without the headers `ignoring`."""
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
        """Sends status and headers of `answer`."""
        await self._send({"type": "http.response.start", "status": answer.status, "headers": list(answer.headers)})

    async def send(self, body: bytes, *, is_last: bool = False) -> None:
        """Sends some bytes of the body."""
        await self._send({"type": "http.response.body", "body": body, "more_body": not is_last})

    async def pause(self, seconds: float) -> bool:
        """Waits; whether the client is still there."""
        await asyncio.wait([self._gone], timeout=seconds)
        return not self._gone.done()

    async def close(self) -> None:
        """Closes the connection after what was sent, in good order, whatever was announced."""
        self._transport.close()
        await self._gone

    async def abort(self) -> None:
        """Resets the connection: the client reads an error, not an end."""
        self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORTING)
        self._transport.abort()
        await self._gone

    def forget(self) -> None:
        """Watches the client no more."""
        self._gone.cancel()


class Spoiled(Response):
    """What `spoil` makes of an exchange. It works in the server's own thread, as the index's answers do."""

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
    """What `change` makes of the index's own answer; `as_of` and `ignoring` as in `Exchange.own_answer`."""

    async def spoil(exchange: Exchange) -> None:
        answer = change(await exchange.own_answer(as_of, ignoring=ignoring))
        await exchange.begin(answer)
        await exchange.send(answer.body, is_last=True)

    return Spoiled(spoil)


def compressed(answer: BufferedAnswer, *, broken: bool) -> BufferedAnswer:
    """The body in gzip; a broken one has another checksum than its content."""
    if not answer.body:
        return answer
    body = gzip.compress(answer.body, mtime=0)
    if broken:
        body = body[:-_GZIP_TRAILER_BYTES] + bytes(byte ^ 0xFF for byte in body[-_GZIP_TRAILER_BYTES:])
    return answer.with_header("content-encoding", "gzip").with_body(body)


def with_wrong_bytes(answer: BufferedAnswer) -> BufferedAnswer:
    """As many bytes, each of them another."""
    return replace(answer, body=bytes(byte ^ 0xFF for byte in answer.body))


def with_other_size(answer: BufferedAnswer, more: int) -> BufferedAnswer:
    """`more` bytes more, or less where it is negative, and a Content-Length that agrees."""
    return answer.with_body(answer.body + bytes(more) if more > 0 else answer.body[:more])


def cut_short(sent: float, *, reset: bool) -> Spoiled:
    """The answer's head and the first part of its body, `sent` of 1; then the connection is closed, or reset."""

    async def spoil(exchange: Exchange) -> None:
        answer = await exchange.own_answer()
        await exchange.begin(answer)
        await exchange.send(answer.body[: int(len(answer.body) * sent)])
        await (exchange.abort() if reset else exchange.close())

    return Spoiled(spoil)


def reset_at_once() -> Spoiled:
    """No answer at all."""
    return Spoiled(Exchange.abort)


def dripping(bytes_per_s: float) -> Spoiled:
    """The index's own answer, its body at `bytes_per_s`, for as long as the client waits."""
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
    """Nothing for `seconds`; then the connection is closed."""

    async def spoil(exchange: Exchange) -> None:
        if await exchange.pause(seconds):
            await exchange.close()

    return Spoiled(spoil)


async def _until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _never() -> Message:
    """What a client sends that waits for its answer."""
    never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
    return await never
