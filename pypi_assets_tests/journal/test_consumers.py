"""A named consumer of the journal knows whether there are more records, and moves only from its stored position."""

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.journal_deliveries import NewLetter, letters_of
from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.journal.consumers import JournalConsumer
from pypi_assets.journal.cursors import Cursor
from pypi_assets.storage.store import Storage
from pypi_assets_tests.journal.written import simple_record, write_streams


def test_only_one_of_two_processes_moves_a_consumer_and_stores_letters(catalog: Catalog, storage: Storage) -> None:
    records = [simple_record(serial, "add file", "demo") for serial in range(6, 10)]
    journal = write_streams(storage, {JournalStream.INDEX: records}, 9, start=5)
    one, other = (JournalConsumer(catalog, journal, "hook").find() for _ in range(2))
    assert (one.cursor, one.begin, one.end) == (None, Cursor.after_serial(5), Cursor.after_serial(9))
    middle, letter = Cursor(9, 0, 1), NewLetter("demo", "at 9", b"[]")
    assert one.move(middle, [letter])
    assert not other.move(Cursor.after_serial(9), [letter, letter])
    with catalog.read() as connection:
        assert [found.cursor for found in letters_of(connection)] == ["at 9"]
    assert other.find().cursor == one.cursor == middle
    assert other.has_more(), "its serial has more records"
    assert other.move(other.end)
    assert not other.has_more()
    assert not one.move(one.end), "it was found before the other one moved"
