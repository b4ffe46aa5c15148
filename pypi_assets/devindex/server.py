"""The development index over HTTP: XML-RPC, the Simple API, the older JSON API and the files.

The server writes nothing. It looks for new lines of the history before each answer, whichever process wrote them.
"""

import asyncio
import signal
import socket
import threading
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from hashlib import md5
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import Any

import uvicorn
from packaging.metadata import RawMetadata
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from pypi_assets.devindex import served_pages
from pypi_assets.devindex.history import METADATA_SUFFIX, History
from pypi_assets.devindex.index_state import IndexState
from pypi_assets.devindex.response_faults import AsOf
from pypi_assets.devindex.uploads import parse_metadata, read_metadata

Faults = Callable[[Request], Response | None]
"""Sees each request first and may answer it instead of the index, or spoil the index's answer (see .spoiling).

`request.state` holds a POST's `body`, the index's `own_answer` to this request, and the connection's `transport`; the
last two are for the answer that the hook returns, since the hook itself runs in a thread of its own.
"""
_Handler = Callable[[Request, IndexState], Response]


class _Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Gives requests the transport that they came on, so that a fault can break it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.app_state: dict[str, Any] = {**self.app_state, "transport": transport}


def create_app(
    folder: Path | str, *, faults: Faults | None = None, page_rows: int = served_pages.PAGE_ROWS
) -> Starlette:
    """The index of `folder` as an ASGI application; `page_rows` is the most rows of one changelog answer."""
    index = _Index(History(folder), faults, page_rows)
    return Starlette(
        routes=[
            Route("/pypi", index.endpoint(index.changelog), methods=["POST"]),
            Route("/simple/", index.endpoint(_simple_index)),
            Route("/simple/{project}/", index.endpoint(_simple_project)),
            Route("/pypi/{project}/json", index.endpoint(index.legacy_project)),
            Route("/packages/{path:path}", index.endpoint(index.file)),
        ],
        exception_handlers={404: lambda _request, _error: _not_found()},
    )


@dataclass(frozen=True, slots=True)
class _Index:
    """What answers are made of, and what spoils them."""

    history: History
    faults: Faults | None
    page_rows: int

    def endpoint(self, handle: _Handler) -> Callable[[Request], Awaitable[Response]]:
        """`handle` for the index as it is now, unless a fault answers instead."""

        def past(as_of: AsOf) -> IndexState:
            return self.history.state_at(as_of(self.history.state()))

        async def respond(request: Request) -> Response:
            request.state.body = await request.body()
            if self.faults is not None:  # in a thread, so that a fault may wait without stopping the server
                request.state.own_answer = lambda as_of: handle(request, past(as_of))
                fault = await run_in_threadpool(self.faults, request)
                if fault is not None:
                    return fault
            return handle(request, self.history.state())

        return respond

    def changelog(self, request: Request, state: IndexState) -> Response:
        return _response(served_pages.answer(request.state.body, state, self.page_rows), "text/xml; charset=UTF-8")

    def legacy_project(self, request: Request, state: IndexState) -> Response:
        project = state.project(request.path_params["project"])
        release = served_pages.latest_release(project) if project else None
        if project is None or release is None:
            return _response(b'{"message": "Not Found"}', "application/json", status=404)
        found = (read_metadata(self.history.file_path(file)) for file in release.files.values())
        raw = next((one for one in found if one is not None), None)
        metadata = parse_metadata(raw) if raw is not None else RawMetadata()
        body = served_pages.legacy_project_json(project, release, metadata, _base(request))
        return _page(request, body, "application/json", project.last_serial, vary="Accept-Encoding")

    def file(self, request: Request, state: IndexState) -> Response:
        path = request.path_params["path"]
        stored, suffix = state.files.get(path), ""
        if stored is None and path.endswith(METADATA_SUFFIX):
            stored, suffix = state.files.get(path.removesuffix(METADATA_SUFFIX)), METADATA_SUFFIX
        if stored is None or (suffix and stored.core_metadata_sha256 is None):
            return _not_found()
        uploaded = datetime.fromisoformat(stored.uploaded_at).replace(microsecond=0)
        return FileResponse(
            f"{self.history.file_path(stored)}{suffix}",
            media_type="application/gzip" if path.endswith("gz") else "application/octet-stream",
            headers={
                "last-modified": format_datetime(uploaded, usegmt=True),
                "etag": f'"{stored.core_metadata_sha256 if suffix else stored.sha256}"',
            },
        )


def _simple_index(request: Request, state: IndexState) -> Response:
    form = served_pages.choose(request.headers.get("accept"))
    page = served_pages.simple_index_json if form == served_pages.V1_JSON else served_pages.simple_index_html
    return _page(request, page(state), form, state.last_serial or 0)


def _simple_project(request: Request, state: IndexState) -> Response:
    project = state.project(request.path_params["project"])
    if project is None:
        return _not_found()
    form = served_pages.choose(request.headers.get("accept"))
    page = served_pages.simple_project_json if form == served_pages.V1_JSON else served_pages.simple_project_html
    return _page(request, page(project, _base(request)), form, project.last_serial)


@contextmanager
def running(
    folder: Path | str,
    port: int = 0,
    *,
    host: str = "127.0.0.1",
    faults: Faults | None = None,
    page_rows: int = served_pages.PAGE_ROWS,
    log_requests: bool = False,
) -> Iterator[str]:
    """Serves the index of `folder` from a thread while the context lasts; yields its URL, ending in /simple/.

    Port 0 takes a free one. Raises OSError where the address cannot be bound.
    """
    config = uvicorn.Config(
        create_app(folder, faults=faults, page_rows=page_rows),
        http=_Connection,
        access_log=log_requests,
        log_config=uvicorn.config.LOGGING_CONFIG if log_requests else None,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    with socket.create_server((host, port), backlog=1024) as listener:
        thread = threading.Thread(target=server.run, args=([listener],), name="devindex")
        thread.start()
        try:
            yield f"http://{host}:{listener.getsockname()[1]}/simple/"
        finally:
            server.should_exit = True
            thread.join()


def serve(
    folder: Path | str,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    ready: Callable[[str], None],
    faults: Faults | None = None,
    log_requests: bool = False,
) -> None:
    """Serves the index of `folder` until SIGINT or SIGTERM; calls `ready` with its URL once it answers.

    Only the main thread can call it, since only it receives signals.
    """
    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with running(folder, port, host=host, faults=faults, log_requests=log_requests) as url:
            ready(url)
            stop.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _base(request: Request) -> str:
    return str(request.base_url).rstrip("/")


def _response(
    body: bytes, content_type: str, *, status: int = 200, headers: Mapping[str, str] = MappingProxyType({})
) -> Response:
    return Response(body, status, headers={"content-type": content_type, "vary": "Accept-Encoding", **headers})


def _not_found() -> Response:
    return _response(b"404 Not Found", "text/plain; charset=UTF-8", status=404)


def _page(request: Request, body: bytes, form: str, serial: int, vary: str = "Accept-Encoding, Accept") -> Response:
    """A page with its serial and ETag, or 304 without content where the request holds that ETag already."""
    etag = f'"{b64encode(md5(body, usedforsecurity=False).digest()).decode().rstrip("=")}"'
    headers = {"x-pypi-last-serial": str(serial), "etag": etag, "vary": vary}
    known = [item.strip().removeprefix("W/") for item in request.headers.get("if-none-match", "").split(",")]
    if etag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    content_type = f"{form}; charset=UTF-8" if form == served_pages.HTML else form
    return _response(body, content_type, headers=headers)
