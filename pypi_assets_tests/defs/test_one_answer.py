"""Sensor, status, checks, metrics and publishing agree on whether a dataset needs a new version."""

import dagster as dg
import pytest

from pypi_assets.catalog.ledger.epochs import NoticeKind, announce
from pypi_assets.catalog.ledger.range_ledger import lock_state
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.retry_failures import retry
from pypi_assets.dumps.dump_writer import write_missing_ranges, write_range
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.lookup.latest import open_latest
from pypi_assets.status import status_of
from pypi_assets_tests.crawl.failing_requests import fail
from pypi_assets_tests.defs.conftest import Pipeline
from pypi_assets_tests.served_index import ServedIndex

UPDATE = "run `pypi-assets leveldb update`"


def is_due(pipeline: Pipeline) -> dict[str, bool]:
    """Return whether a new version of the datasets is due, by source of the answer."""
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
def test_range_dumped_again_is_due_everywhere(index: ServedIndex, pipeline: Pipeline) -> None:
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


def requested(pipeline: Pipeline) -> str | None:
    """Return the job that is requested for late changes, or None."""
    result = pipeline.tick("late_changes")
    return result.job_name if isinstance(result, dg.RunRequest) else None


def late_is_due(pipeline: Pipeline) -> set[bool]:
    """Return the answers of sensor, status and metrics to whether late changes are due, as a set."""
    status = status_of(pipeline.catalog, pipeline.settings)
    return {
        requested(pipeline) == "dump_late_changes",
        any("run `pypi-assets dump incremental`" in line for line in status.to_do()),
        bool(status.due.counts["late_dump"]),
    }


def test_late_read_is_due_everywhere_without_index_events(index: ServedIndex, pipeline: Pipeline) -> None:
    index.wheel("newcomer", "1.0")
    index.faults = fail("newcomer-1.0")
    pipeline.crawled()
    (key,) = pipeline.requested("new_leveldb_version")
    assert pipeline.run("update_leveldbs", key).success
    assert late_is_due(pipeline) == {False}
    index.faults = None
    assert retry(pipeline.crawler).reads.data == 1
    assert late_is_due(pipeline) == {True}
    assert pipeline.run("dump_late_changes").success
    assert pipeline.metadata("late_dump")["dagster/row_count"] == 1
    assert late_is_due(pipeline) == {False}
    assert is_due(pipeline) == everywhere(True)
    (key,) = pipeline.requested("new_leveldb_version")
    assert pipeline.run("update_leveldbs", key).success
    assert is_due(pipeline) == everywhere(False)
    with open_latest("modules", pipeline.storage) as modules:
        assert [entry["project"] for entry in modules.module("newcomer_module").results] == ["newcomer"]
    assert pipeline.run("dump_late_changes").success  # there is nothing to write
    assert pipeline.metadata("late_dump")["dagster/row_count"] == 0


def test_reprocessed_records_are_due_everywhere(pipeline: Pipeline) -> None:
    pipeline.crawled()

    def answers() -> tuple[bool, bool, bool]:
        status = status_of(pipeline.catalog, pipeline.settings)
        told = any("run `pypi-assets dump redo`" in line for line in status.to_do())
        return requested(pipeline) == "redump", told, bool(status.due.counts["redump"])

    assert answers() == (False, False, False)
    with pipeline.catalog.write() as connection:
        lock_state(connection, exclusive=False)
        announce(connection, NoticeKind.REPROCESSED, 1)
    assert answers() == (True, True, True)
    full_dump(pipeline.catalog, pipeline.storage, 1)
    assert answers() == (False, False, False)
