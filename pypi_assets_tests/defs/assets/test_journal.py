"""The journal as Dagster runs it: a range in its job, and ranges of before from a backfill."""

import pytest

from pypi_assets.journal.cursors import Cursor
from pypi_assets.journal.reading import Journal
from pypi_assets_tests.defs.conftest import Pipeline
from pypi_assets_tests.journal.written import records_of
from pypi_assets_tests.served_index import ServedIndex


@pytest.mark.nightly
def test_a_range_is_in_the_journal_with_what_was_there_before(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    baseline = index.serial
    added = index.wheel("newcomer", "1.0")
    (key,) = pipeline.requested("new_serial_range")
    assert pipeline.run("incremental_crawl", key).success
    numbers = pipeline.metadata("change_journal", key)
    assert numbers["dagster/partition_row_count"] == numbers["records: observed"] + numbers["records: content"] > 1
    journal = Journal(pipeline.storage)
    head = journal.head("observed")
    assert (head.number, head.start, head.through) == (2, 0, index.serial)
    records = records_of(journal, Cursor.after_serial(baseline))
    assert [one["kind"] for one in records if one.get("filename") == added] == ["add file", "file added", "file read"]
    before = {one["filename"] for one in records_of(journal) if one["kind"] == "file read"}
    assert len(before - {added}) == 4


@pytest.mark.nightly
def test_a_run_that_is_repeated_writes_nothing(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    index.wheel("newcomer", "1.0")
    (key,) = pipeline.requested("new_serial_range")
    assert pipeline.run("incremental_crawl", key).success
    written = {one.path: one.last_modified for one in pipeline.storage.list("journal")}
    assert pipeline.materialize(pipeline.asset("change_journal"), key).success
    assert {one.path: one.last_modified for one in pipeline.storage.list("journal")} == written
