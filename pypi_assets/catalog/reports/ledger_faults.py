"""Whether the ledger of serial ranges is sound."""

from sqlalchemy import Connection

from pypi_assets.catalog.ledger.range_ledger import faulty_ranges


def ledger_faults(connection: Connection, *, only_newest: bool = True) -> list[str]:
    """Gaps and overlaps of the ledger, or among its newest ranges, each described, in order. A sound one has none."""
    return [
        f"gap: no range holds the serials {before + 1} to {serials.start}"
        if serials.start > before
        else f"overlap: {serials} begins before {before}"
        for serials, before in faulty_ranges(connection, only_newest=only_newest)
    ]
