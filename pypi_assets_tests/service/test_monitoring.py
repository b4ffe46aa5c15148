"""The metrics: of one process, and of several that keep their numbers in one folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pypi_assets.service import monitoring
from pypi_assets.service.monitoring import FOLDER_VARIABLE
from pypi_assets_tests.following.followers import until
from pypi_assets_tests.service.published import Client, Published

_COUNT = """
import sys
from pypi_assets.service import monitoring
from pypi_assets.service.service import Service
monitoring.REQUESTS.labels("/v1/modules/{module}", "200").inc(int(sys.argv[1]))
monitoring.OPEN.inc()
print(monitoring.metrics_text(Service(None))[0].decode())
"""


def test_each_route_and_status_is_counted(client: Client, published: Published):
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
def test_processes_count_together_and_what_ended_is_left_out(tmp_path, monkeypatch: pytest.MonkeyPatch):
    environment = os.environ | {FOLDER_VARIABLE: str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = [
        subprocess.run(
            [sys.executable, "-c", _COUNT, count], env=environment, check=True, capture_output=True, text=True
        ).stdout
        for count in ("2", "3")
    ]
    assert 'pypi_assets_service_requests_total{route="/v1/modules/{module}",status="200"} 5.0' in done[1]
    assert "pypi_assets_service_open_requests 1.0" in done[1]  # the first process has ended


def test_how_far_a_process_has_come_is_measured_whenever_it_looks(changing: Published):
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
