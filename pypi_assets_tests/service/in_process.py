"""Requests to the application of a service within the process, without a connection: many of them a second."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from starlette.types import ASGIApp

_ALWAYS_SENT = (("Host", "here"), ("X-Request-ID", "1"))
"""With an ID of its own, each response would differ."""


class Sent(NamedTuple):
    """A request: its target is the path and the query as they are sent."""

    target: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


@dataclass(frozen=True)
class Received:
    """A response; names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


async def answer(app: ASGIApp, sent: Sent) -> Received:
    """What the application answers to a request."""
    path, _, query = sent.target.partition("?")
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": sent.method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in (*_ALWAYS_SENT, *sent.headers)],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    messages: list[Any] = []
    waits = [{"type": "http.request", "body": sent.body, "more_body": False}]

    async def receive() -> Any:
        while not waits:
            await asyncio.sleep(3600)
        return waits.pop()

    async def send(message: Any) -> None:
        messages.append(message)

    await app(scope, receive, send)
    headers = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
    return Received(messages[0]["status"], headers, b"".join(one.get("body", b"") for one in messages[1:]))


async def answers(app: ASGIApp, requests: Sequence[Sent]) -> list[Received]:
    """What the application answers to requests that come at once, in their order."""
    return list(await asyncio.gather(*(answer(app, one) for one in requests)))
