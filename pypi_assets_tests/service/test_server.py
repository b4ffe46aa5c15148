"""The service as processes: they answer at an address, and end when stopped or when their parent is killed."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from pypi_assets.service import server
from pypi_assets.service.server import running
from pypi_assets_tests.cli.commands import PROCESS
from pypi_assets_tests.service.published import Published
from pypi_assets_tests.waiting import until

PATH = "v1/modules/yaml"


@contextmanager
def served(
    published: Published, workers: int, stdout: int | None = None
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run the command as a process and yield its URL as soon as it answers."""
    environment = os.environ | {
        "PYPI_ASSETS_HOME": str(published.home),
        "PYPI_ASSETS_INDEX_URL": published.index.url,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [*PROCESS, "serve", "--port", "0", "--workers", str(workers)]
    with subprocess.Popen(command, env=environment, stdout=stdout, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            match = re.search(r"http://127\.0\.0\.1:\d+/", line)
            assert match, line + process.stderr.read()
            assert requests.get(match[0] + PATH, timeout=60).json()["serial"] == published.index.serial
            yield match[0], process
        finally:
            process.kill()


@pytest.mark.nightly
@pytest.mark.parametrize("workers", [1, 2])
def test_command_answers_until_it_is_stopped(journaled: Published, workers: int):
    with (
        served(journaled, workers) as (url, process),
        requests.get(f"{url}v1/changes/stream", stream=True, timeout=60) as stream,
    ):
        shown = requests.get(f"{url}project/demo/", timeout=60).text
        assert f"{url.rstrip('/')}</span>/simple/" in shown  # each worker knows the address of the service
        assert stream.status_code == 200
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        rest = process.communicate(timeout=60)[1]
        assert time.monotonic() - began < server.GRACE_S  # the stream, which has no end, was closed
        assert stream.content.startswith(b"retry: ")
    assert process.returncode in {0, -signal.SIGTERM}, rest
    assert "Traceback" not in rest


@pytest.mark.nightly
def test_workers_end_when_their_parent_is_killed(published: Published):
    with served(published, 2) as (url, process):
        workers = [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
        assert len(workers) >= 2
        process.kill()
        try:
            until(lambda: not any(map(is_running, workers)))
        finally:
            for pid in filter(is_running, workers):
                os.kill(pid, signal.SIGKILL)
        with pytest.raises(requests.ConnectionError):
            requests.get(url + PATH, timeout=60)


def test_local_address_is_loopback_if_listening_on_all_addresses(published: Published):
    for host, expected in (("0.0.0.0", "127.0.0.1"), ("localhost", "localhost")):
        with published.service() as service, running(service, host) as url:
            assert service.address == url.replace(host, expected)
            assert requests.get(service.address + PATH, timeout=60).status_code == 200


def is_running(pid: int) -> bool:
    """Check whether the process exists and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
