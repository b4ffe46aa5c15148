"""Moves the named readers of the journal on, each from its own place.

A delivery is such a reader and a sender: `delivering.py` posts to webhooks, and `kafka.py` sends to brokers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.journal_deliveries import NewLetter, find_consumer, store_letters
from pypi_assets.journal.cursors import RANKS, Cursor
from pypi_assets.journal.filters import RecordFilter
from pypi_assets.journal.record_reader import Journal
from pypi_assets.journal.tailing import EVERY, beginning


@dataclass
class JournalConsumer:
    """A reader of what is `wanted` of the journal. `cursor` is after the last record that it has; None: it is new."""

    catalog: Catalog
    journal: Journal
    name: str
    wanted: RecordFilter = EVERY
    cursor: Cursor | None = None
    seen_at: float = 0.0

    def find(self) -> "JournalConsumer":
        """Return itself, at the place that the catalog has of it now."""
        with self.catalog.read() as connection:
            known = find_consumer(connection, self.name)
        self.cursor = None if known is None else Cursor.parse(known.cursor)
        self.seen_at = 0.0 if known is None else known.seen_at
        return self

    @property
    def end(self) -> Cursor:
        """Return the place after all published records of the streams that it reads."""
        return Cursor.after_serial(self.journal.through(self.wanted.read_streams or tuple(RANKS)))

    @property
    def begin(self) -> Cursor:
        """Return its cursor, or the beginning of the journal if it is new. Raises NoJournalError."""
        return self.cursor or beginning(self.journal, self.wanted)

    def has_more(self) -> bool:
        """Check whether records may follow that it does not have. Raises NoJournalError."""
        return self.end > self.begin

    def move(self, cursor: Cursor, letters: Sequence[NewLetter] = ()) -> bool:
        """Move on to `cursor`, and store letters in the same transaction.

        Returns False, and changes nothing, if another process has moved the consumer since it was found.
        """
        expected = None if self.cursor is None else str(self.cursor)
        if not store_letters(self.catalog, self.name, letters, str(cursor), cursor.serial, expected):
            return False
        self.cursor = cursor
        return True
