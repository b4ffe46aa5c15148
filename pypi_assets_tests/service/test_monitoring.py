"""Metrics of one process, metrics of several processes that share a folder, and the access log."""

import asyncio
import io
import json
import os
import re
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from pypi_assets.service import monitoring
from pypi_assets.service.monitoring import FOLDER_VARIABLE, LOGGER, AccessLog
from pypi_assets_tests.service.published import Client, Published
from pypi_assets_tests.waiting import until

_COUNT = """
import sys
from pypi_assets.service import monitoring
from pypi_assets.service.service import Service
monitoring.REQUESTS.labels("/v1/modules/{module}", "200").inc(int(sys.argv[1]))
monitoring.OPEN.inc()
print(monitoring.metrics_text(Service(None))[0].decode())
"""


def test_requests_are_counted_by_route_and_status(client: Client, published: Published):
    def count() -> float:
        lines = client.get("/metrics").text.splitlines()
        name = 'pypi_assets_service_requests_total{route="/v1/modules/{module}",status="400"} '
        return next((float(line.removeprefix(name)) for line in lines if line.startswith(name)), 0.0)

    before = count()
    client.get("/v1/modules/yaml?wrong=1")
    assert count() == before + 1
    text = client.get("/metrics").text
    assert f"pypi_assets_service_serial {float(published.index.serial)}" in text
    assert 'pypi_assets_service_reachable{part="catalog"} 1.0' in text
    assert 'pypi_assets_service_request_seconds_bucket{le="0.02",route="/v1/modules/{module}"}' in text


@pytest.mark.nightly
def test_processes_share_counters_and_ended_processes_have_no_gauges(tmp_path, monkeypatch: pytest.MonkeyPatch):
    environment = os.environ | {FOLDER_VARIABLE: str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = [
        subprocess.run(
            [sys.executable, "-c", _COUNT, count], env=environment, check=True, capture_output=True, text=True
        ).stdout
        for count in ("2", "3")
    ]
    assert 'pypi_assets_service_requests_total{route="/v1/modules/{module}",status="200"} 5.0' in done[1]
    assert "pypi_assets_service_open_requests 1.0" in done[1]  # the first process has ended


def test_serial_of_a_process_is_measured_at_each_poll(changing: Published):
    def measured() -> float | None:
        return monitoring._REGISTRY.get_sample_value("pypi_assets_service_serial")

    with changing.service(service_refresh_s=0.05) as service:
        service.follow_in_background(monitoring.note_state)
        assert measured() == service.serial
        changing.add("wheel", "another", "1.0")
        serial = changing.publish()
        until(lambda: measured() == serial)


def test_each_metric_is_described():
    text = (Path(__file__).parents[2] / "docs" / "service.md").read_text()
    described = set(re.findall(r"\| `(pypi_assets_service_[a-z_]+?)(?:_total)?[`{]", text))
    made = {family.name for family in monitoring._REGISTRY.collect()}
    assert described == made


SCOPE = {
    "method": "GET",
    "path": "/v1/modules/\x1b[31m\u202eyaml",
    "query_string": b"token=secret",
    "client": ("127.0.0.1", 5),
    "pypi_assets.route": "/v1/modules/{module}",
    "pypi_assets.request_id": "4f7a-1",
    "pypi_assets.headers": {"user-agent": "pip\x07" + "x" * 1_000, "authorization": "Basic secret"},
}


class Written(io.StringIO):
    """A stream that signals its writes. All of its users share one event loop."""

    def __init__(self) -> None:
        super().__init__()
        self.has_lines = asyncio.Event()

    def flush(self) -> None:
        self.has_lines.set()


def test_log_line_is_inert_and_has_no_credentials():
    async def run() -> None:
        log.add(SCOPE, 200, 17, 0.0123)
        log.add(SCOPE | {"client": None}, 0, 0, 1.0)
        assert not stream.getvalue()
        await asyncio.wait_for(stream.has_lines.wait(), 60)

    stream = Written()
    log = AccessLog(stream)
    asyncio.run(run())
    first, second = stream.getvalue().splitlines()
    assert first.isascii()
    assert first.isprintable()
    assert "secret" not in first
    fields = json.loads(first)
    assert (fields["status"], fields["bytes"], fields["ms"], fields["route"]) == (200, 17, 12.3, "/v1/modules/{module}")
    assert len(fields["agent"]) == 200
    assert (fields["level"], fields["logger"], fields["request_id"]) == ("INFO", LOGGER, "4f7a-1")
    assert datetime.fromisoformat(fields["time"]).utcoffset() == timedelta()
    assert fields["message"] == f"GET {SCOPE['path']} 200"
    assert json.loads(second)["client"] is None


def test_dropped_log_lines_are_counted():
    async def run() -> None:
        for _ in range(10_005):
            log.add(SCOPE, 200, 17, 0.01)
        log.write()

    stream = io.StringIO()
    log = AccessLog(stream)
    asyncio.run(run())
    lines = stream.getvalue().splitlines()
    assert len(lines) == 10_001
    fields = json.loads(lines[-1])
    assert (fields["level"], fields["left_out"]) == ("WARNING", 5)
