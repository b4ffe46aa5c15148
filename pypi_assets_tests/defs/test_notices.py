"""The sensor that tells of failed runs: what it says, to whom, and how often."""

import dagster as dg

from pypi_assets.defs.notices import told_lately
from pypi_assets_tests.defs.conftest import Pipeline
from pypi_assets_tests.notice_receiver import receiving
from pypi_assets_tests.served_index import ServedIndex


def tell(pipeline: Pipeline, run: dg.ExecuteInProcessResult) -> None:
    """What the daemon does once a run has failed."""
    (failure,) = [event for event in run.all_events if event.is_run_failure]
    context = dg.build_run_status_sensor_context(
        "failed_run", failure, pipeline.instance, run.dagster_run, resources={"parts": pipeline.parts}
    ).for_run_failure()
    sensor = pipeline.defs.resolve_sensor_def("failed_run")
    assert isinstance(sensor, dg.RunStatusSensorDefinition)
    sensor(context)


def test_a_failed_range_is_told_in_words_and_once_an_hour(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    key = f"{index.serial}-{index.serial + 7}"
    pipeline.instance.add_dynamic_partitions("serial_ranges", [key])

    def fail() -> dg.ExecuteInProcessResult:
        return pipeline.run("incremental_crawl", key, raise_on_error=False)

    with receiving() as (url, received):
        pipeline.parts._settings = pipeline.settings.model_copy(update={"notify_urls": (url,)})
        first = fail()
        tell(pipeline, first)
        (notice,) = received
        assert notice["title"] == f"pypi-assets: incremental_crawl of {key} failed"
        assert notice["message"].startswith(f"changelog: {key} is not a range of the ledger")
        assert "Traceback" not in notice["message"]
        assert "asked for again by the sensor new_serial_range" in notice["message"]
        assert first.run_id in notice["message"]
        assert told_lately(pipeline.instance, "incremental_crawl")
        assert not told_lately(pipeline.instance, "update_leveldbs")
        tell(pipeline, fail())
        assert len(received) == 1
