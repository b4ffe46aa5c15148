"""Readers of the journal: cursors, and both recent and old changes."""

import base64
from contextlib import suppress

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.catalog.reports.journal_format import JournalStream, Record
from pypi_assets.journal.change_types import with_time
from pypi_assets.journal.cursors import RANKS, Cursor, JournalCursorError
from pypi_assets.journal.filters import RecordFilter
from pypi_assets.journal.journal_errors import NoJournalError
from pypi_assets.journal.record_reader import Journal
from pypi_assets.journal.tailing import LOOK_BACK_SEGMENTS, look_back
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.examples import examples
from pypi_assets_tests.journal.written import records_of, simple_record, write_streams
from pypi_assets_tests.naming import naming
from pypi_assets_tests.service.published import Published

serials = st.lists(st.integers(1, 30), max_size=12).map(sorted)


def drawn(of_streams: list[list[int]]) -> dict[JournalStream, list[Record]]:
    return {
        stream: [simple_record(serial, "unknown", "demo") for serial in some]
        for stream, some in zip(JournalStream, of_streams, strict=True)
    }


def place(record: Record) -> tuple[int, int, int]:
    return record["serial"], RANKS[record["stream"]], record["ordinal"]


@settings(max_examples=examples(20))
@given(st.lists(serials, min_size=4, max_size=4), st.sets(st.integers(1, 29), max_size=4), st.integers(1, 30))
def test_reader_from_any_cursor_misses_nothing(of_streams: list[list[int]], cuts: set[int], through: int) -> None:
    journal = write_streams(open_storage("memory:///"), drawn(of_streams), 30, cuts=cuts)
    records = records_of(journal)
    assert len(records) == sum(map(len, of_streams))
    assert [place(item) for item in records] == sorted({place(item) for item in records})
    for number, record in enumerate(records):
        assert records_of(journal, Cursor.of(record)) == records[number + 1 :]
    assert records_of(journal, through=through) == [item for item in records if item["serial"] <= through]
    assert records_of(journal, streams=["content"]) == [item for item in records if item["stream"] == "content"]


def test_journal_that_begins_later_is_rejected_by_name(storage: Storage) -> None:
    journal = write_streams(storage, drawn([[12], [], [], []]), 20, start=10)
    assert journal.through(["index"]) == 20
    assert [record["serial"] for record in records_of(journal, Cursor.after_serial(10))] == [12]
    with pytest.raises(NoJournalError, match=naming(10, 9)):
        records_of(journal, Cursor.after_serial(9))


def test_missing_journal_error_names_the_remedy(storage: Storage) -> None:
    with pytest.raises(NoJournalError, match=naming("pypi-assets journal write")):
        Journal(storage).head("index")


def test_manifest_is_found_without_reading_all_manifests(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    write_streams(storage, {}, 200, cuts=range(1, 200))
    read: list[str] = []
    get = Storage.get
    monkeypatch.setattr(Storage, "get", lambda self, path: (read.append(path), get(self, path))[1])
    journal = Journal(storage)
    [last] = journal.segments(journal.head("index"), 199)
    assert last.number == 200
    assert len(read) < 12


cursors = st.builds(Cursor, st.integers(0, 10**17), st.integers(0, 3), st.integers(0, 10**17))


@given(cursors)
def test_cursors_round_trip_as_text(cursor: Cursor) -> None:
    assert Cursor.parse(str(cursor)) == cursor
    assert str(cursor).isascii()


@pytest.mark.nightly
@given(st.text(max_size=100))
def test_invalid_cursor_text_is_rejected(text: str) -> None:
    with suppress(JournalCursorError):
        assert str(Cursor.parse(text)).rstrip("=") == text.rstrip("=")


@pytest.mark.parametrize("place", ["2.1.1.1", "1.1.9.1", "1.-1.0.0", "1.1.1", ""])
def test_impossible_position_is_rejected(place: str) -> None:
    with pytest.raises(JournalCursorError):
        Cursor.parse(base64.urlsafe_b64encode(place.encode()).decode())


def test_records_are_ordered_by_serial_then_stream_then_ordinal() -> None:
    places = [(3, "index", 0), (3, "observed", 0), (3, "observed", 1), (3, "content", 0), (4, "index", 0)]
    found = [Cursor.of({"serial": serial, "stream": stream, "ordinal": n}) for serial, stream, n in places]
    assert found == sorted(found)
    assert found[3] < Cursor.after_serial(3) < found[4]


TIMED = [
    (b'{"at":0,"project":"a"}', b'{"at":0,"time":"1970-01-01T00:00:00Z","project":"a"}'),
    (b'{"at":null,"project":"a"}', b'{"at":null,"time":null,"project":"a"}'),
    (
        b'{"kind":"x","at":1,"project":"\\"at\\":2"}',
        b'{"kind":"x","at":1,"time":"1970-01-01T00:00:01Z","project":"\\"at\\":2"}',
    ),
    (b'{"kind":"x"}', b'{"kind":"x"}'),
]


def test_record_has_an_added_time(subtests: pytest.Subtests):
    for line, expected in TIMED:
        with subtests.test(line=line):
            assert with_time(line) == expected


EVERY = RecordFilter()


def serials_of(journal: Journal, wanted: RecordFilter = EVERY, **bounds: int) -> tuple[int, int, list[int]]:
    latest = look_back(journal, JournalStream.INDEX, wanted, **bounds)
    return latest.since, latest.through, [orjson.loads(line)["serial"] for line in latest.lines]


def test_complete_segments_are_read_from_the_end_within_the_bound(storage: Storage):
    records = [simple_record(serial, "add file", f"p{serial % 3}") for serial in range(1, 41)]
    journal = write_streams(storage, {JournalStream.INDEX: records}, 40, cuts=(10, 20, 30))
    size = journal.manifest(journal.head("index"), 4).content_bytes
    assert serials_of(journal) == (0, 40, list(range(1, 41)))
    assert serials_of(journal, most_bytes=size * 2 + 20) == (20, 40, list(range(21, 41)))
    assert serials_of(journal, most_bytes=size - 1) == (40, 40, [])
    wanted = RecordFilter.parse(projects=["p0"])
    assert serials_of(journal, wanted, most_bytes=size * 2 + 20) == (20, 40, [21, 24, 27, 30, 33, 36, 39])


def test_only_a_few_of_many_small_segments_are_read(storage: Storage):
    count = LOOK_BACK_SEGMENTS + 10
    records = [simple_record(serial, "add file", "demo") for serial in range(1, count + 1)]
    journal = write_streams(storage, {JournalStream.INDEX: records}, count, cuts=range(1, count))
    since, through, found = serials_of(journal)
    assert (since, through, len(found)) == (10, count, LOOK_BACK_SEGMENTS)


def test_open_segment_is_read_too(journaled: Published):
    journal = Journal(journaled.storage)
    assert journal.head("index").open is not None
    found = serials_of(journal)
    assert found == (0, journaled.index.serial, list(range(1, journaled.index.serial + 1)))
