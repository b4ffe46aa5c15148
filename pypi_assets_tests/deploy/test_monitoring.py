"""Prometheus itself accepts the files of `deploy/monitoring/`, and detects a lag and an unreachable index."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import requests

from pypi_assets_tests.cli.commands import PROCESS
from pypi_assets_tests.deploy.services import fill_disk, free_port, own_disk
from pypi_assets_tests.deploy.test_index_servers import process
from pypi_assets_tests.served_index import followed_index
from pypi_assets_tests.test_monitoring import MONITORING, fill, queries
from pypi_assets_tests.waiting import until

pytestmark = [
    pytest.mark.deploy,
    pytest.mark.skipif(
        not (shutil.which("promtool") and shutil.which("prometheus")),
        reason="Prometheus is not installed: make prometheus",
    ),
]


def test_files_are_valid_and_alerts_fire_only_in_their_examples() -> None:
    for arguments in (
        ("check", "config", "prometheus.yml"),
        ("check", "rules", "alerts.yml"),
        ("test", "rules", "alerts_test.yml"),
    ):
        done = subprocess.run(["promtool", *arguments], cwd=MONITORING, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


HOME_BYTES = 256 * 1024**2


class Prometheus:
    """A server that scrapes and evaluates each second."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._session = requests.Session()
        self._session.trust_env = False

    def is_ready(self) -> bool:
        return self._session.get(f"{self.url}/-/ready", timeout=10).ok

    def _get(self, path: str, **parameters: str) -> Any:
        answer = self._session.get(f"{self.url}/api/v1/{path}", params=parameters, timeout=30).json()
        assert answer["status"] == "success", answer
        return answer["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        return list(self._get("query", query=expression)["result"])

    def rules(self) -> list[dict[str, Any]]:
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def raised(self) -> dict[str, list[dict[str, Any]]]:
        """Return the series found by each rule whose expression is true. An alert fires only after a further delay."""
        return {rule["name"]: rule["alerts"] for rule in self.rules() if rule["alerts"]}


@contextmanager
def serving_metrics() -> Iterator[str]:
    """Run `pypi-assets admin metrics` as a process that measures each second, and yield HOST:PORT."""
    command = [*PROCESS, "admin", "metrics", "--every", "1", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stderr is not None
            address = re.fullmatch(r"serving metrics at http://(\S+)/metrics\n", serving.stderr.readline())
            assert address
            yield address[1]
        finally:
            serving.terminate()


@contextmanager
def watching(folder: Path, target: str) -> Iterator[Prometheus]:
    folder.mkdir()
    shutil.copy(MONITORING / "alerts.yml", folder)
    config = (MONITORING / "prometheus.yml").read_text().replace("127.0.0.1:9464", target)
    (folder / "prometheus.yml").write_text(re.sub(r"_interval: 1m", "_interval: 1s", config))
    port = free_port()
    files = [f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
    prometheus = Prometheus(port)
    command: list[object] = ["prometheus", *files, f"--web.listen-address=127.0.0.1:{port}"]
    with process(command, prometheus.url, folder / "log"):
        until(prometheus.is_ready, 60)
        yield prometheus


@dg.job
def wrong() -> None:
    """A job whose runs fail."""


def test_alerts_for_a_failed_run_and_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with own_disk(tmp_path / "home", HOME_BYTES) as has_disk, followed_index(tmp_path, monkeypatch) as index:
        fill(index, tmp_path, monkeypatch)
        with serving_metrics() as target, watching(tmp_path / "prometheus", target) as prometheus:
            until(lambda: len(prometheus.query("pypi_assets_info")) == 1)
            assert "PypiAssetsRunsFail" not in prometheus.raised()
            with dg.DagsterInstance.get() as instance:
                instance.report_run_failed(instance.create_run_for_job(wrong, status=dg.DagsterRunStatus.STARTED))
            until(lambda: "PypiAssetsRunsFail" in prometheus.raised())
            [failed] = prometheus.raised()["PypiAssetsRunsFail"]
            assert float(failed["value"]) == 1
            if not has_disk:
                pytest.skip("cannot mount a file system to fill")
            assert "PypiAssetsDiskFull" not in prometheus.raised()
            filling = fill_disk(tmp_path / "home")
            until(lambda: "PypiAssetsDiskFull" in prometheus.raised())
            full = {one["labels"]["folder"] for one in prometheus.raised()["PypiAssetsDiskFull"]}
            assert full == {"home", "storage"}
            filling.unlink()
            until(lambda: "PypiAssetsDiskFull" not in prometheus.raised())


def test_alerts_for_a_real_catalog_follow_its_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as index_runs:
        index = index_runs.enter_context(followed_index(tmp_path, monkeypatch))
        fill(index, tmp_path, monkeypatch)
        with serving_metrics() as target, watching(tmp_path / "prometheus", target) as prometheus:
            until(lambda: len(prometheus.query("pypi_assets_info")) == 1)
            until(lambda: {rule["health"] for rule in prometheus.rules()} == {"ok"})
            # the target is missing until the first scrape; a scope is due; the disk is the machine's
            until(lambda: prometheus.raised().keys() <= {"PypiAssetsWorkToDo", "PypiAssetsDiskFull"})
            until(lambda: len(prometheus.query("rate(pypi_assets_visits_total[10m])")) == 1)  # after two scrapes
            for expression, _ in queries():
                found = prometheus.query(expression.replace("$job", "pypi-assets"))
                assert found or " > 0" in expression, expression

            index.wheel("demo", "2.0", at=datetime.now(UTC) - timedelta(hours=3))
            until(lambda: {"PypiAssetsCatalogLags", "PypiAssetsAnswersStale"} <= prometheus.raised().keys())
            index_runs.close()
            until(lambda: "PypiAssetsUnreachable" in prometheus.raised())
            [silent] = prometheus.raised()["PypiAssetsUnreachable"]
            assert silent["labels"]["part"] == "index"
            until(lambda: "PypiAssetsLagUnknown" in prometheus.raised())
            texts = [text for found in prometheus.raised().values() for text in found[0]["annotations"].values()]
            assert [text for text in texts if "{{" in text or "<error" in text] == []
