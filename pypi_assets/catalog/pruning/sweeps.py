"""Sweeps: they look at the rows of one table in order of their ids, some in each transaction, and delete some of them.

A sweep ends after a number of rows, and the next one goes on where it ended. So neither the work of a run nor the time
for which a transaction locks anything depends on how long the catalog has lived.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import Column, Connection, Row, Table, delete, select

from pypi_assets.catalog.database import Catalog, upsert
from pypi_assets.catalog.tables import pruning_positions

ROWS_AT_A_TIME = 1_000
MOST_ROWS = 500_000
"""How many rows one sweep looks at: many times what the largest index adds to a table in a day."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """How one table is swept.

    `table` has the key `id`, and `columns` are read of each of its rows. `chosen` returns the ids to delete, of rows
    in order of their ids. With `locks`, it is called again once their rows are locked: other transactions that refer
    to a row lock it as well, and what they have locked is skipped. `owned` are columns of other tables that refer to
    `table`: their rows go with those that they refer to. A sweep ends at the last row, or where none of the rows of
    one transaction `is_old`, and the next one begins at the first row again.
    """

    table: Table
    chosen: Callable[[Connection, Sequence[Row[Any]]], Sequence[int]]
    columns: tuple[Column[Any], ...] = ()
    owned: tuple[Column[Any], ...] = ()
    is_old: Callable[[Row[Any]], bool] = lambda _row: True
    locks: bool = False

    @property
    def name(self) -> str:
        return str(self.table.name)


@dataclass(frozen=True, slots=True)
class _Step:
    """How many rows one transaction looked at and deleted. The next one begins after the id `position`; None: the sweep
    has ended."""

    seen: int
    deleted: int
    position: int | None


def sweep(catalog: Catalog, sweeping: Sweep, *, most: int = MOST_ROWS, dry_run: bool = False) -> int:
    """Deletes what is `chosen` of at most about `most` rows, and returns how many rows of the table went.

    In a `dry_run` nothing is deleted, and the next sweep begins where this one did.
    """
    with catalog.read() as connection:
        position: int | None = _position(connection, sweeping)
    deleted = seen = 0
    while position is not None and seen < most:
        after = position
        if dry_run:
            with catalog.read() as connection:
                step = _step(connection, sweeping, after, dry_run=True)
        else:
            step = catalog.transact(partial(_step, sweeping=sweeping, after=after))
        deleted, seen, position = deleted + step.deleted, seen + step.seen, step.position
    return deleted


def _position(connection: Connection, sweeping: Sweep) -> int:
    of_table = pruning_positions.c.table_name == sweeping.name
    return int(connection.scalar(select(pruning_positions.c.position).where(of_table)) or 0)


def _step(connection: Connection, sweeping: Sweep, after: int, *, dry_run: bool = False) -> _Step:
    """Looks at the next rows, deletes those that are chosen, and stores how far it came."""
    table = sweeping.table
    query = select(table.c.id, *sweeping.columns).where(table.c.id > after).order_by(table.c.id)
    rows = connection.execute(query.limit(ROWS_AT_A_TIME)).all()
    is_last = len(rows) < ROWS_AT_A_TIME or not any(sweeping.is_old(row) for row in rows)
    position = None if is_last else int(rows[-1].id)
    chosen = list(sweeping.chosen(connection, rows)) if rows else []
    if not dry_run:
        if chosen and sweeping.locks:
            chosen = _still_chosen(connection, sweeping, rows, chosen)
        if chosen:
            for column in sweeping.owned:
                connection.execute(delete(column.table).where(column.in_(chosen)))
            connection.execute(delete(table).where(table.c.id.in_(chosen)))
        row = {"table_name": sweeping.name, "position": position or 0}
        upsert(connection, pruning_positions, [row], key=("table_name",), update=("position",))
    return _Step(len(rows), len(chosen), position)


def _still_chosen(
    connection: Connection, sweeping: Sweep, rows: Sequence[Row[Any]], chosen: Sequence[int]
) -> list[int]:
    """Those of `chosen` that could be locked, and that nothing has referred to until then."""
    id_ = sweeping.table.c.id
    locked = set(connection.scalars(select(id_).where(id_.in_(chosen)).with_for_update(skip_locked=True)))
    return list(sweeping.chosen(connection, [row for row in rows if row.id in locked]))
