"""An answer at a serial does not change while its epoch does not, whatever happens meanwhile."""

from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.epochs import (
    Notice,
    NoticeKind,
    announce,
    epoch_of,
    epochs_of,
    note_change,
    note_changed_projects,
    notices_in,
)
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.dump_rows import rows_at, stream_rows
from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.catalog.reports.live_files import live_files
from pypi_assets.catalog.tables import epochs, projects
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import allocate_next_ranges, crawl_incremental, crawl_range, open_ranges
from pypi_assets.crawl.index_audit import audit_index
from pypi_assets.crawl.retry_failures import retry
from pypi_assets.dumps.dump_format import as_dumped
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.index.errors import TransientError
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.crawl.followers import Follower, add, follower
from pypi_assets_tests.examples import examples
from pypi_assets_tests.journal.model_journal import seal_complete, stream_records
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


def notices(small: SmallCatalog, start: int, end: int) -> list[Notice]:
    with small.catalog.read() as connection:
        return list(notices_in(connection, SerialRange(start, end)))


def test_lowest_serial_of_announcements_at_one_place_counts(small: SmallCatalog) -> None:
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


def test_changed_epoch_is_announced_and_published_ranges_stay(small: SmallCatalog) -> None:
    small.complete(10)
    with small.catalog.write() as connection:
        note_change(connection, 5)
        note_change(connection, 12)  # no answer was given there, since serial 12 is not complete
    assert [notice.of_serial for notice in notices(small, 0, 20)] == [5]
    seal_complete(small.catalog)
    before = notices(small, 0, 10)
    with small.catalog.write() as connection:
        note_change(connection, 2)
    assert notices(small, 0, 10) == before
    small.complete(20)
    with small.catalog.read_once() as connection:
        [record] = stream_records(connection, SerialRange(10, 20), JournalStream.OBSERVED)
    assert (record["kind"], record["serial"], record["of_serial"]) == ("epoch changed", 11, 2)
    small.catalog.close()


def answer(catalog: Catalog, serial: int) -> tuple[Any, ...]:
    """Return everything that is visible at a serial."""
    rows = (as_dumped(row) for row in stream_rows(catalog, rows_at(catalog, serial)) if not row["tombstone"])
    of_then = [{name: value for name, value in row.items() if name != "project_status"} for row in rows]
    return list(live_files(catalog, serial)), of_then


def epoch(catalog: Catalog, serial: int) -> int:
    with catalog.read() as connection:
        found = epoch_of(connection, serial)
        assert epochs_of(connection, [serial, serial, serial + 1])[serial] == found
    return found


class Answers:
    """The answers that were given, by serial and epoch."""

    def __init__(self, found: Follower) -> None:
        self.follower = found
        self._given: dict[tuple[int, int], tuple[Any, ...]] = {}
        self._newest: dict[int, int] = {}

    def require_pinned(self) -> None:
        catalog = self.follower.catalog
        for serial in range(self.follower.complete + 1):
            if self.follower.answerable(serial):
                found = epoch(catalog, serial)
                assert found >= max(serial, self._newest.get(serial, 0))
                self._newest[serial] = found
                given = self._given.setdefault((serial, found), answer(catalog, serial))
                assert answer(catalog, serial) == given, f"serial {serial}, epoch {found}"


KINDS = ["add", "add", "add", "yank", "unyank", "remove-file", "remove-release", "quarantine", "unquarantine"]
EVENTS = st.tuples(st.sampled_from(KINDS), st.sampled_from(["a", "b"]), st.sampled_from(["1.0", "2.0", "3.0"]))
WORK = st.sampled_from(["ranges", "last range first", "troubled", "retry", "audit", "full crawl", "dump"])


@pytest.mark.nightly
@settings(max_examples=examples(8))
@given(st.lists(st.tuples(st.lists(EVENTS, max_size=4), WORK), min_size=2, max_size=7), st.integers(0, 2**32))
def test_equal_epochs_mean_equal_answers(steps: list[tuple[list[tuple[str, str, str]], str]], seed: int) -> None:
    found = follower("xmlrpc")
    index, catalog = found.index, found.catalog
    index.random = Random(seed)
    answers = Answers(found)
    add(index, "a")
    crawl_full(found.crawler)
    for events, work in steps:
        answers.require_pinned()
        for kind, project, version in events:
            index.do(kind, project, version, f"{project}-{version}-py3-none-any.whl")
        if work == "troubled":
            index.failing = 0.5
            index.stale = {"a"}
            with suppress(TransientError):
                crawl_incremental(found.crawler)
            index.failing, index.stale = 0.0, set()
        elif work == "last range first":
            for size in (1, 100):
                allocate_next_ranges(found.crawler, size)
            for serials in reversed(open_ranges(found.crawler)):
                crawl_range(found.crawler, serials)
                answers.require_pinned()
        elif work == "ranges":
            crawl_incremental(found.crawler)
        elif work == "retry":
            retry(found.crawler, None)
        elif work == "audit":
            audit_index(found.crawler, 100)
        elif work == "full crawl":
            crawl_full(found.crawler)
        elif is_dumpable(found):
            full_dump(catalog, open_storage("memory:///"), 1)
    answers.require_pinned()


def is_dumpable(found: Follower) -> bool:
    return found.complete == found.index.serial and found.answerable(found.complete)


def test_following_an_index_changes_no_epoch() -> None:
    found = follower("xmlrpc")
    add(found.index, "a")
    crawl_full(found.crawler)
    for version in ("2.0", "3.0", "4.0"):
        add(found.index, "a", version)
        found.index.do("yank", "a", version)
        crawl_incremental(found.crawler)
    assert [epoch(found.catalog, serial) for serial in range(found.complete + 1)] == list(range(found.complete + 1))


def steps(catalog: Catalog) -> list[tuple[int, int]]:
    with catalog.read() as connection:
        return [tuple(row) for row in connection.execute(select(epochs).order_by(epochs.c.serial))]  # type: ignore[misc]


def change(catalog: Catalog, *serials: int) -> None:
    for serial in serials:
        with catalog.write() as connection:
            note_change(connection, serial)


def test_change_at_a_serial_replaces_all_later_steps(tmp_path: Any, database_url: str) -> None:
    small = small_catalog(tmp_path, database_url)
    catalog = small.catalog
    change(catalog, 5)  # no serial is complete
    small.complete(100)
    assert steps(catalog) == []
    change(catalog, 101, 50, 70, 70, 60)
    assert steps(catalog) == [(50, 101), (60, 104)]
    small.complete(200)
    change(catalog, 80, 150)
    assert steps(catalog) == [(50, 101), (60, 104), (80, 201), (150, 202)]
    with catalog.read() as connection:
        wanted = [0, 49, 50, 59, 60, 79, 80, 149, 150, 200]
        expected = [0, 49, 101, 101, 104, 104, 201, 201, 202, 202]
        assert [epoch_of(connection, serial) for serial in wanted] == expected
        assert epochs_of(connection, wanted) == dict(zip(wanted, expected, strict=True))
        assert epochs_of(connection, []) == {}
    change(catalog, 1)
    assert steps(catalog) == [(1, 203)]
    catalog.close()


def test_late_read_and_rename_change_past_answers(tmp_path: Any, database_url: str) -> None:
    small = small_catalog(tmp_path, database_url)
    catalog = small.catalog
    small.add(30, "Demo", "1.0", "demo-1.0.tar.gz", modules=None)
    small.add(60, "Demo", "2.0", "demo-2.0.tar.gz", modules=None)
    small.complete(100)
    small.read("demo-2.0.tar.gz", ("demo",), ())
    assert (epoch(catalog, 59), epoch(catalog, 60)) == (59, 101)
    with catalog.write() as connection:
        note_changed_projects(connection, connection.scalars(select(projects.c.id)).all())
        note_changed_projects(connection, [12_345])
    assert (epoch(catalog, 29), epoch(catalog, 30), epoch(catalog, 60)) == (29, 102, 102)
    with catalog.read() as connection:
        assert connection.scalar(select(func.count()).select_from(epochs)) == 1
    catalog.close()
