"""Statements that run per visit, range, tick, status or scrape find rows by index, to stay fast on all of PyPI.

The tests run the real work, and the database explains each executed statement. Scans of a whole growing table or index
are rejected. Tables that may be scanned are listed with a reason.
"""

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from starlette.responses import PlainTextResponse

from pypi_assets.catalog.database import Catalog, open_catalog, read_by_index
from pypi_assets.catalog.ledger.range_ledger import (
    last_allocated_at,
    recent_ranges,
)
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.events import has_at_least
from pypi_assets.catalog.observed.projects import find_project
from pypi_assets.catalog.publications.allocated_names import allocated_versions, last_allocated_version
from pypi_assets.catalog.publications.dump_registry import open_full_dump, open_range_dump, range_dump_rows
from pypi_assets.catalog.publications.dump_rows import (
    project_rows_at,
    providing_releases,
    requiring_releases,
    shard_at,
)
from pypi_assets.catalog.publications.journal_segments import all_takedowns
from pypi_assets.catalog.reads.stored_extracts import records_older_than
from pypi_assets.catalog.reports.catalog_status import about_known, read_followed, work_done
from pypi_assets.catalog.reports.failures import failed_reads_of_range
from pypi_assets.catalog.reports.live_files import files_with_sha256, live_files
from pypi_assets.catalog.reports.past_attempts import attempted_items
from pypi_assets.catalog.reports.past_pages import FilePlace, files_of_hash, is_hidden_now, page_at, past_files
from pypi_assets.catalog.reports.past_visits import compare_visits
from pypi_assets.catalog.reports.project_history import read_history
from pypi_assets.catalog.reports.project_list import projects_at
from pypi_assets.catalog.reports.range_states import count_causes, first_changes
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.retry_failures import retry
from pypi_assets.distributions.record import EXTRACTOR_VERSION
from pypi_assets.extracts.packs import clean_packs
from pypi_assets.extracts.reprocess import reprocess, stored_records
from pypi_assets_tests.growing_catalog import GrowingCatalog
from pypi_assets_tests.measured_work import statements
from pypi_assets_tests.served_index import served_index
from pypi_assets_tests.test_growth import kinds_of_work

SMALL = {
    "sent": "what a statement brings itself",
    "json_each": "the same",
    "unnest": "the same",
    "chain": "what a statement has found itself",
    "catalog_state": "one row",
    "counters": "folded after each 64 rows",
    "rates": "a row for each limit",
    "leases": "a row for each part that works alone",
    "lister_states": "a row for each lister",
    "workload_claims": "a row for each worker",
    "full_crawls": "some a year",
    "past_generations": "only of files that were overwritten on an index without serials",
    "scopes": "as many as people make",
    "scope_rulesets": "one for each change of rules by a person",
    "scope_marks": "what has changed since scopes looked last",
    "audits": "one a week",
    "journal_consumers": "as many as people name",
    "journal_takedowns": "as many as courts and people demand",
    "pruning_positions": "a row for each table",
}
"""The tables that may be read from one end to the other, and why they stay small. All others grow for years."""

SMALL_INDEXES = {
    "ix_visit_queue_todo": "what is left to visit",
    "ix_visit_queue_exhausted": "what was abandoned",
    "ix_visit_queue_claimed_by": "what workers do now",
    "ix_read_queue_claimed_by": "what workers do now",
    "ix_visit_statistics_failing": "the projects whose last visit failed",
    "ix_requested_visits_open": "the visits that people request and that are not made yet",
    "ix_serial_ranges_inexact": "the ranges that a list of projects brought and no event has explained yet",
    "ix_serial_ranges_unsealed": "the ranges that no dump has",
}
"""Partial indexes that may be read whole, and what they are limited to."""

ALLOWED = {
    r"SELECT anon_1.start, anon_1.\"end\", anon_1.\"before\" FROM": "the newest thousand ranges, by a LIMIT",
    r"SELECT projects.shard, count\(\*\) AS count_1 FROM read_queue JOIN": "what is left to read, once for each retry",
    r"SELECT events.name, .* FROM events WHERE events.kind = \S+ ORDER BY": "what is known now, once for each retry",
    r"SELECT distribution_data.distribution_id, .* AND distributions.filename = ": "one file that a person names",
}
"""Further statements that may read a table whole, by a pattern of their beginning, and why."""


def unbounded_reads(catalog: Catalog, statement: str, parameters: object) -> set[str]:
    """Return the tables, except small ones, of which `statement` would read all rows or all entries of an index."""
    found = _sqlite_scans if catalog.is_sqlite else _postgresql_scans
    reads = found(catalog, statement, parameters)
    return {table for table, index in reads if index not in SMALL_INDEXES} - SMALL.keys()


def _sqlite_scans(catalog: Catalog, statement: str, parameters: object) -> Iterator[tuple[str, str | None]]:
    plan = query_plan(catalog, statement, parameters)
    ends_early = "LIMIT" in statement and "WHERE" not in statement and "TEMP B-TREE" not in plan
    for table, index in re.findall(r"SCAN (?!(?:\d+ )?CONSTANT)(\w+)(?: USING (?:COVERING )?INDEX (\w+))?", plan):
        if not ends_early:
            yield table, index or None


def _postgresql_scans(catalog: Catalog, statement: str, parameters: object) -> Iterator[tuple[str, str | None]]:
    with catalog.engine.connect() as connection:
        for method in ("seqscan", "mergejoin", "hashjoin"):  # small tables invite these plans
            connection.execute(text(f"SET LOCAL enable_{method} = off"))
        for forgotten in _FORGOTTEN:
            connection.execute(text(forgotten))
        [(plan,)] = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", parameters).all()
        first_columns = {index: column for index, column in connection.execute(text(_FIRST_COLUMNS))}
    yield from _whole_reads(plan[0]["Plan"], first_columns, ends_early=False)


_FORGOTTEN = (
    """UPDATE pg_class SET relpages = 0, reltuples = -1
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i')""",
    "DELETE FROM pg_statistic WHERE starelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace)",
)
"""What the database has counted in the meantime, or not, must not decide. It is rolled back."""

_FIRST_COLUMNS = """
SELECT class.relname, attribute.attname FROM pg_class AS class
JOIN pg_attribute AS attribute ON attribute.attrelid = class.oid AND attribute.attnum = 1
WHERE class.relkind = 'i'
"""


def _whole_reads(
    node: Mapping[str, Any], first_columns: Mapping[str, str], *, ends_early: bool
) -> Iterator[tuple[str, str | None]]:
    """Yield the reads below a plan node without a condition on the first column of an index. Reads that a LIMIT ends
    early are skipped.
    """
    kind, index = node["Node Type"], node.get("Index Name")
    ends_early = kind == "Limit" or (ends_early and kind not in {"Sort", "Aggregate", "Unique", "WindowAgg"})
    if kind in {"Seq Scan", "Index Scan", "Index Only Scan", "Bitmap Index Scan"}:
        is_found = index is not None and first_columns[index] in re.findall(r"\w+", node.get("Index Cond", ""))
        if not is_found and not (ends_early and "Filter" not in node):
            yield node.get("Relation Name", index), index
    for below in node.get("Plans", []):
        yield from _whole_reads(below, first_columns, ends_early=ends_early)


def require_bounded(catalog: Catalog, found: Mapping[str, object]) -> None:
    reads = {
        " ".join(one.split()): tables
        for one, parameters in found.items()
        if (tables := unbounded_reads(catalog, one, parameters))
    }
    unknown = {one: tables for one, tables in reads.items() if not any(re.match(known, one) for known in ALLOWED)}
    assert unknown == {}


def query_plan(catalog: Catalog, statement: str, parameters: object) -> str:
    with catalog.engine.connect() as connection:
        explain = "EXPLAIN QUERY PLAN" if catalog.is_sqlite else "EXPLAIN"
        rows = connection.exec_driver_sql(f"{explain} {statement}", parameters).all()
        return "\n".join(row[-1] for row in rows)


@pytest.mark.nightly
def test_statements_per_project_or_range_use_an_index(catalog: Catalog, tmp_path: Path):
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
                assert all_takedowns(connection) == []
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
            with catalog.read() as connection:
                for subject in (row["filename"], row["sha256"], f"project1=={row['version']}", "project1"):
                    assert [item for item in attempted_items(connection, str(subject), 50) if item.attempts]
            for is_safe in (False, True):
                page = page_at(catalog, index.serial, "project2", is_safe=is_safe)
                assert page
                [file] = page.files
                assert file.yanked
            for place in (FilePlace(file.filename, file.sha256), FilePlace(file.filename, project="project2")):
                assert past_files(catalog, index.serial, place)
                assert not is_hidden_now(catalog, place)
            assert files_of_hash(catalog, FilePlace(sha256=file.sha256))
            assert "project2" in {one.normalized for one in projects_at(catalog, index.serial)}
            change_extractor_version(catalog)
            reprocess(catalog, index.storage, crawler.readers, project="project1")
            change_extractor_version(catalog)
            assert reprocess(catalog, index.storage, crawler.readers).changed == 6
            assert stored_records(catalog, index.storage, crawler.readers, "project1-2.0-py3-none-any.whl")
            clean_packs(Catalog(catalog.engine, lambda: time.time() + 10 * 86_400), index.storage)
    assert len(found) > 40
    require_bounded(catalog, found)


@pytest.mark.nightly
def test_statements_per_range_tick_status_or_scrape_scan_no_table(catalog: Catalog, tmp_path: Path):
    growing = GrowingCatalog(tmp_path, into=catalog)
    growing.grow(2)
    works = kinds_of_work(growing)
    with statements(catalog) as found:
        for work in works.values():
            work()
        retry(growing.follower.crawler)
        with catalog.read() as connection:
            recent_ranges(connection, beyond=5)
            last_allocated_at(connection)
            has_at_least(connection, SerialRange(1, 5), 3)
            failed_reads_of_range(connection, SerialRange(1, 5), 50)
        allocated_versions(catalog, after=5)
        last_allocated_version(catalog)
    assert len(found) > 150
    require_bounded(catalog, found)


def test_dump_rows_are_found_by_index_for_any_table_size(postgres_database_url: str):
    """PostgreSQL prefers to scan small tables, and large ones if it expects many rows."""
    catalog = open_catalog(postgres_database_url)
    query = shard_at(catalog, 1, 256, 17).compile(catalog.engine, compile_kwargs={"literal_binds": True})
    with catalog.read() as connection:
        read_by_index(connection)
        [(plan,)] = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {query}").all()
    catalog.close()
    kinds = Counter(_node_types(plan[0]["Plan"]))
    assert kinds["Nested Loop"] == 5
    assert kinds.keys().isdisjoint({"Seq Scan", "Hash Join", "Merge Join"})


def _node_types(node: Mapping[str, Any]) -> Iterator[str]:
    yield node["Node Type"]
    for below in node.get("Plans", []):
        yield from _node_types(below)


def change_extractor_version(catalog: Catalog) -> None:
    """Change the extractor version of packed files. The comment at the start hides the statement, which reads every
    row, from `statements`.
    """
    with catalog.write() as connection:
        connection.exec_driver_sql(
            "/* */ UPDATE distribution_data SET extractor_version = 0, record_digest = NULL, modules_id = NULL"
            " WHERE pack_id IS NOT NULL"
        )


def test_sqlite_finds_reprocess_batches_in_pack_order(tmp_path: Path):
    """PostgreSQL sorts so few rows in any case."""
    catalog = open_catalog(f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    with statements(catalog) as found, catalog.read() as connection:
        records_older_than(connection, EXTRACTOR_VERSION, None, 500)
    [(statement, parameters)] = found.items()
    plan = query_plan(catalog, statement, parameters)
    assert "((pack_id,pack_offset)>(?,?))" in plan
    assert "ORDER BY" not in plan
    catalog.close()


@pytest.mark.parametrize(
    ("statement", "is_seen"),
    [
        ("SELECT * FROM distributions WHERE size > 5", True),
        ("SELECT count(*) FROM distributions", True),
        ("SELECT id FROM distributions ORDER BY id LIMIT 5", False),
        ("SELECT id FROM distributions WHERE size > 5 ORDER BY id LIMIT 5", True),
        ("SELECT id FROM distributions ORDER BY size LIMIT 5", True),
        ("SELECT max(id) FROM distributions", False),
        ("SELECT count(*) FROM visit_queue WHERE state = 'gave up'", False),
        ("SELECT count(*) FROM visit_queue WHERE state = 'done'", True),
        ("SELECT * FROM catalog_state", False),
    ],
)
def test_whole_table_scan_is_detected(catalog: Catalog, statement: str, is_seen: bool):
    assert bool(unbounded_reads(catalog, statement, () if catalog.is_sqlite else {})) == is_seen
