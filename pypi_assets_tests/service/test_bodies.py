"""Bodies of requests: their limits, and what is wrong with them."""

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack

import pytest

from pypi_assets.service.bodies import BodyRoom, read_body
from pypi_assets.service.problems import ProblemError

MOST_BYTES = 100


def read(*parts: bytes, headers: Mapping[str, str] | None = None) -> object:
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    messages[-1]["more_body"] = False

    async def receive() -> dict[str, object]:
        return messages.pop(0)

    return asyncio.run(read_body(receive, headers or {}, list[str], MOST_BYTES, lambda _more: None))


def problem(*parts: bytes, headers: Mapping[str, str] | None = None) -> ProblemError:
    with pytest.raises(ProblemError) as raised:
        read(*parts, headers=headers)
    return raised.value


def test_a_body_is_read_in_parts():
    assert read(b'["a",', b'"b"]') == ["a", "b"]
    assert read(b"[]", headers={"content-type": "application/json; charset=utf-8"}) == []


def test_a_body_above_the_limit_is_not_read_to_its_end():
    assert problem(b"[]", headers={"content-length": "101"}).problem.status == 413
    found = problem(b" " * 60, b" " * 60, b"never read")
    assert (found.problem.status, found.problem.accepts) == (413, "at most 100 bytes")
    assert ("Connection", "close") in found.headers


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "not JSON"),
        (b"[", "not JSON"),
        (b"\xff", "not JSON"),
        (b'["\xff"]', "not JSON"),
        (b"[1]", "Expected `str`, got `int`"),
        (b"[" * 100, "not"),
        (b"{}", "Expected `array`, got `object`"),
    ],
)
def test_what_is_not_the_json_that_it_must_be_names_the_body(body: bytes, text: str):
    found = problem(body).problem
    assert (found.status, found.parameter) == (400, "body")
    assert text in found.detail


def test_other_forms_of_bodies_are_refused():
    assert problem(b"a=1", headers={"content-type": "application/x-www-form-urlencoded"}).problem.status == 415
    assert problem(b"[]", headers={"content-encoding": "gzip"}).problem.status == 415


def test_bodies_above_the_room_are_rejected_by_client():
    room = BodyRoom()  # of 160 bytes, of which a client has 40
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
    with room.held_by("a", 10) as a:  # all of it is free again
        a(40)
