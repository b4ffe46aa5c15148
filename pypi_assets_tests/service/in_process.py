"""Requests to a service's application within this process. Without connections, many requests a second are possible."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from starlette.types import ASGIApp

from pypi_assets.service import in_process
from pypi_assets.service.in_process import Received as Received

_ALWAYS_SENT = (("X-Request-ID", "1"),)
"""With an ID of its own, each response would differ."""


class Sent(NamedTuple):
    """A request. `target` is the path and the query as sent."""

    target: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


async def answer(app: ASGIApp, sent: Sent) -> Received:
    """Return the response to a request."""
    return await in_process.answer(app, sent.target, sent.method, (*_ALWAYS_SENT, *sent.headers), sent.body)


async def answers(app: ASGIApp, requests: Sequence[Sent]) -> list[Received]:
    """Send requests concurrently and return the responses in the order of the requests."""
    return list(await asyncio.gather(*(answer(app, request) for request in requests)))
