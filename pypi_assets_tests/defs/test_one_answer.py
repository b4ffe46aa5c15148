"""Sensor, status, checks, metrics and publishing give one answer to whether a dataset needs a new version."""

import dagster as dg
import pytest

from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.dumps.dump_writer import write_missing_ranges, write_range
from pypi_assets.status import status_of
from pypi_assets_tests.defs.conftest import Pipeline
from pypi_assets_tests.served_index import ServedIndex

UPDATE = "run `pypi-assets leveldb update`"


def is_due(pipeline: Pipeline) -> dict[str, bool]:
    """Whether a new version of the datasets is due, by who answers."""
    tick = pipeline.tick("new_leveldb_version")
    status = status_of(pipeline.catalog, pipeline.settings)
    return {
        "sensor": isinstance(tick, dg.SensorResult) and bool(tick.run_requests),
        "status": any(UPDATE in line for line in status.to_do()),
        "check": not pipeline.check("modules_is_fresh").passed,
        "metrics": bool(status.due.counts["modules"]),
    }


def everywhere(answer: bool) -> dict[str, bool]:
    return dict.fromkeys(("sensor", "status", "check", "metrics"), answer)


@pytest.mark.nightly
def test_a_range_that_was_dumped_again_is_due_everywhere(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    index.wheel("newcomer", "1.0")
    [result] = crawl_incremental(pipeline.crawler)
    list(write_missing_ranges(pipeline.catalog, pipeline.storage))
    (key,) = pipeline.requested("new_leveldb_version")
    assert pipeline.run("update_leveldbs", key).success
    assert is_due(pipeline) == everywhere(False)
    write_range(pipeline.catalog, pipeline.storage, result.serials, again=True)
    assert is_due(pipeline) == everywhere(True)
    (key,) = pipeline.requested("new_leveldb_version")
    assert pipeline.run("update_leveldbs", key).success
    assert pipeline.metadata("modules_leveldb", key)["published"] is True
    assert is_due(pipeline) == everywhere(False)
