"""What is announced in the journal comes after what is sealed, and once for a place."""

from pathlib import Path

import pytest

from pypi_assets.catalog.ledger.epochs import Notice, NoticeKind, announce, note_change, notices_in
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reports.journal_records import observed_records
from pypi_assets_tests.journal.model_journal import seal_complete
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


@pytest.fixture
def small(tmp_path: Path, database_url: str) -> SmallCatalog:
    return small_catalog(tmp_path, database_url)


def notices(small: SmallCatalog, start: int, end: int) -> list[Notice]:
    with small.catalog.read() as connection:
        return list(notices_in(connection, SerialRange(start, end)))


def test_of_several_announcements_at_one_place_the_least_serial_counts(small: SmallCatalog) -> None:
    small.complete(10)
    seal_complete(small.catalog)
    with small.catalog.write() as connection:
        for serial in (7, 3, 5):
            announce(connection, NoticeKind.EPOCH_CHANGED, serial)
        announce(connection, NoticeKind.REPROCESSED, 4)
        announce(connection, NoticeKind.EPOCH_CHANGED, 15)
    assert notices(small, 0, 10) == []
    assert notices(small, 10, 20) == [
        Notice(11, NoticeKind.EPOCH_CHANGED, 3),
        Notice(11, NoticeKind.REPROCESSED, 4),
        Notice(15, NoticeKind.EPOCH_CHANGED, 15),
    ]
    small.catalog.close()


def test_a_changed_epoch_is_announced_and_what_is_published_stays(small: SmallCatalog) -> None:
    small.complete(10)
    with small.catalog.write() as connection:
        note_change(connection, 5)
        note_change(connection, 12)  # not complete: no answer was given there
    assert [one.of_serial for one in notices(small, 0, 20)] == [5]
    seal_complete(small.catalog)
    before = notices(small, 0, 10)
    with small.catalog.write() as connection:
        note_change(connection, 2)
    assert notices(small, 0, 10) == before
    small.complete(20)
    with small.catalog.read_once() as connection:
        [record] = observed_records(connection, SerialRange(10, 20))
    assert (record["kind"], record["serial"], record["of_serial"]) == ("epoch changed", 11, 2)
    small.catalog.close()
