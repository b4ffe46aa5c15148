"""Send requests to the application of a service within the process, without a connection."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp

_HOST = ("Host", "in-process")


@dataclass(frozen=True, slots=True)
class Received:
    """A response. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


async def answer(
    app: ASGIApp, target: str, method: str = "GET", headers: Iterable[tuple[str, str]] = (), body: bytes = b""
) -> Received:
    """Return the response to a request. `target` is the percent-encoded path with its query."""
    path, _, query = target.partition("?")
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in (_HOST, *headers)],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    messages: list[Any] = []
    requests = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        if not requests:
            await asyncio.Event().wait()  # this client never disconnects before the answer
        return requests.pop()

    async def send(message: Any) -> None:
        messages.append(message)

    await app(scope, receive, send)
    found = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
    return Received(messages[0]["status"], found, b"".join(one.get("body", b"") for one in messages[1:]))
