"""Whether the ledger of serial ranges is sound."""

from sqlalchemy import Connection, func, select

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.tables import (
    serial_ranges,
)


def ledger_faults(connection: Connection) -> list[str]:
    """Gaps and overlaps of the ledger, each described, in order. Empty where it is sound."""
    furthest = func.max(serial_ranges.c.end).over(order_by=serial_ranges.c.start, rows=(None, -1))
    ranges = select(serial_ranges.c.start, serial_ranges.c.end, func.coalesce(furthest, 0).label("before")).subquery()
    faulty = select(ranges).where(ranges.c.start != ranges.c.before).order_by(ranges.c.start)
    return [
        f"gap: no range holds the serials {before + 1} to {start}"
        if start > before
        else f"overlap: {SerialRange(start, end)} begins before {before}"
        for start, end, before in connection.execute(faulty)
    ]
