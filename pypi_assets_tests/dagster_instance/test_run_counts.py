"""Runs and pools of a real instance are counted."""

from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest
import yaml

from pypi_assets.dagster_instance import activity
from pypi_assets.dagster_instance.activity import PoolCounts, RunCounts, count_runs
from pypi_assets_tests.deploy.services import DEPLOY

ROOT = Path(__file__).parent.parent.parent


@dg.op
def fail() -> None:
    raise dg.Failure("wrong")


@dg.job
def failing() -> None:
    fail()


@dg.job
def empty() -> None:
    """Nothing to do."""


def test_runs_are_counted_by_state_and_steps_by_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text())
    require_counts(tmp_path, monkeypatch)


@pytest.mark.nightly
def test_runs_are_counted_on_postgresql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dagster_postgres: str) -> None:
    instance = yaml.safe_load((DEPLOY / "dagster.yaml").read_text())
    instance.pop("compute_logs")  # need a store
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(instance))
    require_counts(tmp_path, monkeypatch)


def require_counts(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run jobs on the instance in `home`, and compare what is counted."""
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    with dg.DagsterInstance.get() as instance:
        assert count_runs(instance) == RunCounts(queued=0, running=0, failed=0, pools={})
        for job in (failing, failing, empty):
            job.execute_in_process(instance=instance, raise_on_error=False)
        for most_retries in ("0", "10"):  # Dagster launches the second one again, so it is not counted
            tags = {"dagster/max_retries": most_retries}
            lost = instance.create_run_for_job(empty, status=dg.DagsterRunStatus.STARTED, tags=tags)
            instance.report_run_failed(lost)
        for status, times in ((dg.DagsterRunStatus.NOT_STARTED, 3), (dg.DagsterRunStatus.STARTED, 1)):
            for _ in range(times):
                instance.create_run_for_job(empty, status=status)
        events = instance.event_log_storage
        events.set_concurrency_slots("index", 2)
        for step in ("one", "two", "three"):
            events.claim_concurrency_slot("index", "run", step)
        pool = PoolCounts(limit=2, claimed=2, waiting=1)
        assert count_runs(instance) == RunCounts(queued=3, running=1, failed=3, pools={"index": pool})
        monkeypatch.setattr(activity, "FAILED_WITHIN", timedelta(0))
        assert count_runs(instance).failed == 0
