"""Named consumers of the journal and their cursors, and the deliveries that webhooks have not received yet.

A consumer's cursor moves after the consumer has the records before it. A delivery (letter) is stored in the transaction
that moves its consumer's cursor, and deleted once it was received. So a killed process can cause a repeated delivery,
but never a lost one.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, exists, func, insert, or_, select, update

from pypi_assets.catalog.database import Catalog, insert_missing, upsert
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.tables import events, journal_consumers, journal_letters
from pypi_assets.errors import ExpectedError

LONGEST_NAME = 200


class ConsumerNameError(ExpectedError, ValueError):
    """A text is not a valid name of a consumer."""


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer of the journal. `cursor` is after the last record that it has, and `serial` is that record's serial.

    Times are unix seconds.
    """

    name: str
    cursor: str
    serial: int
    created_at: float
    seen_at: float


def check_name(name: str) -> None:
    """Raise ConsumerNameError if `name` is not a valid name of a consumer."""
    if not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
        raise ConsumerNameError(
            f"{name[:LONGEST_NAME]!r} is not a valid consumer name; use 1 to {LONGEST_NAME} printable characters"
        )


def find_consumer(connection: Connection, name: str) -> Consumer | None:
    """Return the consumer with this name; None if there is none."""
    row = connection.execute(select(journal_consumers).where(journal_consumers.c.name == name)).first()
    return None if row is None else Consumer(*row)


def all_consumers(connection: Connection) -> Iterator[Consumer]:
    """Yield all consumers, by name."""
    for row in connection.execute(select(journal_consumers).order_by(journal_consumers.c.name)):
        yield Consumer(*row)


def move_consumer(catalog: Catalog, name: str, cursor: str, serial: int) -> None:
    """Record that a consumer has all records up to `cursor`, which is at `serial`. A new consumer is created."""
    catalog.transact(lambda connection: put_consumer(connection, name, cursor, serial, catalog.clock()))


def put_consumer(connection: Connection, name: str, cursor: str, serial: int, now: float) -> None:
    """Move a consumer like `move_consumer`, within an open transaction."""
    row = {"name": name, "cursor": cursor, "serial": serial, "created_at": now, "seen_at": now}
    upsert(connection, journal_consumers, [row], key=("name",), update=("cursor", "serial", "seen_at"))


def advance_consumer(
    connection: Connection, name: str, expected: str | None, cursor: str, serial: int, now: float
) -> bool:
    """Move a consumer from the cursor `expected` (None: it is new) to `cursor`. Return False if it is elsewhere."""
    if expected is None:
        row = {"name": name, "cursor": cursor, "serial": serial, "created_at": now, "seen_at": now}
        return insert_missing(connection, journal_consumers, [row]) == 1
    c = journal_consumers.c
    moved = update(journal_consumers).where(c.name == name, c.cursor == expected)
    return connection.execute(moved.values(cursor=cursor, serial=serial, seen_at=now)).rowcount == 1


def forget_consumer(catalog: Catalog, name: str) -> bool:
    """Delete a consumer and its pending deliveries. Return whether anything was deleted."""

    def work(connection: Connection) -> bool:
        found = connection.execute(delete(journal_consumers).where(journal_consumers.c.name == name)).rowcount
        letters = connection.execute(delete(journal_letters).where(journal_letters.c.consumer == name)).rowcount
        return bool(found or letters)

    return catalog.transact(work)


_LONGEST_ERROR = 500


@dataclass(frozen=True, slots=True)
class Letter:
    """One delivery to `consumer`: the records of one project up to `cursor`.

    `project` is a normalized name, or empty for records without a project. `content` is a JSON list of records. A dead
    letter is not retried automatically. Times are unix seconds.
    """

    id: int
    consumer: str
    project: str
    cursor: str
    content: bytes
    attempts: int
    due_at: float
    error_text: str | None
    is_dead: bool


@dataclass(frozen=True, slots=True)
class NewLetter:
    """A letter to be stored."""

    project: str
    cursor: str
    content: bytes


def store_letters(
    catalog: Catalog, consumer: str, letters: Sequence[NewLetter], cursor: str, serial: int, expected: str | None
) -> bool:
    """Store letters in order, and move their consumer to `cursor`.

    Return False and store nothing if the consumer is not at `expected` any more (None: it is new): then another process
    has stored them.
    """
    now = catalog.clock()
    rows = [
        {
            "consumer": consumer,
            "project": one.project,
            "cursor": one.cursor,
            "content": zlib.compress(one.content),
            "due_at": now,
        }
        for one in letters
    ]

    def work(connection: Connection) -> bool:
        if not advance_consumer(connection, consumer, expected, cursor, serial, now):
            return False
        if rows:
            connection.execute(insert(journal_letters), rows)
        return True

    return catalog.transact(work)


def due_letters(connection: Connection, consumer: str, now: float, limit: int) -> list[Letter]:
    """Return the first letter of each project that is due and not dead, the oldest first.

    A letter without an attempt is always due: the clock can have been ahead when it was stored.
    """
    c, earlier = journal_letters.c, journal_letters.alias().c
    has_earlier = exists().where(
        earlier.consumer == c.consumer, earlier.project == c.project, earlier.id < c.id, earlier.is_dead.is_(False)
    )
    due = c.consumer == consumer, c.is_dead.is_(False), or_(c.due_at <= now, c.attempts == 0), ~has_earlier
    query = select(journal_letters).where(*due).order_by(c.due_at, c.id).limit(limit)
    return [_letter(row) for row in connection.execute(query)]


def count_letters(connection: Connection, consumer: str) -> int:
    """Return the number of pending letters, without dead ones."""
    c = journal_letters.c
    query = select(func.count()).select_from(journal_letters).where(c.consumer == consumer, c.is_dead.is_(False))
    return int(connection.scalar(query) or 0)


def delete_letter(catalog: Catalog, letter_id: int) -> None:
    """Delete a letter that was received."""
    c = journal_letters.c
    catalog.transact(lambda connection: connection.execute(delete(journal_letters).where(c.id == letter_id)))


def note_failure(catalog: Catalog, letter: Letter, due_at: float, error_text: str, *, is_dead: bool) -> None:
    """Record a failed attempt, and when the next one is due."""
    values = {
        "attempts": letter.attempts + 1,
        "due_at": due_at,
        "error_text": error_text[:_LONGEST_ERROR],
        "is_dead": is_dead,
    }
    statement = update(journal_letters).where(journal_letters.c.id == letter.id).values(values)
    catalog.transact(lambda connection: connection.execute(statement))


def letters_of(connection: Connection, consumer: str | None = None, *, dead_only: bool = False) -> Iterator[Letter]:
    """Yield the letters of a consumer, or of all (None), in the order in which they are delivered."""
    c = journal_letters.c
    query = select(journal_letters).order_by(c.consumer, c.id)
    query = query if consumer is None else query.where(c.consumer == consumer)
    query = query.where(c.is_dead) if dead_only else query
    for row in connection.execute(query):
        yield _letter(row)


def resend_letters(catalog: Catalog, consumer: str | None = None, letter_id: int | None = None) -> int:
    """Make dead letters due again: all of them, those of a consumer, or a single one. Return how many."""
    c = journal_letters.c
    statement = update(journal_letters).where(c.is_dead)
    statement = statement if consumer is None else statement.where(c.consumer == consumer)
    statement = statement if letter_id is None else statement.where(c.id == letter_id)
    statement = statement.values(is_dead=False, attempts=0, due_at=catalog.clock())
    return catalog.transact(lambda connection: connection.execute(statement).rowcount)


def _letter(row: Row[Any]) -> Letter:
    return Letter(
        row.id,
        row.consumer,
        row.project,
        row.cursor,
        zlib.decompress(row.content),
        row.attempts,
        row.due_at,
        row.error_text,
        bool(row.is_dead),
    )


UNSEEN_S = 30 * 86_400.0
"""After this time, a consumer that was not seen no longer delays the deletion of records."""


@dataclass(frozen=True, slots=True)
class ConsumerLag:
    """A consumer and its lag.

    `lag_serials` counts the serials between it and the complete serial. `lag_seconds` is the time since the first event
    in these serials: 0 if there is no lag, and None if no event is known. `waiting` and `dead` count the letters of a
    webhook.
    """

    name: str
    serial: int
    cursor: str
    created_at: float
    seen_at: float
    lag_serials: int
    lag_seconds: float | None
    waiting: int
    dead: int

    def is_living(self, now: float) -> bool:
        """Check whether records that the consumer has not read are kept for it."""
        return self.seen_at >= now - UNSEEN_S


def consumer_lags(connection: Connection, now: float) -> list[ConsumerLag]:
    """Return the lag of each consumer, by name. It takes three statements for each."""
    consumers = list(all_consumers(connection))
    if not consumers:
        return []
    complete = complete_serial(connection)
    return [
        ConsumerLag(
            name=one.name,
            serial=one.serial,
            cursor=one.cursor,
            created_at=one.created_at,
            seen_at=one.seen_at,
            lag_serials=max(complete - one.serial, 0),
            lag_seconds=_seconds(connection, one.serial, complete, now),
            waiting=_letters(connection, one.name, is_dead=False),
            dead=_letters(connection, one.name, is_dead=True),
        )
        for one in consumers
    ]


def _letters(connection: Connection, consumer: str, *, is_dead: bool) -> int:
    c = journal_letters.c
    query = select(func.count()).select_from(journal_letters).where(c.consumer == consumer, c.is_dead.is_(is_dead))
    return int(connection.scalar(query) or 0)


def _seconds(connection: Connection, serial: int, complete: int, now: float) -> float | None:
    if serial >= complete:
        return 0.0
    c = events.c
    lacking = select(c.timestamp).where(c.serial > serial, c.serial <= complete).order_by(c.serial).limit(1)
    began = connection.scalar(lacking)
    return None if began is None else max(now - float(began), 0.0)
