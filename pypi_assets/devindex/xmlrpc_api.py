"""The changelog over XML-RPC, as `/pypi` answers it: three methods, and faults for everything else."""

import xmlrpc.client
from typing import Any
from xml.parsers.expat import ExpatError

from pypi_assets.devindex.index_state import IndexState

PAGE_ROWS = 50_000


def answer(body: bytes, state: IndexState, page_rows: int = PAGE_ROWS) -> bytes:
    """The response to the call in `body`; `page_rows` is the most rows one changelog answer holds."""
    try:
        result = _call(body, state, page_rows)
    except xmlrpc.client.Fault as fault:
        return xmlrpc.client.dumps(fault, methodresponse=True).encode()
    return xmlrpc.client.dumps((result,), methodresponse=True, allow_none=True).encode()


def _call(body: bytes, state: IndexState, page_rows: int) -> Any:
    try:
        arguments, method = xmlrpc.client.loads(body)
    except (ExpatError, xmlrpc.client.ResponseError, ValueError, TypeError, AttributeError, IndexError) as error:
        raise xmlrpc.client.Fault(-32700, "parse error; not well formed") from error
    match method:
        case "changelog_last_serial":
            _bind(arguments)
            return state.last_serial
        case "changelog_since_serial":
            (serial,) = _bind(arguments, "serial")
            return [
                [event.name, event.version, event.timestamp, event.action, event.serial]
                for event in state.changelog_since(serial, page_rows)
            ]
        case "list_packages_with_serial":
            _bind(arguments)
            return {project.name: project.last_serial for project in state.projects.values()}
        case "changelog":
            raise xmlrpc.client.Fault(
                -32500,
                "ValueError: The changelog method has been deprecated, use changelog_since_serial instead.",
            )
        case _:
            raise xmlrpc.client.Fault(-32601, "server error; requested method not found")


def _bind(arguments: tuple[Any, ...], *names: str) -> tuple[int, ...]:
    """The arguments, if they are integers, one for each name."""
    for position, name in enumerate(names):
        if position >= len(arguments):
            raise _bad_argument(name, "Missing required argument")
        if type(arguments[position]) is not int:
            raise _bad_argument(name, "Input should be a valid integer")
    if len(arguments) > len(names):
        raise _bad_argument(str(len(names)), "Unexpected positional argument")
    return arguments


def _bad_argument(name: str, problem: str) -> xmlrpc.client.Fault:
    return xmlrpc.client.Fault(-32602, f"client error; {name}: {problem}")
