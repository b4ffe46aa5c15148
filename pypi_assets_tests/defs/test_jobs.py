"""Trying again what was given up, the periodic work, and what a run says of its progress."""

from itertools import cycle
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import update
from starlette.requests import Request
from starlette.responses import Response

from pypi_assets.catalog.reads.name_lists import store_lists
from pypi_assets.catalog.reads.read_outcomes import Outcome
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.catalog.tables import distribution_data
from pypi_assets.definitions import build_defs, defs
from pypi_assets.defs import marking
from pypi_assets.defs.marking import PROGRESS_EVERY_S, progress_log
from pypi_assets.distributions.record import EXTRACTOR_VERSION
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.progress import Progress
from pypi_assets_tests.defs.conftest import Pipeline
from pypi_assets_tests.served_index import ServedIndex, shared_readers


def test_what_was_given_up_is_tried_again_and_broken_archives_only_if_asked_to(
    index: ServedIndex, pipeline: Pipeline
) -> None:
    index.raw("broken-1.0.tar.gz", b"no archive")
    asked: list[str] = []

    def fail_beta(request: Request) -> Response | None:
        return Response(status_code=503) if "beta-1.0" in request.url.path else None

    def listen(request: Request) -> None:
        asked.append(request.url.path.rpartition("/")[2])

    index.faults = fail_beta
    pipeline.crawled()
    assert _outcomes(pipeline, Outcome.EXHAUSTED, Outcome.ERROR) == [1, 1]
    index.faults = listen
    assert pipeline.run("retry_failures").success
    assert _outcomes(pipeline, Outcome.EXHAUSTED, Outcome.ERROR) == [0, 1]
    assert [name for name in asked if name.endswith((".whl", ".gz"))] == ["beta-1.0-py3-none-any.whl"]
    config = {"ops": {"retry_given_up": {"config": {"kinds": []}}}}
    assert pipeline.run("retry_failures", run_config=config).success
    assert "broken-1.0.tar.gz" in asked


def test_a_reprocess_asks_no_index_and_tells_what_changed(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    catalog = pipeline.catalog
    with catalog.write() as connection:
        lists = store_lists(connection, [("old", "a|b")])
        connection.execute(
            update(distribution_data).values(extractor_version=0, record_digest=None, modules_id=lists["old", "a|b"])
        )
    settings = pipeline.settings.model_copy(update={"index_url": "https://index.example.org/simple/", "contact": ""})
    defs = build_defs(settings, catalog=catalog, storage=pipeline.storage, readers=shared_readers())

    def told(**config: object) -> dict[str, Any]:
        result = defs.resolve_job_def("reprocess_distributions").execute_in_process(
            instance=pipeline.instance, run_config={"ops": {"reprocess_extracts": {"config": config}}}
        )
        [output] = [event for event in result.all_events if event.is_successful_output]
        return {name: value.value for name, value in output.step_output_data.metadata.items()}

    alpha = told(project="Alpha")
    assert (alpha["looked_at"], alpha["changed"], alpha["gained_modules"], alpha["unread"]) == (2, 2, 2, 0)
    assert "| modules | alpha-1.0-py3-none-any.whl: +alpha_module, -a\\|b, -old |" in alpha["examples"]
    assert told()["changed"] == 2
    assert told(older_than_version=EXTRACTOR_VERSION + 1)["looked_at"] == 4


def test_an_audit_tells_what_drift_it_found(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    index.history.archive("beta")
    config = {"ops": {"audit_catalog": {"config": {"share_percent": 100.0}}}}
    result = pipeline.run("audit", run_config=config)
    [output] = [event for event in result.all_events if event.is_successful_output]
    told = {name: value.value for name, value in output.step_output_data.metadata.items()}
    assert (told["drift"], told["status changed"], told["gave_up"]) == (1, 1, 0)
    assert "| status changed | beta |" in told["examples"].lower()


def test_schedules_are_off_until_turned_on() -> None:
    schedules = {schedule.name: schedule for schedule in defs.get_repository_def().schedule_defs}
    assert {name: (schedule.job_name, schedule.default_status) for name, schedule in schedules.items()} == {
        "daily_retry": ("retry_failures", dg.DefaultScheduleStatus.STOPPED),
        "daily_parquet": ("export_parquet", dg.DefaultScheduleStatus.STOPPED),
        "weekly_full_dump": ("full_dump", dg.DefaultScheduleStatus.STOPPED),
        "hourly_compaction": ("compact_dumps", dg.DefaultScheduleStatus.STOPPED),
        "daily_clean_up": ("clean_up", dg.DefaultScheduleStatus.STOPPED),
        "weekly_audit": ("audit", dg.DefaultScheduleStatus.STOPPED),
        "quarter_hourly_health": ("health", dg.DefaultScheduleStatus.STOPPED),
        "weekly_verification": ("verify_leveldbs", dg.DefaultScheduleStatus.STOPPED),
    }


def test_no_schedule_asks_for_a_run_while_one_of_its_job_has_not_ended(tmp_path: Path) -> None:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:

        def new_run(job: str, status: str) -> dg.DagsterRun:
            return instance.create_run_for_job(defs.resolve_job_def(job), status=dg.DagsterRunStatus(status))

        jobs = [schedule.job_name for schedule in defs.get_repository_def().schedule_defs]
        unended = [new_run(*pair) for pair in zip(jobs, cycle(["NOT_STARTED", "STARTING", "STARTED", "CANCELING"]))]
        new_run(jobs[0], "FAILURE")  # newer than the one that has not ended
        assert _told_by_schedules(instance) == {
            run.job_name: f"the run {run.run_id} of the job {run.job_name} has not ended: it is {run.status.value}"
            for run in unended
        }
        for run in unended:
            instance.report_run_canceled(run)
        assert _told_by_schedules(instance) == dict.fromkeys(jobs)


def _told_by_schedules(instance: dg.DagsterInstance) -> dict[str, str | None]:
    """By job, why the tick of its schedule asks for no run; None where it asks for one."""
    told = {}
    for schedule in defs.get_repository_def().schedule_defs:
        with dg.build_schedule_context(instance=instance) as context:
            data = schedule.evaluate_tick(context)
        assert len(data.run_requests or []) == (data.skip_message is None)
        told[schedule.job_name] = data.skip_message
    return told


def test_progress_is_told_every_30_seconds_at_most() -> None:
    now = 0.0
    told: list[str] = []

    with dg.build_op_context() as context:
        context.log.info = told.append  # type: ignore[assignment]
        report = progress_log(context, lambda: now)
        for now in (0.0, 1.0, PROGRESS_EVERY_S, PROGRESS_EVERY_S + 1, 2 * PROGRESS_EVERY_S):
            report(Progress("visits", int(now), 100, failed=1, wait_s=now - PROGRESS_EVERY_S))
    assert told == ["visits: 30 of 100, 1 failed", "visits: 60 of 100, 1 failed, waiting for up to 30 s"]


def test_what_can_take_long_tells_how_far_it_is(
    index: ServedIndex, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marking, "PROGRESS_EVERY_S", 0.0)
    pipeline.crawled()
    index.wheel("newcomer", "3.0")
    (key,) = pipeline.requested("new_serial_range")
    assert f"rows of {key}: 1" in _logged(pipeline, "incremental_crawl", key)
    full_dump(pipeline.catalog, pipeline.storage, 1)
    pipeline.ahead_s = 90 * 86_400.0
    assert "deletions: 1" in _logged(pipeline, "clean_up")
    (name,) = pipeline.requested("new_leveldb_version")
    assert pipeline.run("update_leveldbs", name).success
    assert {
        "version 1 of modules: records read: 0",
        "version 1 of modules: rows of its rebuild: 5",
        "version 1 of modules: records compared: 0",
    } <= _logged(pipeline, "verify_leveldbs")


def _logged(pipeline: Pipeline, job: str, key: str | None = None) -> set[str]:
    """What a run of a job logs."""
    result = pipeline.run(job, key)
    assert result.success
    return {entry.user_message for entry in pipeline.instance.all_logs(result.run_id)}


def _outcomes(pipeline: Pipeline, *outcomes: Outcome) -> list[int]:
    counts = catalog_status(pipeline.catalog).outcomes
    return [counts[outcome] for outcome in outcomes]
