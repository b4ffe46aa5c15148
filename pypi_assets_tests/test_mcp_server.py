"""The MCP server returns the same bytes as the HTTP service for the same question."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, get_args, get_origin
from urllib.parse import quote

import pytest
import requests
from mcp import types
from mcp.client import Client as McpClient
from mcp.client.stdio import StdioServerParameters

from pypi_assets.mcp_server import is_long, tool_server
from pypi_assets.questions.question import Question, all_questions
from pypi_assets.service.service import Service
from pypi_assets_tests.cli.commands import PROCESS, Commands
from pypi_assets_tests.cli.conftest import commands as commands
from pypi_assets_tests.client.test_connecting import EARLIER, asked
from pypi_assets_tests.examples import examples
from pypi_assets_tests.questions.test_snapshots import names_of, subject
from pypi_assets_tests.service.conftest import client as client
from pypi_assets_tests.service.conftest import journaled as journaled
from pypi_assets_tests.service.conftest import journaled_client as journaled_client
from pypi_assets_tests.service.conftest import published as published
from pypi_assets_tests.service.published import Client, Published

Arguments = dict[str, Any]
QUESTIONS = {one.name: one for one in all_questions()}
ROUTED = [one for one in all_questions() if one.path is not None]


def environment(published: Published) -> dict[str, str]:
    """Return the variables of a process over the published index."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYPI_ASSETS_")}
    return kept | {"PYPI_ASSETS_HOME": str(published.home), "PYTHONPATH": os.pathsep.join(sys.path)}


def drawn(published: Published) -> Iterator[tuple[str, Arguments]]:
    """Yield calls of all tools: each with several parameter values, for the current and an earlier serial."""
    for question in ROUTED:
        if question.has_body:
            for name in names_of(question):
                yield question.name, subject(question, name)
                yield question.name, subject(question, name) | {"at": str(EARLIER), "python": "3.12"}
            continue
        found = [
            {**subject(question, name), **values, **moment}
            for name, values in asked(question, published)
            for moment in ({}, {"at": str(EARLIER)}, {"limit": 1})
        ]
        yield from ((question.name, one) for one in Random(question.name).sample(found, min(len(found), examples(30))))
    for given in ({"requirements": ["demo"]}, {"requirements": ["demo>9"]}, {"requirements": 1}, {}):
        yield "resolve", given
        yield "resolve", given | {"at": "2026-03-03", "python": "3.12"}
    yield "impact", {"project": "PyYAML", "transitive": True}
    yield "module", {"module": "yaml", "at": "2026-03-03"}
    yield "module", {"module": "yaml", "at": "yesterday"}
    yield "module", {"module": "yaml", "at": 10**9}
    yield "module", {"module": "yaml", "colour": "red"}
    yield "module", {"module": "yaml", "limit": 0}
    yield "module", {"module": "yaml", "prefix": ["no"]}
    yield "module", {"module": "yaml", "prefix": None}
    yield "module", {"module": "a/b c%2F?#é"}


def answered(client: Client, name: str, given: Arguments) -> requests.Response:
    """Return the service's answer to the same question."""
    if QUESTIONS[name].has_body:
        body = {field: value for field, value in given.items() if field != "at"}
        path = f"{'at/' + given['at'] if 'at' in given else ''}{QUESTIONS[name].path}"
        return client.post(path, body, allow_redirects=True)
    return client.get(target(QUESTIONS[name], given), allow_redirects=True)


def target(question: Question[Any], given: Arguments) -> str:
    """Return the path of the same question to the service."""
    assert question.path is not None
    path = re.sub(r"{(\w+)(:path)?}", lambda match: quote(str(given[match[1]]), safe=""), question.path)
    others = {name for name in given if f"{{{name}" not in question.path} - {"at"}
    query = {name: value for name, value in given.items() if name in others and value is not None}
    query |= {"format": "ndjson"} if is_long(question, given) else {}
    texts = [f"{name}={quote(value if isinstance(value, str) else json.dumps(value))}" for name, value in query.items()]
    return f"{'at/' + str(given['at']) if 'at' in given else ''}{path}?{'&'.join(texts)}"


def text_of(result: types.CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, types.TextContent)
    return content.text


async def call_all(tools: McpClient, calls: list[tuple[str, Arguments]]) -> list[types.CallToolResult]:
    return [await tools.call_tool(name, given) for name, given in calls]


def assert_equal(results: list[types.CallToolResult], calls: list[tuple[str, Arguments]], client: Client) -> None:
    """Check that each text is the body of the service's answer, and that each problem is a tool error."""
    statuses = set()
    for result, (name, given) in zip(results, calls, strict=True):
        answer = answered(client, name, given)
        statuses.add(answer.status_code)
        assert result.is_error == (answer.status_code != 200), (name, given)
        if result.is_error:
            shown, expected = json.loads(text_of(result)), answer.json()
            assert shown.pop("request_id") != expected.pop("request_id")
            assert shown == expected, (name, given)
        else:
            assert text_of(result).encode() == answer.content, (name, given)
    assert statuses == {200, 400, 404, 409}


@pytest.mark.nightly
def test_stdio_server_answers_like_the_service(published: Published, client: Client) -> None:
    calls = list(drawn(published))

    async def run() -> list[types.CallToolResult]:
        started = StdioServerParameters(command=PROCESS[0], args=[*PROCESS[1:], "mcp"], env=environment(published))
        async with McpClient(started) as tools:
            return await call_all(tools, calls)

    assert_equal(asyncio.run(run()), calls, client)


@contextmanager
def served_over_http(published: Published) -> Iterator[str]:
    """Run the command as a process, and yield the URL of its endpoint."""
    command = [*PROCESS, "mcp", "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, env=environment(published), stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            match = re.search(r"http://127\.0\.0\.1:\d+/mcp", line)
            assert match, line + process.stderr.read()
            yield match[0]
        finally:
            process.terminate()


@pytest.mark.nightly
def test_http_server_answers_like_the_service(published: Published, client: Client) -> None:
    calls = list(drawn(published))

    async def run(url: str) -> list[types.CallToolResult]:
        async with McpClient(url) as tools:
            return await call_all(tools, calls)

    with served_over_http(published) as url:
        assert_equal(asyncio.run(run(url)), calls, client)
        sent = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        accepts = {"Accept": "application/json, text/event-stream"}
        for foreign in ({"Host": "example.org"}, {"Origin": "https://example.org"}):
            rejected = requests.post(url, json=sent, headers=accepts | foreign, timeout=60)
            assert rejected.status_code in {403, 421}, foreign


def test_questions_with_a_route_are_read_only_tools(published: Published) -> None:
    async def run(service: Service) -> types.ListToolsResult:
        async with McpClient(tool_server(service)) as tools:
            return await tools.list_tools()

    with published.service() as service:
        listed = {one.name: one for one in asyncio.run(run(service)).tools}
    assert list(listed) == [*(one.name for one in ROUTED), "changes"]
    assert set(listed["changes"].input_schema["properties"]) >= {"since", "limit", "wait", "project", "kind"}
    assert "at" not in listed["changes"].input_schema["properties"]
    assert listed["resolve"].input_schema["required"] == ["requirements"]
    for question in ROUTED:
        tool = listed[question.name]
        assert tool.annotations is not None
        assert (tool.annotations.read_only_hint, tool.annotations.destructive_hint) == (True, False)
        assert question.summary in (tool.description or "")
        schema, paging = tool.input_schema, {"limit", "cursor"} if question.sort_key else set()
        assert schema["required"] == [one.name for one in question.takes if one.is_required]
        assert set(schema["properties"]) == {*(one.name for one in question.takes), *paging, "at"}
        assert schema["additionalProperties"] is False
        kinds = {str: "string", bool: "boolean", int: "integer"}
        for one in question.takes:
            described = schema["properties"][one.name]
            assert described["description"] == one.accepts.text
            optional = [kind for kind in get_args(one.type) if kind is not type(None)]
            if get_origin(one.type) is tuple:
                assert (described["type"], described["maxItems"]) == ("array", one.accepts.most)
                described, optional = described["items"], []
                assert described["type"] == "string"
            assert described.get("type", "string") == kinds.get(optional[0] if optional else one.type, "string")
            limits = {"minLength": one.accepts.min_length, "maxLength": one.accepts.max_length}
            assert all(described.get(name) == value for name, value in limits.items())


def test_changes_tool_answers_like_the_route(journaled: Published, journaled_client: Client) -> None:
    calls: list[Arguments] = [{}, {"limit": 3, "kind": "add-file"}, {"since": "2026-03-05"}, {"kind": "none"}]

    async def run(service: Service) -> list[types.CallToolResult]:
        async with McpClient(tool_server(service)) as tools:
            return await call_all(tools, [("changes", given) for given in calls])

    with journaled.service() as service:
        found = asyncio.run(run(service))
    for result, given in zip(found, calls, strict=True):
        answer = journaled_client.session.get(f"{journaled_client.url}v1/changes", params=given, timeout=60)
        assert result.is_error == (answer.status_code != 200) == (given == calls[-1])
        if not result.is_error:
            assert text_of(result).encode() == answer.content


def test_invalid_calls_return_problems_in_the_same_format(published: Published) -> None:
    calls: list[tuple[str, Arguments, str]] = [
        ("no_such_tool", {}, "name"),
        ("module", {}, "module"),
        ("module", {"module": "yaml", "format": "ndjson"}, "format"),
    ]

    async def run(service: Service) -> list[types.CallToolResult]:
        async with McpClient(tool_server(service)) as tools:
            found = await call_all(tools, [(name, given) for name, given, _ in calls])
            page = await tools.call_tool("module", {"module": "y", "prefix": True, "limit": 2})
            cursor = json.loads(text_of(page))["next"]
            rest = await tools.call_tool("module", {"module": "y", "prefix": True, "limit": 2, "cursor": cursor})
            assert [one["module"] for one in json.loads(text_of(rest))["results"]] == ["yaml.nodes"]
            return found

    with published.service() as service:
        for result, (_, _, parameter) in zip(asyncio.run(run(service)), calls, strict=True):
            assert result.is_error
            problem = json.loads(text_of(result))
            assert (problem["status"], problem["parameter"]) == (400, parameter)


def test_address_other_than_loopback_is_rejected(commands: Commands) -> None:
    for address in ("0.0.0.0:1", "example.org:80", "127.0.0.1", "127.0.0.1:70000", "localhost:x", ":8"):
        assert "--http" in commands.refused("mcp", "--http", address, exit_code=2)


def test_missing_extra_is_named(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pypi_assets.mcp_server")
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert "pypi-assets[mcp]" in commands.refused("mcp").replace("\n", " ")
