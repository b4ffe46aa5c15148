"""The contents of a dump: files that are live at its end, changes in its range, and changes too late for the previous
dump.
"""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import PlainTextResponse

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import UnknownRangeError, complete_serial
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.allocated_names import (
    UnknownVersionError,
    allocate_export,
    allocate_version,
    require_version,
)
from pypi_assets.catalog.publications.dump_columns import NO_LEAVES, DumpFile, DumpKind, Leaves, all_leaves
from pypi_assets.catalog.publications.dump_registry import (
    DumpError,
    DumpState,
    allocate_file_name,
    begin_commit,
    committed_dumps,
    exact_serial,
    full_dump_rows,
    mark_committed,
    open_full_dump,
    open_range_dump,
    range_dump_rows,
    record_file,
    recorded_files,
)
from pypi_assets.catalog.publications.restored_dumps import restore_dump
from pypi_assets.catalog.work.finished_workloads import retry_failed_reads
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import allocate_next_ranges, crawl_incremental
from pypi_assets.crawl.reading import read_workload
from pypi_assets.dumps.dump_format import as_dumped
from pypi_assets_tests.naming import naming
from pypi_assets_tests.served_index import ServedIndex
from pypi_assets_tests.small_catalog import small_catalog


def full_rows(catalog: Catalog, shards: int = 1) -> list[dict[str, object]]:
    dump = open_full_dump(catalog, shards)
    return [as_dumped(row) for shard in range(shards) for row in full_dump_rows(catalog, dump, shard)]


def follow(index: ServedIndex, catalog: Catalog) -> tuple[dict[str, dict[str, object]], dict[str, dict[str, object]]]:
    """Crawl the next range, and return the rows and the tombstones of its dump by filename."""
    [result] = crawl_incremental(index.crawler(catalog))
    rows = list(map(as_dumped, range_dump_rows(catalog, open_range_dump(catalog, result.serials))))
    assert rows == sorted(rows, key=lambda row: (row["normalized"], row["version"], row["filename"]))
    return (
        {str(row["filename"]): row for row in rows if not row["tombstone"]},
        {str(row["filename"]): row for row in rows if row["tombstone"]},
    )


def test_full_dump_holds_live_files_with_their_contents(index: ServedIndex, catalog: Catalog):
    wheel = index.wheel("Some.Thing", "1.0", requires_dist=["requests>=2; extra == 'net'"], requires_python=">=3.9")
    index.raw("broken-1.0-py3-none-any.whl", b"no zip")
    gone = index.sdist("gone", "1.0")
    index.history.remove_file(gone)
    index.history.yank("some-thing", "1.0", "bad")
    crawl_full(index.crawler(catalog))
    rows = {str(row["filename"]): row for row in full_rows(catalog)}
    assert set(rows) == {wheel, "broken-1.0-py3-none-any.whl"}
    row = rows[wheel]
    assert (row["project"], row["normalized"], row["version"]) == ("Some.Thing", "some-thing", "1.0")
    assert (row["yanked"], row["yanked_reason"], row["live_since"]) == (True, "bad", index.serial)
    assert (row["requires_dist"], row["requires_python"]) == (["requests>=2; extra == 'net'"], ">=3.9")
    assert row["modules"] == ["some_thing_module"]
    broken = rows["broken-1.0-py3-none-any.whl"]
    assert (broken["outcome"], broken["error_kind"], broken["modules"]) == ("error", "corrupt archive", None)


@pytest.mark.parametrize("shards", [1, 16, 256])
def test_shards_partition_rows_by_project(index: ServedIndex, catalog: Catalog, shards: int):
    for number in range(30):
        index.wheel(f"project{number}", "1.0")
    crawl_full(index.crawler(catalog))
    assert {row["filename"] for row in full_rows(catalog, shards)} == {name for name, _ in index.shown()}
    assert len(full_rows(catalog, shards)) == 30


def test_range_dump_holds_changes_and_tombstones(index: ServedIndex, catalog: Catalog):
    kept, removed, yanked = (index.wheel(name, "1.0") for name in ("kept", "removed", "yanked"))
    crawl_full(index.crawler(catalog))
    full_rows(catalog)
    index.history.remove_file(removed)
    index.history.yank("yanked", "1.0")
    added = index.wheel("kept", "2.0")
    short_lived = index.sdist("kept", "2.0")
    index.history.remove_file(short_lived)
    rows, tombstones = follow(index, catalog)
    assert set(rows) == {yanked, added}
    assert rows[yanked]["yanked"] is True
    assert set(tombstones) == {removed, short_lived}
    assert kept not in rows


def test_read_after_the_seal_is_published_by_the_next_dump(index: ServedIndex, catalog: Catalog):
    late = index.wheel("late", "1.0")
    index.faults = lambda request: PlainTextResponse("", 503) if late in request.url.path else None
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    [row] = full_rows(catalog)
    assert (row["outcome"], row["modules"]) == ("gave up", None)
    index.faults = None
    with catalog.write() as connection:
        retry_failed_reads(connection)
    read_workload(crawler, None)
    index.wheel("other", "1.0")
    rows, _ = follow(index, catalog)
    assert (rows[late]["outcome"], rows[late]["modules"]) == ("data", ["late_module"])


@pytest.mark.nightly
def test_correction_after_the_seal_is_published_by_the_next_dump(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    full_rows(catalog)
    hidden = index.wheel("one", "2.0")
    index.faults = lambda request: PlainTextResponse("", 404) if "/simple/one/" in request.url.path else None
    rows, tombstones = follow(index, catalog)
    assert (rows, set(tombstones)) == ({}, {"one-1.0-py3-none-any.whl"})
    index.faults = None
    index.sdist("one", "1.0")
    rows, tombstones = follow(index, catalog)
    assert set(rows) == {"one-1.0-py3-none-any.whl", hidden, "one-1.0.tar.gz"}
    assert tombstones == {}


def test_dump_is_rejected_before_a_complete_serial(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    index.wheel("one", "2.0")
    [serials] = allocate_next_ranges(crawler)
    with pytest.raises(DumpError, match=naming("4-6")):
        open_range_dump(catalog, serials)
    with pytest.raises(UnknownRangeError):
        open_range_dump(catalog, SerialRange(1, 2))
    with pytest.raises(DumpError, match=naming(256, 7)):
        open_full_dump(catalog, 7)


def test_full_dump_waits_until_the_catalog_is_exact(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    index.faults = lambda request: index.wheel("one", "2.0") and None if _once(index, request) else None
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    with pytest.raises(DumpError, match=naming(6, 4)):
        open_full_dump(catalog, 1)
    with catalog.read() as connection, pytest.raises(DumpError, match=naming(6, 4)):
        exact_serial(connection)
    crawl_incremental(crawler)
    with catalog.read() as connection:
        assert exact_serial(connection) == complete_serial(connection)
    assert {row["filename"] for row in full_rows(catalog)} == {name for name, _ in index.shown()}


def _once(index: ServedIndex, request) -> bool:
    if "/simple/one/" not in request.url.path:
        return False
    index.faults = None
    return True


def test_names_are_allocated_once_and_last_file_of_a_shard_counts(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawl_full(index.crawler(catalog))
    dump = open_full_dump(catalog, 1)
    assert dump.directory == f"0-{index.serial}"
    assert open_full_dump(catalog, 1) == dump  # a second caller joins the open dump
    names = [allocate_file_name(catalog, dump, 0) for _ in range(2)]
    assert names == ["python_distribution_data0000.json.gz", "python_distribution_data0000.2.json.gz"]
    with pytest.raises(DumpError, match=naming("0-4", 1)):
        begin_commit(catalog, dump)
    second = DumpFile(0, names[1], 1, 10, "b" * 64)
    record_file(catalog, dump, second)
    assert begin_commit(catalog, dump) == [second]
    record_file(catalog, dump, DumpFile(0, names[0], 1, 11, "a" * 64))  # a stalled writer resumes
    assert begin_commit(catalog, dump) == [second]
    mark_committed(catalog, dump)
    assert [one.directory for one in committed_dumps(catalog)] == [dump.directory]
    again = open_full_dump(catalog, 1)
    assert (again.directory, again.sequence) == (f"0-{index.serial}.2", dump.sequence + 1)


def test_versions_are_found_by_their_allocated_name(tmp_path: Path) -> None:
    catalog = small_catalog(tmp_path).catalog
    assert require_version(catalog, f"{allocate_version(catalog, 5):05d}").serial == 5
    for name in ("1", "00002", "nonsense", ""):
        with pytest.raises(UnknownVersionError):
            require_version(catalog, name)
    catalog.close()


def test_each_attempt_has_a_unique_name(tmp_path: Path, database_url: str) -> None:
    catalog = small_catalog(tmp_path, database_url).catalog
    assert [allocate_export(catalog, serial) for serial in (1350, 1350, 1400, 1350)] == [
        "0-1350",
        "0-1350.2",
        "0-1400",
        "0-1350.3",
    ]
    catalog.close()


NAMES = st.lists(st.text("0123456789-.", min_size=1, max_size=12), unique=True, max_size=12)


@given(NAMES, st.lists(st.integers(0, 12), max_size=4))
def test_combined_leaves_do_not_depend_on_grouping(names: list[str], cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(names)]
    parts = [Leaves.of(names[start:end]) for start, end in pairwise(edges)]
    whole = Leaves.of(names)
    assert all_leaves(parts) == whole
    assert sum(parts, NO_LEAVES) == whole
    assert (whole.count, len(whole.digest)) == (len(names), 64)


@given(NAMES, NAMES)
def test_leaves_are_equal_only_for_equal_names(some: list[str], others: list[str]) -> None:
    assert (Leaves.of(some) == Leaves.of(others)) == (set(some) == set(others))


def test_dump_registry_is_restored_from_manifests(index: ServedIndex, catalog: Catalog):
    index.wheel("one", "1.0")
    crawl_full(index.crawler(catalog))
    serials = SerialRange(0, index.serial)
    file = DumpFile(0, "python_distribution_data0000.json.gz", 1, 10, "a" * 64)
    for _ in range(2):
        restore_dump(
            catalog,
            kind=DumpKind.FULL,
            serials=serials,
            directory=serials.key,
            sequence=41,
            shards=1,
            inputs=[],
            files=[file],
            columns=["project", "filename"],
        )
    [dump] = committed_dumps(catalog)
    assert (dump.sequence, dump.state, recorded_files(catalog, dump)) == (41, DumpState.COMMITTED, [file])
    assert dump.columns == ("project", "filename")
    later = open_full_dump(catalog, 1)
    assert (later.directory, later.sequence) == (f"{serials.key}.2", 42)
