"""`status` reports the runs and sensors of a real Dagster instance, limited to the index of the status."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import pytest

from pypi_assets.dagster_instance.activity import Activity, read_activity
from pypi_assets.defs import sensors
from pypi_assets.defs.naming import Naming
from pypi_assets.settings import load_settings
from pypi_assets.status import SENSORS, read_status
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import followed_index

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with an instance that is set up as README describes."""
    folder = tmp_path / "dagster"
    folder.mkdir()
    shutil.copy(ROOT / "dagster.yaml", folder)
    monkeypatch.setenv("DAGSTER_HOME", str(folder))
    return folder


@dg.op
def nothing() -> None:
    pass


def add_run(job: str, status: dg.DagsterRunStatus) -> None:
    """Add a run of a job with this name to the instance."""
    graph = dg.GraphDefinition(name=job, node_defs=[nothing])
    with dg.DagsterInstance.get() as instance:
        instance.create_run_for_job(graph.to_job(), status=status)


def activity(prefix: str, sensors: Sequence[str], *, are_on_by_default: bool) -> Activity:
    with dg.DagsterInstance.get() as instance:
        return read_activity(instance, prefix, sensors, are_on_by_default=are_on_by_default)


def test_unfinished_runs_are_counted_for_their_index(home: Path) -> None:
    for job, status in (
        ("full_crawl", dg.DagsterRunStatus.STARTED),
        ("full_crawl", dg.DagsterRunStatus.NOT_STARTED),
        ("full_crawl", dg.DagsterRunStatus.SUCCESS),
        ("company__full_crawl", dg.DagsterRunStatus.CANCELING),
        ("full_dump", dg.DagsterRunStatus.FAILURE),
    ):
        add_run(job, status)
    assert activity("", (), are_on_by_default=True).runs == {"full_crawl": 2}
    assert activity("company__", (), are_on_by_default=True).runs == {"full_crawl": 1}


def test_run_of_assets_counts_for_each_asset(home: Path) -> None:
    @dg.asset(key=["company", "crawled_projects"])
    def of_company() -> None:
        pass

    @dg.asset
    def crawled_projects() -> None:
        pass

    every = dg.Definitions([of_company, crawled_projects]).resolve_implicit_global_asset_job_def()
    with dg.DagsterInstance.get() as instance:
        for asset in (of_company, crawled_projects, crawled_projects):
            instance.create_run_for_job(
                every, status=dg.DagsterRunStatus.STARTING, asset_selection=frozenset({asset.key})
            )
    assert activity("", (), are_on_by_default=True).runs == {"crawled_projects": 2}
    assert activity("company__", (), are_on_by_default=True).runs == {"crawled_projects": 1}


def test_untouched_sensors_have_their_configured_status(home: Path) -> None:
    assert activity("", SENSORS, are_on_by_default=False) == Activity({}, list(SENSORS))
    assert activity("", SENSORS, are_on_by_default=True) == Activity({}, [])


@pytest.mark.nightly
def test_switched_sensor_is_reported(home: Path) -> None:
    for switch, sensors_off in (("start", SENSORS[1:]), ("stop", SENSORS)):
        command = [sys.executable, "-m", "dagster", "sensor", switch, SENSORS[0], "-w", str(ROOT / "workspace.yaml")]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
        assert activity("", SENSORS, are_on_by_default=False).sensors_off == list(sensors_off)
    assert activity("", SENSORS, are_on_by_default=True).sensors_off == [SENSORS[0]]


def test_sensors_that_request_runs_are_shown() -> None:
    for naming in (Naming(), Naming("company")):
        assert {one.make(naming, 60, on=False).name for one in sensors.SENSORS} == {
            naming.name(name) for name in SENSORS
        }


def test_crawl_between_two_runs_is_not_reported_as_stopped(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with followed_index(tmp_path, monkeypatch) as served:
        served.wheel("demo", "1.0")
        status = read_status(load_settings())
        assert status.dagster == Activity({}, list(SENSORS))
        add_run("full_crawl", dg.DagsterRunStatus.NOT_STARTED)
        assert read_status(load_settings()).is_crawling_full


def test_unreachable_instance_is_a_task(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with followed_index(tmp_path, monkeypatch):
        (home / "dagster.yaml").write_text("storage: {postgres: {postgres_url: 'postgresql://127.0.0.1:1/none'}}")
        status = read_status(load_settings())
        assert status.dagster is None
        assert status.dagster_error is not None
        assert status.dagster_error in status.to_do()
        (home / "dagster.yaml").write_text("storage: {postgres: {postgres_url: {env: UNSET_POSTGRES_URL}}}")
        error = read_status(load_settings()).dagster_error
        assert error is not None
        assert unnamed(error, "DAGSTER_HOME", "UNSET_POSTGRES_URL") == []
        assert ".py" not in error
