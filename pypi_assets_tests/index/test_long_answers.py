"""Hostile answers of hundreds of KB, made of a repeated unit after a valid start, take little time and memory."""

import resource
import subprocess
import sys

import pytest

PROGRAM = """
import sys, time
from pypi_assets_tests.index.test_long_answers import bodies
from pypi_assets_tests.index.fuzz_targets import TARGETS, check_changelog, check_header, check_listing, check_page
from contextlib import suppress
from pypi_assets.index.errors import PackageIndexError
check = {"list": check_listing, "page": check_page, "changelog": check_changelog, "header": check_header}[sys.argv[1]]
for body in bodies(sys.argv[1]):
    started = time.process_time()
    with suppress(PackageIndexError):
        check(body)
    assert time.process_time() - started < 5, body[:200]
"""
SIZE = 300_000
STARTS = {
    "list": [b"", b'{"meta":{"api-version":"1.4"},"projects":[', b'{"meta":{"api-version":"1.4","x":', b'{"x":"'],
    "page": [b"", b'{"meta":{"api-version":"1.4"},"name":"demo","files":[', b'{"name":"', b'{"x":'],
    "changelog": [b"", b"<methodResponse><params><param><value>", b"<methodResponse><fault><value>", b"<x y='"],
    "header": [b"", b"https://", b"https://a@", b"https://a/", b"Fri, 20 Nov "],
}
UNITS = {
    "list": [
        b"[",
        b"{",
        b"[],",
        b'{"a":',
        b'{"name":"a"},',
        b'"',
        b"\\",
        b'\\"',
        b"1",
        b"-",
        b"1,",
        b" ",
        b"null,",
        b"\xff",
        b"\0",
    ],
    "page": [
        b"[",
        b"{",
        b"[],",
        b'{"a":',
        b'{"filename":"a.whl"},',
        b'"',
        b"\\",
        b"\\u0000",
        b"1",
        b"1,",
        b" ",
        b"\xff",
    ],
    "changelog": [
        *[
            b"<value>",
            b"<array><data><value>",
            b"<nil/>",
            b"<value/>",
            b"<int>",
            b"<int>1</int>",
            b"1",
            b" ",
            b"<",
            b"&lt;",
        ],
        *[
            b"<a b='c'>",
            b"a='b' ",
            b"<!-- -->",
            b"<?x y?>",
            b"<![CDATA[",
            b"]]>",
            b"<struct><member><name>a</name>",
            b"&#1;",
        ],
    ],
    "header": [
        b"a",
        b".",
        b"a.",
        b"/",
        b"../",
        b":",
        b"@",
        b"%2f",
        b"[",
        b"1",
        b" ",
        b",",
        b"(",
        b"-",
        b"?",
        b"#",
        b"\\",
        b"\t",
    ],
}


def bodies(kind: str) -> list[bytes]:
    """Return bodies of about SIZE bytes each. A header has at most 64 KiB."""
    size = 65_536 if kind == "header" else SIZE
    return [start + unit * (size // len(unit)) for start in STARTS[kind] for unit in UNITS[kind]]


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (250 * 1024**2, 250 * 1024**2))


@pytest.mark.nightly
@pytest.mark.parametrize("kind", STARTS)
def test_long_answers_take_little_time_and_memory(kind: str) -> None:
    """Run in a separate process, limited to 150 MB more than Python and all modules take."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, kind], capture_output=True, text=True, check=False, preexec_fn=_limit
    )
    assert ended.returncode == 0, ended.stderr[-2_000:]
