"""Records and rows that no catalog would have written: a replay rejects each by name or inserts a valid value."""

import gzip
import random
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reports.journal_format import TAKEN_DOWN, JournalStream
from pypi_assets.dumps.dump_format import DumpDamagedError, read_rows
from pypi_assets.errors import ExpectedError
from pypi_assets.journal.cursors import Cursor
from pypi_assets.journal.record_reader import Journal
from pypi_assets.journal.replay import replay
from pypi_assets.journal.replayed_types import RecordError, decode_row
from pypi_assets.journal.segment_files import (
    Head,
    JournalDamagedError,
    SegmentManifest,
    write_head,
    write_lines,
    write_manifest,
)
from pypi_assets.journal.verification import verify_stream
from pypi_assets.storage.root_owner import require_owner
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.examples import examples
from pypi_assets_tests.journal import record_schema
from pypi_assets_tests.journal.replayed import answers_at
from pypi_assets_tests.journal.written import journaled_index
from pypi_assets_tests.naming import mentions, naming

INDEX_URL = "https://index.example.org/simple/"
Lines = dict[JournalStream, list[bytes]]
VALUES: list[Any] = [
    *(None, True, -1, 0, 2**31, 2**63 - 1, 2**63, 1.5),
    *("", "x", "\0", "a\0b", "\U0001f600", "x" * 70_000),
    *([], [None], ["x", 1], [[]], [[5, 3]], [[0, None], [1, 2]], [[1, 2, 3]], [["a", "b"]], {}, {"a": {"b": []}}),
]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    """Return the lines of a journal with a history and all kinds of records."""
    with journaled_index(tmp_path_factory.mktemp("written")) as index:
        journal = Journal(index.storage)
        return {
            stream: [line for _, line in journal.lines(Cursor.after_serial(0), [journal.head(stream.value)])]
            for stream in JournalStream
        }


def test_schema_of_records_has_the_declared_columns() -> None:
    schema = record_schema.SCHEMA.read_text(encoding="utf-8")
    assert record_schema.rendered(schema) == schema, "run python -m pypi_assets_tests.journal.record_schema"


def last_serial(lines: Lines) -> int:
    return max(orjson.loads(line)["serial"] for line in lines[JournalStream.INDEX])


def journal_of(lines: Lines, end: int | None = None) -> Storage:
    """Return a journal of these lines with valid hashes and chains, as a malicious operator could publish it."""
    storage = open_storage("memory:///")
    require_owner(storage, INDEX_URL)
    through = last_serial(lines) if end is None else end
    for stream, of_stream in lines.items():
        manifest = SegmentManifest.of(write_lines(storage, stream, 1, SerialRange(0, through), of_stream), 1, None)
        write_manifest(storage, manifest)
        write_head(storage, Head(stream.value, 1, 0, through, 1, manifest.digest))
    return storage


def with_changed(lines: Lines, stream: JournalStream, number: int, fields: dict[str, object]) -> Lines:
    """Return the lines with changed fields of one record. The value `...` removes a field."""
    record = orjson.loads(lines[stream][number]) | fields
    changed = orjson.dumps({name: value for name, value in record.items() if value is not ...})
    return lines | {stream: [*lines[stream][:number], changed, *lines[stream][number + 1 :]]}


def first(lines: Lines, stream: JournalStream, field: str) -> int:
    """Return the number of the first record with a field."""
    return next(number for number, line in enumerate(lines[stream]) if field in orjson.loads(line))


def test_written_journal_is_replayed(written: Lines, catalog: Catalog) -> None:
    done = replay(journal_of(written), catalog)
    assert done.records == sum(map(len, written.values()))
    assert answers_at(catalog, done.through)


@pytest.mark.parametrize(
    ("stream", "field", "value", "problem"),
    [
        (JournalStream.INDEX, "action", 5, "Expected `str`, got `int` - at `$.action`"),
        (JournalStream.INDEX, "action", "x" * 2_001, "length <= 2000"),
        (JournalStream.INDEX, "project", None, "None"),
        (JournalStream.INDEX, "normalized", "Another", "Another"),
        (JournalStream.INDEX, "at", None, ""),
        (JournalStream.VISITS, "visit", 0, "`$.visit`"),
        (JournalStream.VISITS, "statuses", [], "`$.statuses`"),
        (JournalStream.VISITS, "statuses", [{"at": 1.0, "status": "good"}], "good"),
        (JournalStream.VISITS, "changed", [["a", None]], "`$.changed"),
        (JournalStream.VISITS, "snapshot", "x" * 65, "`$.snapshot`"),
        (JournalStream.VISITS, "base", ..., "base"),
        (JournalStream.INDEX, "at", 2**63, "`$.at`"),
        (JournalStream.INDEX, "stream", "content", ""),
        (JournalStream.INDEX, "kind", "gap", "gap"),
        (JournalStream.OBSERVED, "filename", "x" * 513, "length <= 512"),
        (JournalStream.OBSERVED, "version", None, "Expected `str`, got `null`"),
        (JournalStream.OBSERVED, "generation", 0, "`int` >= 1"),
        (JournalStream.OBSERVED, "size", 2**63, "`$.size`"),
        (JournalStream.OBSERVED, "sha256", "0" * 65, "length <= 64"),
        (JournalStream.OBSERVED, "distribution_kind", "exe", "Invalid enum value 'exe'"),
        (JournalStream.OBSERVED, "live", [[9, 3]], "live"),
        (JournalStream.OBSERVED, "live", [[1, None], [3, 4]], "live"),
        (JournalStream.OBSERVED, "yanked", [[3]], "length 2"),
        (JournalStream.OBSERVED, "live", ..., "live"),
        (JournalStream.CONTENT, "outcome", "unheard of", "Invalid enum value"),
        (JournalStream.CONTENT, "extractor_version", -1, ">= 0"),
        (JournalStream.CONTENT, "stubs", None, "Expected `array`, got `null`"),
        (JournalStream.CONTENT, "summary", ..., "summary"),
        (JournalStream.CONTENT, "notes", ["x", 3], "`$.notes[1]`"),
    ],
)
def test_invalid_field_is_named_with_its_record(
    written: Lines, sqlite_catalog: Catalog, stream: JournalStream, field: str, value: object, problem: str
) -> None:
    number = first(written, stream, field)
    record = orjson.loads(written[stream][number])
    with pytest.raises(JournalDamagedError) as refused:
        replay(journal_of(with_changed(written, stream, number, {field: value})), sqlite_catalog)
    assert problem in str(refused.value)
    assert mentions(str(refused.value), record["ordinal"], stream.value, record["serial"])


@pytest.mark.parametrize("value", ["names", 3, {"a": 1}, ["a", 3], [["a"]]])
@pytest.mark.parametrize("field", ["requires_dist", "modules"])
def test_invalid_list_of_names_is_rejected(written: Lines, sqlite_catalog: Catalog, field: str, value: object) -> None:
    number = first(written, JournalStream.CONTENT, field)
    with pytest.raises(JournalDamagedError, match=naming("visits")):  # the last record that is stored with it
        replay(journal_of(with_changed(written, JournalStream.CONTENT, number, {field: value})), sqlite_catalog)


@pytest.mark.parametrize(
    ("stream", "field"),
    [
        (JournalStream.OBSERVED, "url"),
        (JournalStream.OBSERVED, "requires_python"),
        (JournalStream.CONTENT, "metadata_version"),
    ],
)
def test_null_character_in_a_text_is_replaced(
    written: Lines, catalog: Catalog, stream: JournalStream, field: str
) -> None:
    changed = written
    for number in (number for number, line in enumerate(written[stream]) if field in orjson.loads(line)):
        changed = with_changed(changed, stream, number, {field: "a\0b"})
    done = replay(journal_of(changed), catalog)
    shown = {str(row.get(field)) for row in answers_at(catalog, done.through) or ()}
    assert "a\ufffdb" in shown


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"{",
        b'{"serial":1,"of_serial":1,"ordinal":0,"stream":"index","kind":"x","at":' + b"[" * 100_000,
        b'{"serial":1,"of_serial":1,"ordinal":0,"stream":"index","kind":"\xff"}',
        b'{"serial":1,"of_serial":1,"ordinal":0,"stream":"index","kind":"\\ud800"}',
        b'{"serial":1,"of_serial":1,"ordinal":0,"stream":"index","kind":"ignored","serial":2}',
        b'{"serial":1,"of_serial":1,"ordinal":0}',
    ],
)
def test_line_that_is_not_a_record_is_rejected(written: Lines, sqlite_catalog: Catalog, line: bytes) -> None:
    lines = written | {JournalStream.INDEX: [line, *written[JournalStream.INDEX]]}
    with pytest.raises(JournalDamagedError):
        replay(journal_of(lines, last_serial(written)), sqlite_catalog)


def test_file_with_redacted_observed_records_is_skipped(written: Lines, catalog: Catalog) -> None:
    name = orjson.loads(written[JournalStream.OBSERVED][first(written, JournalStream.OBSERVED, "filename")])["filename"]
    taken = {"kind": TAKEN_DOWN, "project": None, "normalized": None, "reason": "a court", "taken_down_at": 1}
    lines = written
    for number, line in enumerate(written[JournalStream.OBSERVED]):
        record = orjson.loads(line)
        if record.get("filename") == name:
            others = dict.fromkeys(record.keys() - {"serial", "of_serial", "ordinal", "stream", "at"}, ...)
            lines = with_changed(lines, JournalStream.OBSERVED, number, others | taken)
    done = replay(journal_of(lines), catalog)
    shown = {row["filename"] for row in answers_at(catalog, done.through) or ()}
    assert shown
    assert name not in shown


def test_records_before_a_rejected_one_do_not_count(
    written: Lines, sqlite_catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pypi_assets.journal.replay.BATCH_RECORDS", 5)
    number = len(written[JournalStream.OBSERVED]) - 1
    with pytest.raises(JournalDamagedError):
        replay(journal_of(with_changed(written, JournalStream.OBSERVED, number, {"generation": 0})), sqlite_catalog)
    with sqlite_catalog.read() as connection:
        assert complete_serial(connection) == 0


class Replaying:
    """Replays changed lines into empty catalogs."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0

    def check(self, lines: Lines) -> None:
        """Assert that the lines are rejected with an expected error, or that the catalog answers at its end."""
        self._count += 1
        catalog = open_catalog(sqlite_database(self._folder / f"{self._count}.sqlite"))
        try:
            done = replay(journal_of(lines), catalog)
            assert answers_at(catalog, done.through) is not None
        except ExpectedError:
            with catalog.read() as connection:
                assert complete_serial(connection) == 0
        finally:
            catalog.close()


@pytest.fixture(scope="module")
def replaying(tmp_path_factory: pytest.TempPathFactory) -> Replaying:
    return Replaying(tmp_path_factory.mktemp("replaying"))


@settings(max_examples=examples(40))
@given(seed=st.integers(0, 2**32 - 1))
def test_any_record_is_rejected_by_name_or_inserted(written: Lines, replaying: Replaying, seed: int) -> None:
    drawn = random.Random(seed)
    lines = written
    for _ in range(drawn.choice((1, 1, 3))):
        stream = drawn.choice(list(JournalStream))
        number = drawn.randrange(len(lines[stream]))
        record = orjson.loads(lines[stream][number])
        names = [name for name in record if name not in {"serial", "ordinal"}]
        field = drawn.choice([*names, "until", "action", "problem", "filename", "outcome", "followed"])
        lines = with_changed(lines, stream, number, {field: drawn.choice([*VALUES, ...])})
    replaying.check(lines)


ROW: dict[str, Any] = {
    "project": "Demo",
    "normalized": "demo",
    "version": "1.0",
    "filename": "demo-1.0.tar.gz",
    "kind": "sdist",
    "live_since": 4,
    "yanked": False,
    "outcome": "pending",
}


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"project": "Another"}, "Another"),
        ({"live_since": None}, "Expected `int`, got `null`"),
        ({"yanked": "no"}, "Expected `bool`, got `str`"),
        ({"kind": "exe"}, "Invalid enum value"),
        ({"outcome": ...}, "outcome"),
        ({"size": 2**63}, "`$.size`"),
    ],
)
def test_invalid_column_of_a_dump_is_named_with_its_row(tmp_path: Path, changed: dict[str, Any], problem: str) -> None:
    row = {name: value for name, value in (ROW | changed).items() if value is not ...}
    good = orjson.dumps(ROW)
    assert decode_row(good) == ROW
    with pytest.raises(RecordError):
        decode_row(orjson.dumps(row))
    (tmp_path / "dump").write_bytes(gzip.compress(b"[\n" + good + b",\n" + orjson.dumps(row) + b"\n]\n"))
    with (tmp_path / "dump").open("rb") as stream, pytest.raises(DumpDamagedError) as refused:
        list(read_rows(stream, "the dump", decode_row))
    assert mentions(str(refused.value), "the dump", "row 1")
    assert problem in str(refused.value)


def test_journal_of_the_tests_is_valid(written: Lines) -> None:
    storage = journal_of(written)
    assert all(verify_stream(storage, stream).is_sound for stream in JournalStream)
