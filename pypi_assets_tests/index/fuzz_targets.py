"""Fuzz targets for an index's answers: the list of projects, pages, the changelog, and content encodings.

`fuzz.py` runs each target for a long time in its own process; test_fuzz.py runs them briefly.
"""

import gzip
import io
import json
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import orjson

from pypi_assets.index.actions import file_change
from pypi_assets.index.bounds import BodyDecoder
from pypi_assets.index.changelog import read_answer, read_events, read_last_serial
from pypi_assets.index.errors import PackageIndexError, RefusedError
from pypi_assets.index.models import (
    LONGEST_ACTION,
    LONGEST_NAME,
    LONGEST_TEXT,
    BrokenEntry,
    ChangelogEvent,
    ProjectPage,
    is_count,
)
from pypi_assets.index.pages import read_listed_projects, read_listing_serial, read_project_page
from pypi_assets.index.transport import retry_after_s
from pypi_assets.index.urls import redact, split_fetchable
from pypi_assets_tests.distributions.fuzz_targets import Target, mutate_bytes, mutate_raw, timed
from pypi_assets_tests.index.test_changelog import answer, fault

URL = "https://index.example.org/simple/"
JSON_TOKENS = (
    *b'{ } [ ] " \\ , : [[[[ ]]]] {"a": \\u0000 \\ud800 null true 1e999 -0 0.1 "name": "files":'.split(),
    b"[" * 3_000,
    b'{"a":' * 3_000,
    b"1" * 5_000,
    b"\0",
    b"\xff",
)
XML_TOKENS = (
    *b"<value> </value> <array><data> </data></array> <nil/> <int> </int> <struct> <double>1e999</double>".split(),
    *b"<base64>A</base64> <!DOCTYPE x> <![CDATA[ ]]> &lt; &#0; &#xd800; <?x y?> <!-- --> xmlns:a='b'".split(),
    b"<value><array><data>" * 1_000,
    b"1" * 5_000,
)
URL_TOKENS = (
    *b"http:// https:// @ : / // ? # [ ] [::1] %2f \\ .. 99999999999999999999 -1".split(),
    b"9" * 5_000,
    b" GMT",
)

META = {"api-version": "1.4", "_last-serial": 7}
FILE = {
    "filename": "demo-1.0-py3-none-any.whl",
    "url": "../../packages/demo-1.0-py3-none-any.whl#sha256=0",
    "hashes": {"sha256": "a" * 64},
    "size": 7,
    "upload-time": "2026-01-02T03:04:05.678901Z",
    "requires-python": ">=3.9",
    "yanked": "why",
    "core-metadata": {"sha256": "b" * 64},
}


def check_broken(entry: BrokenEntry) -> None:
    assert len(entry.text) <= LONGEST_TEXT + 100
    assert entry.name is None or 0 < len(entry.name) <= LONGEST_NAME
    assert entry.serial is None or is_count(entry.serial)
    orjson.dumps([entry.problem, entry.text])


def check_listing(content: bytes) -> None:
    body = io.BytesIO(content)
    serial = read_listing_serial(body, URL)
    assert serial is None or is_count(serial)
    for project in read_listed_projects(body, URL):
        if isinstance(project, BrokenEntry):
            check_broken(project)
        else:
            assert 0 < len(project.name) <= LONGEST_NAME
            assert "\0" not in project.name
            assert project.last_serial is None or is_count(project.last_serial)


def check_page(content: bytes) -> None:
    page = read_project_page(content, project="demo", url=URL, header_serial=7, etag=None)
    assert isinstance(page, ProjectPage)
    assert is_count(page.last_serial)
    for entry in page.broken:
        check_broken(entry)
    names = [file.filename for file in page.files]
    assert len(names) == len(set(names))
    for file in page.files:
        assert file.filename.isprintable()
        assert 0 < len(file.filename) <= LONGEST_NAME
        assert file.size is None or is_count(file.size)
        if file.url is not None:
            with suppress(RefusedError):
                split_fetchable(file.url)


def check_changelog(content: bytes) -> None:
    value = read_answer((content[at : at + 1_000] for at in range(0, len(content), 1_000)), URL)
    with suppress(RefusedError):
        assert is_count(read_last_serial(value, URL))
    before = 7
    for row in read_events(value, before, URL):
        if isinstance(row, BrokenEntry):
            check_broken(row)
            continue
        assert isinstance(row, ChangelogEvent)
        assert before < row.serial < 2**63
        before = row.serial
        assert 0 < len(row.name) <= LONGEST_NAME
        assert len(row.action) <= LONGEST_ACTION
        change = file_change(row)
        assert change.filename is None or len(change.filename) <= LONGEST_ACTION


def check_encoding(content: bytes) -> None:
    decoded_bytes = 0
    for piece in BodyDecoder(("gzip", "deflate", "gzip, gzip")[len(content) % 3], URL).decode(content):
        decoded_bytes += len(piece)
    assert decoded_bytes <= 1024**2 + 200 * len(content) + 256 * 1024


def check_header(content: bytes) -> None:
    text = content.decode("latin-1")
    pause_s = retry_after_s(text)
    assert pause_s is None or pause_s >= 0
    assert "hush" not in redact(f"http://me:hush@{text}")
    split_fetchable(text)


def typed(check: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """Wrap a check so that it may raise only the typed errors of an index, in bounded time."""

    def run(content: bytes) -> None:
        with suppress(PackageIndexError):
            check(content)

    return timed(run)


def listings() -> list[bytes]:
    projects = [{"name": "demo", "_last-serial": 7}, {"name": "De.mo_{2}"}, {"name": "x" * 600}, 7]
    return [json.dumps({"meta": META, "projects": projects[:count]}).encode() for count in range(5)]


def pages() -> list[bytes]:
    page = {"meta": META, "name": "demo", "project-status": {"status": "archived"}, "versions": ["1.0"]}
    return [json.dumps(page | {"files": files}).encode() for files in ([], [FILE], [FILE, FILE, {}, 7])]


def changelogs() -> list[bytes]:
    rows = [["demo", None, 1_700_000_000, "create", 8], ["demo", "1.0", 0, "add py3 file demo-1.0-py3-none-any.whl", 9]]
    return [answer(7), answer(None), answer([]), answer(rows), answer([*rows, "row", None]), fault(-32500, "too many")]


def packed_bodies() -> list[bytes]:
    body = listings()[2]
    return [
        gzip.compress(body),
        zlib.compress(body),
        zlib.compress(body, wbits=-15),
        gzip.compress(gzip.compress(body)),
    ]


def headers() -> list[bytes]:
    return [b"7", b"Fri, 20 Nov 2026 10:01:30 GMT", b"https://u:p@files.example.org:8443/a?b#c", b"http://[::1]:80/"]


def _target(
    name: str, seeds: Callable[[], list[bytes]], tokens: tuple[bytes, ...], check: Callable[[bytes], None]
) -> Target:
    mutate = partial(mutate_bytes, tokens=tokens)
    return Target(name, seeds, lambda content, random, _: mutate(content, random), typed(check))


TARGETS: tuple[Target, ...] = (
    _target("list of projects", listings, JSON_TOKENS, check_listing),
    _target("page of a project", pages, JSON_TOKENS, check_page),
    _target("changelog", changelogs, XML_TOKENS, check_changelog),
    Target("packed body", packed_bodies, mutate_raw, typed(check_encoding)),
    _target("header", headers, URL_TOKENS, check_header),
)

KEPT: tuple[tuple[str, bytes], ...] = ()
"""Inputs that broke a rule once, by the name of their target."""
