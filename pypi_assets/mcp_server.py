"""Offer questions as read-only tools of the Model Context Protocol: each question with a route, and the changes.

A tool call becomes a request to the service's own application in this process, and returns the body of the response. So
nothing is rendered here, and a problem document becomes a tool error.
"""

import json
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any
from urllib.parse import urlencode, urljoin

import anyio
import msgspec
import uvicorn
from mcp import types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from starlette.types import ASGIApp

from pypi_assets.questions.addresses import STEPS, filled
from pypi_assets.questions.question import Question, all_questions
from pypi_assets.service.app import create_app
from pypi_assets.service.changes import CHANGES
from pypi_assets.service.in_process import Received, answer
from pypi_assets.service.operations import Operation
from pypi_assets.service.parameters import accepted, as_json_schema
from pypi_assets.service.pins import PIN_ACCEPTS, PIN_PATTERN
from pypi_assets.service.problems import bad_parameter, problem_answer
from pypi_assets.service.questions import operation
from pypi_assets.service.responses import JSON
from pypi_assets.service.results import PagedParameters
from pypi_assets.service.service import Service, open_service
from pypi_assets.settings import Settings

PATH = "/mcp"
_AT = "at"
_FORMAT = "format"
"""The routes' parameter for the format. Tools do not have it: they return JSON, or lines for long searches."""
_INSTRUCTIONS = (
    "Answers about the packages of a Python package index. Every answer names the serial of the index at which it is"
    " exact. Use `at` to ask about an earlier serial or time. Long lists have pages: pass the `next` of a page as the"
    " `cursor` of the next call. An error is a problem document that names the wrong parameter and its valid values."
)
_ERRORS = "surrogatepass"
"""Lone surrogates are passed on to the service, which rejects them, so that no other text is looked up instead."""
_MOST_REDIRECTS = 2
"""From a time to its serial, and from a serial to its epoch."""
_TRUE = (True, "1", "true")
_READS = types.ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


def run_on_stdio(settings: Settings) -> None:
    """Serve the client that started this process, until it closes standard input."""

    async def run() -> None:
        async with _opened(settings) as server, stdio_server() as (requests, responses):
            await server.run(requests, responses, server.create_initialization_options())

    anyio.run(run)


def run_on_http(settings: Settings, host: str, port: int, *, ready: Callable[[str], None]) -> None:
    """Serve streamable HTTP at a loopback address until SIGINT or SIGTERM; call `ready` with the URL.

    Requests that name another host or origin are rejected, so web pages cannot reach it. Port 0 selects a free port.
    Raises OSError if the address cannot be bound.
    """

    async def run(listener: socket.socket) -> None:
        async with _opened(settings) as server:
            app = server.streamable_http_app(
                streamable_http_path=PATH, json_response=True, stateless_http=True, host=host
            )
            config = uvicorn.Config(app, access_log=False, log_config=None, server_header=False, ws="none")
            await uvicorn.Server(config).serve(sockets=[listener])

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listener:
        shown = f"[{host}]" if ":" in host else host
        ready(f"http://{shown}:{listener.getsockname()[1]}{PATH}")
        anyio.run(run, listener)


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator["Server[Any]"]:
    """Open the service, which follows new versions, and yield the server of its tools."""
    service = open_service(settings)
    service.follow_in_background(lambda _: None)
    try:
        yield tool_server(service)
    finally:
        service.close()


def tool_server(service: Service) -> "Server[Any]":
    """Return a server with the tools of a service."""
    app = create_app(service)
    questions = {one.name: one for one in all_questions() if one.path is not None}
    operations = {name: operation(name) for name in questions} | {"changes": CHANGES}
    tools = [_tool(name, found) for name, found in operations.items()]

    async def list_tools(
        _context: ServerRequestContext[Any], _parameters: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        _context: ServerRequestContext[Any], called: types.CallToolRequestParams
    ) -> types.CallToolResult:
        found = operations.get(called.name)
        if found is None:
            known = f"one of: {', '.join(operations)}"
            received = _problem("name", f"there is no tool {called.name!r:.100}", known)
        elif found.body is None:
            received = await _ask(app, questions.get(called.name), found, called.arguments or {})
        else:
            received = await _send(app, found, called.arguments or {})
        text = types.TextContent(type="text", text=received.body.decode())
        return types.CallToolResult(content=[text], is_error=received.status != 200)

    return Server(
        "pypi-assets",
        version=version("pypi-assets"),
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _tool(name: str, found: Operation) -> types.Tool:
    """Return the tool of an operation. Its input schema has the parameters, or the fields of the body, and `at`."""
    kind = found.parameters if found.body is None else found.body
    schema = as_json_schema(msgspec.json.schema(kind)["$defs"][kind.__name__])
    described = {field: _flat(one) for field, one in schema["properties"].items() if field != _FORMAT}
    of_pages = {field: described.pop(field) for field in PagedParameters.__struct_fields__ if field in described}
    moment = {"description": f"as of {PIN_ACCEPTS}; default: the newest", "type": "string", "pattern": PIN_PATTERN}
    return types.Tool(
        name=name,
        title=found.summary,
        description=f"{found.summary}. {found.description}".strip(),
        input_schema={
            "type": "object",
            "properties": {**described, **({_AT: moment} if found.at_serial else {}), **of_pages},
            "required": schema.get("required", []),
            "additionalProperties": False,
        },
        annotations=_READS,
    )


def _flat(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an optional parameter without null, which many clients cannot show."""
    [first, *others] = [one for one in schema.get("anyOf", (schema,)) if one.get("type") != "null"]
    if others:
        return dict(schema)
    return {name: value for name, value in first.items() if name != "default" or value is not None}


def is_long(question: Question[Any], given: Mapping[str, Any]) -> bool:
    """Check whether these arguments search the whole index, so that the route answers in lines."""
    values = {one.name: given.get(one.name) in _TRUE if one.type is bool else None for one in question.takes}
    return question.long_by(question.parameters(**values)) is not None


async def _ask(app: ASGIApp, question: Question[Any] | None, found: Operation, given: Mapping[str, Any]) -> Received:
    """Return the answer of a route to these arguments. `question` is None if the route does not belong to a
    question.
    """
    for name in found.path_parameters:
        if not isinstance(given.get(name), str | int) or given[name] in STEPS:
            what = "missing" if name not in given else "not accepted"
            return _problem(name, f"{name} is {what}", accepted(found.parameters, name))
    path = filled(found.path, {name: _text(given[name]) for name in found.path_parameters})
    others = {name: value for name, value in given.items() if name not in {*found.path_parameters, _AT}}
    query = {name: _text(value) for name, value in others.items() if value is not None}
    if _FORMAT in query:
        return _problem(_FORMAT, "a tool has no parameter format", "nothing: an answer is one JSON document")
    if question is not None and is_long(question, given):
        query[_FORMAT] = "ndjson"
    target = path + (f"?{urlencode(query, errors=_ERRORS)}" if query else "")
    return await _received(app, target, given.get(_AT))


async def _send(app: ASGIApp, found: Operation, given: Mapping[str, Any]) -> Received:
    """Return the answer of a route that takes a body, which is made from the arguments."""
    body = json.dumps({name: value for name, value in given.items() if name != _AT}).encode()
    return await _received(app, found.path, given.get(_AT), found.method, body)


async def _received(app: ASGIApp, target: str, at: Any, method: str = "GET", body: bytes = b"") -> Received:
    """Return the answer as of a moment, after following the redirects to its serial and epoch."""
    if at is not None:
        if not isinstance(at, str | int) or at in ("", *STEPS):
            return _problem(_AT, f"{at!r:.100} is neither a serial nor a time", PIN_ACCEPTS)
        target = filled("/at/{at}", {_AT: _text(at)}) + target
    headers = [("Content-Type", JSON)] if body else []
    for _ in range(_MOST_REDIRECTS + 1):
        received = await answer(app, target, method, headers, body)
        if received.status != 307:
            break
        target = urljoin(target, received.headers["location"])
    return received


def _problem(name: str, detail: str, accepts: str) -> Received:
    made = problem_answer(bad_parameter(name, detail, accepts or None))
    return Received(made.status, {}, made.body)


def _text(value: Any) -> str:
    """Return a JSON value as text for a path or a query."""
    return value if isinstance(value, str) else json.dumps(value)
