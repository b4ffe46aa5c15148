"""The records after any cursor, in their one order."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.catalog.reports.journal_format import Record, Stream
from pypi_assets.journal.cursors import RANKS, Cursor
from pypi_assets.journal.reading import Journal, NoJournalError
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.examples import examples
from pypi_assets_tests.journal.written import records_of, simple_record, write_streams
from pypi_assets_tests.naming import naming

serials = st.lists(st.integers(1, 30), max_size=12).map(sorted)


def drawn(of_streams: list[list[int]]) -> dict[Stream, list[Record]]:
    return {
        stream: [simple_record(serial, "unknown", "demo") for serial in some]
        for stream, some in zip(Stream, of_streams, strict=True)
    }


def place(record: Record) -> tuple[int, int, int]:
    return record["serial"], RANKS[record["stream"]], record["ordinal"]


@settings(max_examples=examples(20))
@given(st.lists(serials, min_size=3, max_size=3), st.sets(st.integers(1, 29), max_size=4), st.integers(1, 30))
def test_a_reader_that_goes_on_from_any_cursor_misses_nothing(
    of_streams: list[list[int]], cuts: set[int], through: int
) -> None:
    journal = write_streams(open_storage("memory:///"), drawn(of_streams), 30, cuts=cuts)
    found = records_of(journal)
    assert len(found) == sum(map(len, of_streams))
    assert [place(one) for one in found] == sorted({place(one) for one in found})
    for number, record in enumerate(found):
        assert records_of(journal, Cursor.of(record)) == found[number + 1 :]
    assert records_of(journal, through=through) == [one for one in found if one["serial"] <= through]
    assert records_of(journal, streams=["content"]) == [one for one in found if one["stream"] == "content"]


def test_a_journal_that_begins_later_is_refused_by_name(storage: Storage) -> None:
    journal = write_streams(storage, drawn([[12], [], []]), 20, start=10)
    assert journal.through(["index"]) == 20
    assert [one["serial"] for one in records_of(journal, Cursor.after_serial(10))] == [12]
    with pytest.raises(NoJournalError, match=naming(10, 9)):
        records_of(journal, Cursor.after_serial(9))


def test_without_a_journal_the_error_names_what_to_do(storage: Storage) -> None:
    with pytest.raises(NoJournalError, match=naming("pypi-assets journal write")):
        Journal(storage).head("index")


def test_manifests_are_found_without_reading_all_of_them(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    write_streams(storage, {}, 200, cuts=range(1, 200))
    read: list[str] = []
    get = Storage.get
    monkeypatch.setattr(Storage, "get", lambda self, path: (read.append(path), get(self, path))[1])
    journal = Journal(storage)
    [last] = journal.segments(journal.head("index"), 199)
    assert last.number == 200
    assert len(read) < 12
