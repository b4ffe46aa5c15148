"""The sensors that report failed runs and checks: the text, the channel, and the frequency of notices."""

import dagster as dg
import pytest

from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.defs.run_notices import reason_of, reported_recently
from pypi_assets_tests.defs.conftest import Pipeline
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.notice_receiver import receiving
from pypi_assets_tests.served_index import ServedIndex


def notify(pipeline: Pipeline, run: dg.ExecuteInProcessResult) -> None:
    """Run the failed-run sensor as the daemon does once a run has failed."""
    (failure,) = [event for event in run.all_events if event.is_run_failure]
    kept = pipeline.instance.get_run_by_id(run.run_id)
    assert kept is not None
    sensor = pipeline.defs.resolve_sensor_def("failed_run")
    assert isinstance(sensor, dg.RunStatusSensorDefinition)
    resources = pipeline.resources.by_name()
    made = dg.build_run_status_sensor_context("failed_run", failure, pipeline.instance, kept, resources=resources)
    with made.for_run_failure() as context:
        sensor(context)


def test_failed_range_is_reported_once_an_hour(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    key = f"{index.serial}-{index.serial + 7}"
    pipeline.instance.add_dynamic_partitions("serial_ranges", [key])

    def fail() -> dg.ExecuteInProcessResult:
        return pipeline.run("incremental_crawl", key, raise_on_error=False)

    with receiving() as (url, received):
        pipeline.change_settings(notify_urls=(url,))
        first = fail()
        notify(pipeline, first)
        (notice,) = received
        assert unnamed(notice["title"], "incremental_crawl", key) == []
        assert unnamed(notice["message"], key) == []
        assert "Traceback" not in notice["message"]
        assert unnamed(notice["message"], "new_serial_range") == []
        assert first.run_id in notice["message"]
        assert reported_recently(pipeline.instance, "incremental_crawl")
        assert not reported_recently(pipeline.instance, "update_leveldbs")
        notify(pipeline, fail())
        assert len(received) == 1


@pytest.mark.nightly
def test_failing_check_is_reported_once_until_it_passes(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    with receiving() as (url, received):
        pipeline.change_settings(notify_urls=(url,))
        pipeline.skipped("failed_check")
        for times, version in ((1, "2.0"), (2, "3.0")):
            index.wheel("alpha", version)
            pipeline.ahead_s += 7_260
            assert pipeline.run("health").success
            for _ in range(2):
                assert unnamed(pipeline.skipped("failed_check"), "catalog_is_fresh") == []
                assert len(received) == times
            crawl_incremental(pipeline.crawler)
            assert pipeline.run("health").success
            pipeline.skipped("failed_check")
    assert unnamed(received[0]["title"], "catalog_is_fresh") == []
    assert unnamed(received[0]["message"], "changed_distribution_data", "2:01") == []


def test_unsent_notice_is_sent_with_the_next_tick(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    index.wheel("alpha", "2.0")
    pipeline.ahead_s = 7_260
    assert pipeline.run("health").success
    counts = []
    for status in (500, 200, 200):
        with receiving(status) as (url, received):
            pipeline.change_settings(notify_urls=(url,))
            pipeline.skipped("failed_check")
        counts.append(len(received))
    assert counts == [1, 1, 0]


@pytest.mark.nightly
def test_run_that_dagster_retries_is_not_reported(pipeline: Pipeline) -> None:
    pipeline.crawled()
    pipeline.instance.add_dynamic_partitions("leveldb_versions", ["00007"])
    run = pipeline.run("update_leveldbs", "00007", raise_on_error=False)
    pipeline.instance.add_run_tags(
        run.run_id, {"dagster/will_retry": "true"}
    )  # Dagster does this if the process of a run was lost
    with receiving() as (url, received):
        pipeline.change_settings(notify_urls=(url,))
        notify(pipeline, run)
    (notice,) = received
    assert "new_leveldb_version" not in notice["message"]


def test_run_without_its_partition_is_reported_without_traceback(pipeline: Pipeline) -> None:
    pipeline.crawled()
    run = pipeline.run("update_leveldbs", raise_on_error=False)
    with receiving() as (url, received):
        pipeline.change_settings(notify_urls=(url,))
        notify(pipeline, run)
    (notice,) = received
    assert "Stack Trace" not in notice["message"]
    assert "update_leveldbs" in notice["title"]


def test_notice_of_killed_process_contains_the_signal(pipeline: Pipeline) -> None:
    job = pipeline.defs.resolve_job_def("full_crawl")
    run = pipeline.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
    pipeline.instance.report_engine_event(
        "its process was terminated by signal 9 (SIGKILL)", run
    )  # as the code server does
    failure = pipeline.instance.report_run_failed(run)
    pipeline.instance.report_engine_event("Retrying the run", run)
    context = dg.build_run_status_sensor_context("failed_run", failure, pipeline.instance, run).for_run_failure()
    assert unnamed(reason_of(context).splitlines()[0], 9, "SIGKILL") == []


def test_notice_of_lost_run_contains_the_launcher_reason(pipeline: Pipeline) -> None:
    job = pipeline.defs.resolve_job_def("full_crawl")
    run = pipeline.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
    pipeline.instance.report_engine_event("Executing steps in process (pid: 1)", run)
    failure = pipeline.instance.report_run_failed(run, "lost")
    context = dg.build_run_status_sensor_context("failed_run", failure, pipeline.instance, run).for_run_failure()
    assert reason_of(context) == "lost"
