"""Lists of names and shared details that no file names any more.

They are left where a file is read again or reprocessed with another result, and where its bytes were replaced.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, Connection, Row, Table, exists, select

from pypi_assets.catalog.pruning.sweeps import Sweep
from pypi_assets.catalog.tables import metadata, module_roots, name_lists, required_names, shared_details


def unused_lists() -> Sweep:
    """The lists that no file has, with what finds them by a name."""
    return _unused(name_lists, module_roots.c.list_id, required_names.c.list_id)


def unused_details() -> Sweep:
    return _unused(shared_details)


def referring_columns(table: Table) -> list[Column[Any]]:
    """The columns of all tables that refer to the id of `table`."""
    return [
        key.parent
        for other in metadata.sorted_tables
        for key in sorted(other.foreign_keys, key=lambda key: str(key.parent.name))
        if key.column is table.c.id
    ]


def _unused(table: Table, *owned: Column[Any]) -> Sweep:
    """The rows of `table` to which nothing refers but `owned`."""
    owners = {column.table for column in owned}
    referring = [column for column in referring_columns(table) if column.table not in owners]
    is_unused = [~exists().where(column == table.c.id) for column in referring]

    def chosen(connection: Connection, rows: Sequence[Row[Any]]) -> Sequence[int]:
        ids = [row.id for row in rows]
        return connection.scalars(select(table.c.id).where(table.c.id.in_(ids), *is_unused)).all()

    return Sweep(table, chosen, owned=owned, locks=True)
