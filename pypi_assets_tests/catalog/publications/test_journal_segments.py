"""The catalog's index of journal segments: which are written, which are in the chain, and which can be restored."""

import pytest
from sqlalchemy import delete

from pypi_assets.catalog.ledger.epochs import NoticeKind, notices_in
from pypi_assets.catalog.ledger.range_ledger import RangeError, allocate_range, sealed_end
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.journal_segments import (
    Takedown,
    add_takedown,
    all_takedowns,
    chain_segment,
    find_segment,
    finish_takedowns,
    last_chained,
    latest_generation,
    lift_takedown,
    newest_takedown,
    ranges_without_segment,
    record_segment,
    restore_segments,
    seal_range,
)
from pypi_assets.catalog.publications.written_segments import ChainedSegment, SegmentFile
from pypi_assets.catalog.tables import journal_segments
from pypi_assets_tests.naming import naming
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


def test_takedown_is_stored_finished_announced_and_lifted(tmp_path) -> None:
    small = small_catalog(tmp_path)
    small.complete(10)
    catalog = small.catalog
    first = add_takedown(catalog, Takedown(0, 0.0, "x", "demo", filename="demo-1.tar.gz", hides_name=True))
    second = add_takedown(catalog, Takedown(0, 0.0, "y", None, stream="index", serial=3, ordinal=0))
    file = SegmentFile("observed", 1, SerialRange(0, 10), "name", 1, 10, 5, "f" * 64)
    assert record_segment(catalog, file, first.id) is None
    assert record_segment(catalog, file, second.id) == file
    finish_takedowns(catalog, first.id, 7)
    with catalog.read() as connection:
        found = all_takedowns(connection)
        assert newest_takedown(connection) == second.id
        [notice] = notices_in(connection, SerialRange(0, 100))
    assert [(takedown.project, takedown.stream, takedown.done_at is None) for takedown in found] == [
        ("demo", None, False),
        (None, "index", True),
    ]
    assert (notice.kind, notice.of_serial) == (NoticeKind.TAKEN_DOWN, 7)
    assert lift_takedown(catalog, first.id)
    assert not lift_takedown(catalog, first.id)
    catalog.close()


def test_id_of_lifted_takedown_is_not_reused(tmp_path) -> None:
    small = small_catalog(tmp_path)
    small.complete(10)
    lifted = add_takedown(small.catalog, Takedown(0, 0.0, "x", "demo"))
    assert lift_takedown(small.catalog, lifted.id)
    added = add_takedown(small.catalog, Takedown(0, 0.0, "x", "other"))
    assert added.id > lifted.id
    file = SegmentFile("observed", 1, SerialRange(0, 10), "name", 1, 10, 5, "f" * 64)
    assert record_segment(small.catalog, file, lifted.id) is None  # its writer knew only the first takedown
    small.catalog.close()


def segment(start: int, end: int, name: str = "one", generation: int = 1) -> SegmentFile:
    return SegmentFile("observed", generation, SerialRange(start, end), name, 3, 300, 100, "0" * 64)


def test_segment_is_recorded_once(small: SmallCatalog) -> None:
    first = record_segment(small.catalog, segment(0, 10))
    assert first == segment(0, 10)
    assert record_segment(small.catalog, segment(0, 10, "another")) == first
    with small.catalog.read() as connection:
        assert find_segment(connection, "observed", 1, 0) == first
        assert find_segment(connection, "content", 1, 0) is None
        assert latest_generation(connection, "observed") == 1
        assert latest_generation(connection, "content") == 0
    small.catalog.close()


def test_complete_unwritten_ranges_are_missing(small: SmallCatalog) -> None:
    first, second = small.complete(10), small.complete(20)
    with small.catalog.write() as connection:
        allocate_range(connection, 30, 0.0)
    record_segment(small.catalog, segment(0, 10))
    with small.catalog.read() as connection:
        assert ranges_without_segment(connection, "observed", 1) == [second]
        assert ranges_without_segment(connection, "content", 1) == [first, second]
    small.catalog.close()


def test_lost_chain_is_restored(small: SmallCatalog) -> None:
    chain = [ChainedSegment(segment(0, 10), 1, "a" * 64), ChainedSegment(segment(10, 20), 2, "b" * 64)]
    for one in chain:
        record_segment(small.catalog, one.file)
        chain_segment(small.catalog, one)
    with small.catalog.write() as connection:
        assert last_chained(connection, "observed", 1) == chain[1]
        connection.execute(delete(journal_segments))
    for _ in range(2):
        restore_segments(small.catalog, chain)
    with small.catalog.read() as connection:
        assert last_chained(connection, "observed", 1) == chain[1]
        assert last_chained(connection, "observed", 2) is None
    small.catalog.close()


def test_only_a_complete_range_is_sealed(small: SmallCatalog) -> None:
    serials = small.complete(10)
    seal_range(small.catalog, serials)
    with small.catalog.write() as connection:
        assert sealed_end(connection) == 10
        allocate_range(connection, 20, 0.0)
    with pytest.raises(RangeError, match=naming("10-20")):
        seal_range(small.catalog, SerialRange(10, 20))
    small.catalog.close()
