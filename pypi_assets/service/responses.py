"""Writes answers to clients: whole ones, conditional ones, and streams."""

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial

from starlette.types import Receive, Scope, Send

from pypi_assets.service.answers import (
    CROSS_ORIGIN,
    Answer,
    StreamedAnswer,
    best_encoding,
    compressed_chunks,
    serial_header,
)
from pypi_assets.service.service import Service

_NOT_MODIFIED = frozenset(
    {b"etag", b"cache-control", b"vary", b"last-modified", b"x-pypi-last-serial", *(name for name, _ in CROSS_ORIGIN)}
)
"""The headers of a 304: what a cache renews."""
_LONG_BODY = 16 * 1024
"""To compress a longer one in the event loop would hold up other requests."""


async def respond(
    service: Service,
    scope: Scope,
    receive: Receive,
    send: Send,
    answer: Answer | StreamedAnswer,
    headers: Mapping[str, str],
) -> None:
    """Writes the answer to a request with these headers, by lower-case name."""
    accept_encoding = headers.get("accept-encoding", "")
    if isinstance(answer, StreamedAnswer):
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            await _respond_with_stream(service, scope, send, answer, accept_encoding, gone)
        finally:
            gone.cancel()
        return
    encoding = answer.encoding_for(accept_encoding)
    if len(answer.body) > _LONG_BODY and not answer.has_form(encoding):
        await service.threads.run(partial(answer.form, encoding))
    body, found = answer.form(encoding)
    status = answer.status
    if answer.is_known(headers.get("if-none-match"), headers.get("if-modified-since")):
        status, body = 304, b""
        found = tuple(header for header in found if header[0] in _NOT_MODIFIED)
    if answer.serial is None:
        found = (*found, serial_header(service.serial))
    await send({"type": "http.response.start", "status": status, "headers": found})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


async def _respond_with_stream(
    service: Service,
    scope: Scope,
    send: Send,
    answer: StreamedAnswer,
    accept_encoding: str,
    gone: "asyncio.Future[None]",
) -> None:
    """Each chunk is made when the client has taken the one before; a client that takes nothing is left."""
    encoding = best_encoding(accept_encoding)
    chunks = compressed_chunks(answer.chunks, encoding)
    is_wanted = scope["method"] != "HEAD"
    try:
        chunk = await service.threads.run_part(_next_chunk, chunks) if is_wanted else None
        head = answer.head(encoding)
        if answer.serial is None:
            head.append(serial_header(service.serial))
        await send({"type": "http.response.start", "status": answer.status, "headers": head})
        while chunk is not None and not gone.done():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            chunk = await service.threads.run_part(_next_chunk, chunks)
    finally:
        await service.threads.run_part(_close, chunks, answer.chunks)
    await send({"type": "http.response.body", "body": b""})


async def _disconnected(receive: Receive) -> None:
    """Returns when the client has ended the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _next_chunk(chunks: Iterator[bytes]) -> bytes | None:
    """The next chunk that is not empty; None at the end."""
    return next((chunk for chunk in chunks if chunk), None)


def _close(*iterators: Iterator[bytes]) -> None:
    for iterator in iterators:
        close = getattr(iterator, "close", None)
        if close is not None:
            close()
