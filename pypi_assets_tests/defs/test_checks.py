"""Checks that follow an asset fail if catalog and storage disagree."""

import pytest

from pypi_assets.catalog.publications.dump_columns import DumpKind
from pypi_assets.catalog.publications.dump_registry import committed_dumps
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.dumps.dump_writer import write_missing_ranges
from pypi_assets.leveldbs.versions.input_lists import input_list_path
from pypi_assets_tests.defs.conftest import Pipeline
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


def test_ledger_check_fails_on_a_gap(pipeline: Pipeline) -> None:
    pipeline.crawled()
    assert pipeline.check("ranges_without_gap_or_overlap").passed
    with pipeline.catalog.engine.connect() as connection:
        connection.exec_driver_sql("UPDATE serial_ranges SET start = 3")
        connection.commit()
    check = pipeline.check("ranges_without_gap_or_overlap")
    assert not check.passed
    assert unnamed(str(check.description), "1", "3") == []


def test_range_dump_check_fails_on_different_counts(index: ServedIndex, pipeline: Pipeline) -> None:
    pipeline.crawled()
    index.wheel("newcomer", "1.0")
    crawl_incremental(pipeline.crawler)
    list(write_missing_ranges(pipeline.catalog, pipeline.storage))
    assert pipeline.check("incremental_dump_rows_match_catalog").passed
    (dump,) = [one for one in committed_dumps(pipeline.catalog) if one.kind == DumpKind.INCREMENTAL]
    with pipeline.catalog.engine.connect() as connection:
        connection.exec_driver_sql(f"DELETE FROM changes WHERE logged_serial > {dump.serials.start}")
        connection.commit()
    check = pipeline.check("incremental_dump_rows_match_catalog")
    assert not check.passed
    assert unnamed(str(check.description), "1", "0") == []


@pytest.mark.nightly
def test_leveldb_check_fails_on_different_inputs(pipeline: Pipeline) -> None:
    pipeline.crawled()
    (name,) = pipeline.requested("new_leveldb_version")
    assert pipeline.run("update_leveldbs", name).success
    storage = pipeline.storage
    assert pipeline.check("modules_matches_input_list").passed
    path = input_list_path("modules", 1)
    storage.put(path, storage.get(path).replace(b"# serial: ", b"# serial: 9"))
    broken = pipeline.check("modules_matches_input_list")
    assert not broken.passed
    assert broken.description


def test_full_dump_check_fails_on_different_counts(pipeline: Pipeline) -> None:
    pipeline.crawled()
    assert pipeline.check("full_dump_rows_match_catalog").passed
    with pipeline.catalog.engine.connect() as connection:
        connection.exec_driver_sql("DELETE FROM live_intervals WHERE distribution_id = 1")
        connection.commit()
    check = pipeline.check("full_dump_rows_match_catalog")
    assert not check.passed
    assert unnamed(str(check.description), "4", "3") == []
