"""The catalog's index of the journal: what is written, what is in the chain, and what can be restored."""

from pathlib import Path

import pytest
from sqlalchemy import delete

from pypi_assets.catalog.ledger.range_ledger import RangeError, allocate_range, sealed_end
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.journal_segments import (
    ChainedSegment,
    SegmentFile,
    chain_segment,
    find_segment,
    last_chained,
    latest_generation,
    ranges_without_segment,
    record_segment,
    restore_segments,
    seal_range,
)
from pypi_assets.catalog.tables import journal_segments
from pypi_assets_tests.naming import naming
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


@pytest.fixture
def small(tmp_path: Path, database_url: str) -> SmallCatalog:
    return small_catalog(tmp_path, database_url)


def segment(start: int, end: int, name: str = "one", generation: int = 1) -> SegmentFile:
    return SegmentFile("observed", generation, SerialRange(start, end), name, 3, 300, 100, "0" * 64)


def test_a_segment_is_recorded_once(small: SmallCatalog) -> None:
    first = record_segment(small.catalog, segment(0, 10))
    assert first == segment(0, 10)
    assert record_segment(small.catalog, segment(0, 10, "another")) == first
    with small.catalog.read() as connection:
        assert find_segment(connection, "observed", 1, 0) == first
        assert find_segment(connection, "content", 1, 0) is None
        assert latest_generation(connection, "observed") == 1
        assert latest_generation(connection, "content") == 0
    small.catalog.close()


def test_ranges_that_are_complete_and_not_written_are_missing(small: SmallCatalog) -> None:
    first, second = small.complete(10), small.complete(20)
    with small.catalog.write() as connection:
        allocate_range(connection, 30, 0.0)
    record_segment(small.catalog, segment(0, 10))
    with small.catalog.read() as connection:
        assert ranges_without_segment(connection, "observed", 1) == [second]
        assert ranges_without_segment(connection, "content", 1) == [first, second]
    small.catalog.close()


def test_a_chain_that_was_lost_is_restored(small: SmallCatalog) -> None:
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
