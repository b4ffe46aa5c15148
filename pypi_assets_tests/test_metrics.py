"""Metrics describe the state of all stages: printed, in a file and over HTTP."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.cli import cli
from pypi_assets.journal.signing import checkpoint_path, sign_checkpoint
from pypi_assets.metrics import StatusMetrics
from pypi_assets.settings import load_settings
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.prometheus import samples
from pypi_assets_tests.served_index import ServedIndex, followed_index


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ServedIndex]:
    with followed_index(tmp_path, monkeypatch) as served:
        yield served


def run(*arguments: object, exit_code: int = 0) -> str:
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == exit_code, result.output
    return result.stdout


def test_metrics_describe_the_state_of_each_stage(index: ServedIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = samples(run("admin", "metrics"))
    assert nothing["serial", "index"] == index.serial
    assert ("serial", "catalog") not in nothing
    assert ("lag_serials",) not in nothing
    assert nothing["to_do",] == 1

    index.wheel("demo", "1.0")
    index.raw("broken-1.0-py3-none-any.whl", b"no zip")
    first = index.serial
    for command in (("crawl", "full"), ("dump", "full", "--shards", "1"), ("leveldb", "update")):
        run(*command)
    level = samples(run("admin", "metrics"))
    stages = ("index", "catalog", "dumps", "modules", "depgraph")
    assert {stage: level["serial", stage] for stage in stages} == dict.fromkeys(stages, first)
    assert (level["lag_serials",], level["lag_seconds",], level["to_do",]) == (0, 0, 0)
    assert (level["answers_lag_serials",], level["answers_lag_seconds",]) == (0, 0)
    assert ("answers_lag_serials",) not in nothing
    assert (level["distributions", "data"], level["distributions", "error"]) == (1, 1)
    assert level["failures", "corrupt archive"] == 1
    assert level["failures", "visit"] == 0
    assert (level["visits_total",], level["read_attempts_total",]) == (2, 2)
    assert level["leveldb_version", "depgraph"] == 1
    assert (level["due", "modules"], level["due", "ranges"], nothing["due", "full_crawl"]) == (0, 0, 1)

    index.wheel("demo", "2.0")
    behind = samples(run("admin", "metrics"))
    assert (behind["lag_serials",], behind["to_do",]) == (index.serial - first, 0)
    run("crawl", "incremental")
    after = samples(run("admin", "metrics"))
    assert (after["lag_serials",], after["answers_lag_serials",]) == (0, index.serial - first)
    assert 0 < after["answers_lag_seconds",] < 60
    assert (after["serial", "catalog"], after["serial", "dumps"]) == (index.serial, first)
    assert (after["to_do",], after["due", "range_dumps"]) == (0, 1)
    monkeypatch.setenv("PYPI_ASSETS_LAG_WARN_S", "0.001")
    assert samples(run("admin", "metrics"))["to_do",] == 1
    assert after["visits_total",] > level["visits_total",]


def test_lag_seconds_count_from_the_first_missing_event(index: ServedIndex) -> None:
    before = time.time()
    first, second, third = (datetime.fromtimestamp(before - seconds, UTC) for seconds in (9_000, 3_600, 60))
    index.wheel("demo", "1.0", at=first)
    run("crawl", "full")
    index.wheel("demo", "2.0", at=second)
    index.wheel("demo", "3.0", at=third)
    lag = samples(run("admin", "metrics"))["lag_seconds",]
    assert 3_600 <= lag <= time.time() - before + 3_601  # the index reports whole seconds


def test_unreachable_stage_is_reported(index: ServedIndex, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    index.wheel("demo", "1.0")
    run("crawl", "full")
    monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", "http://127.0.0.1:9/simple/")
    taken = samples(run("admin", "metrics"))
    assert (taken["reachable", "index"], taken["reachable", "catalog"], taken["reachable", "storage"]) == (0, 1, 1)
    assert ("serial", "index") not in taken
    monkeypatch.setenv("PYPI_ASSETS_DATABASE_URL", "postgresql://nobody@127.0.0.1:9/catalog")
    taken = samples(run("admin", "metrics"))
    assert taken["reachable", "catalog"] == 0
    assert ("serial", "index") not in taken


def test_scrape_between_two_measurements_returns_the_last_one(index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    run("crawl", "full")
    metrics = StatusMetrics(load_settings())
    metrics.take()
    before = metrics.text()
    index.wheel("demo", "2.0")
    assert metrics.text() == before
    metrics.take()
    assert samples(metrics.text())["serial", "index"] == index.serial


def test_metrics_describe_scopes(index: ServedIndex) -> None:
    index.wheel("app", "1.0", requires_dist=["library"])
    index.wheel("library", "1.0")
    run("scope", "create", "mine", "app")
    found = samples(run("admin", "metrics"))
    assert (found["due", "scopes"], found["scope_visits_left", "mine"], found["scope_entering", "mine"]) == (1, 1, 1)
    assert (found["due", "full_crawl"], found["to_do",]) == (0, 1)
    to_do = run("status")
    assert "mine" in to_do
    assert "`pypi-assets scope run`" in to_do
    run("scope", "run")
    found = samples(run("admin", "metrics"))
    assert (found["due", "scopes"], found["scope_state", "mine", "finished"], found["followed_projects",]) == (0, 1, 2)
    assert (found["scope_projects", "0", "mine"], found["scope_projects", "1", "mine"]) == (1, 1)
    assert "crawl full" not in run("status")


def test_metrics_and_status_describe_kept_files(index: ServedIndex) -> None:
    index.wheel("app", "1.0")
    assert not [key for key in samples(run("admin", "metrics")) if key[0].startswith("kept")]
    run("scope", "create", "mine", "app", "--keep-files", "--most", "1GB")
    run("scope", "run")
    size = (index.folder / "built" / "app-1.0-py3-none-any.whl").stat().st_size
    found = samples(run("admin", "metrics"))
    assert (found["kept_files",], found["kept_bytes",], found["kept_files_corrupt",]) == (1, size, 0)
    assert (found["scope_kept_bytes", "mine"], found["scope_kept_bytes_limit", "mine"]) == (size, 10**9)
    assert found["scope_evicted_files", "mine"] == 0
    assert json.loads(run("status", "--json"))["kept"] == {"files": 1, "bytes": size, "corrupt": 0}
    [kept] = (load_settings().resolved_home / "storage" / "files").glob("*/*/*")
    kept.write_bytes(b"corrupt")
    run("files", "verify", exit_code=1)
    assert samples(run("admin", "metrics"))["kept_files_corrupt",] == 1
    assert "`pypi-assets scope run`" in run("status")


def test_metrics_and_status_describe_journal_consumers(index: ServedIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    index.wheel("demo", "1.0")
    run("crawl", "full")
    assert not [name for name, *_ in samples(run("admin", "metrics")) if name.startswith("journal")]
    run("journal", "write")
    run("journal", "tail", "--consumer", "mirror", "--stream", "observed")
    found = samples(run("admin", "metrics"))
    assert (found["journal_consumer_lag_serials", "mirror"], found["journal_consumer_lag_seconds", "mirror"]) == (0, 0)
    assert (found["journal_letters", "mirror", "dead"], found["journal_letters", "mirror", "waiting"]) == (0, 0)
    serial = index.serial
    index.wheel("demo", "2.0")
    run("crawl", "incremental")
    found = samples(run("admin", "metrics"))
    assert found["journal_consumer_lag_serials", "mirror"] == index.serial - serial
    assert found["journal_consumer_lag_seconds", "mirror"] > 0
    status = json.loads(run("status", "--json"))
    assert not [line for line in status["to_do"] if "mirror" in line]
    monkeypatch.setenv("PYPI_ASSETS_LAG_WARN_S", "0.000001")
    assert [line for line in json.loads(run("status", "--json"))["to_do"] if "mirror" in line]


def test_metrics_describe_disks_of_local_folders_before_they_exist(
    index: ServedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = samples(run("admin", "metrics"))
    run("crawl", "full")
    local = samples(run("admin", "metrics"))
    monkeypatch.setenv("PYPI_ASSETS_STORAGE_URL", "memory:///")
    remote = samples(run("admin", "metrics"))
    for found, folders in ((nothing, {"home"}), (local, {"home", "storage"}), (remote, {"home"})):
        free, size = ({key[1] for key in found if key[0] == name} for name in ("disk_free_bytes", "disk_size_bytes"))
        assert free == size == folders
        for folder in folders:
            assert 0 < found["disk_free_bytes", folder] <= found["disk_size_bytes", folder]


def test_metrics_show_last_signed_serial_of_the_journal(index: ServedIndex, tmp_path: Path) -> None:
    index.wheel("demo", "1.0")
    run("crawl", "full")
    run("journal", "write")
    first = index.serial
    found = samples(run("admin", "metrics"))
    assert found["journal_serial", "written", "content"] == first
    assert ("journal_serial", "signed", "content") not in found
    storage = open_storage((tmp_path / "home" / "storage").as_uri())
    sign_checkpoint(storage, JournalStream.CONTENT, Ed25519PrivateKey.generate())
    assert samples(run("admin", "metrics"))["journal_serial", "signed", "content"] == first

    index.wheel("demo", "2.0")
    run("crawl", "incremental")
    run("journal", "write")
    found = samples(run("admin", "metrics"))
    assert [found["journal_serial", state, "content"] for state in ("written", "signed")] == [index.serial, first]
    content = storage.get(checkpoint_path("content"))
    for changed in (content.replace(b'"generation": 1', b'"generation": 9'), b"{", b"{}", b"[]"):
        storage.put(checkpoint_path("content"), changed)
        assert samples(run("admin", "metrics"))["journal_serial", "signed", "content"] == 0


def opening(opened: list[None]) -> Callable[[], dg.DagsterInstance]:
    """Return a function that opens Dagster's instance and records each call in `opened`."""
    get = dg.DagsterInstance.get

    def note() -> dg.DagsterInstance:
        opened.append(None)
        return get()

    return note


def test_metrics_count_runs_if_a_dagster_instance_exists(
    index: ServedIndex, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = tmp_path / "dagster"
    home.mkdir()
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    assert ("reachable", "dagster") not in samples(run("admin", "metrics"))
    assert list(home.iterdir()) == []
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}")
    opened: list[None] = []
    monkeypatch.setattr(dg.DagsterInstance, "get", opening(opened))
    found = samples(run("admin", "metrics"))
    assert len(opened) == 1  # each opening connects to the instance's databases again
    assert found["reachable", "dagster"] == 1
    assert (found["runs", "queued"], found["runs", "running"], found["failed_runs",]) == (0, 0, 0)
    (home / "dagster.yaml").write_text("storage: {custom: {module: nowhere, class: Nothing}}")
    found = samples(run("admin", "metrics"))
    assert (found["reachable", "dagster"], found["reachable", "index"]) == (0, 1)
    assert ("failed_runs",) not in found
    monkeypatch.setenv("PYPI_ASSETS_DATABASE_URL", "postgresql://nobody@127.0.0.1:9/catalog")
    found = samples(run("admin", "metrics"))
    assert (found["reachable", "dagster"], found["reachable", "catalog"]) == (0, 0)
    assert found["disk_free_bytes", "home"] > 0
