"""The journal's routes with real clients: nothing is lost, waiting uses no thread, and slow clients block no others."""

import queue
import select
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest
import requests
from jsonschema import Draft202012Validator

from pypi_assets.catalog.reports.journal_format import Record
from pypi_assets.journal.cursors import Cursor
from pypi_assets.journal.filters import CHANGES
from pypi_assets.journal.record_reader import Journal
from pypi_assets.journal.segment_files import Head, write_head
from pypi_assets.service import changes, published_changes, server
from pypi_assets.service.published_changes import PublishedChanges
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.journal.written import records_of, write_streams
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.service.drawn_journal import DrawnJournal, events_of, lines_of, raw_request, read_to_end
from pypi_assets_tests.service.published import Client, Published
from pypi_assets_tests.waiting import until


@pytest.fixture
def drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DrawnJournal:
    clear_settings(monkeypatch)
    monkeypatch.setattr(published_changes, "LOOK_EVERY_S", 0.02)
    return DrawnJournal(tmp_path / "home")


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> queue.Queue[int]:
    """Return a queue that receives a serial whenever a request begins to wait beyond it."""
    begun: queue.Queue[int] = queue.Queue()
    original = PublishedChanges.wait_beyond

    async def wait_beyond(self: PublishedChanges, threads: object, through: int, *rest: object) -> bool:
        begun.put(through)
        return await original(self, threads, through, *rest)

    monkeypatch.setattr(PublishedChanges, "wait_beyond", wait_beyond)
    return begun


def every(published: Published) -> list[Record]:
    """Return all changes, each with the `time` that the service adds."""
    records = records_of(Journal(published.storage), streams=sorted(CHANGES))
    return [
        {**record, "time": record["at"] and datetime.fromtimestamp(record["at"], UTC).isoformat()[:19] + "Z"}
        for record in records
    ]


def paged(client: Client, query: str = "", limit: int = 7) -> list[Record]:
    found, cursor = [], ""
    while True:
        since = f"&since={cursor}" if cursor else ""
        answer = client.get(f"/v1/changes?limit={limit}{since}{query}").json()
        found += answer["changes"]
        cursor = answer["cursor"]
        if not answer["changes"]:
            return found


def test_cursors_page_through_all_changes_in_order(journaled_client: Client, journaled: Published):
    records = every(journaled)
    assert paged(journaled_client) == records
    assert paged(journaled_client, limit=1_000) == records
    middle = records[len(records) // 2]
    answer = journaled_client.get(f"/v1/changes?since={Cursor.of(middle)}&limit=3")
    document = answer.json()
    assert document["changes"] == records[len(records) // 2 + 1 :][:3]
    assert (document["through"], answer.headers["cache-control"]) == (journaled.index.serial, "no-store")
    assert answer.headers["x-pypi-last-serial"] == str(journaled.index.serial)


def test_filters_match_direct_evaluation(journaled_client: Client, journaled: Published):
    records = every(journaled)
    of_projects = [record for record in records if record["normalized"] in {"pyyaml", "gone"}]
    assert paged(journaled_client, "&project=PyYAML,gone") == of_projects
    assert paged(journaled_client, "&kind=file-added&stream=observed") == [
        record for record in records if record["kind"] == "file added"
    ]
    added = paged(journaled_client, "&kind=file-added")
    assert paged(journaled_client, "&kind=File_Added,GAP&stream=Observed,CONTENT&project=pyyaml,gone") == [
        one for one in added if one["normalized"] in {"pyyaml", "gone"}
    ]
    named = paged(journaled_client, "&module=yaml.nodes")
    assert [(one["project"], one["kind"]) for one in named] == [("PyYAML", "file read")]
    assert paged(journaled_client, "&module=yaml.nodes&stream=index") == []
    gained = [record for record in records if "modules" in record.get("gained", ())]
    assert gained
    assert paged(journaled_client, "&gained=Modules,start-up") == gained
    assert paged(journaled_client, "&gained=start-up") == []


def test_start_is_a_cursor_a_serial_a_time_or_now(journaled_client: Client, journaled: Published):
    records = every(journaled)
    after_7 = [record for record in records if record["serial"] > 7]
    assert journaled_client.get("/v1/changes?since=7&limit=1000").json()["changes"] == after_7
    later = journaled_client.get("/v1/changes?since=2026-03-05&limit=1000").json()["changes"]
    assert later == [record for record in records if record["serial"] >= later[0]["serial"]]
    assert journaled_client.get("/v1/changes?since=now").json()["changes"] == []


def test_answers_match_the_openapi_document(journaled_client: Client):
    document = journaled_client.get("/openapi.json").json()
    described = document["paths"]["/v1/changes"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    validator = Draft202012Validator({**described, "components": document["components"]})
    validator.validate(journaled_client.get("/v1/changes?limit=1000").json())
    assert "text/event-stream" in document["paths"]["/v1/changes/stream"]["get"]["responses"]["200"]["content"]


@pytest.mark.parametrize("path", ["/v1/changes", "/v1/changes/stream", "/v1/changes?since=5", "/v1/changes?wait=5"])
def test_missing_journal_is_a_problem_that_names_the_command(client: Client, path: str):
    answer = client.get(path)
    assert (answer.status_code, answer.json()["type"]) == (503, "/docs#not-built-yet")
    assert unnamed(answer.json()["detail"], "journal write") == []


@pytest.mark.parametrize(
    ("query", "status", "parameter", "accepts"),
    [
        ("since=yesterday!", 400, "since", "a cursor of an answer, a serial"),
        ("since=abcdef", 404, "since", None),
        ("since=2026-02-30", 404, "since", None),
        ("kind=gone", 400, "kind", "kinds, separated by commas: add file, remove file"),
        ("gained=weight", 400, "gained", "modules, requirements, commands"),
        ("stream=all", 400, "stream", "streams, separated by commas: index, observed, content"),
        ("project=a,,b", 400, "project", "separated by commas"),
        ("wait=61", 400, "wait", "0 to 60"),
        ("limit=0", 400, "limit", "1 to 1000"),
    ],
)
def test_invalid_parameter_is_a_problem_that_names_it(
    journaled_client: Client, query: str, status: int, parameter: str, accepts: str | None
):
    for path in ("/v1/changes", "/v1/changes/stream"):
        if path.endswith("stream") and parameter in {"wait", "limit"}:
            continue
        answer = journaled_client.get(f"{path}?{query}")
        assert (answer.status_code, answer.json()["parameter"]) == (status, parameter)
        assert accepts is None or accepts in answer.json()["accepts"]
        assert "regex" not in answer.json()["detail"]


def test_waiting_request_is_answered_by_the_next_change(drawn: DrawnJournal, waits: queue.Queue[int]):
    drawn.add(3)
    with drawn.client() as client, ThreadPoolExecutor(1) as thread:
        began = time.monotonic()
        empty = client.get("/v1/changes?since=now&wait=1").json()
        assert empty["changes"] == []
        assert time.monotonic() - began > 0.9
        assert waits.get(timeout=60) == 3
        answer = thread.submit(client.get, f"/v1/changes?since={empty['cursor']}&wait=60")
        assert waits.get(timeout=60) == 3
        drawn.add()
        assert [change["serial"] for change in answer.result().json()["changes"]] == [4]


def test_unmatched_filter_keeps_waiting_and_its_cursor_advances(drawn: DrawnJournal, waits: queue.Queue[int]):
    drawn.add()
    with drawn.client() as client, ThreadPoolExecutor(1) as thread:
        first = client.get("/v1/changes?since=now&wait=0&project=other").json()
        answer = thread.submit(client.get, f"/v1/changes?since={first['cursor']}&wait=60&project=other")
        for through, project in ((1, "demo"), (2, "other")):
            assert waits.get(timeout=60) == through
            drawn.add(1, project)
        assert [change["serial"] for change in answer.result().json()["changes"]] == [3]


def test_many_waiting_requests_hold_no_thread(drawn: DrawnJournal, waits: queue.Queue[int]):
    drawn.add()
    with drawn.client() as client:
        waiting = [raw_request(client.url, "/v1/changes?since=now&wait=60") for _ in range(100)]
        assert {waits.get(timeout=60) for _ in waiting} == {1}
        assert client.get("/v1/changes").status_code == 200
        assert select.select(waiting, [], [], 0)[0] == []
        threads = sum(one.name.startswith(("service", "streams")) for one in threading.enumerate())
        assert threads <= 40
        drawn.add()
        answers = [read_to_end(connection) for connection in waiting]
    assert all(b'"serial":2,' in answer for answer in answers)


def test_stream_has_existing_and_new_records(drawn: DrawnJournal):
    drawn.add(3)
    with drawn.client() as client:
        with requests.get(f"{client.url}v1/changes/stream?since=0", stream=True, timeout=30) as answer:
            assert answer.headers["content-type"] == "text/event-stream"
            events = events_of(answer)
            first = list(islice(events, 3))
            assert [one.data["serial"] for one in first] == [1, 2, 3]
            drawn.add(2)
            assert [one.data["serial"] for one in islice(events, 2)] == [4, 5]
        again = {"Last-Event-ID": first[1].id}
        with requests.get(f"{client.url}v1/changes/stream", stream=True, timeout=30, headers=again) as answer:
            assert [one.data["serial"] for one in islice(events_of(answer), 3)] == [3, 4, 5]
        wrong = client.get("/v1/changes/stream", headers={"Last-Event-ID": "none"})
        assert (wrong.status_code, wrong.json()["parameter"]) == (404, "Last-Event-ID")
        head = client.request("HEAD", "/v1/changes/stream")
        assert (head.status_code, head.content) == (200, b"")


def test_idle_stream_sends_comments_with_its_cursor(drawn: DrawnJournal, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(changes, "HEARTBEAT_S", 0.05)
    drawn.add()
    with (
        drawn.client() as client,
        requests.get(f"{client.url}v1/changes/stream?project=other", stream=True, timeout=30) as answer,
    ):
        stream = lines_of(answer)
        lines = list(islice(stream, 8))
        assert lines.count(":") + lines.count(": ") >= 2
        ids = [line.removeprefix("id: ") for line in lines if line.startswith("id: ")]
        assert ids[0] == str(Cursor.after_serial(1))
        drawn.add()
        assert f"id: {Cursor.after_serial(2)}" in islice(stream, 6_000)


def test_stalled_clients_do_not_block_others(drawn: DrawnJournal, waits: queue.Queue[int]):
    drawn.add(400, blob="x" * 60_000)
    with drawn.client(service_timeout_s=300) as client, ExitStack() as open_sockets:
        left_before = slow_clients(client)
        stalled = stalled_clients(client, 30, open_sockets)
        assert len(select.select(stalled, [], [], 60)[0]) > 0
        with requests.get(f"{client.url}v1/changes/stream?since=now", stream=True, timeout=60) as answer:
            assert waits.get(timeout=60) == 400
            drawn.add()
            assert next(events_of(answer)).data["serial"] == 401
        assert slow_clients(client) == left_before


def test_stalled_client_is_disconnected(drawn: DrawnJournal):
    drawn.add(400, blob="x" * 60_000)
    with drawn.client(service_timeout_s=1) as client, ExitStack() as open_sockets:
        left_before = slow_clients(client)
        stalled = stalled_clients(client, 5, open_sockets)
        until(lambda: slow_clients(client) == left_before + len(stalled))
        taken = [len(read_some(connection)) for connection in stalled]
        assert max(taken) < 24_000_000  # of 24 MB in all: only the sockets' buffers were filled


def stalled_clients(client: Client, count: int, open_sockets: ExitStack) -> list[socket.socket]:
    """Request the whole stream `count` times and read nothing of it."""
    connections = (raw_request(client.url, "/v1/changes/stream?since=0", receive_buffer=4_096) for _ in range(count))
    return [open_sockets.enter_context(connection) for connection in connections]


def slow_clients(client: Client) -> int:
    """Return the metric of disconnected slow clients. It counts those of earlier tests in this process too."""
    lines = client.get("/metrics").text.splitlines()
    return int(sum(float(line.split()[1]) for line in lines if line.startswith("pypi_assets_service_slow_clients_to")))


def read_some(connection: socket.socket) -> bytes:
    try:
        return read_to_end(connection)
    except ConnectionError:
        return b""


def test_slow_client_gets_all_records(drawn: DrawnJournal):
    drawn.add(100, blob="x" * 60_000)
    with (
        drawn.client(service_timeout_s=5) as client,
        requests.get(f"{client.url}v1/changes/stream?since=0", stream=True, timeout=30) as answer,
    ):
        found = []
        for one in islice(events_of(answer), 100):
            found.append(one.data["serial"])
            if len(found) % 25 == 0:
                time.sleep(0.1)  # the client is this slow
        assert found == list(range(1, 101))


def test_server_stops_while_streams_are_open(drawn: DrawnJournal, waits: queue.Queue[int]):
    drawn.add()
    with drawn.client() as client:
        open_ones = [
            raw_request(client.url, "/v1/changes/stream"),
            raw_request(client.url, "/v1/changes?since=now&wait=60"),
        ]
        assert [waits.get(timeout=60) for _ in open_ones] == [1, 1]
        began = time.monotonic()
    assert time.monotonic() - began < server.GRACE_S
    for one in open_ones:
        assert read_some(one).startswith(b"HTTP/1.1 200")


def test_pruned_changes_are_gone(drawn: DrawnJournal):
    write_streams(open_storage((drawn.home / "storage").as_uri()), {}, 20, start=10)
    with drawn.client() as client:
        answer = client.get("/v1/changes?since=5")
        assert (answer.status_code, answer.json()["parameter"]) == (410, "since")
        assert unnamed(answer.json()["detail"], "10") == []
        assert client.get("/v1/changes").json()["through"] == 20


def test_default_start_is_the_first_matching_record(drawn: DrawnJournal):
    storage = open_storage((drawn.home / "storage").as_uri())
    write_streams(storage, {}, 20)
    write_head(storage, Head("index", 1, 10, 20, 0, None))
    with drawn.client() as client:
        for query in ("", "?stream=index", "?kind=add-file", "?stream=observed"):
            answer = client.get(f"/v1/changes{query}")
            assert (answer.status_code, answer.json()["through"]) == (200, 20), query
        assert client.get("/v1/changes?stream=index&since=9").status_code == 410


def test_corrupt_segment_is_a_problem_without_its_filename(drawn: DrawnJournal):
    drawn.add(5)
    [segment] = (drawn.home / "storage" / "journal" / "index" / "0001").glob("*.zst")
    segment.write_bytes(b"no segment")
    with drawn.client() as client:
        answer = client.get("/v1/changes")
        assert answer.status_code == 503
        assert unnamed(answer.json()["detail"], "journal verify") == []
        assert "storage" not in answer.json()["detail"]
