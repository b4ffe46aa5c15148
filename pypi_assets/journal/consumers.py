"""Consumers: named readers of the journal, each with a stored position.

`delivering.py` and `kafka.py` combine a consumer with a sender, which posts to webhooks or produces to brokers.
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
    """A reader of the `wanted` records of the journal. `cursor` is after its last record, or None if it is new."""

    catalog: Catalog
    journal: Journal
    name: str
    wanted: RecordFilter = EVERY
    cursor: Cursor | None = None
    seen_at: float = 0.0

    def find(self) -> "JournalConsumer":
        """Load the position from the catalog and return self."""
        with self.catalog.read() as connection:
            known = find_consumer(connection, self.name)
        self.cursor = None if known is None else Cursor.parse(known.cursor)
        self.seen_at = 0.0 if known is None else known.seen_at
        return self

    @property
    def end(self) -> Cursor:
        """The position after all published records of the streams that it reads."""
        return Cursor.after_serial(self.journal.through(self.wanted.read_streams or tuple(RANKS)))

    @property
    def begin(self) -> Cursor:
        """The cursor, or the beginning of the journal if the consumer is new. Raises NoJournalError."""
        return self.cursor or beginning(self.journal, self.wanted)

    def has_more(self) -> bool:
        """Check whether there may be records after the cursor. Raises NoJournalError."""
        return self.end > self.begin

    def move(self, cursor: Cursor, letters: Sequence[NewLetter] = ()) -> bool:
        """Move to `cursor`, and store deliveries in the same transaction.

        Returns False and changes nothing if another process has moved the consumer since it was loaded.
        """
        expected = None if self.cursor is None else str(self.cursor)
        if not store_letters(self.catalog, self.name, letters, str(cursor), cursor.serial, expected):
            return False
        self.cursor = cursor
        return True
