"""Failed runs are requested again after growing pauses."""

import dagster as dg
import pytest

from pypi_assets.crawl.full_crawl import crawl_full, list_index
from pypi_assets.defs.attempts import FIRST_PAUSE_S
from pypi_assets.defs.policy import PARTITION_TAG, RANGE_END_TAG, RANGE_START_TAG
from pypi_assets_tests.defs.conftest import Pipeline, failure_text, lose_state, restore_state
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


def test_full_crawl_continues_after_a_failed_run(index: ServedIndex, pipeline: Pipeline) -> None:
    job = pipeline.defs.resolve_job_def("full_crawl")

    def launched(status: dg.DagsterRunStatus) -> None:
        pipeline.instance.create_run_for_job(job, status=status)

    pipeline.skipped("failed_full_crawl")
    launched(dg.DagsterRunStatus.FAILURE)
    launched(dg.DagsterRunStatus.CANCELED)
    pipeline.skipped("failed_full_crawl")
    launched(dg.DagsterRunStatus.FAILURE)  # the run failed before it could open a crawl
    assert unnamed(pipeline.skipped("failed_full_crawl"), "1") == []
    list_index(pipeline.crawler)
    launched(dg.DagsterRunStatus.FAILURE)
    assert unnamed(pipeline.skipped("failed_full_crawl"), "2") == []
    pipeline.ahead_s = 2 * FIRST_PAUSE_S + 5
    request, again = pipeline.tick("failed_full_crawl"), pipeline.tick("failed_full_crawl")
    assert isinstance(request, dg.RunRequest)
    assert request.tags == {RANGE_START_TAG: "00", RANGE_END_TAG: "99"}
    assert again == request
    launched(dg.DagsterRunStatus.STARTED)
    pipeline.skipped("failed_full_crawl")
    crawl_full(pipeline.crawler)
    pipeline.skipped("failed_full_crawl")


def test_range_is_requested_again_until_it_has_a_run(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    index.wheel("newcomer", "1.0")
    first = pipeline.tick("new_serial_range")
    again = pipeline.tick("new_serial_range")  # the daemon was killed between the tick and the run
    assert isinstance(first, dg.SensorResult)
    assert isinstance(again, dg.SensorResult)
    assert [request.run_key for request in first.run_requests or []] == [
        request.run_key for request in again.run_requests or []
    ]
    job = pipeline.defs.resolve_job_def("incremental_crawl")
    (request,) = first.run_requests or []
    pipeline.instance.create_run_for_job(
        job, tags={PARTITION_TAG: str(request.partition_key)}, status=dg.DagsterRunStatus.STARTED
    )
    pipeline.skipped("new_serial_range")


@pytest.mark.nightly
def test_failed_range_is_requested_again_after_a_growing_pause(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    index.wheel("newcomer", "1.0")
    (key,) = pipeline.requested("new_serial_range")
    lose_state(pipeline.catalog)
    failed = pipeline.run("incremental_crawl", key, raise_on_error=False)
    assert failure_text(failed)
    pipeline.run("incremental_crawl", key, raise_on_error=False)
    restore_state(pipeline.catalog)
    assert unnamed(pipeline.skipped("new_serial_range"), key, "2") == []
    pipeline.ahead_s = FIRST_PAUSE_S + 5
    assert unnamed(pipeline.skipped("new_serial_range"), key, "2") == []
    pipeline.ahead_s = 2 * FIRST_PAUSE_S + 5
    result = pipeline.tick("new_serial_range")
    assert isinstance(result, dg.SensorResult)
    (request,) = result.run_requests or []
    assert (request.partition_key, request.run_key) == (key, f"{key}:3")
    assert pipeline.run("incremental_crawl", key).success
    pipeline.skipped("new_serial_range")
