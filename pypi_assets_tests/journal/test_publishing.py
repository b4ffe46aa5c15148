"""Segments are written in any order, concurrently and repeatedly, and the chain is the same."""

import random
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import delete, update

from pypi_assets.catalog.coordination.leases import lease
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.catalog.tables import catalog_state, events, journal_segments
from pypi_assets.journal import publishing
from pypi_assets.journal.publishing import (
    begin_generation,
    missing_ranges,
    publish,
    write_missing,
    write_range,
)
from pypi_assets.journal.record_reader import Journal
from pypi_assets.journal.segment_files import read_head, read_lines, segment_path
from pypi_assets.journal.verification import verify_stream
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

ENDS = (7, 20, 26, 40)


@pytest.fixture(autouse=True)
def _grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "GRID", 10)


@pytest.fixture
def small(tmp_path: Path, database_url: str) -> Iterator[SmallCatalog]:
    small = small_catalog(tmp_path, database_url)
    fill(small)
    yield small
    small.catalog.close()


def fill(small: SmallCatalog) -> None:
    start = 0
    for end in ENDS:
        for serial in range(start + 1, end):
            small.add(serial, "demo", f"{serial}", f"demo-{serial}.tar.gz", modules=(f"module{serial % 3}",))
        small.remove(end, f"demo-{end - 1}.tar.gz")
        small.complete(end)
        start = end
    with small.catalog.write() as connection:
        rows = [
            {
                "serial": serial,
                "project_id": 1,
                "name": "demo",
                "version": f"{serial}",
                "timestamp": 1_000 + serial,
                "action": f"add source file demo-{serial}.tar.gz",
                "kind": "add file",
            }
            for serial in range(1, ENDS[-1] + 1)
        ]
        connection.execute(update(catalog_state).values(events_through=ENDS[-1]))
        connection.execute(events.insert(), rows)


def published(storage: Storage) -> dict[str, bytes]:
    return {file.path: storage.get(file.path) for file in storage.list("journal")}


@pytest.mark.nightly
def test_any_order_and_repetition_gives_the_same_chain(small: SmallCatalog, storage: Storage) -> None:
    written = list(write_missing(small.catalog, storage))
    assert [one.serials.end for one in written] == list(ENDS)
    expected = published(storage)
    assert all(verify_stream(storage, stream).is_sound for stream in JournalStream)
    head = read_head(storage, "index")
    assert head is not None
    assert (head.end, head.number, head.open) == (40, 4, None)
    for seed in range(3):
        forget(small)
        other, draw = open_storage("memory:///"), random.Random(seed)
        ranges = [one.serials for one in written] * 2
        draw.shuffle(ranges)
        for serials in ranges:
            write_range(small.catalog, other, serials)
        assert missing_ranges(small.catalog) == []
        assert published(other) == expected


def forget(small: SmallCatalog) -> None:
    with small.catalog.write() as connection:
        connection.execute(delete(journal_segments))


def test_chain_ends_before_the_first_missing_segment(small: SmallCatalog, storage: Storage) -> None:
    ranges = missing_ranges(small.catalog)
    write_range(small.catalog, storage, ranges[1])
    head = read_head(storage, "observed")
    assert head is not None
    assert (head.number, head.end) == (0, 0)
    write_range(small.catalog, storage, ranges[0])
    head = read_head(storage, "observed")
    assert head is not None
    assert (head.number, head.end) == (2, 20)


@pytest.mark.nightly
def test_ranges_are_written_concurrently(small: SmallCatalog, storage: Storage) -> None:
    list(write_missing(small.catalog, storage))
    expected = published(storage)
    forget(small)
    other = open_storage("memory:///")
    threads = [
        threading.Thread(target=write_range, args=(small.catalog, other, serials))
        for serials in missing_ranges(small.catalog)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    publish(small.catalog, other)  # the writers may have left a link for each other
    files = published(other)
    assert {path: files[path] for path in expected} == expected
    assert all("open-" in path for path in files.keys() - expected.keys())


@pytest.mark.nightly
def test_chain_is_left_to_a_publishing_process(small: SmallCatalog, storage: Storage) -> None:
    with lease(replace(small.catalog), "journal observed", 600.0):
        list(write_missing(small.catalog, storage))
        assert read_head(storage, "observed") is None
        assert read_head(storage, "content") is not None
    publish(small.catalog, storage)
    assert verify_stream(storage, JournalStream.OBSERVED).is_sound


@pytest.mark.nightly
def test_segments_after_the_last_complete_cell_are_replaced(
    small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "GRID", 30)
    for serials in missing_ranges(small.catalog):
        write_range(small.catalog, storage, serials)
    head = read_head(storage, "index")
    assert head is not None
    assert head.open is not None
    assert (head.end, head.through) == (30, 40)
    [last] = list(Journal(storage).segments(head, 30))
    assert len(list(read_lines(storage, last))) == 10
    assert [file.path for file in storage.list("journal/index") if "open-" in file.path] == [segment_path(last)]


@pytest.mark.nightly
def test_restarted_stream_has_current_records(small: SmallCatalog, storage: Storage) -> None:
    list(write_missing(small.catalog, storage))
    for stream in JournalStream:
        assert begin_generation(small.catalog, storage, stream) == 2
    list(write_missing(small.catalog, storage))
    for stream in JournalStream:
        state = verify_stream(storage, stream)
        assert state.is_sound
        assert state.head is not None
        assert (state.head.generation, state.head.through) == (2, 40)


@pytest.mark.nightly
def test_later_catalog_has_the_same_index_stream_from_its_start(small: SmallCatalog, storage: Storage) -> None:
    list(write_missing(small.catalog, storage))
    ours = Journal(storage)
    forget(small)
    with small.catalog.write() as connection:
        connection.execute(update(catalog_state).values(events_since=13))
        connection.execute(delete(events).where(events.c.serial <= 13))
    other = open_storage("memory:///")
    list(write_missing(small.catalog, other))
    theirs = Journal(other)
    head, their_head = ours.head("index"), theirs.head("index")
    assert (their_head.start, their_head.end) == (13, 40)
    own = {segment.serials: segment.sha256 for segment in ours.segments(head, 20)}
    assert own == {segment.serials: segment.sha256 for segment in theirs.segments(their_head, 20)}
    assert SerialRange(20, 30) in own
