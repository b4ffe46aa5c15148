"""Pruning deletes only records that are old, in a full dump and read by all consumers. The rest stays and the chain
verifies.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.catalog.database import open_catalog
from pypi_assets.catalog.publications.journal_deliveries import UNSEEN_S, put_consumer
from pypi_assets.catalog.publications.journal_segments import add_takedown
from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.journal import pruning
from pypi_assets.journal.cursors import Cursor
from pypi_assets.journal.filters import RecordFilter
from pypi_assets.journal.journal_errors import BeginsLaterError
from pypi_assets.journal.pruning import JournalPruneError, prune_journal
from pypi_assets.journal.publishing import complete_takedowns, write_missing
from pypi_assets.journal.record_reader import Journal
from pypi_assets.journal.replay import ReplayError, replay
from pypi_assets.journal.segment_files import head_path, read_head
from pypi_assets.journal.tailing import Scan, beginning
from pypi_assets.journal.takedowns import wanted_takedown
from pypi_assets.journal.unused_segments import clean_journal
from pypi_assets.journal.verification import verify_stream
from pypi_assets.storage.root_owner import require_owner
from pypi_assets.storage.store import Storage
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.journal.replayed import answers_at
from pypi_assets_tests.naming import naming
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

LATER = 4e9


@pytest.fixture
def small(tmp_path: Path, storage: Storage) -> Iterator[SmallCatalog]:
    """Yield a catalog with three ranges and a full dump at the end of the second."""
    small = small_catalog(tmp_path)
    require_owner(storage, "https://index.example.org/simple/")
    for serial in (1500, 2500, 3500):
        small.add(serial, "demo", f"{serial}", f"demo-{serial}.tar.gz")
        small.complete(serial)
        list(write_missing(small.catalog, storage))
        if serial == 2500:
            full_dump(small.catalog, storage, 1)
    yield small
    small.catalog.close()


def scanned(storage: Storage, after: Cursor) -> list[Cursor]:
    return [Cursor(*place) for place, _ in Scan(Journal(storage), after, RecordFilter())]


def test_old_segments_are_deleted_and_readers_learn_the_start(small: SmallCatalog, storage: Storage) -> None:
    every = scanned(storage, Cursor.after_serial(0))
    would = prune_journal(small.catalog, storage, 2400, dry_run=True)
    assert scanned(storage, Cursor.after_serial(0)) == every
    done = prune_journal(small.catalog, storage, 2400)
    assert done == would
    assert {one.stream: (one.segments, one.readable_from) for one in done} == {
        "index": (2, 2000),
        "observed": (1, 1500),
        "content": (1, 1500),
        "visits": (1, 1500),
    }
    assert all(verify_stream(storage, stream).is_sound for stream in JournalStream)
    assert beginning(Journal(storage)) == Cursor.after_serial(2000)
    assert scanned(storage, Cursor.after_serial(2000)) == [cursor for cursor in every if cursor.serial > 2000]
    for cursor in (Cursor.after_serial(1999), Cursor(2000, 0, 3), Cursor.after_serial(0)):
        with pytest.raises(BeginsLaterError, match=naming(2000)):
            scanned(storage, cursor)
    assert [one.segments for one in prune_journal(small.catalog, storage, 2400)] == [0, 0, 0, 0]
    small.add(4000, "demo", "4", "demo-4.tar.gz")
    small.complete(4000)
    list(write_missing(small.catalog, storage))
    assert all(verify_stream(storage, stream).is_sound for stream in JournalStream)


def test_lost_head_is_restored_with_its_pruning(small: SmallCatalog, storage: Storage) -> None:
    prune_journal(small.catalog, storage, 2400)
    add_takedown(small.catalog, wanted_takedown("x", "demo"))  # the remaining first segments have other names
    complete_takedowns(small.catalog, storage)
    heads = [read_head(storage, stream) for stream in JournalStream]
    for stream in JournalStream:
        storage.delete(head_path(stream))
    list(write_missing(small.catalog, storage))
    assert [read_head(storage, stream) for stream in JournalStream] == heads
    assert all(verify_stream(storage, stream).is_sound for stream in JournalStream)


def test_replay_after_pruning_is_complete(small: SmallCatalog, storage: Storage, tmp_path: Path) -> None:
    with pytest.raises(JournalPruneError, match=naming(2500)):
        prune_journal(small.catalog, storage, 2501, force=True)
    prune_journal(small.catalog, storage, 2500)
    replayed = open_catalog(sqlite_database(tmp_path / "replayed.sqlite"))
    done = replay(storage, replayed)
    assert (done.through, done.exact_from, done.dump) == (3500, 2500, "0-2500")
    for serial, expected in ((2500, small.filenames[:2]), (3499, small.filenames[:2]), (3500, small.filenames)):
        answer = answers_at(replayed, serial)
        assert answer is not None
        assert [one["filename"] for one in answer] == expected
    replayed.close()


def test_replay_interrupted_before_pruning_is_rejected(small: SmallCatalog, storage: Storage, tmp_path: Path) -> None:
    stopped = open_catalog(sqlite_database(tmp_path / "replayed.sqlite"))
    replay(storage, stopped, to=1000)
    prune_journal(small.catalog, storage, 2500)
    with pytest.raises(ReplayError, match=naming(1000)):
        replay(storage, stopped)
    stopped.close()


def test_nothing_is_pruned_without_a_full_dump(tmp_path: Path, storage: Storage) -> None:
    small = small_catalog(tmp_path)
    small.complete(2000)
    list(write_missing(small.catalog, storage))
    with pytest.raises(JournalPruneError, match=naming("pypi-assets dump full")):
        prune_journal(small.catalog, storage, 1000, force=True)
    small.catalog.close()


def test_active_consumer_keeps_its_unread_records(small: SmallCatalog, storage: Storage) -> None:
    def pruned(cursor: Cursor, ago_s: float = 0.0, *, force: bool = False) -> int:
        with small.catalog.write() as connection:
            seen_at = small.catalog.clock() - ago_s
            put_consumer(connection, "slow", str(cursor), cursor.serial, seen_at)
        return prune_journal(small.catalog, storage, 2000, force=force, dry_run=True)[0].segments

    for cursor in (Cursor.after_serial(1999), Cursor(2000, 1, 4)):
        with pytest.raises(JournalPruneError, match=naming("slow", 1999)):
            pruned(cursor)
        assert pruned(cursor, force=True) == 2
    with pytest.raises(JournalPruneError, match=naming("slow", 0)):
        pruned(Cursor.after_serial(0), UNSEEN_S - 600)
    assert pruned(Cursor.after_serial(2000)) == 2
    assert pruned(Cursor.after_serial(0), UNSEEN_S + 1) == 2


def test_leftovers_of_a_kill_are_deleted(
    small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(_storage: Storage) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pruning, "publish_heads", die)
        with pytest.raises(KeyboardInterrupt):
            prune_journal(small.catalog, storage, 2500)
    assert all(verify_stream(storage, stream).is_sound for stream in JournalStream)
    head = read_head(storage, "observed")
    assert head is not None
    assert head.readable_from == 2500
    gone = {one.path.partition(".")[0] for one in clean_journal(small.catalog, storage, LATER)}
    assert {"journal/observed/0001/0-1500", "journal/index/0001/1000-2000"} <= gone
    assert all(verify_stream(storage, stream).is_sound for stream in JournalStream)
