"""The development index over HTTP: XML-RPC, the Simple API, the older JSON API and the files.

The server writes nothing. Before each response it reads new lines of the history, which any process can write.
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
"""A hook that sees each request first. It can answer it instead of the index, or change the index's response (see
response_faults.py).

`request.state` has the `body` of a POST, the index's `own_answer` to this request, and the connection's `transport`.
The last two are for the response that the hook returns, because the hook itself runs in another thread.
"""
_Handler = Callable[[Request, IndexState], Response]


class _Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Adds the transport of the connection to its requests, so that a fault can break it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.app_state: dict[str, Any] = {**self.app_state, "transport": transport}


def create_app(
    folder: Path | str, *, faults: Faults | None = None, page_rows: int = served_pages.PAGE_ROWS
) -> Starlette:
    """Return the index of `folder` as an ASGI application; `page_rows` is the most rows of one changelog response."""
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
    """The source of the responses, and the faults to inject."""

    history: History
    faults: Faults | None
    page_rows: int

    def endpoint(self, handle: _Handler) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that calls `handle` with the present index, unless a fault answers instead."""

        def past(as_of: AsOf) -> IndexState:
            return self.history.state_at(as_of(self.history.state()))

        async def respond(request: Request) -> Response:
            request.state.body = await request.body()
            if self.faults is not None:  # in a thread, so that a waiting fault does not block the server
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
        local = Path(f"{self.history.file_path(stored)}{suffix}")
        if not local.exists():  # deleted from the folder, as by an index that does not keep removed files
            return _not_found()
        uploaded = datetime.fromisoformat(stored.uploaded_at).replace(microsecond=0)
        return FileResponse(
            local,
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
    """Serve the index of `folder` from a thread during the context; yield its URL, which ends in /simple/.

    Port 0 selects a free port. Raises OSError if the address cannot be bound.
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
    """Serve the index of `folder` until SIGINT or SIGTERM; call `ready` with its URL once it answers.

    Call it from the main thread, because no other thread receives signals.
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
    """Return a page with its serial and ETag, or 304 without content if the request already has that ETag."""
    etag = f'"{b64encode(md5(body, usedforsecurity=False).digest()).decode().rstrip("=")}"'
    headers = {"x-pypi-last-serial": str(serial), "etag": etag, "vary": vary}
    known = [item.strip().removeprefix("W/") for item in request.headers.get("if-none-match", "").split(",")]
    if etag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    content_type = f"{form}; charset=UTF-8" if form == served_pages.HTML else form
    return _response(body, content_type, headers=headers)
