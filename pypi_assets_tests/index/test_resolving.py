"""Names are resolved in time, or not at all."""

import socket
import threading
import time
from typing import Any

import pytest

from pypi_assets.index.deadlines import within
from pypi_assets.index.errors import TransientError
from pypi_assets.index.resolving import resolve
from pypi_assets.index.transport import Timeouts
from pypi_assets_tests.index.clients import unhurried_client
from pypi_assets_tests.naming import naming


def test_addresses_are_those_of_the_system() -> None:
    assert resolve("127.0.0.1", 80) == [(socket.AF_INET, ("127.0.0.1", 80))]
    assert (socket.AF_INET, ("127.0.0.1", 80)) in resolve("localhost", 80)
    with pytest.raises(socket.gaierror):
        resolve("no-such-name.invalid", None)


def test_a_resolver_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    done, real = threading.Event(), socket.getaddrinfo

    def hang(host: Any, *args: Any, **options: Any) -> Any:
        if options.get("flags") != socket.AI_NUMERICHOST:
            done.wait(30)
        return real(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    started = time.monotonic()
    with within(0.1), pytest.raises(TimeoutError):
        resolve("index.example.org", 80)
    root = "http://index.invalid"
    with (
        unhurried_client(root, timeouts=Timeouts(0.3, 0.3)) as client,
        pytest.raises(TransientError, match=naming("index.invalid")),
    ):
        client.project_page("demo")
    assert time.monotonic() - started < 10  # of 30
    done.set()
