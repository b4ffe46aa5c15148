"""Plain requests are answered as soon as they arrive, and as they would be otherwise."""

import asyncio
import io
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from pypi_assets.leveldbs.datasets import provided_names
from pypi_assets.service import at_once, questions
from pypi_assets.service.access_log import AccessLog
from pypi_assets.service.app import create_app
from pypi_assets.service.at_once import AtOnce
from pypi_assets.service.operations import operation_routes
from pypi_assets.service.service import Service
from pypi_assets.service.threads import Threads
from pypi_assets_tests.service.published import Client, Published, client_of
from pypi_assets_tests.service.test_connections import GET, HOST, sent, statuses

MODULE = b"/v1/modules/yaml"
HEADERS = [(b"host", b"service.test"), (b"x-request-id", b"4f7a-1")]
SHARED = ((b"date", b"today"),)


@pytest.fixture
def quick(published: Published) -> Iterator[AtOnce]:
    """What answers at once of a service that has answered nothing yet."""
    with published.service() as service:
        yield at_once_of(service)


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that need a thread fail."""

    def run(_self: Threads, _work: object) -> None:
        raise ZeroDivisionError("a thread")

    monkeypatch.setattr(Threads, "run", run)


def at_once_of(service: Service) -> AtOnce:
    found = create_app(service).at_once
    assert found is not None
    return found


def answer(quick: AtOnce, url: bytes = MODULE, *headers: tuple[bytes, bytes]) -> bytes | None:
    return quick.answer(url, [*HEADERS, *headers], SHARED, ("127.0.0.1", 5))


def test_an_answer_is_the_same_either_way(client: Client, subtests: pytest.Subtests):
    for path in ["/v1/modules/yaml", "/v1/modules/demo.new", "/v1/status", "/v1/modules/yamll"]:
        for encoding in ["identity", "gzip", "zstd"]:
            with subtests.test(path=path, encoding=encoding):
                headers = {"Accept-Encoding": encoding, "X-Request-ID": "1"}
                for _ in range(2):
                    found = client.get(path, headers=headers)
                    other = client.get(path, headers=headers | {"If-None-Match": '"none"'})
                    assert (found.status_code, found.content) == (other.status_code, other.content)
                    assert {**found.headers, "date": ""} == {**other.headers, "date": ""}
                    known = client.get(path, headers=headers | {"If-None-Match": found.headers["etag"]})
                    assert known.status_code == 304


def test_a_module_of_few_projects_needs_no_thread(published: Published, no_threads: None):
    with published.service() as service, client_of(service) as client:
        found = client.get("/v1/modules/yaml").json()
        assert [one["project"] for one in found["results"]] == ["PyYAML", "yaml-copy"]
        assert client.get("/v1/modules/demo", headers={"Connection": "close"}).status_code == 500


def test_what_is_remembered_is_answered_again_without_a_thread(published: Published, request: pytest.FixtureRequest):
    with published.service() as service, client_of(service) as client:
        for path in ("/v1/modules/yamll", "/simple/demo/", "/v1/hashes/" + "ab" * 32, "/v1/modules/y?prefix=1"):
            first = client.get(path)
            assert first.status_code == 200
        request.getfixturevalue("no_threads")
        for path in ("/v1/modules/yamll", "/simple/demo/", "/v1/hashes/" + "ab" * 32, "/v1/modules/y?prefix=1"):
            again = client.get(path)
            assert again.status_code == 200


@pytest.mark.parametrize(
    "header",
    [
        (b"if-none-match", b"*"),
        (b"if-modified-since", b"Tue, 03 Mar 2026 00:00:00 GMT"),
        (b"content-length", b"0"),
        (b"transfer-encoding", b"chunked"),
        (b"expect", b"100-continue"),
        (b"upgrade", b"websocket"),
        (b"host", b"other.test"),
    ],
)
def test_what_has_conditions_or_a_body_is_not_plain(quick: AtOnce, header: tuple[bytes, bytes]):
    assert answer(quick) is not None
    assert answer(quick, MODULE, header) is None
    assert quick.answer(MODULE, [], SHARED, None) is None


NOT_PLAIN = [
    b"/v1/modules/",
    b"/v1/modules/yamll",  # hints cost more than a few reads
    b"/v1/modules/yaml?limit=1",
    b"/v1/modules/ya%6dl",
    b"/v1/modules/yaml#x",
    b"/v1/modules/ya\xffml",
    b"/v1/modules/" + b"a" * 300,
    b"/v1/modules/yaml/x",
    b"/at/12.12/v1/modules/yaml",
    b"http://service.test/v1/modules/yaml",
    b"*",
    b"",
]


def test_what_needs_more_than_a_few_reads_is_not_plain(quick: AtOnce, subtests: pytest.Subtests):
    for url in NOT_PLAIN:
        with subtests.test(url=url):
            assert answer(quick, url) is None


def test_a_module_of_many_projects_is_left_to_a_thread(quick: AtOnce, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pypi_assets.questions.modules._FEW", 1)
    assert answer(quick) is None
    monkeypatch.setattr("pypi_assets.questions.modules._FEW", 2)
    assert answer(quick) is not None


def test_damage_is_left_to_what_looks_for_a_version_that_can_be_read(quick: AtOnce, monkeypatch: pytest.MonkeyPatch):
    def damaged(*_: object) -> None:
        raise ValueError("damaged")

    monkeypatch.setattr(provided_names, "read_answer", damaged)
    assert answer(quick) is None


def test_a_large_answer_is_compressed_by_a_thread(quick: AtOnce, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(at_once, "_LONGEST_BODY", 10)
    monkeypatch.setattr("pypi_assets.service.answers._LEAST_COMPRESSED_BYTES", 10)
    assert answer(quick, MODULE, (b"accept-encoding", b"gzip")) is None
    assert answer(quick) is not None


def test_nothing_is_answered_before_anything_is_published(published: Published, tmp_path):
    with published.service(home=tmp_path) as service:
        assert answer(at_once_of(service)) is None


def test_it_is_of_the_newest_set(changing: Published):
    with changing.service() as service:
        quick = at_once_of(service)
        before = answer(quick)
        changing.add("wheel", "third", "1.0", files={"yaml/__init__.py": ""})
        serial = changing.publish()
        assert answer(quick) == before
        service.follow()
        after = answer(quick)
        assert after is not None
        assert f"x-pypi-last-serial: {serial}\r\n".encode() in after
        assert b'"third"' in after


def test_it_is_measured_and_logged(published: Published):
    stream = io.StringIO()

    async def run(service: Service) -> None:
        log = AccessLog(stream)
        quick = AtOnce(service, _routes(service), log)
        sent = answer(quick, MODULE, (b"user-agent", b"pip\x07"))
        assert sent is not None
        assert b"\r\nx-request-id: 4f7a-1\r\n" in sent
        log.write()

    with published.service() as service, client_of(service) as client:
        before = _counted(client)
        asyncio.run(run(service))
        assert _counted(client) == before + 1
    line = json.loads(stream.getvalue())
    assert (line["path"], line["route"], line["status"]) == ("/v1/modules/yaml", "/v1/modules/{module}", 200)
    assert (line["client"], line["agent"], line["method"]) == ("127.0.0.1", "pip\x07", "GET")
    assert line["request_id"] == "4f7a-1"


def _routes(service: Service) -> Any:
    return list(operation_routes(service, questions.all_operations()))


def _counted(client: Client) -> float:
    name = 'pypi_assets_service_requests_total{route="/v1/modules/{module}",status="200"} '
    lines = client.get("/metrics").text.splitlines()
    return next((float(line.removeprefix(name)) for line in lines if line.startswith(name)), 0.0)


def test_requests_that_come_together_are_answered_in_their_order(client: Client):
    plain, hints = GET + HOST + b"\r\n", b"GET /v1/modules/none.at.all HTTP/1.1\r\n" + HOST + b"\r\n"
    missing = b"GET /nowhere HTTP/1.1\r\n" + HOST + b"\r\n"
    last = b"GET /nothing HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
    found = sent(client, plain * 3 + missing + plain + hints + plain * 40 + missing + last)
    assert statuses(found) == [200] * 3 + [404] + [200] * 42 + [404, 404]


def test_an_idle_connection_stays_and_a_second_request_is_answered(client: Client):
    with requests.Session() as session:
        for _ in range(3):
            assert session.get(client.url + "v1/modules/yaml", timeout=60).status_code == 200


def test_a_thread_that_waits_while_it_reads_leaves_reading_to_others(monkeypatch: pytest.MonkeyPatch):
    waits = [0]
    monkeypatch.setattr(at_once, "_waits_of_this_thread", lambda: waits[0])
    monkeypatch.setattr(at_once, "_MOMENT_S", 0.0)
    reading = at_once._Reading()
    assert reading.begins(1.0)
    reading.ends()  # slow, and it is not known why
    assert reading.begins(1.0)
    reading.ends()  # slow, since another process had the processor
    assert reading.begins(1.0)
    waits[0] += 1
    reading.ends()
    now = time.perf_counter()
    assert not reading.begins(now)
    assert reading.begins(now + at_once._PAUSE_S)


def test_reads_that_are_prompt_are_not_watched_for_ever(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(at_once, "_MOMENT_S", 0.0)
    reading = at_once._Reading()
    reading.begins(1.0)
    reading.ends()
    monkeypatch.setattr(at_once, "_MOMENT_S", 1e9)
    for _ in range(at_once._WATCHED_READS):
        assert reading._watched
        reading.begins(2.0)
        reading.ends()
    assert not reading._watched
