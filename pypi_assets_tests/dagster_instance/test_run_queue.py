"""The daemon of the root's dagster.yaml looks at backfills and at queued runs every few seconds."""

import logging
import threading
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._core.test_utils import create_test_daemon_workspace_context
from dagster._core.workspace.load_target import EmptyWorkspaceTarget
from dagster._daemon import controller
from dagster._daemon.backfill import execute_backfill_iteration_loop

from pypi_assets.dagster_instance.run_queue import PromptRunCoordinator

ROOT = Path(__file__).parent.parent.parent


class WaitedError(Exception):
    """Ends the loop."""


class Shutdown(threading.Event):
    """What the loop waits for between two looks."""

    def wait(self, timeout: float | None = None) -> bool:
        raise WaitedError(timeout)


def test_the_daemon_looks_at_backfills_every_few_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.setattr(controller, "DEFAULT_DAEMON_INTERVAL_SECONDS", 30)
    (tmp_path / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text())
    with dg.DagsterInstance.get() as instance:
        queue = instance.run_coordinator
        assert isinstance(queue, PromptRunCoordinator)
        assert queue.dequeue_interval_seconds <= 2
        assert instance.get_concurrency_config().run_queue_config.max_concurrent_runs == 6  # type: ignore[union-attr]
        with create_test_daemon_workspace_context(EmptyWorkspaceTarget(), instance) as workspace:
            loop = execute_backfill_iteration_loop(workspace, logging.getLogger("daemon"), Shutdown())
            with pytest.raises(WaitedError) as waited:
                list(loop)
    assert 3 < waited.value.args[0] <= 5


def test_its_other_settings_are_those_of_dagster(tmp_path: Path):
    queue = {"module": "pypi_assets.dagster_instance.run_queue", "class": "PromptRunCoordinator"}
    config = queue | {"config": {"max_concurrent_runs": 3, "dequeue_num_workers": 2}}
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump({"run_coordinator": config, "telemetry": {"enabled": False}}))
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        coordinator = instance.run_coordinator
        assert isinstance(coordinator, PromptRunCoordinator)
        assert (coordinator.get_run_queue_config().max_concurrent_runs, coordinator.dequeue_num_workers) == (3, 2)
