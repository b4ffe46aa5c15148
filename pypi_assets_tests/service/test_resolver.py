"""The resolver process: it does not block lookups, and it is replaced when it ends."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from pypi_assets.resolve.questions import parse_wanted
from pypi_assets.resolve.releases import ReleaseIndex
from pypi_assets.service import resolver
from pypi_assets.service.client_limits import Places
from pypi_assets.service.service import Service
from pypi_assets_tests.service.published import Client, Published, client_of
from pypi_assets_tests.service.test_resolutions import WHERE, pins

BODY = {"requirements": ["demo"], **WHERE}


@pytest.fixture
def service(published: Published) -> Iterator[Service]:
    with published.service(service_resolve_timeout_s=2) as service:
        yield service


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    with client_of(service) as client:
        yield client


def process_of(service: Service) -> int:
    process = service.resolver._process
    assert process is not None
    assert process.pid is not None
    return process.pid


def test_process_ends_with_the_service(published: Published):
    with published.service() as service, client_of(service) as client:
        assert pins(client.post("/v1/resolve", BODY).json())["demo"] == "2.1"
        process = process_of(service)
        os.kill(process, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


@pytest.mark.nightly
def test_killed_process_is_replaced(service: Service, client: Client):
    client.post("/v1/resolve", BODY)
    first = process_of(service)
    os.kill(first, signal.SIGKILL)
    answers = [client.post("/v1/resolve", BODY) for _ in range(2)]
    assert answers[0].status_code in {200, 503}
    assert pins(answers[1].json())["demo"] == "2.1"
    assert process_of(service) != first


@pytest.mark.nightly
def test_lookups_are_answered_during_a_long_resolution(service: Service, client: Client, monkeypatch):
    monkeypatch.setattr(resolver, "_GRACE_S", 1.0)
    client.post("/v1/resolve", BODY)
    stopped = process_of(service)
    os.kill(stopped, signal.SIGSTOP)
    statuses: list[int] = []
    threads = [
        threading.Thread(target=lambda: statuses.append(client.post("/v1/resolve", BODY).status_code))
        for _ in range(resolver._PLACES_OF_A_CLIENT + 2)
    ]
    for thread in threads:
        thread.start()
    for _ in range(20):
        assert client.get("/v1/modules/yaml", timeout=60).status_code == 200
    for thread in threads:
        thread.join()
    assert statuses.count(429) >= 1  # the queue is full
    assert statuses.count(503) >= 1  # the request that took too long
    assert set(statuses) <= {200, 429, 503}
    assert pins(client.post("/v1/resolve", BODY).json())["demo"] == "2.1"


def test_resolution_ends_at_its_time_limit(published: Published):
    with published.service(service_resolve_timeout_s=1e-6) as service, client_of(service) as client:
        answer = client.post("/v1/resolve", BODY)
        assert (answer.status_code, answer.json()["type"]) == (503, "/docs#too-slow")
        assert answer.json()["detail"]
        process = process_of(service)
        client.post("/v1/resolve", BODY)
        assert process_of(service) == process


def test_long_requirements_are_parsed_within_the_time_limit_and_not_cached(published: Published):
    long = "demo" + ",".join([">=0"] * 990)
    many = [f"{long},!={number}" for number in range(1_500)]
    with published.service(service_resolve_timeout_s=1.5) as service, client_of(service) as client:
        assert client.post("/v1/resolve", BODY).status_code == 200
        process, kept = process_of(service), parse_wanted.cache_info().currsize
        answer = client.post("/v1/resolve", {**BODY, "requirements": many})
        assert (answer.status_code, answer.json()["type"]) == (503, "/docs#too-slow")
        assert parse_wanted.cache_info().currsize == kept
        assert client.post("/v1/resolve", BODY).status_code == 200
        assert process_of(service) == process


def test_long_requirements_are_not_cached():
    before = parse_wanted.cache_info().currsize
    for number in range(3):
        parse_wanted(f"demo{'>=0,' * 900}!={number}")
    assert parse_wanted.cache_info().currsize == before


def test_process_with_too_much_memory_is_replaced(service: Service, client: Client, monkeypatch: pytest.MonkeyPatch):
    assert client.post("/v1/resolve", BODY).status_code == 200
    first = process_of(service)
    monkeypatch.setattr(resolver.os, "nice", lambda _by: 0)
    for most, is_last in ((0, True), (resolver._resident_bytes() * 10, False)):
        monkeypatch.setattr(resolver, "_MOST_RESIDENT_BYTES", most)
        ours, theirs = (
            multiprocessing.Pipe()
        )  # one pipe for each thread, since threads that read the same pipe share its messages
        thread = threading.Thread(target=resolver._run, args=(service.settings, theirs), daemon=True)
        thread.start()
        with ours:
            ours.recv()
            ours.send(resolver.Job(serial_of, 1, set_id=service.datasets().id))
            assert ours.recv() == (service.serial, is_last)
            ours.send(resolver.Job(serial_of, 1, set_id="none"))
            assert ours.recv().content.status == 503
        thread.join(60)
        assert not thread.is_alive()
    assert process_of(service) == first


def serial_of(index: ReleaseIndex) -> int:
    return index.serial


def test_client_without_a_place_gets_retry_after(service: Service, client: Client):
    service.resolver._places = Places(1, 1)
    for holder, status in (("127.0.0.1", 429), ("192.0.2.1", 503)):
        with service.resolver._places.turn(holder, 0, 0):
            answer = client.post("/v1/resolve", BODY)
            assert (answer.status_code, answer.headers["Retry-After"]) == (status, "1")
            assert answer.json()["type"] == "/docs#busy"
    assert client.post("/v1/resolve", BODY).status_code == 200
