"""The client's methods against recorded answers of the server that runs PyPI and against invented ones."""

import gzip
import hashlib
import io
import json
import math
import tracemalloc
import xmlrpc.client
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pypi_assets.index.errors import ContentError, NotOnIndexError, PackageIndexError, RefusedError, TooLargeError
from pypi_assets.index.models import NotModified, ProjectPage
from pypi_assets.index.rate import Rates
from pypi_assets_tests.index.clients import (
    DATA,
    JSON,
    META,
    PAGE,
    SHA256,
    XML,
    FakeTime,
    client_of,
    events,
    fault,
    fetch,
    rate_of,
)
from pypi_assets_tests.index.loopback import Answer, Loopback, answering, serving
from pypi_assets_tests.index.recording import load_recording, replay
from pypi_assets_tests.naming import naming

RECORDING = load_recording()
STEPS = RECORDING["steps"]


# Recorded answers of a real server


@contextmanager
def replaying(exchanges: list[dict[str, Any]]) -> Iterator[Loopback]:
    """Serve `exchanges`. The file host is the same server under its other name."""
    urls: list[str] = []
    with serving(lambda request: replay(exchanges, request, *urls)) as loopback:
        urls += [loopback.url, loopback.other_url]
        yield loopback


def recorded(step: dict[str, Any], path: str) -> dict[str, Any]:
    return next(exchange["response"] for exchange in step["exchanges"] if exchange["request"]["path"] == path)


def test_recorded_answers_are_read_faithfully(subtests: pytest.Subtests) -> None:
    for step in STEPS:
        with subtests.test(step=step), replaying(step["exchanges"]) as loopback, client_of(loopback) as client:
            assert client.last_serial() == step["serial_after"]
            page = client.changelog_page(step["serial_before"])
            assert [event.serial for event in page][-1:] == [step["serial_after"]] * bool(page)
            assert all(event.serial > step["serial_before"] for event in page)
            listing = client.listing()
            answer = json.loads(recorded(step, "/simple/")["body"])
            assert listing.last_serial == step["serial_after"]
            assert [(project.name, project.last_serial) for project in listing.projects] == [
                (project["name"], project["_last-serial"]) for project in answer["projects"]
            ]
            for project in ("demo-pkg", "demo-lib", "other-proj"):
                recorded_page = recorded(step, f"/simple/{project}/")
                if recorded_page["status"] == 404:
                    with pytest.raises(NotOnIndexError):
                        client.project_page(project)
                    continue
                assert_as_recorded(client.project_page(project), recorded_page, loopback)


def assert_as_recorded(page: ProjectPage | NotModified, answer: dict[str, Any], loopback: Loopback) -> None:
    assert isinstance(page, ProjectPage)
    document = json.loads(answer["body"])
    assert page.last_serial == document["meta"]["_last-serial"] == int(answer["headers"]["x-pypi-last-serial"])
    assert page.status == document["project-status"]["status"]
    assert page.etag == answer["headers"]["etag"]
    assert [(file.filename, file.sha256, file.size, file.url) for file in page.files] == [
        (file["filename"], file["hashes"]["sha256"], file["size"], file["url"].replace("{files}", loopback.other_url))
        for file in document["files"]
    ]
    assert [(file.yanked, file.core_metadata, file.uploaded_at) for file in page.files] == [
        (file["yanked"], file["core-metadata"] is not False, file["upload-time"]) for file in document["files"]
    ]


def test_odd_requests_raise_typed_errors() -> None:
    with replaying(RECORDING["odd_requests"]) as loopback, client_of(loopback) as client:
        assert [event.serial for event in client.changelog_page(0)][:3] == [1, 2, 3]
        with pytest.raises(NotOnIndexError):
            client.project_page("never_Existed")
        etag = RECORDING["odd_requests"][-1]["request"]["headers"]["If-None-Match"]
        assert client.project_page("Demo.Pkg", etag=etag) == NotModified(26)


def test_recorded_files_match_their_page() -> None:
    exchanges = [*STEPS[1]["exchanges"], *RECORDING["files"]]
    with replaying(exchanges) as loopback, client_of(loopback, allowed_file_hosts=["localhost"]) as client:
        page = client.project_page("demo-pkg")
        assert isinstance(page, ProjectPage)
        assert len(page.files) == 2
        for file in page.files:
            sink = io.BytesIO(b"left over from before" * 100)
            fetched = client.fetch_file(file.url, sink, sha256=file.sha256, size=file.size, max_bytes=10_000)
            assert hashlib.sha256(sink.getvalue()).hexdigest() == file.sha256
            assert (fetched.bytes, fetched.requests) == (file.size, 1)
        with client_of(loopback) as strict, pytest.raises(RefusedError, match=naming("localhost")):
            strict.fetch_file(page.files[0].url, io.BytesIO(), sha256=None, size=None, max_bytes=10_000)


def test_changelog_queries_are_paced() -> None:
    clock = FakeTime()
    rates = Rates(rate_of(clock, math.inf))
    with answering(events(7)) as loopback, client_of(loopback, clock, rates=rates) as client:
        for _ in range(4):
            client.last_serial()
    assert clock.slept == [1.0, 1.0, 1.0]


# The changelog


def rows(*serials: int) -> Answer:
    return events([["demo", None, 0, "create", serial] for serial in serials])


def test_changelog_is_paged_until_its_end_or_the_requested_serial() -> None:
    with answering(rows(1, 2), rows(3, 5), rows()) as loopback, client_of(loopback) as client:
        assert [[event.serial for event in page] for page in client.changelog(0, 100)] == [[1, 2], [3, 5]]
        calls = [xmlrpc.client.loads(request.body) for request in loopback.received]
    assert calls == [((since,), "changelog_since_serial") for since in (0, 2, 5)]
    with answering(rows(1, 2), rows(3, 5), rows(6)) as loopback, client_of(loopback) as client:
        assert [[event.serial for event in page] for page in client.changelog(0, 4)] == [[1, 2], [3, 5]]
        assert list(client.changelog(4, 4)) == []
        assert len(loopback.received) == 2


def test_fault_with_a_reset_time_is_waited_for() -> None:
    clock = FakeTime()
    busy = fault(-32500, "HTTPTooManyRequests: The action could not be performed. Limit may reset in 42 seconds.")
    with answering(busy, events(7)) as loopback, client_of(loopback, clock) as client:
        assert client.last_serial() == 7
    assert clock.slept == [42.0]


@pytest.mark.parametrize(
    "answer",
    [
        fault(-32500, "ValueError: deprecated"),
        fault(-32601, "no such method"),
        rows(*range(20, 0, -1)),
        Answer(200, b"<!DOCTYPE a [<!ENTITY b 'c'>]><methodResponse>&b;</methodResponse>", XML),
        Answer(404),
        Answer(403),
        Answer(301, headers={"Location": "/elsewhere"}),
    ],
    ids=["fault", "method", "order", "doctype", "404", "403", "redirect"],
)
def test_unusable_changelog_is_rejected_without_retry(answer: Answer) -> None:
    with answering(answer) as loopback, client_of(loopback) as client:
        with pytest.raises(RefusedError):
            client.changelog_page(0)
        assert len(loopback.received) == 1


# Pages and the list


def test_project_is_requested_by_its_normalized_name() -> None:
    with answering(Answer(404)) as loopback, client_of(loopback) as client:
        for name in ("Demo.Pkg", "..", "../../etc", "a b?c#d"):
            with pytest.raises(NotOnIndexError):
                client.project_page(name)
        assert [request.path for request in loopback.received] == [
            "/simple/demo-pkg/",
            "/simple/-/",
            "/simple/-%2F-%2Fetc/",
            "/simple/a%20b%3Fc%23d/",
        ]
        with pytest.raises(RefusedError):
            client.project_page("")


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/html; charset=UTF-8", "X-PyPI-Last-Serial": "7"},
        {"Content-Type": "application/vnd.pypi.simple.v1+html"},
    ],
)
def test_html_only_index_is_rejected(headers: dict[str, str]) -> None:
    with answering(Answer(200, b"<!DOCTYPE html>", headers)) as loopback, client_of(loopback) as client:
        with pytest.raises(RefusedError):
            client.project_page("demo")
        with pytest.raises(RefusedError):
            client.listing()


def test_pages_follow_redirects_and_gzip() -> None:
    body = json.dumps({"meta": META, "name": "demo", "files": [], "x": "y" * 99_999}).encode()
    packed = Answer(200, gzip.compress(body), JSON | {"Content-Encoding": "gzip"})
    moved = Answer(301, headers={"Location": "/simple/demo/"})
    with answering(moved, packed) as loopback, client_of(loopback) as client:
        assert isinstance(client.project_page("demo"), ProjectPage)


@pytest.mark.parametrize("layers", [1, 3])
def test_compression_bomb_is_not_inflated(layers: int) -> None:
    bomb = b'{"x":"' + b"y" * 40_000_000
    for _ in range(layers):
        bomb = gzip.compress(bomb)
    answer = Answer(200, bomb, JSON | {"Content-Encoding": ", ".join(["gzip"] * layers)})
    with answering(answer) as loopback, client_of(loopback) as client:
        tracemalloc.start()
        try:
            with pytest.raises(TooLargeError, match=naming(200)):
                client.project_page("demo")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert len(loopback.received) == 1
    assert peak < 10_000_000


def test_well_compressed_page_is_not_a_bomb() -> None:
    file = {"filename": "demo-1.tar.gz", "url": "https://files.example.org/demo-1.tar.gz", "hashes": {}}
    files = [file | {"filename": f"demo-{number}.tar.gz"} for number in range(50_000)]
    body = json.dumps({"meta": META, "name": "demo", "files": files}).encode()
    packed = Answer(200, gzip.compress(body), JSON | {"Content-Encoding": "gzip"})
    assert len(body) > 20 * len(packed.body)
    with answering(packed) as loopback, client_of(loopback) as client:
        page = client.project_page("demo")
    assert isinstance(page, ProjectPage)
    assert len(page.files) == 50_000


def test_unrequested_304_is_rejected() -> None:
    with answering(Answer(304, headers={"Content-Length": ""})) as loopback, client_of(loopback) as client:
        assert client.project_page("demo", etag='"e"') == NotModified(None)
        with pytest.raises(RefusedError, match=naming(304)):
            client.project_page("demo")


@pytest.mark.nightly
def test_long_list_is_read_in_little_memory() -> None:
    entries = ",".join(f'{{"name":"project-{n}","_last-serial":{n}}}' for n in range(200_000))
    listing = Answer(200, f'{{"projects":[{entries}],"meta":{json.dumps(META)}}}'.encode(), JSON)
    count = 0
    with answering(listing) as loopback, client_of(loopback) as client:
        tracemalloc.start()
        try:
            with client.iter_listing() as (last_serial, projects):
                for project in projects:
                    count += project.last_serial is not None
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert (last_serial, count) == (7, 200_000)
    assert len(listing.body) > 8_000_000
    assert peak < 5_000_000


def test_truncated_list_is_fetched_again_before_use() -> None:
    body = json.dumps({"meta": META, "projects": [{"name": "demo", "_last-serial": 7}]}).encode()
    cut = Answer(200, body[:-9], JSON | {"Content-Length": str(len(body))}, is_last=True)
    with (
        answering(cut, Answer(200, body, JSON), PAGE) as loopback,
        client_of(loopback, max_connections=1) as client,
        client.iter_listing() as (last_serial, projects),
    ):
        assert isinstance(client.project_page("demo"), ProjectPage)  # no connection is held while the list is read
        assert (last_serial, [project.name for project in projects]) == (7, ["demo"])


def test_list_that_is_not_newer_is_not_downloaded() -> None:
    body = json.dumps({"meta": META, "projects": [{"name": "demo", "_last-serial": 7}]}).encode()
    listing = Answer(200, body, JSON | {"X-PyPI-Last-Serial": "7"})
    with answering(listing, listing) as loopback, client_of(loopback) as client:
        with client.iter_listing(newer_than=7) as (last_serial, projects):
            assert last_serial == 7
            with pytest.raises(PackageIndexError):  # never an empty list
                list(projects)
        with client.iter_listing(newer_than=6) as (last_serial, projects):
            assert (last_serial, len(list(projects))) == (7, 1)


def test_file_is_complete_after_a_retry() -> None:
    cut = Answer(200, DATA[:500], {"Content-Length": str(len(DATA))}, is_last=True)
    with answering(cut, Answer(503), Answer(200, DATA)) as loopback, client_of(loopback) as client:
        sink = io.BytesIO()
        fetched = client.fetch_file(f"{loopback.url}/f", sink, sha256=SHA256, size=len(DATA), max_bytes=10_000)
    assert sink.getvalue() == DATA
    assert (fetched.bytes, fetched.requests) == (len(DATA), 3)
    assert fetched.seconds >= 3  # both pauses


def test_truncated_file_without_length_is_transient() -> None:
    open_end = {"Content-Length": ""}
    early, whole = Answer(200, DATA[:500], open_end, is_last=True), Answer(200, DATA, open_end, is_last=True)
    with answering(early, whole) as loopback, client_of(loopback) as client:
        assert fetch(client, f"{loopback.url}/f") == DATA


def test_compressed_file_stays_compressed() -> None:
    packed = gzip.compress(DATA)
    answer = Answer(200, packed, {"Content-Type": "application/x-tar", "Content-Encoding": "gzip"})
    with answering(answer) as loopback, client_of(loopback) as client:
        digest = hashlib.sha256(packed).hexdigest()
        assert fetch(client, f"{loopback.url}/f.tar.gz", sha256=digest, size=len(packed)) == packed
        assert loopback.received[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("body", "promised", "error"),
    [
        (DATA + b"!", {}, ContentError),
        (DATA[:-1], {}, ContentError),
        (DATA[:-1] + b"!", {}, ContentError),
        (DATA, {"sha256": "ab" * 32}, ContentError),
        (DATA, {"size": None, "max_bytes": len(DATA) - 1}, TooLargeError),
        (DATA, {"max_bytes": len(DATA) - 1}, TooLargeError),
    ],
    ids=["longer", "shorter", "other bytes", "other hash", "over the limit", "announced over the limit"],
)
def test_unexpected_bytes_are_rejected_without_retry(
    body: bytes, promised: dict[str, Any], error: type[RefusedError]
) -> None:
    with answering(Answer(200, body)) as loopback, client_of(loopback) as client:
        with pytest.raises(error) as caught:
            fetch(client, f"{loopback.url}/f", **promised)
        assert type(caught.value) is error
        assert len(loopback.received) <= 1


def test_file_without_hash_or_size_is_accepted() -> None:
    with answering(Answer(200, DATA)) as loopback, client_of(loopback) as client:
        assert fetch(client, f"{loopback.url}/f", sha256=None, size=None) == DATA
        assert fetch(client, f"{loopback.url}/f", sha256=SHA256.upper()) == DATA
