"""Parsing of an index's answers is bounded: depth, digits and counts cost only a moment."""

import io
import json
import resource
import subprocess
import sys

import ijson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.index.bounds import MAX_DEPTH, MAX_DIGITS, MAX_ENTRY_BYTES, check_list, check_values
from pypi_assets.index.changelog import read_answer, read_events, read_last_serial
from pypi_assets.index.errors import RefusedError
from pypi_assets.index.models import LONGEST_ACTION, BrokenEntry, ChangelogEvent, broken_entry
from pypi_assets.index.pages import read_listed_projects, read_listing_serial, read_project_page
from pypi_assets_tests.index.test_changelog import answer
from pypi_assets_tests.naming import naming

META = b'"meta":{"api-version":"1.4"}'
URL = "https://index.example.org/simple/"


def listing(projects: bytes, meta: bytes = META) -> io.BytesIO:
    return io.BytesIO(b'{%b,\n "projects":[%b]}' % (meta, projects))


HOSTILE = {
    "digits of the serial": listing(b"", b'"meta":{"_last-serial":' + b"1" * 4301 + b"}"),
    "digits of a project": listing(b'{"name":"a","_last-serial":-' + b"1" * 4301 + b"}"),
    "digits of another field": listing(b'{"name":"a"}', b'"x":' + b"1" * 5000),
    "digits across chunks": listing(
        b'{"name":"' + b"a" * (MAX_ENTRY_BYTES // 4 - 100) + b'","x":' + b"1" * 5000 + b"}"
    ),
    "lists": listing(b"[" * 20_000),
    "objects": io.BytesIO(b'{"x":' + b'{"a":' * 20_000),
    "lists that close again": listing(b"[" * 20_000 + b"]" * 20_000),
    "depth behind a bracket in a name": listing(b'{"name":"{\\""},' + b"[" * 20_000),
    "an entry of many": listing(b'{"name":"a","x":[' + b"[]," * 3_000_000 + b"[]]}"),
    "a meta of many": listing(b"", b'"meta":{' + b'"x":[],' * 1_000_000 + b'"y":[]}'),
    "a name of many": listing(b'{"name":"' + b"n" * 8_000_000 + b'"}'),
    "a list that is an object": io.BytesIO(b'{%b,"projects":{%b}}' % (META, b'"x":[],' * 1_000_000 + b'"y":[]')),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", HOSTILE)
def test_list_beyond_the_bounds_is_rejected(name: str) -> None:
    """Run in a separate process with limited memory, since a native parser may crash or exhaust it."""
    program = (
        "import io, sys, time; from pypi_assets.index.pages import *\n"
        "body = io.BytesIO(sys.stdin.buffer.read()); started = time.process_time()\n"
        "try: read_listing_serial(body, 'u'); list(read_listed_projects(body, 'u'))\n"
        "except RefusedError as error: print(str(error)[:200])\n"
        "assert time.process_time() - started < 5"
    )

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (200 * 1024**2, 200 * 1024**2))

    ended = subprocess.run(
        [sys.executable, "-c", program],
        input=HOSTILE[name].getvalue(),
        capture_output=True,
        check=True,
        preexec_fn=limit,
    )
    assert b"breaks the protocol" in ended.stdout


LEVELS = MAX_DEPTH - 4


@pytest.mark.nightly
@pytest.mark.parametrize(
    "projects",
    [
        b"",
        b'{"name":"a"}',
        b'{"name":"a{[\\"}]\\\\"},{"name":"b\\\\","_last-serial":7}',
        b'{"name":"' + b"1" * 500 + b'"}',
        b'{"name":"a","_last-serial":' + b"1" * (MAX_DIGITS - 1) + b"}",
        b'{"name":"a","x":' + b"[" * LEVELS + b"]" * LEVELS + b"}",
        b'{"name":"a","x":{"y":[{}, {"z":[]}]}},' * 9 + b'{"name":"b"}',
        b",".join(b'{"name":"a%d"}' % number for number in range(200_000)),
        b",".join(b'{"name":"{%d"}' % number for number in range(200_000)),
        b",".join(b'{"_last-serial": 7, "name": "a", "x": "%b"}' % (b"\\u00e9" * 500_000) for _ in range(9)),
    ],
    ids=range(10),
)
def test_list_within_the_bounds_is_read(projects: bytes) -> None:
    body = listing(projects)
    read_listing_serial(body, URL)
    expected = json.loads(body.getvalue())["projects"]
    assert [project.name for project in read_listed_projects(body, URL) if not isinstance(project, BrokenEntry)] == [
        entry["name"] for entry in expected
    ]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**45), 10**45)
    | st.text(max_size=8)
    | st.sampled_from(['"', "\\", "{["]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.integers(0, 80), st.booleans())
def test_bounds_apply_to_values(value: object, levels: int, is_ascii: bool) -> None:
    for _ in range(levels):
        value = [value]
    text = json.dumps(value, ensure_ascii=is_ascii)

    def depth(one: object) -> int:
        inner = one if isinstance(one, list) else list(one.values()) if isinstance(one, dict) else None
        return 0 if inner is None else 1 + max(map(depth, inner), default=0)

    def numbers(one: object) -> list[int]:
        if isinstance(one, dict | list):
            return [each for inner in (one.values() if isinstance(one, dict) else one) for each in numbers(inner)]
        return [abs(one)] if isinstance(one, int) else []

    is_beyond = depth(value) > MAX_DEPTH or any(number >= 10**MAX_DIGITS for number in numbers(value))
    if is_beyond:
        with pytest.raises(ValueError, match=r"."):
            check_list(io.BytesIO(text.encode()))
    else:
        check_list(io.BytesIO(text.encode()))
        assert next(ijson.items(io.BytesIO(text.encode()), ""), None) == value


def test_page_with_too_many_values_is_rejected() -> None:
    body = b'{"x":[' + b"[]," * 3_000_000 + b"[]]}"
    with pytest.raises(ValueError, match=naming(3000000)):
        check_values(body)
    with pytest.raises(RefusedError, match=naming(3000000)):
        read_project_page(body, project="demo", url=URL, header_serial=1, etag=None)


def test_deeply_nested_entry_is_kept_without_its_text() -> None:
    entry: object = 1
    for _ in range(100_000):
        entry = [entry]
    for value in (entry, [10**5000]):
        kept = broken_entry("a problem", value)
        assert kept.problem == "a problem"
        assert 0 < len(kept.text) < 100


GOOD = ["demo", "1.0", 1_700_000_000, "new release", 9]


def test_number_with_many_digits_breaks_only_its_row(subtests: pytest.Subtests) -> None:
    for digits in [31, 400, 641, 4_301, 1_000_000]:
        for place in [2, 4]:
            with subtests.test(place=place, digits=digits):
                row = [*GOOD[:4], 8]
                row[place] = 777_777
                body = answer([row, GOOD]).replace(b"777777", b"1" + b"0" * (digits - 1))
                broken, event = read_events(read_answer([body], URL), 7, URL)
                assert isinstance(broken, BrokenEntry)
                assert broken.serial == (8 if place == 2 else None)
                assert event == ChangelogEvent(*GOOD)  # type: ignore[arg-type]
                with pytest.raises(RefusedError, match=naming(URL)):
                    read_last_serial(read_answer([answer(777_777).replace(b"777777", b"1" * digits)], URL), URL)


def test_action_with_many_characters_breaks_only_its_row() -> None:
    rows = [[*GOOD[:3], "a" * LONGEST_ACTION, 8], [*GOOD[:3], "a" * (LONGEST_ACTION + 1), 9]]
    event, broken = read_events(rows, 7, URL)
    assert isinstance(event, ChangelogEvent)
    assert isinstance(broken, BrokenEntry)
    assert broken.serial == 9


def test_deeply_nested_row_breaks_only_itself() -> None:
    deep = b"<array><data><value>" * 50_000 + b"<int>7</int>" + b"</value></data></array>" * 50_000
    body = answer([[*GOOD[:3], "DEEP", 8], GOOD]).replace(b"<string>DEEP</string>", deep)
    broken, event = read_events(read_answer([body], URL), 7, URL)
    assert isinstance(broken, BrokenEntry)
    assert (broken.serial, event) == (8, ChangelogEvent(*GOOD))  # type: ignore[arg-type]


@pytest.mark.parametrize("fault", [b"<array><data><value>" * 50_000 + b"</value></data></array>" * 50_000, b"<nil/>"])
def test_fault_of_any_content_is_a_fault(fault: bytes) -> None:
    body = (
        b"<methodResponse><fault><value><struct><member><name>faultCode</name><value>%b</value></member>"
        b"<member><name>faultString</name><value>%b</value></member></struct></value></fault></methodResponse>"
    )
    with pytest.raises(RefusedError, match=naming(URL)):
        read_answer([body % (fault, fault)], URL)
