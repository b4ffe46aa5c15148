import xmlrpc.client

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.index.changelog import call_body, read_answer, read_events, read_last_serial
from pypi_assets.index.errors import PackageIndexError, RefusedError, TransientError
from pypi_assets.index.models import ChangelogEvent

URL = "https://index.example.org/pypi"
ROW = ["Demo.Pkg", "1.0", 1_700_000_000, "new release", 8]


def answer(value: object) -> bytes:
    return xmlrpc.client.dumps((value,), methodresponse=True, allow_none=True).encode()


def fault(code: int, text: str) -> bytes:
    return xmlrpc.client.dumps(xmlrpc.client.Fault(code, text)).encode()


def test_a_call_is_what_servers_expect() -> None:
    assert xmlrpc.client.loads(call_body("changelog_since_serial", 7)) == ((7,), "changelog_since_serial")


def test_an_answer_is_read_however_it_is_cut() -> None:
    body = answer([ROW, ["demo_lib", None, 0, "\u00e9", 9]])
    value = read_answer((body[at : at + 1] for at in range(len(body))), URL)
    assert read_events(value, 7, URL) == [
        ChangelogEvent("Demo.Pkg", "1.0", 1_700_000_000, "new release", 8),
        ChangelogEvent("demo_lib", None, 0, "\u00e9", 9),
    ]


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        ("rows", "not a list"),
        ([ROW, ROW], "the row after serial 8 does not ascend"),
        ([[*ROW[:4], 9], ROW], "after serial 9 does not ascend"),
        ([[*ROW[:4], 7]], "after serial 7 does not ascend"),
        ([ROW[:4]], "after serial 7 is no event"),
        ([[*ROW, 1]], "is no event"),
        ([["", *ROW[1:]]], "is no event"),
        ([["a" * 513, *ROW[1:]]], "is no event"),
        ([[ROW[0], "1" * 513, *ROW[2:]]], "is no event"),
        ([[None, *ROW[1:]]], "is no event"),
        ([["a", 1, *ROW[2:]]], "is no event"),
        ([["a", "1", 1.5, *ROW[3:]]], "is no event"),
        ([["a", "1", True, *ROW[3:]]], "is no event"),
        ([[*ROW[:3], None, 8]], "is no event"),
        ([[*ROW[:4], "8"]], "is no event"),
        ([[*ROW[:4], True]], "is no event"),
        ([[*ROW[:4], 2**63]], "is no event"),
    ],
)
def test_rows_that_break_the_protocol_are_refused(rows: object, wrong: str) -> None:
    with pytest.raises(RefusedError, match=f"changelog breaks the protocol: .*{wrong}"):
        read_events(rows, 7, URL)


def test_the_last_serial_of_an_empty_index_is_zero() -> None:
    assert read_last_serial(None, URL) == 0
    assert read_last_serial(32, URL) == 32
    for value in ("32", -1, True, [32]):
        with pytest.raises(RefusedError):
            read_last_serial(value, URL)


@pytest.mark.parametrize(
    ("body", "error", "pause_s"),
    [
        (fault(-32500, "HTTPTooManyRequests: Slow down. Limit may reset in 42 seconds."), TransientError, 42.0),
        (fault(-32500, "HTTPTooManyRequests: Slow down."), TransientError, None),
        (fault(-32403, "server error; service unavailable"), TransientError, None),
        (b"<html><body>502</body>", TransientError, None),
        (b"", TransientError, None),
        (answer(7)[:-30], TransientError, None),
        (b"<methodResponse><params></params></methodResponse>", TransientError, None),
        (answer(7).replace(b"7", b"seven"), TransientError, None),
        (fault(-32500, "ValueError: deprecated"), RefusedError, None),
        (fault(-32601, "server error; requested method not found"), RefusedError, None),
        (fault(-32602, "client error; serial"), RefusedError, None),
        (b"<!DOCTYPE x>" + answer(7)[21:], RefusedError, None),
    ],
)
def test_bad_answers_are_typed_by_what_one_can_do(
    body: bytes, error: type[PackageIndexError], pause_s: float | None
) -> None:
    with pytest.raises(error) as caught:
        read_answer([body], URL)
    assert type(caught.value) is error
    assert getattr(caught.value, "retry_after_s", None) == pause_s


def test_an_entity_bomb_is_refused_before_it_grows() -> None:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 30))
    bomb = f'<?xml version="1.0"?><!DOCTYPE b [<!ENTITY e0 "ha">{entities}]><methodResponse>&e29;</methodResponse>'
    with pytest.raises(RefusedError, match="document type or entities"):
        read_answer([bomb.encode()], URL)


@given(st.binary(max_size=200) | st.text("<>/ivalue4intstrgnparmshodRp 12").map(str.encode))
def test_no_answer_breaks_out_of_the_typed_errors(body: bytes) -> None:
    with pytest.raises((TransientError, RefusedError)):
        read_answer([b"<methodResponse><params><param>", body], URL)
