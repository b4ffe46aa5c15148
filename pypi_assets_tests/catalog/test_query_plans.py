"""Every query that runs per project or per range finds its rows by an index, so that it stays quick on all of PyPI."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import event, text
from starlette.responses import PlainTextResponse

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.ledger.range_ledger import (
    complete_serial,
    last_allocated_at,
    last_allocated_serial,
    recent_ranges,
    unfinished_ranges,
)
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.events import has_at_least
from pypi_assets.catalog.observed.projects import find_project
from pypi_assets.catalog.publications.dump_registry import open_full_dump, open_range_dump, range_dump_rows
from pypi_assets.catalog.publications.dump_rows import project_rows_at, providing_releases, requiring_releases
from pypi_assets.catalog.publications.leveldb_versions import allocated_versions, last_allocated_version
from pypi_assets.catalog.reads.stored_extracts import records_older_than
from pypi_assets.catalog.reports.catalog_totals import about_known, work_done
from pypi_assets.catalog.reports.failures import failed_reads_of_range
from pypi_assets.catalog.reports.files_by_hash import files_with_sha256
from pypi_assets.catalog.reports.followed_index import read_followed
from pypi_assets.catalog.reports.live_files import live_files
from pypi_assets.catalog.reports.past_visits import compare_visits
from pypi_assets.catalog.reports.project_history import read_history
from pypi_assets.catalog.reports.range_changes import count_causes, first_changes
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.distributions.record import EXTRACTOR_VERSION
from pypi_assets.extracts.reprocess import reprocess, stored_records
from pypi_assets.extracts.unused_packs import clean_packs
from pypi_assets_tests.served_index import served_index

SMALL = {  # what a statement brings itself; and these grow with crawls, dumps, ranges, versions and workers
    "sent",
    "catalog_state",
    "serial_ranges",
    "full_crawls",
    "dumps",
    "dump_files",
    "leveldb_versions",
    "leveldb_builds",
    "leases",
    "scope_claims",
}


@contextmanager
def statements(catalog: Catalog) -> Iterator[dict[str, object]]:
    """The statements executed meanwhile, each with the parameters of its first execution."""
    found: dict[str, object] = {}

    def note(_connection, _cursor, statement, parameters, _context, executemany):
        if re.match(r"SELECT|UPDATE|DELETE", statement):
            found.setdefault(statement, parameters[0] if executemany else parameters)

    event.listen(catalog.engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(catalog.engine, "before_cursor_execute", note)


def scanned_tables(catalog: Catalog, statement: str, parameters: object) -> set[str]:
    """The tables that `statement` would read from one end to the other."""
    scan = r"SCAN (\w+)" if catalog.is_sqlite else r"Seq Scan on (\w+)"
    return set(re.findall(scan, query_plan(catalog, statement, parameters)))


def query_plan(catalog: Catalog, statement: str, parameters: object) -> str:
    with catalog.engine.connect() as connection:
        if not catalog.is_sqlite:
            connection.execute(text("SET LOCAL enable_seqscan = off"))
        explain = "EXPLAIN QUERY PLAN" if catalog.is_sqlite else "EXPLAIN"
        rows = connection.exec_driver_sql(f"{explain} {statement}", parameters).all()
        return "\n".join(row[-1] for row in rows)


def test_what_runs_per_project_or_per_range_uses_an_index(catalog: Catalog, tmp_path: Path):
    with served_index(tmp_path / "served") as index:
        for number in range(5):
            index.wheel(f"project{number}", "1.0")
        crawler = index.crawler(catalog, revisit_share=100.0)
        crawl_full(crawler)
        open_full_dump(catalog, 1)
        index.wheel("project1", "2.0")
        index.history.yank("project2", "1.0")
        index.history.remove_project("project3")
        index.raw("project4-2.0-py3-none-any.whl", b"no zip")
        index.wheel("project0", "2.0")
        index.faults = lambda request: PlainTextResponse("", 403) if "/simple/project0/" in request.url.path else None
        with statements(catalog) as found:
            [result] = crawl_incremental(crawler)
            list(range_dump_rows(catalog, open_range_dump(catalog, result.serials)))
            list(live_files(catalog, project="project1"))
            with catalog.read() as connection:
                assert failed_reads_of_range(connection, result.serials, 50)
            with catalog.read() as connection:
                project = find_project(connection, "project1")
                assert project
                assert read_history(connection, project)
                assert compare_visits(connection, project, 1, 2)
            with catalog.read() as connection:
                assert read_followed(connection).complete_serial == index.serial
                assert about_known(connection)
                assert work_done(connection)
                assert count_causes(connection, SerialRange(index.serial - 2, index.serial))
                assert first_changes(connection, SerialRange(index.serial - 2, index.serial), 10)
            assert list(providing_releases(catalog, index.serial, "project1_module"))
            assert list(requiring_releases(catalog, index.serial, "project1")) == []
            [row, *_] = project_rows_at(catalog, index.serial, "project1")
            assert files_with_sha256(catalog, index.serial, str(row["sha256"]))
            change_extractor_version(catalog)
            reprocess(catalog, index.storage, crawler.readers, project="project1")
            change_extractor_version(catalog)
            assert reprocess(catalog, index.storage, crawler.readers).changed == 6
            assert stored_records(catalog, index.storage, "project1-2.0-py3-none-any.whl")
            clean_packs(Catalog(catalog.engine, lambda: time.time() + 10 * 86_400), index.storage)
    assert len(found) > 40
    scans = {
        statement: scanned_tables(catalog, statement, parameters) - SMALL for statement, parameters in found.items()
    }
    assert {statement: tables for statement, tables in scans.items() if tables} == {}


def test_queries_of_each_sensor_tick_use_an_index(catalog: Catalog):
    """These tables grow by a row every ten minutes."""
    with statements(catalog) as found:
        with catalog.read() as connection:
            unfinished_ranges(connection)
            recent_ranges(connection, beyond=5)
            last_allocated_serial(connection)
            last_allocated_at(connection)
            has_at_least(connection, SerialRange(1, 5), 3)
            complete_serial(connection)
        allocated_versions(catalog, after=5)
        last_allocated_version(catalog)
    assert len(found) == 8
    assert [one for one, parameters in found.items() if scanned_tables(catalog, one, parameters)] == []


def change_extractor_version(catalog: Catalog) -> None:
    """A comment at its start hides it from `statements`, since it reads every row."""
    with catalog.write() as connection:
        connection.exec_driver_sql(
            "/* */ UPDATE distribution_data SET extractor_version = 0, record_digest = NULL, modules_id = NULL"
            " WHERE pack_id IS NOT NULL"
        )


def test_sqlite_finds_each_batch_of_a_reprocess_in_the_order_of_packs(tmp_path: Path):
    """PostgreSQL sorts so few rows in any case."""
    catalog = open_catalog(f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    with statements(catalog) as found, catalog.read() as connection:
        records_older_than(connection, EXTRACTOR_VERSION, None, 500)
    [(statement, parameters)] = found.items()
    plan = query_plan(catalog, statement, parameters)
    assert "((pack_id,pack_offset)>(?,?))" in plan
    assert "ORDER BY" not in plan
    catalog.close()


def test_a_scan_would_be_seen(catalog: Catalog):
    assert scanned_tables(catalog, "SELECT * FROM distributions WHERE size > 5", () if catalog.is_sqlite else {}) == {
        "distributions"
    }
