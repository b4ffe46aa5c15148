"""Logs what happened to files, so that dumps have it, also where it was learnt late.

A change is logged at its serial, or after what dumps have sealed: then it was learnt late.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from pypi_assets.catalog.database import insert_missing
from pypi_assets.catalog.tables import catalog_state, changes


def log_changes(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> int:
    """Logs changes, as rows of the table without a sequence. Returns how many were not logged before.

    What was learnt late is known to the dumps that are opened from now on; also where it is logged again, since then a
    row of it is another. The caller has the state's shared lock, and opening a dump takes the exclusive one.
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
