"""Schedules: their default status, and ticks that request no run."""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import cycle
from pathlib import Path

import dagster as dg
import pytest

from pypi_assets.catalog.scopes.stored_scopes import create_scope
from pypi_assets.definitions import build_defs, defs
from pypi_assets.defs.resources import Resources, build_resources
from pypi_assets.scopes.plan import ScopePlan
from pypi_assets.settings import load_settings
from pypi_assets_tests.defs.conftest import Pipeline
from pypi_assets_tests.named import unnamed


def test_schedules_are_off_until_turned_on() -> None:
    schedules = {schedule.name: schedule for schedule in defs.get_repository_def().schedule_defs}
    assert {name: (schedule.job_name, schedule.default_status) for name, schedule in schedules.items()} == {
        "daily_retry": ("retry_failures", dg.DefaultScheduleStatus.STOPPED),
        "daily_parquet": ("export_parquet", dg.DefaultScheduleStatus.STOPPED),
        "hourly_tables": ("update_tables", dg.DefaultScheduleStatus.STOPPED),
        "weekly_full_dump": ("full_dump", dg.DefaultScheduleStatus.STOPPED),
        "hourly_compaction": ("compact_dumps", dg.DefaultScheduleStatus.STOPPED),
        "daily_clean_up": ("clean_up", dg.DefaultScheduleStatus.STOPPED),
        "weekly_audit": ("audit", dg.DefaultScheduleStatus.STOPPED),
        "quarter_hourly_health": ("health", dg.DefaultScheduleStatus.STOPPED),
        "weekly_verification": ("verify_leveldbs", dg.DefaultScheduleStatus.STOPPED),
    }


@pytest.fixture
def resources(tmp_path: Path) -> Iterator[Resources]:
    made = build_resources(load_settings(index_url="http://index/simple/", home=tmp_path / "home"))
    yield made
    made.close()


@pytest.mark.nightly
def test_schedule_requests_no_run_while_its_job_is_running(tmp_path: Path, resources: Resources) -> None:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:

        def new_run(job: str, status: str) -> dg.DagsterRun:
            return instance.create_run_for_job(defs.resolve_job_def(job), status=dg.DagsterRunStatus(status))

        jobs = [schedule.job_name for schedule in defs.get_repository_def().schedule_defs]
        unended = [new_run(*pair) for pair in zip(jobs, cycle(["NOT_STARTED", "STARTING", "STARTED", "CANCELING"]))]
        new_run(jobs[0], "FAILURE")  # newer than the run that has not ended
        messages = _skip_messages(instance, resources)
        assert messages.keys() == set(jobs)
        for run in unended:
            assert unnamed(str(messages[run.job_name]), run.run_id, run.job_name, run.status.value) == []
        for run in unended:
            instance.report_run_canceled(run)
        assert not any(_skip_messages(instance, resources).values())


@pytest.mark.nightly
def test_audit_is_not_scheduled_for_scoped_catalogs(tmp_path: Path, resources: Resources) -> None:
    plan = ScopePlan("mine", {"demo": frozenset()})
    resources.catalog.get().transact(partial(create_scope, plan=plan, serial=100, index_url="http://index/", now=0.0))
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        skipped = {job: text for job, text in _skip_messages(instance, resources).items() if text}
    assert skipped.keys() == {"audit"}


def _skip_messages(instance: dg.DagsterInstance, resources: Resources) -> dict[str, str | None]:
    """Return the skip message of each schedule by job, or None for a schedule that requests a run."""
    messages = {}
    for schedule in defs.get_repository_def().schedule_defs:
        with dg.build_schedule_context(
            instance, scheduled_execution_time=datetime.now(UTC), resources=resources.by_name()
        ) as context:
            data = schedule.evaluate_tick(context)
        assert len(data.run_requests or []) == (data.skip_message is None)
        messages[schedule.job_name] = data.skip_message
    return messages


@pytest.mark.parametrize("on", [False, True])
def test_schedules_are_on_if_the_settings_turn_them_on(pipeline: Pipeline, on: bool) -> None:
    defs = build_defs(pipeline.settings.model_copy(update={"sensors_on": on}))
    running = {
        schedule.name
        for schedule in defs.get_repository_def().schedule_defs
        if schedule.default_status == dg.DefaultScheduleStatus.RUNNING
    }
    assert running == (
        {
            "quarter_hourly_health",
            "daily_retry",
            "weekly_full_dump",
            "hourly_compaction",
            "daily_clean_up",
            "weekly_audit",
            "weekly_verification",
        }
        if on
        else set()
    )
