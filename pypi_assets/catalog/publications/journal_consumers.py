"""Readers of the journal that have a name: how far each has come.

A consumer's cursor moves after it has what comes before, so what a kill repeats is never lost.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, delete, select, update

from pypi_assets.catalog.database import Catalog, insert_missing, upsert
from pypi_assets.catalog.tables import journal_consumers, journal_letters
from pypi_assets.errors import ExpectedError

LONGEST_NAME = 200


class ConsumerNameError(ExpectedError, ValueError):
    """A text cannot be the name of a consumer."""


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer: `cursor` is after the last record that it has, and `serial` its serial. Times are unix seconds."""

    name: str
    cursor: str
    serial: int
    created_at: float
    seen_at: float


def check_name(name: str) -> None:
    """Raises ConsumerNameError unless `name` can be the name of a consumer."""
    if not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
        raise ConsumerNameError(
            f"{name[:LONGEST_NAME]!r} is no name of a consumer; it accepts 1 to {LONGEST_NAME} printable characters"
        )


def find_consumer(connection: Connection, name: str) -> Consumer | None:
    """The consumer of this name."""
    row = connection.execute(select(journal_consumers).where(journal_consumers.c.name == name)).first()
    return None if row is None else Consumer(*row)


def all_consumers(connection: Connection) -> Iterator[Consumer]:
    """All consumers, by name."""
    for row in connection.execute(select(journal_consumers).order_by(journal_consumers.c.name)):
        yield Consumer(*row)


def move_consumer(catalog: Catalog, name: str, cursor: str, serial: int) -> None:
    """Records that a consumer has all records up to `cursor`, which is of `serial`; it is created where it is new."""
    catalog.transact(lambda connection: put_consumer(connection, name, cursor, serial, catalog.clock()))


def put_consumer(connection: Connection, name: str, cursor: str, serial: int, now: float) -> None:
    """The same within a transaction."""
    row = {"name": name, "cursor": cursor, "serial": serial, "created_at": now, "seen_at": now}
    upsert(connection, journal_consumers, [row], key=("name",), update=("cursor", "serial", "seen_at"))


def advance_consumer(
    connection: Connection, name: str, expected: str | None, cursor: str, serial: int, now: float
) -> bool:
    """Moves a consumer from the cursor `expected` (None: it is new) to another; returns False where it is elsewhere."""
    if expected is None:
        row = {"name": name, "cursor": cursor, "serial": serial, "created_at": now, "seen_at": now}
        return insert_missing(connection, journal_consumers, [row]) == 1
    of = journal_consumers.c
    moved = update(journal_consumers).where(of.name == name, of.cursor == expected)
    return connection.execute(moved.values(cursor=cursor, serial=serial, seen_at=now)).rowcount == 1


def forget_consumer(catalog: Catalog, name: str) -> bool:
    """Forgets a consumer and what is to be delivered to it; returns whether there was one."""

    def work(connection: Connection) -> bool:
        found = connection.execute(delete(journal_consumers).where(journal_consumers.c.name == name)).rowcount
        letters = connection.execute(delete(journal_letters).where(journal_letters.c.consumer == name)).rowcount
        return bool(found or letters)

    return catalog.transact(work)
