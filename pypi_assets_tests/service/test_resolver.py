"""The process that resolves: it holds up no look-up, and another one takes its place when it ends."""

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from pypi_assets.service import resolver
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


def test_it_ends_with_the_service(published: Published):
    with published.service() as service, client_of(service) as client:
        assert pins(client.post("/v1/resolve", BODY).json())["demo"] == "2.1"
        process = process_of(service)
        os.kill(process, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


@pytest.mark.nightly
def test_another_one_takes_the_place_of_a_killed_one(service: Service, client: Client):
    client.post("/v1/resolve", BODY)
    first = process_of(service)
    os.kill(first, signal.SIGKILL)
    answers = [client.post("/v1/resolve", BODY) for _ in range(2)]
    assert answers[0].status_code in {200, 503}
    assert pins(answers[1].json())["demo"] == "2.1"
    assert process_of(service) != first


@pytest.mark.nightly
def test_look_ups_are_answered_while_it_takes_long(service: Service, client: Client, monkeypatch):
    monkeypatch.setattr(resolver, "_GRACE_S", 1.0)
    client.post("/v1/resolve", BODY)
    stopped = process_of(service)
    os.kill(stopped, signal.SIGSTOP)
    statuses: list[int] = []
    threads = [
        threading.Thread(target=lambda: statuses.append(client.post("/v1/resolve", BODY).status_code))
        for _ in range(resolver._AT_ONCE + 2)
    ]
    for thread in threads:
        thread.start()
    for _ in range(20):
        assert client.get("/v1/modules/yaml", timeout=60).status_code == 200
    for thread in threads:
        thread.join()
    assert statuses.count(503) >= 2  # those for which there is no place, and the one that took too long
    assert set(statuses) <= {200, 503}
    assert pins(client.post("/v1/resolve", BODY).json())["demo"] == "2.1"


def test_a_resolution_that_takes_too_long_ends_by_itself(published: Published):
    with published.service(service_resolve_timeout_s=1e-6) as service, client_of(service) as client:
        answer = client.post("/v1/resolve", BODY)
        assert (answer.status_code, answer.json()["type"]) == (503, "/docs#too-slow")
        assert answer.json()["detail"]
        process = process_of(service)
        client.post("/v1/resolve", BODY)
        assert process_of(service) == process
