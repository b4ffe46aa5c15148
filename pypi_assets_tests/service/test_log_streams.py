"""Logs of the service go to pipes that nobody reads, and the service answers all the same."""

import fcntl
import json
import mmap
import os
import re
from collections.abc import Iterator

import pytest
import requests

from pypi_assets.service import log_streams
from pypi_assets.service.log_streams import BackgroundStream
from pypi_assets_tests.service.published import Published
from pypi_assets_tests.service.test_server import PATH, served

LINE = "x" * 999 + "\n"
PIPE_BYTES = mmap.PAGESIZE
"""The smallest pipe has one page."""


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Return the ends of a small pipe."""
    reading, writing = os.pipe()
    assert fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_BYTES) == PIPE_BYTES
    yield reading, writing
    os.close(reading)


def test_full_pipe_blocks_no_writer_and_dropped_lines_are_counted(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_streams, "_MOST_WAITING_BYTES", 50_000)
    reading, writing = pipe
    earlier = "y" * (PIPE_BYTES - 1) + "\n"
    assert os.write(writing, earlier.encode()) == PIPE_BYTES  # so the thread cannot write while lines come
    stream = BackgroundStream(writing, lambda count: f"missing {count}\n")
    for _ in range(1_000):
        assert stream.write(LINE) == len(LINE)
    stream.drain(0.01)  # ends although the pipe is full
    with os.fdopen(reading, closefd=False) as lines:
        found = []
        while not found or found[-1] != "last\n":
            found.append(lines.readline())
            if found[-1].startswith("missing"):
                stream.write("last\n")
    assert found == [earlier, *[LINE] * 51, f"missing {1_000 - 51}\n", "last\n"]
    stream.drain(60.0)
    os.close(writing)


def test_closed_pipe_ends_no_writer(pipe: tuple[int, int]) -> None:
    writing = pipe[1]
    reading, other = os.pipe()
    os.close(reading)
    stream = BackgroundStream(other, str)
    stream.write(LINE)
    stream.drain(60.0)
    stream.write(LINE)
    stream.drain(60.0)
    os.close(other)
    os.close(writing)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_service_answers_while_nobody_reads_its_logs(published: Published, workers: int) -> None:
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    with served(published, workers, stdout=writing) as (url, process), requests.Session() as session:
        os.close(writing)
        for _ in range(PIPE_BYTES // 40):  # of some 400 bytes each
            assert session.get(url + PATH, timeout=60).status_code == 200
        with os.fdopen(reading) as log:
            lines = [json.loads(log.readline()) for _ in range(80)]
        assert {line["status"] for line in lines} == {200}
        process.terminate()
        assert process.wait(60) is not None
    assert all(re.fullmatch("[0-9a-f]{16}", line["request_id"]) for line in lines)
