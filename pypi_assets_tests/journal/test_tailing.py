"""Tailing: start positions, bounded batches, and no record lost or out of order from any cursor."""

from itertools import pairwise

import orjson
import pytest

from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.journal.cursors import Cursor
from pypi_assets.journal.filters import RecordFilter
from pypi_assets.journal.journal_errors import NoJournalError, SinceError
from pypi_assets.journal.record_reader import Journal
from pypi_assets.journal.segment_files import Head, write_head
from pypi_assets.journal.tailing import Scan, Tail, beginning, cursor_since
from pypi_assets.storage.store import Storage
from pypi_assets_tests.journal.written import records_of, simple_record, write_streams
from pypi_assets_tests.naming import naming
from pypi_assets_tests.service.published import Published

EVERY = RecordFilter()


def three_streams(storage: Storage, serials: int = 60) -> Journal:
    """Write two index records for each serial, an observed record for every second and a content record for every
    third.
    """
    names = [f"project-{serial % 7}" for serial in range(serials + 1)]
    index = [simple_record(s, kind, names[s]) for s in range(1, serials + 1) for kind in ("add file", "ignored")]
    observed = [simple_record(s, "file added", names[s]) for s in range(2, serials + 1, 2)]
    content = [simple_record(s, "file read", names[s], modules=["one"]) for s in range(3, serials + 1, 3)]
    streams = {JournalStream.INDEX: index, JournalStream.OBSERVED: observed, JournalStream.CONTENT: content}
    return write_streams(storage, streams, serials, cuts=(10, 11, 40))


def read_all(tail: Tail, after: Cursor, wanted: RecordFilter, limit: int, **bounds: float) -> list[Cursor]:
    """Return the cursors of all records, read batch by batch."""
    cursors: list[Cursor] = []
    while True:
        batch = tail.batch(after, wanted, limit, **bounds)
        assert len(batch.lines) <= limit
        for cursor, line in batch.lines:
            record = orjson.loads(line)
            assert Cursor.of(record) == cursor
            assert wanted.wants(record)
            cursors.append(cursor)
        assert batch.cursor >= max([after, *cursors])
        after = batch.cursor
        if batch.is_last:
            return cursors


def test_tail_from_any_cursor_in_any_batches_is_complete_and_ordered(storage: Storage):
    journal = three_streams(storage)
    every = [Cursor.of(record) for record in records_of(journal)]
    assert len(every) == 60 * 2 + 30 + 20
    assert all(one < two for one, two in pairwise(every))
    for after in [Cursor(0, 0, 0), *every[::7], Cursor.after_serial(40), every[-1]]:
        for limit in (1, 3, 1_000):
            assert read_all(Tail(journal), after, EVERY, limit) == [cursor for cursor in every if cursor > after]


def test_rare_project_is_found_in_bounded_batches(storage: Storage):
    journal = three_streams(storage)
    wanted = RecordFilter.parse(projects=["project-3"], streams=["index", "content"])
    every = [
        Cursor.of(record)
        for record in records_of(journal)
        if record["normalized"] == "project-3" and record["stream"] != "observed"
    ]
    tail = Tail(journal)
    first = tail.batch(beginning(journal), wanted, 10, most_looked_at=3)
    assert (first.lines, first.is_last) == ([], False)
    assert first.cursor == Cursor(2, 0, 0)
    for most_looked_at in (1, 5, 1_000):
        assert read_all(tail, Cursor(0, 0, 0), wanted, 4, most_looked_at=most_looked_at) == every
    assert read_all(tail, Cursor(0, 0, 0), wanted, 4, most_seconds=-1) == every


def test_scan_is_resumed_at_its_position(storage: Storage):
    journal = three_streams(storage)
    opened = []
    tail = Tail(Journal(_Counting(storage, opened)))
    read_all(tail, Cursor(0, 0, 0), EVERY, 2)
    assert len(opened) == 16  # each segment of each stream once
    again = tail.batch(Cursor(0, 0, 0), EVERY, 2)  # a repeated request starts again
    assert [cursor for cursor, _ in again.lines] == [Cursor.of(record) for record in records_of(journal)[:2]]


@pytest.mark.parametrize("bounds", [{"most_looked_at": 3}, {"most_seconds": -1}])
def test_middle_of_a_large_segment_is_reached_in_bounded_batches(storage: Storage, bounds: dict[str, int]):
    """Records before the cursor are read too, which takes longer than a request may."""
    serials = 2_000
    index = [simple_record(serial, "add file", "demo") for serial in range(1, serials + 1)]
    write_streams(storage, {JournalStream.INDEX: index}, serials)
    opened: list[str] = []
    tail, after = Tail(Journal(_Counting(storage, opened))), Cursor(1_900, 0, 0)
    first = tail.batch(after, EVERY, 10, **bounds)
    assert (first.lines, first.cursor, first.is_last) == ([], after, False)
    assert read_all(tail, after, EVERY, 10, **bounds) == [Cursor(serial, 0, 0) for serial in range(1_901, serials + 1)]
    assert len(opened) == 4  # once for each stream, since the scan is resumed at its position


def test_fully_read_segment_is_not_opened(storage: Storage):
    three_streams(storage)
    opened: list[str] = []
    tail = Tail(Journal(_Counting(storage, opened)))
    assert tail.batch(Cursor.after_serial(60), EVERY, 10).lines == []
    assert opened == []  # a poll for new records costs little, even if the last segment is large
    assert len(tail.batch(Cursor.after_serial(40), EVERY, 1_000).lines) == 40 + 10 + 7
    assert len(opened) == 4


class _Counting:
    """A storage that records the opened segments."""

    def __init__(self, storage: Storage, opened: list[str]) -> None:
        self._storage, self._opened = storage, opened

    def __getattr__(self, name: str) -> object:
        return getattr(self._storage, name)

    def open(self, path: str) -> object:
        self._opened.append(path)
        return self._storage.open(path)


def test_end_is_after_all_published_records(storage: Storage):
    journal = three_streams(storage)
    batch = Tail(journal).batch(Cursor.after_serial(59), EVERY, 1_000)
    assert (batch.cursor, batch.through, batch.is_last) == (Cursor.after_serial(60), 60, True)
    later = Tail(journal).batch(Cursor.after_serial(99), EVERY, 1_000)
    assert (later.lines, later.cursor, later.is_last) == ([], Cursor.after_serial(99), True)
    nothing = RecordFilter.parse(modules=["one"], kinds=["file added"])
    assert Tail(journal).batch(Cursor.after_serial(5), nothing, 10).cursor == Cursor.after_serial(60)


def test_missing_journal_is_an_error_that_names_the_command(storage: Storage):
    with pytest.raises(NoJournalError, match=naming("pypi-assets journal write")):
        Tail(Journal(storage)).batch(Cursor(0, 0, 0), EVERY, 1)
    journal = write_streams(storage, {}, 20, start=10)
    with pytest.raises(NoJournalError, match=naming(10, 9)):
        Scan(journal, Cursor.after_serial(9), EVERY)
    assert beginning(journal) == Cursor.after_serial(10)


def test_reader_of_a_later_stream_begins_at_its_start(storage: Storage):
    observed = [simple_record(serial, "file added", "demo") for serial in (5, 15)]
    journal = write_streams(storage, {JournalStream.OBSERVED: observed}, 20)
    write_head(storage, Head(JournalStream.INDEX.value, 1, 10, 20, 0, None))
    announced = RecordFilter.parse(streams=["index"])
    assert beginning(journal) == beginning(journal, RecordFilter.parse(kinds=["file added"])) == Cursor.after_serial(0)
    assert beginning(journal, announced) == Cursor.after_serial(10)
    assert read_all(Tail(journal), beginning(journal, announced), announced, 10) == []
    with pytest.raises(NoJournalError, match=naming(10, 9)):  # an explicit position is not moved
        Scan(journal, Cursor.after_serial(9), announced)


def test_start_position_has_several_forms(journaled: Published):
    journal = Journal(journaled.storage)
    through = journal.head("index").through
    cursor = Cursor.of(records_of(journal)[5])
    assert cursor_since(str(cursor), journal, None) == cursor
    assert cursor_since("7", journal, None) == Cursor.after_serial(7)
    assert cursor_since("now", journal, None) == Cursor.after_serial(through)
    assert cursor_since("2020-01-01", journal, journaled.catalog) == beginning(journal) == Cursor.after_serial(0)
    at = {record["serial"]: record["at"] for record in records_of(journal, streams=("index",))}
    since = cursor_since("2026-03-03", journal, journaled.catalog)
    assert at[since.serial] <= 1_772_496_000 < at[since.serial + 1]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("2026-03-03", ["2026-03-03"]),
        ("2026-02-30", ["2026-02-30", 1350]),
        ("yesterday", ["yesterday", 1350]),
        ("", ["''", 1350]),
    ],
)
def test_invalid_start_position_error_names_the_valid_forms(storage: Storage, text: str, values: list[object]):
    with pytest.raises(SinceError, match=naming(*values)):
        cursor_since(text, three_streams(storage), None)


def test_start_in_the_future_is_rejected(journaled: Published):
    with pytest.raises(SinceError, match=naming("2999-01-01")):
        cursor_since("2999-01-01", Journal(journaled.storage), journaled.catalog)
