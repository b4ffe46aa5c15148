"""Rule 1: the ledger allocates ranges that never overlap and cover 0 to the complete serial without a gap."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.ledger.range_ledger import (
    RangeState,
    UnknownRangeError,
    allocate_range,
    complete_range,
    complete_serial,
    ledger,
    recent_ranges,
    require_range,
    seal,
    seals,
    unfinished_ranges,
)
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reports.catalog_status import ledger_faults
from pypi_assets.catalog.tables import serial_ranges
from pypi_assets_tests.naming import naming


def test_concurrent_allocations_leave_no_gap_or_overlap(opened: Catalog):
    def allocate(end: int) -> SerialRange | None:
        with opened.write() as connection:
            return allocate_range(connection, end, 0.0)

    with ThreadPoolExecutor(4) as pool:
        born = [serials for serials in pool.map(allocate, [20, 30, 20, 25, 40, 30, 35, 40]) if serials]
    assert len(set(born)) == len(born)
    with opened.read() as connection:
        assert ledger_faults(connection) == []
        assert max(entry.serials.end for entry in ledger(connection)) == 40


def test_database_rejects_second_range_with_same_start(opened: Catalog):
    row = {"start": 0, "end": 99, "state": RangeState.REQUESTED, "requested_at": 0.0}
    with pytest.raises(IntegrityError), opened.write() as connection:
        connection.execute(insert(serial_ranges).values(row))
    with pytest.raises(IntegrityError), opened.write() as connection:
        connection.execute(insert(serial_ranges).values(row | {"start": 99}))


def test_complete_serial_stops_at_first_incomplete_range(opened: Catalog):
    with opened.write() as connection:
        ranges = [SerialRange(0, 10)] + [allocate_range(connection, end, 0.0) for end in (20, 30, 40)]
        seen = []
        for number in (0, 2, 3, 1):
            complete_range(connection, ranges[number], 0.0)
            seen.append(complete_serial(connection))
    assert seen == [10, 10, 10, 40]


def test_recent_ranges_are_later_or_unfinished_in_order(opened: Catalog):
    with opened.write() as connection:
        ranges = [SerialRange(0, 10)] + [allocate_range(connection, end, 0.0) for end in (20, 30, 40, 50)]
        for number in (4, 0, 2, 3):
            complete_range(connection, ranges[number], 0.0)
        assert [entry.serials for entry in unfinished_ranges(connection)] == [ranges[1]]
        assert [entry.serials for entry in recent_ranges(connection, beyond=30)] == [ranges[1], *ranges[3:]]
        assert [entry.serials for entry in recent_ranges(connection, beyond=50)] == [ranges[1]]
        assert recent_ranges(connection, beyond=0) == ledger(connection)


def test_key_missing_from_the_ledger_is_rejected(opened: Catalog):
    with opened.read() as connection:
        assert require_range(connection, SerialRange(0, 10)).serials == SerialRange(0, 10)
        for key in ("0-9", "5-10", "10-20"):
            with pytest.raises(UnknownRangeError, match=key):
                require_range(connection, SerialRange.parse(key))


def test_empty_catalog_allocates_no_range(catalog: Catalog):
    with pytest.raises(CatalogError, match=naming("crawl full")), catalog.write() as connection:
        allocate_range(connection, 5, 0.0)


def test_changes_are_logged_where_a_future_dump_contains_them(opened: Catalog):
    with opened.write() as connection:
        ranges = [SerialRange(0, 10)] + [allocate_range(connection, end, 0.0) for end in (20, 30, 40)]
        assert seals(connection).logged_serials(15) == [15]
        seal(connection, ranges[0])
        assert seals(connection).logged_serials(7) == [11]
        assert seals(connection).logged_serials(11) == [11]
        seal(connection, ranges[2])  # range 20-30, while 10-20 is not sealed
        assert seals(connection).logged_serials(25) == [31]
        assert seals(connection).logged_serials(15) == [15, 31]
        assert seals(connection).logged_serials(31) == [31]
        seal(connection, SerialRange(0, 40))
        assert seals(connection).logged_serials(3) == [41]
        assert seals(connection).logged_serials(50) == [50]
