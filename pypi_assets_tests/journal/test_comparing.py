"""Two operators that follow one index have the same index stream, and equal records of equal files."""

import threading
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reports.journal_format import JournalStream, Record
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import allocate_next_ranges, crawl_incremental, crawl_range, open_ranges
from pypi_assets.index.errors import TransientError
from pypi_assets.journal import publishing
from pypi_assets.journal.comparing import as_json, compare_stream, open_other
from pypi_assets.journal.publishing import write_missing
from pypi_assets.journal.record_reader import Journal
from pypi_assets.journal.segment_files import (
    Head,
    JournalDamagedError,
    SegmentManifest,
    head_path,
    read_head,
    write_head,
    write_lines,
    write_manifest,
)
from pypi_assets.journal.verification import verify_stream
from pypi_assets.storage.store import StorageError, open_storage
from pypi_assets_tests.crawl.followers import Follower, SilentIndex, add, empty_catalog, operations
from pypi_assets_tests.crawl.model_following import draining_in_place
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.examples import examples
from pypi_assets_tests.journal.written import simple_record, write_streams
from pypi_assets_tests.mirror.static_files import static_files
from pypi_assets_tests.naming import naming


@pytest.fixture(scope="module")
def two_catalogs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from pypi_assets.catalog.database import open_catalog

    folder = tmp_path_factory.mktemp("operators")
    catalogs = [open_catalog(sqlite_database(folder / f"{name}.sqlite")) for name in ("first", "second")]
    yield catalogs
    for catalog in catalogs:
        catalog.close()


@pytest.mark.nightly
@pytest.mark.parametrize("begins_late", [False, True])
@settings(max_examples=examples(2))
@given(happening=st.lists(operations, min_size=5, max_size=25), seed=st.integers(0, 2**16))
def test_two_crawls_of_one_history_have_equal_journals(
    two_catalogs: list[Catalog], begins_late: bool, happening: list[Any], seed: int
) -> None:
    """The crawls differ in ranges, order, faults and start."""
    random = Random(seed)
    for catalog in two_catalogs:
        empty_catalog(catalog)
    index = SilentIndex()
    first, second = (Follower(index, catalog) for catalog in two_catalogs)
    begins_at = random.randrange(len(happening)) if begins_late else 0
    with draining_in_place(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(publishing, "GRID", 5)
        add(index, "first")
        crawl_full(first.crawler)
        for number, operation in enumerate(happening):
            index.happen(*operation)
            if number == begins_at:
                crawl_full(second.crawler)
            if random.random() < 0.3:
                crawl_incremental(first.crawler)
            if random.random() < 0.3 and number > begins_at:
                index.failing = 0.2
                with suppress(TransientError):
                    allocate_next_ranges(second.crawler)
                    for serials in reversed(open_ranges(second.crawler)):
                        crawl_range(second.crawler, serials)
                index.failing = 0.0
        add(index, "last", str(seed))
        journals = []
        for one in (first, second):
            one.now += 200_000.0
            crawl_incremental(one.crawler)
            storage = open_storage("memory:///")
            list(write_missing(one.catalog, storage))
            journals.append(Journal(storage))
    of_index = compare_stream(*journals, JournalStream.INDEX)
    assert of_index.first is None
    assert of_index.equal == index.serial - of_index.start
    assert of_index.end == index.serial
    of_content = compare_stream(*journals, JournalStream.CONTENT)
    assert (of_content.differing, of_content.first) == (0, None)
    live = {name for name, _ in index.shown[index.serial] if not name.endswith(".exe")}
    assert of_content.equal >= 1 or not live


def journals_of(
    ours: dict[JournalStream, list[Record]], theirs: dict[JournalStream, list[Record]]
) -> tuple[Journal, Journal]:
    first = write_streams(open_storage("memory:///"), ours, 30, cuts=(10,))
    return first, write_streams(open_storage("memory:///"), theirs, 30, start=5, cuts=(20,))


def file_record(serial: int, kind: str, filename: str, **fields: Any) -> Record:
    observed = {"sha256": filename, "live": [[serial, None]], "yanked": []}
    return simple_record(serial, kind, "demo", version="1.0", filename=filename, **(observed | fields))


def test_first_difference_of_the_index_stream_is_named() -> None:
    ours = [simple_record(serial, "unknown", "demo") for serial in range(1, 31)]
    theirs = [dict(record) for record in ours[5:]]
    comparison = compare_stream(
        *journals_of({JournalStream.INDEX: ours}, {JournalStream.INDEX: theirs}), JournalStream.INDEX
    )
    assert (comparison.start, comparison.end, comparison.equal, comparison.first) == (5, 30, 25, None)
    theirs[10]["project"] = "other"
    comparison = compare_stream(
        *journals_of({JournalStream.INDEX: ours}, {JournalStream.INDEX: theirs}), JournalStream.INDEX
    )
    assert comparison.first is not None
    assert (comparison.equal, comparison.first.serial, comparison.first.fields) == (10, 16, ("project",))
    del theirs[10]
    comparison = compare_stream(
        *journals_of({JournalStream.INDEX: ours}, {JournalStream.INDEX: theirs}), JournalStream.INDEX
    )
    assert comparison.first is not None
    assert (comparison.first.serial, comparison.first.theirs) == (16, None)
    assert comparison.first.ours is not None
    assert as_json(comparison)["first"]["serial"] == 16


def test_records_of_equal_files_are_compared_at_any_position() -> None:
    read = {"outcome": "data", "extractor_version": 4, "modules": ["demo"], "live": None}
    ours = [file_record(8, "file read", "one", **read), file_record(9, "file read", "two", **read)]
    theirs = [
        file_record(12, "file read", "one", **read) | {"cause": "read late", "project": "Demo"},
        file_record(13, "file read", "two", **read | {"extractor_version": 5, "modules": ["newer"]}),
    ]
    comparison = compare_stream(
        *journals_of({JournalStream.CONTENT: ours}, {JournalStream.CONTENT: theirs}), JournalStream.CONTENT
    )
    assert (comparison.equal, comparison.differing, comparison.only_ours, comparison.only_theirs) == (1, 0, 1, 1)
    assert comparison.first is None
    theirs[0]["modules"] = ["forged"]
    comparison = compare_stream(
        *journals_of({JournalStream.CONTENT: ours}, {JournalStream.CONTENT: theirs}), JournalStream.CONTENT
    )
    assert comparison.first is not None
    assert (comparison.first.filename, comparison.first.fields, comparison.differing) == ("one", ("modules",), 1)


def test_first_file_with_different_observations_is_explained() -> None:
    ours = [file_record(8, "file added", "one"), file_record(9, "file added", "two")]
    theirs = [
        file_record(11, "file added", "one") | {"live": [[8, None]]},
        file_record(12, "file corrected", "two") | {"live": [[9, 12]]},
    ]
    comparison = compare_stream(
        *journals_of({JournalStream.OBSERVED: ours}, {JournalStream.OBSERVED: theirs}), JournalStream.OBSERVED
    )
    assert (comparison.equal, comparison.differing) == (1, 1)
    assert comparison.first is not None
    assert (comparison.first.filename, comparison.first.fields) == ("two", ("live",))
    assert comparison.first.ours is not None
    assert comparison.first.theirs is not None
    assert (comparison.first.ours["serial"], comparison.first.theirs["serial"]) == (9, 12)


def test_records_before_the_later_start_are_ignored() -> None:
    ours = [file_record(3, "file added", "one"), file_record(8, "file yanked", "one", live=[[3, None]])]
    theirs = [file_record(8, "file yanked", "one", live=[[5, None]])]
    comparison = compare_stream(
        *journals_of({JournalStream.OBSERVED: ours}, {JournalStream.OBSERVED: theirs}), JournalStream.OBSERVED
    )
    assert (comparison.equal, comparison.first) == (1, None)


def with_line(stream: JournalStream, line: bytes) -> Journal:
    """Return a journal with one line in a stream."""
    journal = write_streams(open_storage("memory:///"), {}, 20)
    storage = journal.storage
    manifest = SegmentManifest.of(write_lines(storage, stream, 1, SerialRange(0, 20), [line]), 1, None)
    write_manifest(storage, manifest)
    write_head(storage, Head(stream.value, 1, 0, 20, 1, manifest.digest))
    return journal


FILE = '"filename":"x","normalized":"x","version":"1","sha256":"a","yanked":[]'


@pytest.mark.parametrize(
    ("stream", "rest"),
    [
        *((stream, "no JSON") for stream in JournalStream),
        (JournalStream.OBSERVED, '"kind":"file added","filename":"x"'),
        (JournalStream.OBSERVED, f'"kind":"file added",{FILE},"live":5'),
        (JournalStream.OBSERVED, f'"kind":"file added",{FILE},"live":[["a","b"]]'),
        (JournalStream.CONTENT, '"kind":"file read"'),
        (
            JournalStream.CONTENT,
            '"kind":"file read","filename":"x","sha256":"a","extractor_version":' + "[" * 300 + "]" * 300,
        ),
    ],
)
def test_invalid_record_of_the_other_journal_is_named(stream: JournalStream, rest: str) -> None:
    begin = f'{{"serial":7,"of_serial":7,"ordinal":0,"stream":"{stream.value}",'
    ours, theirs = with_line(stream, f'{begin}"kind":"x"}}'.encode()), with_line(stream, f"{begin}{rest}}}".encode())
    with pytest.raises(JournalDamagedError, match=naming(0, stream.value, 7)):
        compare_stream(ours, theirs, stream)


@pytest.mark.parametrize("number", ["1" * 19, "1" * 5_000])
def test_out_of_range_number_is_named(number: str) -> None:
    line = f'{{"serial":{number},"of_serial":1,"ordinal":0,"stream":"index","kind":"x"}}'.encode()
    with pytest.raises(JournalDamagedError):
        compare_stream(with_line(JournalStream.INDEX, line), with_line(JournalStream.INDEX, line), JournalStream.INDEX)
    fault = verify_stream(with_line(JournalStream.INDEX, line).storage, JournalStream.INDEX).fault
    assert fault is not None
    assert fault.record is not None


def test_journal_on_a_web_server_is_read(tmp_path: Any) -> None:
    storage = open_storage(tmp_path.as_uri())
    ours = write_streams(
        storage, {JournalStream.INDEX: [simple_record(serial, "unknown", "demo") for serial in range(1, 31)]}, 30
    )
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        theirs = Journal(open_other(f"http://127.0.0.1:{server.server_port}"))
        comparison = compare_stream(ours, theirs, JournalStream.INDEX)
        server.shutdown()
    assert (comparison.equal, comparison.first) == (30, None)


def test_endless_head_of_a_web_server_is_rejected(tmp_path: Path) -> None:
    def endless(request: SimpleHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(16 * 1024**2 + 1))
        request.end_headers()
        request.close_connection = True

    with static_files(tmp_path) as served:
        served.answers[head_path("index")] = endless
        with pytest.raises(StorageError, match=naming("head.json", "16,777,217")):
            read_head(open_other(served.url), "index")


def test_missing_folder_is_rejected(tmp_path: Any) -> None:
    with pytest.raises(StorageError):
        open_other((tmp_path / "missing").as_uri())


def visit_record(serial: int, page_serial: int, snapshot: str | None, project: str = "demo") -> Record:
    statuses = [{"at": 1.0, "status": "full", "page_status": "active"}]
    record = simple_record(serial, "visit full", project, statuses=statuses, snapshot=snapshot)
    return record | {"of_serial": page_serial}


def test_pages_that_both_saw_at_one_serial_are_compared() -> None:
    """The last visit of a page counts. Pages that one operator saw are only counted."""
    ours = [visit_record(10, 9, "a"), visit_record(12, 9, "b"), visit_record(13, 13, "c"), visit_record(14, 14, None)]
    theirs = [visit_record(16, 9, "b"), visit_record(17, 13, "d"), visit_record(18, 18, "e", "other")]
    journals = journals_of({JournalStream.VISITS: ours}, {JournalStream.VISITS: theirs})
    compared = compare_stream(*journals, JournalStream.VISITS)
    counts = (compared.equal, compared.differing, compared.only_ours, compared.only_theirs)
    assert counts == (1, 1, 0, 1)
    assert compared.first is not None
    assert (compared.first.serial, compared.first.filename, compared.first.fields) == (13, None, ("snapshot",))
