"""Letters: what webhooks are to receive and have not yet, in order for each project.

A letter is stored in the transaction that moves its consumer on, and deleted once it was received. So what a kill
repeats is never lost.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, exists, func, insert, or_, select, update

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.journal_consumers import advance_consumer
from pypi_assets.catalog.tables import journal_letters

_LONGEST_ERROR = 500


@dataclass(frozen=True, slots=True)
class Letter:
    """What one delivery of `consumer` has: the records of one project (normalized; empty: of none) up to `cursor`.

    `content` is a list of records as JSON. A dead letter is not tried again by itself. Times are unix seconds.
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
    """A letter that is to be stored."""

    project: str
    cursor: str
    content: bytes


def store_letters(
    catalog: Catalog, consumer: str, letters: Sequence[NewLetter], cursor: str, serial: int, expected: str | None
) -> bool:
    """Stores letters in their order, and moves their consumer to `cursor`. Returns False, and stores nothing, where the
    consumer is not at `expected` any more (None: it is new): another process has stored them.
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
    """The first letter of each project, of those that are due and not dead, the oldest first.

    One that was not tried yet is due whatever its time: the clock can have been ahead when it was written.
    """
    of, earlier = journal_letters.c, journal_letters.alias().c
    has_earlier = exists().where(
        earlier.consumer == of.consumer, earlier.project == of.project, earlier.id < of.id, earlier.is_dead.is_(False)
    )
    due = of.consumer == consumer, of.is_dead.is_(False), or_(of.due_at <= now, of.attempts == 0), ~has_earlier
    query = select(journal_letters).where(*due).order_by(of.due_at, of.id).limit(limit)
    return [_letter(row) for row in connection.execute(query)]


def count_letters(connection: Connection, consumer: str) -> int:
    """How many wait, without those that are dead."""
    of = journal_letters.c
    query = select(func.count()).select_from(journal_letters).where(of.consumer == consumer, of.is_dead.is_(False))
    return int(connection.scalar(query) or 0)


def delete_letter(catalog: Catalog, letter_id: int) -> None:
    """Deletes a letter that was received."""
    of = journal_letters.c
    catalog.transact(lambda connection: connection.execute(delete(journal_letters).where(of.id == letter_id)))


def note_failure(catalog: Catalog, letter: Letter, due_at: float, error_text: str, *, is_dead: bool) -> None:
    """Records a failed attempt, and when the next one is due."""
    values = {
        "attempts": letter.attempts + 1,
        "due_at": due_at,
        "error_text": error_text[:_LONGEST_ERROR],
        "is_dead": is_dead,
    }
    statement = update(journal_letters).where(journal_letters.c.id == letter.id).values(values)
    catalog.transact(lambda connection: connection.execute(statement))


def letters_of(connection: Connection, consumer: str | None = None, *, dead_only: bool = False) -> Iterator[Letter]:
    """The letters of a consumer, or of all (None), in the order in which they are delivered."""
    of = journal_letters.c
    query = select(journal_letters).order_by(of.consumer, of.id)
    query = query if consumer is None else query.where(of.consumer == consumer)
    query = query.where(of.is_dead) if dead_only else query
    for row in connection.execute(query):
        yield _letter(row)


def resend_letters(catalog: Catalog, consumer: str | None = None, letter_id: int | None = None) -> int:
    """Makes dead letters due again: all, those of a consumer, or one. Returns how many."""
    of = journal_letters.c
    statement = update(journal_letters).where(of.is_dead)
    statement = statement if consumer is None else statement.where(of.consumer == consumer)
    statement = statement if letter_id is None else statement.where(of.id == letter_id)
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
