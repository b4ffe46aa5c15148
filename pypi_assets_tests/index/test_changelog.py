import itertools
import json
import xmlrpc.client

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.index.changelog import call_body, read_answer, read_events, read_last_serial
from pypi_assets.index.errors import RefusedError, TransientError
from pypi_assets.index.models import LONGEST_TEXT, BrokenEntry, ChangelogEvent
from pypi_assets_tests.naming import naming

URL = "https://index.example.org/pypi"
ROW = ["Demo.Pkg", "1.0", 1_700_000_000, "new release", 8]


def answer(value: object) -> bytes:
    return xmlrpc.client.dumps((value,), methodresponse=True, allow_none=True).encode()


def fault(code: int, text: str) -> bytes:
    return xmlrpc.client.dumps(xmlrpc.client.Fault(code, text)).encode()


def test_call_has_the_expected_form() -> None:
    assert xmlrpc.client.loads(call_body("changelog_since_serial", 7)) == ((7,), "changelog_since_serial")


def test_answer_is_read_from_any_chunks() -> None:
    body = answer([ROW, ["demo_lib", None, 0, "\u00e9", 9]])
    value = read_answer((body[at : at + 1] for at in range(len(body))), URL)
    assert read_events(value, 7, URL) == [
        ChangelogEvent("Demo.Pkg", "1.0", 1_700_000_000, "new release", 8),
        ChangelogEvent("demo_lib", None, 0, "\u00e9", 9),
    ]


NEXT = ["demo", None, 0, "create", 9]


def test_row_without_valid_serial_does_not_affect_others(subtests: pytest.Subtests) -> None:
    cases = [
        (ROW, "it does not ascend", "Demo.Pkg", None),
        ([*ROW[:4], 7], "it does not ascend", "Demo.Pkg", None),
        ([*ROW[:4], 10**15], "it does not ascend", "Demo.Pkg", None),
        (ROW[:4], "it is no event", "Demo.Pkg", None),
        ([*ROW, 1], "it is no event", "Demo.Pkg", None),
        (None, "it is no event", None, None),
        (["", *ROW[1:4], 8.5], "it is no event", None, None),
        (["a", "1", 1.5, *ROW[3:4], True], "it is no event", "a", None),
        ([*ROW[:4], "8"], "it is no event", "Demo.Pkg", None),
        ([*ROW[:4], 2**63], "it is no event", "Demo.Pkg", None),
    ]
    for row, problem, name, serial in cases:
        with subtests.test(row=row):
            first, broken, last = read_events([ROW, row, NEXT], 7, URL)
            assert (first, last) == (ChangelogEvent(*ROW), ChangelogEvent(*NEXT))
            assert broken == BrokenEntry(problem, json.dumps(row), name, serial, 8)


def test_row_that_is_not_an_event_keeps_its_serial(subtests: pytest.Subtests) -> None:
    cases = [
        (["", *ROW[1:]], None),
        (["a" * 513, *ROW[1:]], None),
        ([ROW[0], "1" * 513, *ROW[2:]], "Demo.Pkg"),
        ([None, *ROW[1:]], None),
        (["a", 1, *ROW[2:]], "a"),
        (["a", "1", 1.5, *ROW[3:]], "a"),
        (["a", "1", True, *ROW[3:]], "a"),
        (["a", "1", -1, *ROW[3:]], "a"),
        (["a", "1", 10**12, *ROW[3:]], "a"),
        ([*ROW[:3], None, 8], "Demo.Pkg"),
    ]
    for row, name in cases:
        with subtests.test(row=row):
            broken, event = read_events([row, NEXT], 7, URL)
            assert broken == BrokenEntry(broken.problem, json.dumps(row), name, 8, 7)
            assert event == ChangelogEvent(*NEXT)


def test_row_is_kept_up_to_a_limit() -> None:
    [broken] = read_events([["demo", None, None, "a" * 10**6, 8]], 7, URL)
    assert isinstance(broken, BrokenEntry)
    assert len(broken.text) == LONGEST_TEXT


def test_page_with_many_broken_rows_is_rejected() -> None:
    good = [["demo", None, 0, "create", serial] for serial in range(8, 208)]
    for rows, most in (([], 10), (good[:99], 10), (good, 12)):
        assert len(read_events([*rows, *[None] * most], 7, URL)) == len(rows) + most
        with pytest.raises(RefusedError, match=naming(most + 1, len(rows) + most + 1)):
            read_events([*rows, *[None] * (most + 1)], 7, URL)
    with pytest.raises(RefusedError, match=naming(URL)):
        read_events("rows", 7, URL)


@given(st.lists(st.integers(0, 12) | st.none(), max_size=10))
def test_longest_ascending_run_of_serials_counts(serials: list[int | None]) -> None:
    rows = read_events([["demo", None, 0, "create", serial] for serial in serials], 2, URL)
    kept = [row.serial for row in rows if isinstance(row, ChangelogEvent)]
    assert all(before < after for before, after in itertools.pairwise([2, *kept]))
    usable = [serial for serial in serials if serial is not None and serial > 2]
    longest = [0] * 13
    for serial in usable:
        longest[serial] = max(longest[serial], 1 + max(longest[:serial]))
    assert len(kept) == max(longest)


def test_last_serial_of_an_empty_index_is_zero() -> None:
    assert read_last_serial(None, URL) == 0
    assert read_last_serial(32, URL) == 32
    for value in ("32", -1, True, [32]):
        with pytest.raises(RefusedError):
            read_last_serial(value, URL)


def test_bad_answers_are_typed_by_remedy(subtests: pytest.Subtests) -> None:
    cases = [
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
    ]
    for body, error, pause_s in cases:
        with subtests.test(body=body):
            with pytest.raises(error) as caught:
                read_answer([body], URL)
            assert type(caught.value) is error
            assert getattr(caught.value, "retry_after_s", None) == pause_s


def test_entity_bomb_is_rejected_before_expansion() -> None:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 30))
    bomb = f'<?xml version="1.0"?><!DOCTYPE b [<!ENTITY e0 "ha">{entities}]><methodResponse>&e29;</methodResponse>'
    with pytest.raises(RefusedError, match=naming(URL)):
        read_answer([bomb.encode()], URL)


@given(st.binary(max_size=200) | st.text("<>/ivalue4intstrgnparmshodRp 12").map(str.encode))
def test_any_answer_raises_only_typed_errors(body: bytes) -> None:
    with pytest.raises((TransientError, RefusedError)):
        read_answer([b"<methodResponse><params><param>", body], URL)
