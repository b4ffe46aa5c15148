"""Request bodies: limits, invalid content, and clients that do not read the answer."""

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from pypi_assets.service.client_limits import BodyRoom
from pypi_assets.service.middleware import ClientTooSlowError, LimitMiddleware
from pypi_assets.service.operations import read_body
from pypi_assets.service.problems import ProblemError
from pypi_assets.service.service import Service
from pypi_assets_tests.service.published import Published


def scope_of(headers: Mapping[str, str] | None, method: str = "POST") -> dict[str, Any]:
    return {"type": "http", "method": method, "pypi_assets.headers": headers or {}, "client": ("192.0.2.1", 1)}


def received(*parts: bytes) -> Receive:
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    messages[-1]["more_body"] = False

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    return receive


def read(*parts: bytes, headers: Mapping[str, str] | None = None) -> object:
    return asyncio.run(read_body(scope_of(headers), received(*parts), list[str]))


def problem(*parts: bytes, headers: Mapping[str, str] | None = None) -> ProblemError:
    with pytest.raises(ProblemError) as raised:
        read(*parts, headers=headers)
    return raised.value


def test_a_body_is_read_in_parts():
    assert read(b'["a",', b'"b"]') == ["a", "b"]
    assert read(b"[]", headers={"content-type": "application/json; charset=utf-8"}) == []


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "not JSON"),
        (b"[", "not JSON"),
        (b"\xff", "not JSON"),
        (b'["\xff"]', "not JSON"),
        (b"[1]", "Expected `str`, got `int`"),
        (b"[" * 100, "the body is"),
        (b"{}", "Expected `array`, got `object`"),
    ],
)
def test_invalid_json_names_the_body(body: bytes, text: str):
    found = problem(body).problem
    assert (found.status, found.parameter) == (400, "body")
    assert text in found.detail


def test_other_content_types_are_rejected():
    assert problem(b"a=1", headers={"content-type": "application/x-www-form-urlencoded"}).problem.status == 415
    assert problem(b"[]", headers={"content-encoding": "gzip"}).problem.status == 415


def limited(service: Service, app: ASGIApp, *parts: bytes, headers: Mapping[str, str] | None = None) -> list[Any]:
    """Send a request through the middleware to an application and return the messages sent to the client."""
    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    asyncio.run(LimitMiddleware(app, service)(scope_of(headers), received(*parts), send))
    return messages


def test_body_above_the_limit_is_not_read_to_its_end(published: Published):
    async def reads(scope: Scope, receive: Receive, _send: Send) -> None:
        read.append(await read_body(scope, receive, list[str]))

    read: list[object] = []
    with published.service(service_max_body_bytes=1_024) as service:
        limited(service, reads, b" " * 1_000, b"[]" + b" " * 22)
        for parts, headers in (((b"[]",), {"content-length": "1025"}), ((b" " * 600, b" " * 600, b"[]"), {})):
            with pytest.raises(ProblemError) as raised:
                limited(service, reads, *parts, headers=headers)
            assert (raised.value.problem.status, raised.value.problem.accepts) == (413, "at most 1024 bytes")
            assert ("Connection", "close") in raised.value.headers
    assert read == [[]]


def test_client_that_stops_reading_is_disconnected(published: Published):
    async def streams(_scope: Scope, _receive: Receive, send: Send) -> None:
        sent.append(1)
        await send({"type": "http.response.body", "body": b"1", "more_body": True})

    async def never(_message: Any) -> None:
        await asyncio.Event().wait()

    sent: list[int] = []
    with published.service(service_timeout_s=0.05) as service:
        for method in ("GET", "POST"):
            with pytest.raises(ClientTooSlowError):
                asyncio.run(LimitMiddleware(streams, service)(scope_of(None, method), received(b""), never))
    assert len(sent) == 2


def test_bodies_above_a_clients_room_are_rejected():
    room = BodyRoom()  # 160 bytes, of which a client may use 40
    with ExitStack() as stack:
        a, b, c, d, e = (stack.enter_context(room.held_by(client, 10)) for client in "abcde")
        a(40)
        with pytest.raises(ProblemError) as raised:
            a(1)
        assert raised.value.problem.status == 429
        for hold in (b, c, d):
            hold(39)
        with pytest.raises(ProblemError) as raised:
            e(3)
        assert raised.value.problem.status == 503
        assert ("Retry-After", "1") in raised.value.headers
    with room.held_by("a", 10) as a:  # all room is free again
        a(40)
