"""The log of changes to files, from which dumps are written.

A change is logged at its serial. A late change, at a serial that a dump has sealed, is logged after the sealed serials.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from pypi_assets.catalog.database import insert_missing
from pypi_assets.catalog.tables import catalog_state, changes


def log_changes(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> int:
    """Log changes, given as rows of the table without a sequence. Return how many were not logged before.

    Dumps that are opened from now on contain a late change. A late change that is logged again also gets the newest
    dump sequence, since its data may differ. The caller has the state's shared lock, and opening a dump takes
    the exclusive lock.
    """
    new = insert_missing(connection, changes, rows)
    if late := [row for row in rows if row["logged_serial"] > max(row["serial"], 1)]:
        key = ("distribution_id", "serial", "cause", "logged_serial")
        sequence = select(catalog_state.c.next_dump_sequence).scalar_subquery()
        known = update(changes).where(*(changes.c[name] == bindparam(f"of_{name}") for name in key))
        connection.execute(
            known.values(dump_sequence=sequence), [{f"of_{name}": row[name] for name in key} for row in late]
        )
    return new
