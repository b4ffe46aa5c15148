"""Counts of rows in large tables, updated in the transactions that change the rows, so that reading a count is cheap.

A count is the sum of the amounts stored under its name. Writers only append their changes, so they never wait for each
other. From time to time, a writer merges the appended rows of each name into one. The definition of each count belongs
in the module that changes the rows, not here.
"""

from collections import Counter
from collections.abc import Mapping

from sqlalchemy import Connection, delete, func, insert, select

from pypi_assets.catalog.database import at_a_time
from pypi_assets.catalog.tables import counters

_FOLDED_EVERY = 64
_FOLDED_AT_ONCE = 5_000


def add_counts(connection: Connection, changes: Mapping[str, int]) -> None:
    """Add to the counts with these names. Transactions that begin after this one has committed see the change.

    For example:

        add_counts(connection, {"live data": 1, "live pending": -1})
    """
    rows = [{"name": name, "amount": amount} for name, amount in sorted(changes.items()) if amount]
    if not rows:
        return
    ids = connection.scalars(insert(counters).returning(counters.c.id), rows).all()
    if any(id_ % _FOLDED_EVERY == 0 for id_ in ids):
        _fold(connection)


def read_counts(connection: Connection) -> dict[str, int]:
    """Return all counts that are not 0, by name."""
    sums = select(counters.c.name, func.sum(counters.c.amount)).group_by(counters.c.name)
    return {name: int(count) for name, count in connection.execute(sums) if count}


def _fold(connection: Connection) -> None:
    """Merge the rows of each name into one. Rows that other transactions have not committed yet are skipped."""
    rows = connection.execute(
        select(counters).order_by(counters.c.id).limit(_FOLDED_AT_ONCE).with_for_update(skip_locked=True)
    ).all()
    sums: Counter[str] = Counter()
    for row in rows:
        sums[row.name] += row.amount
    for ids in at_a_time(row.id for row in rows):
        connection.execute(delete(counters).where(counters.c.id.in_(ids)))
    folded = [{"name": name, "amount": amount} for name, amount in sorted(sums.items()) if amount]
    if folded:
        connection.execute(insert(counters), folded)
