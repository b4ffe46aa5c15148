import gzip
import hashlib
import io
import json
import math
import socket
import struct
import threading
import time
import tracemalloc
import xmlrpc.client
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from pypi_assets.index.client import IndexClient
from pypi_assets.index.errors import ContentError, GoneError, RefusedError, TooLargeError, TransientError
from pypi_assets.index.models import NotModified, ProjectPage
from pypi_assets.index.rate import RateLimit, Rates
from pypi_assets.index.transport import LONGEST_PAUSE_S, Clock, Retries, Timeouts, retry_after_s, user_agent
from pypi_assets_tests.index.clients import JSON, META, PAGE
from pypi_assets_tests.index.loopback import Answer, Loopback, Request, answering, serving
from pypi_assets_tests.index.recording import load_recording, replay

RECORDING = load_recording()
STEPS = RECORDING["steps"]
XML = {"Content-Type": "text/xml"}
DATA = b"not a real wheel" * 100
SHA256 = hashlib.sha256(DATA).hexdigest()


class FakeTime:
    """Time that passes only while a client sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def rate_of(clock: FakeTime, per_second: float) -> RateLimit:
    return RateLimit(per_second, clock=clock, sleep=clock.sleep)


@contextmanager
def client_of(loopback: Loopback, clock: FakeTime | None = None, **options: Any) -> Iterator[IndexClient]:
    clock = clock or FakeTime()
    unhurried = rate_of(clock, math.inf)
    settings = {
        "rates": Rates(unhurried, unhurried),
        "changelog_url": f"{loopback.url}/pypi",
        "clock": Clock(clock, clock.sleep),
    }
    url = options.pop("index_url", f"{loopback.url}/simple/")
    with IndexClient(url, **(settings | options)) as client:
        yield client


def events(value: object) -> Answer:
    return Answer(200, xmlrpc.client.dumps((value,), methodresponse=True, allow_none=True).encode(), XML)


def fault(code: int, text: str) -> Answer:
    return Answer(200, xmlrpc.client.dumps(xmlrpc.client.Fault(code, text)).encode(), XML)


# What a real server answered


@contextmanager
def replaying(exchanges: list[dict[str, Any]]) -> Iterator[Loopback]:
    """Serves `exchanges`; the file host is the same server under its other name."""
    urls: list[str] = []
    with serving(lambda request: replay(exchanges, request, *urls)) as loopback:
        urls += [loopback.url, loopback.other_url]
        yield loopback


def recorded(step: dict[str, Any], path: str) -> dict[str, Any]:
    return next(exchange["response"] for exchange in step["exchanges"] if exchange["request"]["path"] == path)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step["event"])
def test_each_recorded_step_is_read_as_it_was_answered(step: dict[str, Any]) -> None:
    with replaying(step["exchanges"]) as loopback, client_of(loopback) as client:
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
                with pytest.raises(GoneError):
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


def test_odd_requests_get_typed_answers() -> None:
    with replaying(RECORDING["odd_requests"]) as loopback, client_of(loopback) as client:
        assert [event.serial for event in client.changelog_page(0)][:3] == [1, 2, 3]
        with pytest.raises(GoneError):
            client.project_page("never_Existed")
        etag = RECORDING["odd_requests"][-1]["request"]["headers"]["If-None-Match"]
        assert client.project_page("Demo.Pkg", etag=etag) == NotModified(26)


def test_recorded_files_arrive_as_their_page_promises() -> None:
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
        with client_of(loopback) as strict, pytest.raises(RefusedError, match="localhost is neither"):
            strict.fetch_file(page.files[0].url, io.BytesIO(), sha256=None, size=None, max_bytes=10_000)


# Politeness


def test_every_request_names_the_client() -> None:
    with answering(PAGE) as loopback, client_of(loopback, contact="ops@example.org") as client:
        client.project_page("demo")
        headers = loopback.received[0].headers
    assert headers["user-agent"] == user_agent("ops@example.org")
    assert "pypi-assets/" in headers["user-agent"]
    assert "ops@example.org" in headers["user-agent"]
    assert headers["accept"] == "application/vnd.pypi.simple.v1+json"


def test_a_contact_cannot_smuggle_headers() -> None:
    with pytest.raises(ValueError, match="contact"):
        user_agent("a\r\nX-Evil: 1")


def test_threads_share_the_connections_and_keep_them() -> None:
    at_once: list[int] = []
    gate = threading.Semaphore(0)
    counter = threading.Lock()
    open_now = 0

    def answer(_: Request) -> Answer:
        nonlocal open_now
        with counter:
            open_now += 1
            at_once.append(open_now)
            if len(at_once) >= 3:  # the first three wait for each other, so that three are open at once
                gate.release(100)
        gate.acquire(timeout=5)
        with counter:
            open_now -= 1
        return PAGE

    with (
        serving(answer) as loopback,
        client_of(loopback, max_connections=3) as client,
        ThreadPoolExecutor(12) as pool,
    ):
        assert len(list(pool.map(client.project_page, ["demo"] * 60))) == 60
    assert max(at_once) == 3


def test_answers_without_a_used_body_cost_no_connection() -> None:
    answers = [Answer(301, b"away", {"Location": "/simple/demo/"}), PAGE, Answer(304, headers={"Content-Length": ""})]
    with answering(*answers, Answer(404, b"x" * 10_000)) as loopback, client_of(loopback) as client:
        client.project_page("demo")
        client.project_page("demo", etag='"e"')
        for _ in range(3):
            with pytest.raises(GoneError):
                client.project_page("demo")
        assert (len(loopback.received), loopback.connections) == (6, 1)


def test_all_requests_keep_to_one_rate() -> None:
    clock = FakeTime()
    with answering(PAGE) as loopback, client_of(loopback, clock, rates=Rates(rate_of(clock, 10.0))) as client:
        for _ in range(31):
            client.project_page("demo")
    assert clock.now - 1000 == pytest.approx(3, abs=0.2)


def test_the_changelog_is_queried_with_pauses() -> None:
    clock = FakeTime()
    rates = Rates(rate_of(clock, math.inf))
    with answering(events(7)) as loopback, client_of(loopback, clock, rates=rates) as client:
        for _ in range(4):
            client.last_serial()
    assert clock.slept == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("trouble", "requested_pause_s"),
    [
        (Answer(429, headers={"Retry-After": "7"}), 7),
        (Answer(503, headers={"Retry-After": "11"}), 11),
        (Answer(500), 0),
        (Answer(502, b"<html>", {"Content-Type": "text/html"}), 0),
        (Answer(200, b"<html>hello", {"Content-Type": "text/html"}), 0),
        (Answer(200, PAGE.body[:-9], JSON), 0),
        (Answer(200, PAGE.body[:-9], JSON | {"Content-Length": str(len(PAGE.body))}, is_last=True), 0),
        (Answer(200, b'4\r\n{"me\r\n40\r\nta', JSON | {"Transfer-Encoding": "chunked"}, is_last=True), 0),
        (Answer(200, b"no gzip", JSON | {"Content-Encoding": "gzip"}), 0),
    ],
    ids=["429", "503", "500", "502", "html", "broken json", "cut short", "cut chunk", "no gzip"],
)
def test_transient_failures_are_retried(trouble: Answer, requested_pause_s: float) -> None:
    clock = FakeTime()
    with answering(trouble, trouble, PAGE) as loopback, client_of(loopback, clock) as client:
        assert isinstance(client.project_page("demo"), ProjectPage)
        assert len(loopback.received) == 3
    first, second = clock.slept
    assert first >= max(1, requested_pause_s)
    assert second >= max(2, requested_pause_s)
    assert first <= max(2, requested_pause_s)
    assert second <= max(3, requested_pause_s)


def test_an_exhausted_failure_is_raised_with_its_pause() -> None:
    clock = FakeTime()
    trouble = Answer(429, headers={"Retry-After": "7"})
    with answering(trouble) as loopback, client_of(loopback, clock, retries=Retries(3)) as client:
        with pytest.raises(TransientError, match="HTTP 429") as caught:
            client.project_page("demo")
        assert len(loopback.received) == 3
    assert caught.value.retry_after_s == 7.0


def test_an_index_that_requests_an_hours_pause_gets_no_retry() -> None:
    clock = FakeTime()
    with answering(Answer(503, headers={"Retry-After": "3600"})) as loopback, client_of(loopback, clock) as client:
        with pytest.raises(TransientError) as caught:
            client.project_page("demo")
        assert len(loopback.received) == 1
    assert caught.value.retry_after_s == 3600.0
    assert clock.slept == []


def test_one_429_stops_all_threads() -> None:
    clock = FakeTime()
    trouble = Answer(429, headers={"Retry-After": "30"})
    with answering(trouble, PAGE) as loopback, client_of(loopback, clock, retries=Retries(1)) as client:
        with pytest.raises(TransientError):
            client.project_page("demo")
        client.project_page("demo")
    assert clock.slept == [pytest.approx(30, abs=0.1)]


class Holds:
    """A rate that others share, and the calls of it."""

    def __init__(self) -> None:
        self.calls: list[float | None] = []

    def wait(self) -> None:
        self.calls.append(None)

    def hold(self, seconds: float) -> None:
        self.calls.append(seconds)


def test_a_shared_rate_is_held_when_limits_are_exceeded() -> None:
    pages, changelog = Holds(), Holds()
    troubles = [
        Answer(429, headers={"Retry-After": "7"}),
        Answer(429, headers={"Retry-After": "7200"}),
        fault(-32500, "HTTPTooManyRequests: ... Limit may reset in 42 seconds."),
        fault(-32500, "HTTPTooManyRequests: ... Limit may reset in 3000 seconds."),
    ]
    with (
        answering(*troubles) as loopback,
        client_of(loopback, rates=Rates(pages, changelog), retries=Retries(1)) as client,
    ):
        for request in (client.listing, client.listing, client.last_serial, client.last_serial):
            with pytest.raises(TransientError):
                request()
    assert pages.calls == [None, 7.0, None, LONGEST_PAUSE_S, None, None]
    assert changelog.calls == [None, 42.0, None, LONGEST_PAUSE_S]


def test_retry_after_is_seconds_or_a_date(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 11, 20, 10, 0, 0, tzinfo=UTC)
    monkeypatch.setattr(time, "time", now.timestamp)
    assert retry_after_s("7") == 7.0
    assert retry_after_s(" 7 ") == 7.0
    assert retry_after_s("100000") == 100_000.0
    assert retry_after_s("Fri, 20 Nov 2026 10:01:30 GMT") == 90.0
    assert retry_after_s("Fri Nov 20 10:01:30 2026") == 90.0
    assert retry_after_s("Fri, 20 Nov 2026 09:00:00 GMT") == 0.0
    assert retry_after_s("soon") is None
    assert retry_after_s("-1") is None
    assert retry_after_s("9" * 5000) is None
    assert retry_after_s("Fri, 20 Nov 99999999999999999999 10:00:00 GMT") is None
    assert retry_after_s(None) is None


# The changelog


def rows(*serials: int) -> Answer:
    return events([["demo", None, 0, "create", serial] for serial in serials])


def test_the_changelog_is_paged_until_its_end_or_the_wanted_one() -> None:
    with answering(rows(1, 2), rows(3, 5), rows()) as loopback, client_of(loopback) as client:
        assert [[event.serial for event in page] for page in client.changelog(0, 100)] == [[1, 2], [3, 5]]
        calls = [xmlrpc.client.loads(request.body) for request in loopback.received]
    assert calls == [((since,), "changelog_since_serial") for since in (0, 2, 5)]
    with answering(rows(1, 2), rows(3, 5), rows(6)) as loopback, client_of(loopback) as client:
        assert [[event.serial for event in page] for page in client.changelog(0, 4)] == [[1, 2], [3, 5]]
        assert list(client.changelog(4, 4)) == []
        assert len(loopback.received) == 2


def test_a_fault_that_names_a_reset_is_waited_for() -> None:
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
        rows(2, 1),
        Answer(200, b"<!DOCTYPE a [<!ENTITY b 'c'>]><methodResponse>&b;</methodResponse>", XML),
        Answer(404),
        Answer(403),
        Answer(301, headers={"Location": "/elsewhere"}),
    ],
    ids=["fault", "method", "order", "doctype", "404", "403", "redirect"],
)
def test_a_changelog_that_cannot_be_used_is_refused_at_once(answer: Answer) -> None:
    with answering(answer) as loopback, client_of(loopback) as client:
        with pytest.raises(RefusedError):
            client.changelog_page(0)
        assert len(loopback.received) == 1


# Pages and the listing


def test_a_project_is_requested_by_its_normalized_name() -> None:
    with answering(Answer(404)) as loopback, client_of(loopback) as client:
        for name in ("Demo.Pkg", "..", "../../etc", "a b?c#d"):
            with pytest.raises(GoneError):
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
def test_an_index_that_speaks_html_only_is_refused(headers: dict[str, str]) -> None:
    with answering(Answer(200, b"<!DOCTYPE html>", headers)) as loopback, client_of(loopback) as client:
        with pytest.raises(RefusedError, match="does not speak the JSON Simple API"):
            client.project_page("demo")
        with pytest.raises(RefusedError, match="does not speak the JSON Simple API"):
            client.listing()


def test_pages_follow_redirects_and_gzip() -> None:
    body = json.dumps({"meta": META, "name": "demo", "files": [], "x": "y" * 99_999}).encode()
    packed = Answer(200, gzip.compress(body), JSON | {"Content-Encoding": "gzip"})
    moved = Answer(301, headers={"Location": "/simple/demo/"})
    with answering(moved, packed) as loopback, client_of(loopback) as client:
        assert isinstance(client.project_page("demo"), ProjectPage)


@pytest.mark.parametrize("layers", [1, 3])
def test_a_bomb_for_a_page_is_not_inflated(layers: int) -> None:
    bomb = b'{"x":"' + b"y" * 40_000_000
    for _ in range(layers):
        bomb = gzip.compress(bomb)
    answer = Answer(200, bomb, JSON | {"Content-Encoding": ", ".join(["gzip"] * layers)})
    with answering(answer) as loopback, client_of(loopback) as client:
        tracemalloc.start()
        try:
            with pytest.raises(TooLargeError, match="200 times"):
                client.project_page("demo")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert len(loopback.received) == 1
    assert peak < 10_000_000


def test_a_page_that_compresses_well_is_no_bomb() -> None:
    file = {"filename": "demo-1.tar.gz", "url": "https://files.example.org/demo-1.tar.gz", "hashes": {}}
    files = [file | {"filename": f"demo-{number}.tar.gz"} for number in range(50_000)]
    body = json.dumps({"meta": META, "name": "demo", "files": files}).encode()
    packed = Answer(200, gzip.compress(body), JSON | {"Content-Encoding": "gzip"})
    assert len(body) > 20 * len(packed.body)
    with answering(packed) as loopback, client_of(loopback) as client:
        page = client.project_page("demo")
    assert isinstance(page, ProjectPage)
    assert len(page.files) == 50_000


def test_an_unrequested_304_is_refused() -> None:
    with answering(Answer(304, headers={"Content-Length": ""})) as loopback, client_of(loopback) as client:
        assert client.project_page("demo", etag='"e"') == NotModified(None)
        with pytest.raises(RefusedError, match="HTTP 304"):
            client.project_page("demo")


def test_two_hundred_thousand_projects_are_read_in_little_memory() -> None:
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


def test_a_listing_cut_short_is_fetched_again_before_it_is_seen() -> None:
    body = json.dumps({"meta": META, "projects": [{"name": "demo", "_last-serial": 7}]}).encode()
    cut = Answer(200, body[:-9], JSON | {"Content-Length": str(len(body))}, is_last=True)
    with (
        answering(cut, Answer(200, body, JSON), PAGE) as loopback,
        client_of(loopback, max_connections=1) as client,
        client.iter_listing() as (last_serial, projects),
    ):
        assert isinstance(client.project_page("demo"), ProjectPage)  # the list holds no connection while it is read
        assert (last_serial, [project.name for project in projects]) == (7, ["demo"])


# Files


def fetch(client: IndexClient, url: str, sink: io.BytesIO | None = None, **options: Any) -> bytes:
    sink = sink or io.BytesIO()
    client.fetch_file(url, sink, **({"sha256": SHA256, "size": len(DATA), "max_bytes": 10_000} | options))
    return sink.getvalue()


def test_a_file_is_whole_again_after_a_retry() -> None:
    cut = Answer(200, DATA[:500], {"Content-Length": str(len(DATA))}, is_last=True)
    with answering(cut, Answer(503), Answer(200, DATA)) as loopback, client_of(loopback) as client:
        sink = io.BytesIO()
        fetched = client.fetch_file(f"{loopback.url}/f", sink, sha256=SHA256, size=len(DATA), max_bytes=10_000)
    assert sink.getvalue() == DATA
    assert (fetched.bytes, fetched.requests) == (len(DATA), 3)
    assert fetched.seconds >= 3  # both pauses


def test_a_file_without_length_that_ends_early_is_transient() -> None:
    open_end = {"Content-Length": ""}
    early, whole = Answer(200, DATA[:500], open_end, is_last=True), Answer(200, DATA, open_end, is_last=True)
    with answering(early, whole) as loopback, client_of(loopback) as client:
        assert fetch(client, f"{loopback.url}/f") == DATA


def test_a_compressed_file_stays_compressed() -> None:
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
def test_other_bytes_than_promised_are_refused_at_once(
    body: bytes, promised: dict[str, Any], error: type[RefusedError]
) -> None:
    with answering(Answer(200, body)) as loopback, client_of(loopback) as client:
        with pytest.raises(error) as caught:
            fetch(client, f"{loopback.url}/f", **promised)
        assert type(caught.value) is error
        assert len(loopback.received) <= 1


def test_a_file_without_promises_is_taken_as_it_comes() -> None:
    with answering(Answer(200, DATA)) as loopback, client_of(loopback) as client:
        assert fetch(client, f"{loopback.url}/f", sha256=None, size=None) == DATA
        assert fetch(client, f"{loopback.url}/f", sha256=SHA256.upper()) == DATA


def test_each_hop_of_a_redirect_is_checked() -> None:
    with serving(lambda _: Answer(200, DATA)) as loopback, client_of(loopback) as client:
        with answering(Answer(302, headers={"Location": f"{loopback.other_url}/f"})) as door:
            with pytest.raises(RefusedError, match="localhost"):
                fetch(client, f"{door.url}/f")
            assert loopback.received == []
        with answering(Answer(302, headers={"Location": f"{loopback.url}/f"})) as door:
            assert fetch(client, f"{door.url}/f") == DATA
        with answering(Answer(302, headers={"Location": "/again"})) as door:
            with pytest.raises(RefusedError, match="redirects"):
                fetch(client, f"{door.url}/f")
            assert len(door.received) == 6


@pytest.mark.parametrize(
    "location",
    [
        "file:///etc/passwd",
        "http://[::1",
        "http://[127.0.0.1]/f",
        "http://[a@127.0.0.1/f",
        "http://127.0.0.1\\@files.example.org/f",
        "http://127.0.0.1:99999/f",
        "http://\xe2\x84\x80@127.0.0.1/f",
        "http://\xff/f",
        "//",
    ],
)
def test_a_redirect_to_nonsense_is_refused(location: str) -> None:
    with (
        answering(Answer(302, headers={"Location": location})) as loopback,
        client_of(loopback) as client,
        pytest.raises(RefusedError),
    ):
        fetch(client, f"{loopback.url}/f")


def test_a_body_that_drips_is_not_waited_for() -> None:
    class SlowTime(FakeTime):
        def __call__(self) -> float:
            self.now += 900  # one chunk may take that long, two may not
            return self.now

    with (
        answering(Answer(200, b"x" * 2_000_000)) as loopback,
        client_of(loopback, SlowTime(), retries=Retries(1), timeouts=Timeouts(read_s=1000)) as client,
        pytest.raises(TransientError, match="slower than"),
    ):
        fetch(client, f"{loopback.url}/f", sha256=None, size=None, max_bytes=10_000_000)


def test_who_reads_slowly_does_not_make_the_body_slow() -> None:
    clock = FakeTime()

    class SlowSink(io.BytesIO):
        def write(self, data: Any) -> int:
            clock.now += 3600
            return super().write(data)

    big = b"x" * 2_000_000
    with answering(Answer(200, big)) as loopback, client_of(loopback, clock, retries=Retries(1)) as client:
        assert fetch(client, f"{loopback.url}/f", SlowSink(), sha256=None, size=None, max_bytes=10_000_000) == big


# Failures before any answer, and what errors must not reveal


@contextmanager
def resetting() -> Iterator[str]:
    """The URL of a server that resets every connection at the first request."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def reset() -> None:
            with suppress(OSError):
                while True:
                    with server.accept()[0] as connection:
                        connection.recv(1)
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        thread = threading.Thread(target=reset)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_connections_that_are_reset_are_tried_again() -> None:
    with answering(PAGE) as loopback, resetting() as url:
        clock = FakeTime()
        with (
            client_of(loopback, clock, index_url=f"{url}/simple/", retries=Retries(3)) as client,
            pytest.raises(TransientError, match="no whole answer"),
        ):
            client.project_page("demo")
    assert len(clock.slept) == 2


def test_a_dead_server_is_named() -> None:
    with answering(PAGE) as loopback:
        pass
    with client_of(loopback, retries=Retries(2)) as client, pytest.raises(TransientError, match="refused") as caught:
        client.project_page("demo")
    assert f"{loopback.url}/simple/demo/" in str(caught.value)


def test_an_unknown_host_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    url = "http://index.invalid"
    with (
        IndexClient(f"{url}/simple/", changelog_url=f"{url}/pypi", retries=Retries(1)) as client,
        pytest.raises(TransientError, match="cannot be resolved") as caught,
    ):
        client.project_page("demo")
    assert "index.invalid" in str(caught.value)


def test_a_silent_server_times_out() -> None:
    done = threading.Event()

    def answer(_: Request) -> Answer:
        done.wait(5)
        return PAGE

    impatient = {"retries": Retries(1), "timeouts": Timeouts(read_s=0.05)}
    with serving(answer) as loopback, client_of(loopback, **impatient) as client:
        with pytest.raises(TransientError, match="timed out"):
            client.project_page("demo")
        done.set()


def test_credentials_go_to_their_origin_only_and_into_no_error() -> None:
    with answering(Answer(403)) as other, serving(lambda _: Answer(403)) as loopback:
        secret = loopback.url.replace("http://", "http://me:hush%21@")
        with client_of(loopback, index_url=f"{secret}/simple/", changelog_url=f"{secret}/pypi") as client:
            for request in (
                lambda: client.project_page("demo"),
                client.last_serial,
                client.listing,
                lambda: fetch(client, f"{loopback.url}/f"),
                lambda: fetch(client, f"{other.url}/f"),
                lambda: fetch(client, f"{other.url.replace('http://', 'http://you:hush%21@')}/f"),
            ):
                with pytest.raises(RefusedError) as caught:
                    request()
                assert "hush" not in str(caught.value)
                assert "me:" not in repr(caught.value)
        assert [request.headers.get("authorization") for request in loopback.received] == ["Basic bWU6aHVzaCE="] * 4
        assert [request.headers.get("authorization") for request in other.received] == [None, "Basic eW91Omh1c2gh"]
