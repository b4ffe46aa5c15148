"""Whether the ledger of serial ranges is sound."""

from sqlalchemy import Connection

from pypi_assets.catalog.ledger.range_ledger import CHECKED_RANGES, faulty_ranges


def ledger_faults(connection: Connection, newest: int | None = CHECKED_RANGES) -> list[str]:
    """Gaps and overlaps among the `newest` ranges of the ledger (None: all), each described, in order. Empty where it
    is sound."""
    return [
        f"gap: no range holds the serials {before + 1} to {serials.start}"
        if serials.start > before
        else f"overlap: {serials} begins before {before}"
        for serials, before in faulty_ranges(connection, newest)
    ]
