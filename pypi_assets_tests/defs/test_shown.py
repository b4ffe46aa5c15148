"""All text that Dagster shows about an index is inert: the results of all jobs, checks, sensors and schedules are
inspected.

The test finds the places itself: each entry of the event log with all its texts, and the printed output.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._serdes import serialize_value

from pypi_assets.defs.policy import PARTITION_TAG, RANGE_END_TAG, RANGE_START_TAG
from pypi_assets.dumps.dump_manifest import shard_key, shard_of
from pypi_assets_tests.defs.conftest import Pipeline, settings_for
from pypi_assets_tests.hostile_index import (
    BEACON,
    BROKEN,
    HostileAnswers,
    live_in_line,
    live_in_markdown,
    live_in_terminal,
    upload,
    upload_broken,
)
from pypi_assets_tests.served_index import served_index

MARKDOWN = {"md_str", "description"}
"""The fields whose text Dagster's UI shows as Markdown."""
SHARDS = 256
TOO_SLOW = {"full_crawl"}  # incremental_crawl shows the same facts of files


@pytest.mark.nightly
def test_index_text_is_inert_in_dagster(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with served_index(tmp_path / "served") as index, dg.DagsterInstance.ephemeral() as instance:
        upload(index)
        index.faults = answers = HostileAnswers(index)
        quick = {"superseded_kept_hours": 0, "lag_warn_s": 0.001, "lag_fail_s": 0.001}
        pipeline = Pipeline(settings_for(index.url, tmp_path / "home", **quick), instance)
        pipeline.crawled()  # crawls all shards, which is slow in Dagster
        upload_broken(index, "4.0")
        run_all(pipeline)
        answers.fails = True
        ticks = run_all(pipeline)
        pipeline.close()
        shown = [one for entry in entries(instance) for one in texts(json.loads(serialize_value(entry)))]
    shown += [("tick", text) for text in ticks]
    assert sum(BEACON in text for _, text in shown) > 3, "texts of the index must be shown"
    assert {field for field, text in shown if field in MARKDOWN and BEACON in text} == MARKDOWN
    assert [(field, live) for field, text in shown if (live := live_in(field, text))] == []
    printed = capfd.readouterr()
    assert live_in_terminal(printed.out + printed.err) == []
    assert BEACON in printed.err


def live_in(field: str, text: str) -> list[str]:
    return live_in_markdown(text) if field in MARKDOWN and BEACON in text else live_in_line(text.replace("\t", " "))


def run_all(pipeline: Pipeline) -> list[str]:
    """Run each job with relevant partitions and tick each sensor. Return the texts of the ticks."""
    repository = pipeline.defs.get_repository_def()
    shown = [text for sensor in repository.sensor_defs for text in tick(pipeline, sensor)]
    jobs = {job.name for job in repository.get_all_jobs() if not job.name.startswith("__")}
    for name in sorted(jobs - TOO_SLOW):
        for tags in tags_of(pipeline, name):
            pipeline.run(name, tags=tags, raise_on_error=False)
    return shown


def tags_of(pipeline: Pipeline, job: str) -> list[dict[str, str]]:
    """Return the tags of the runs to make: all partitions, or only the shard of the failing files."""
    partitions = pipeline.defs.resolve_job_def(job).partitions_def
    if partitions is None:
        return [{}]
    keys = partitions.get_partition_keys(dynamic_partitions_store=pipeline.instance)
    if isinstance(partitions, dg.DailyPartitionsDefinition):
        return [{PARTITION_TAG: keys[-1]}]
    if len(keys) == SHARDS:
        wanted = [shard_key(shard_of(name, SHARDS)) for name in (BROKEN,)]
        return [{RANGE_START_TAG: key, RANGE_END_TAG: key} for key in wanted]
    return [{RANGE_START_TAG: keys[0], RANGE_END_TAG: keys[-1]}] if keys else []


def tick(pipeline: Pipeline, sensor: dg.SensorDefinition) -> Iterator[str]:
    if isinstance(sensor, dg.RunStatusSensorDefinition):
        return
    try:
        result = pipeline.tick(sensor.name)
    except dg.Failure as error:
        yield str(error.description)
        return
    skip = result.skip_reason if isinstance(result, dg.SensorResult) else result
    if isinstance(skip, dg.SkipReason):
        yield str(skip.skip_message)
    for request in (result.run_requests or []) if isinstance(result, dg.SensorResult) else []:
        yield from (str(request.run_key), str(request.partition_key), *request.tags, *request.tags.values())


def entries(instance: dg.DagsterInstance) -> Iterator[Any]:
    for run in instance.get_runs():
        yield from instance.all_logs(run.run_id)
        yield run
    of_checks = dg.EventRecordsFilter(dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    yield from (record.event_log_entry for record in instance.event_log_storage.get_event_records(of_checks))


def texts(value: Any, field: str = "") -> Iterator[tuple[str, str]]:
    """Yield each text of a value with the name of its field. Names are texts too."""
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, list):
        for item in value:
            yield from texts(item, field)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield "", name
            yield from texts(item, name)
