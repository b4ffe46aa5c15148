"""Faults of the ledger."""

import pytest
from sqlalchemy import delete, insert

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger import range_ledger
from pypi_assets.catalog.ledger.range_ledger import (
    RangeState,
    allocate_range,
)
from pypi_assets.catalog.reports.catalog_status import ledger_faults
from pypi_assets.catalog.tables import serial_ranges
from pypi_assets_tests.naming import mentions


def test_gaps_and_overlaps_are_found(opened: Catalog):
    with opened.write() as connection:
        allocate_range(connection, 20, 0.0)
        allocate_range(connection, 30, 0.0)
        connection.execute(delete(serial_ranges).where(serial_ranges.c.start == 10))
        [fault] = ledger_faults(connection)
        assert mentions(fault, "gap", 11, 20)
        connection.execute(
            insert(serial_ranges).values(start=5, end=25, state=RangeState.REQUESTED, sealed=False, requested_at=0.0)
        )
        assert any("overlap" in fault for fault in ledger_faults(connection))


def test_a_fault_is_looked_for_among_the_newest_ranges_unless_all_are_checked(
    opened: Catalog, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(range_ledger, "CHECKED_RANGES", 2)
    with opened.write() as connection:
        for end in (20, 30, 40, 50, 60):
            allocate_range(connection, end, 0.0)
        connection.execute(delete(serial_ranges).where(serial_ranges.c.start == 10))
        assert ledger_faults(connection) == []
        [fault] = ledger_faults(connection, only_newest=False)
        assert mentions(fault, "gap", 11, 20)
        connection.execute(delete(serial_ranges).where(serial_ranges.c.start == 30))
        [fault] = ledger_faults(connection)
        assert mentions(fault, "gap", 31, 40)
