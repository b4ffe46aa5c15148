"""A catalog that was replayed from a journal gives the same answers as the catalog that wrote it."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from pypi_assets.catalog.database import Catalog, CatalogError, open_catalog
from pypi_assets.catalog.ledger.epochs import epoch_of
from pypi_assets.catalog.ledger.range_ledger import SIMPLE, complete_serial, inexact_spans, read_state
from pypi_assets.catalog.observed.followed import follows_all
from pypi_assets.catalog.observed.projects import find_project
from pypi_assets.catalog.publications.journal_deliveries import find_consumer
from pypi_assets.catalog.reads.past_generations import past_generations_of
from pypi_assets.catalog.reports.catalog_status import count_differences
from pypi_assets.catalog.reports.moments import serial_at
from pypi_assets.catalog.reports.visit_log import VisitFilter, logged_visits, shown_files
from pypi_assets.catalog.tables import distributions, events, followed_intervals, projects, serial_ranges
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.dumps.dump_manifest import DUMPS
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.journal import replay as replay_module
from pypi_assets.journal.publishing import write_missing
from pypi_assets.journal.replay import CONSUMER, ReplayError, newest_full_dump, replay
from pypi_assets.storage.root_owner import OWNER, require_owner
from pypi_assets.storage.store import Storage, StorageError, open_storage
from pypi_assets_tests.crawl.followers import REFUSED, Follower, SilentIndex, add, empty_catalog
from pypi_assets_tests.crawl.model_following import Following, draining_in_place
from pypi_assets_tests.crawl.model_steps import draw_history
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.examples import examples, first_seed
from pypi_assets_tests.journal.model_journal import follow_with_journal
from pypi_assets_tests.journal.overwritten import follow_overwritten
from pypi_assets_tests.journal.replayed import answers_at, histories, require_equal, visited_statistics, visits_of
from pypi_assets_tests.kills import run_and_kill
from pypi_assets_tests.naming import naming
from pypi_assets_tests.scoped_index import follow_scope

HISTORIES = examples(2)
INDEX_URL = "https://index.example.org/simple/"


@pytest.fixture
def replayed(tmp_path: Path) -> Iterator[Catalog]:
    """Yield an empty catalog."""
    catalog = open_catalog(sqlite_database(tmp_path / "replayed.sqlite"))
    yield catalog
    catalog.close()


@pytest.fixture
def follower(tmp_path: Path) -> Iterator[Follower]:
    catalog = open_catalog(sqlite_database(tmp_path / "catalog.sqlite"))
    with draining_in_place():
        yield Follower(SilentIndex(), catalog)
    catalog.close()


def journaled(catalog: Catalog) -> Storage:
    """Return a storage with the journal of a catalog."""
    storage = open_storage("memory:///")
    require_owner(storage, INDEX_URL)
    list(write_missing(catalog, storage))
    return storage


def complete(catalog: Catalog) -> int:
    with catalog.read() as connection:
        return complete_serial(connection)


def shown_at(catalog: Catalog, serial: int) -> list[dict[str, Any]] | None:
    """Return the answers at a serial without project statuses, which a replay derives from events."""
    rows = answers_at(catalog, serial)
    return None if rows is None else [row | {"project_status": None} for row in rows]


def epoch(catalog: Catalog, serial: int) -> int:
    with catalog.read() as connection:
        return epoch_of(connection, serial)


def followed(follower: Follower) -> int:
    """Fill a follower's catalog with a history in several ranges, and return a serial in the middle."""
    index = follower.index
    for version in ("1.0", "2.0", "3.0"):
        add(index, "demo", version)
        add(index, "other", version)
    crawl_full(follower.crawler)
    index.do("yank", "demo", "2.0")
    index.do("remove-release", "other", "1.0")
    crawl_incremental(follower.crawler)
    middle = index.serial
    index.do("unyank", "demo", "2.0")
    index.do("quarantine", "other")
    add(index, "third")
    crawl_incremental(follower.crawler)
    index.do("unquarantine", "other")
    index.do("remove-project", "third")
    index.record_event("demo", None, "docupdate")
    crawl_incremental(follower.crawler)
    return middle


@pytest.mark.nightly
def test_random_histories_are_replayed(catalog: Catalog, replayed: Catalog) -> None:
    """All answers and each project's history are equal despite corrections, late reads, kills and odd rows.

    The replay pauses in the middle. Later changes of the past have another epoch.
    """
    first = first_seed()
    for seed in range(first, first + (HISTORIES if catalog.is_sqlite else 1)):
        try:
            require_replayed(catalog, replayed, seed)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


def require_replayed(catalog: Catalog, replayed: Catalog, seed: int) -> None:
    """Follow the history of a seed, replay its journal in two parts, and compare the catalogs."""
    following = follow_with_journal(catalog, draw_history(seed))
    if following.index.serial == 0:
        return
    storage = journaled(following.catalog)
    empty_catalog(replayed)
    middle = (complete(catalog) + 1) // 2
    replay(storage, replayed, middle)
    before = {serial: (epoch(replayed, serial), shown_at(replayed, serial)) for serial in range(middle + 1)}
    done = replay(storage, replayed)
    for serial, (was, found) in before.items():
        assert epoch(replayed, serial) != was or shown_at(replayed, serial) == found, serial
    with catalog.read() as connection:
        exact_from = read_state(connection)["exact_from"]
    assert (done.through, done.exact_from) == (complete(catalog), exact_from)
    require_equal(catalog, replayed, 0, done.through)
    assert histories(catalog) == histories(replayed)
    assert visits_of(replayed) == visits_of(catalog, done.through) != []
    with replayed.read() as connection:
        assert count_differences(connection) == {}


def test_drawn_histories_are_replayed_with_equal_visits(catalog: Catalog, replayed: Catalog) -> None:
    """All ended visits are equal, with each status and the files of each page, also if the replay pauses."""
    outcomes: set[str] = set()
    for seed in (3, 13):
        outcomes |= replayed_outcomes(catalog, replayed, seed)
    assert outcomes == {"full", "partial", "not_found", "failed"}


@pytest.mark.nightly
def test_many_drawn_histories_are_replayed_with_equal_visits(catalog: Catalog, replayed: Catalog) -> None:
    for seed in range(100, 100 + 5 * HISTORIES):
        replayed_outcomes(catalog, replayed, seed)


def replayed_outcomes(catalog: Catalog, replayed: Catalog, seed: int) -> set[str]:
    """Follow the history of a seed with a journal, replay it, compare the visits, and return their outcomes."""
    empty_catalog(catalog)
    empty_catalog(replayed)
    following = Following(catalog)
    storage = open_storage("memory:///")
    require_owner(storage, INDEX_URL)
    with draining_in_place():
        for number, (name, arguments) in enumerate(draw_history(seed)[:60]):
            random.seed(0)
            following.step(name, arguments)
            if number % 7 == 0 and complete(catalog):
                list(write_missing(catalog, storage))
        following.settle()
    if not complete(catalog):
        return set()
    list(write_missing(catalog, storage))
    if middle := complete(catalog) // 2:
        replay(storage, replayed, middle)
        assert visits_of(replayed) == visits_of(catalog, middle), seed
    replay(storage, replayed)
    assert visits_of(replayed) == visits_of(catalog, complete(catalog)), seed
    if len(visits_of(replayed)) == len(visits_of(catalog)):
        assert visited_statistics(replayed) == visited_statistics(catalog), seed
    return {visit[-1][-1][1] for visit in visits_of(replayed)}


def test_replay_from_a_dump_is_equal_from_its_serial(follower: Follower, replayed: Catalog) -> None:
    middle = 0
    storage = open_storage("memory:///")
    require_owner(storage, INDEX_URL)
    index = follower.index
    for version in ("1.0", "2.0"):
        add(index, "demo", version)
    index.do("yank", "demo", "1.0")
    crawl_full(follower.crawler)
    full_dump(follower.catalog, storage, 16)
    middle = index.serial
    add(index, "demo", "3.0")
    index.do("unyank", "demo", "1.0")
    index.do("remove-release", "demo", "2.0")
    crawl_incremental(follower.crawler)
    list(write_missing(follower.catalog, storage))
    done = replay(storage, replayed, from_dump=True)
    assert (done.exact_from, done.dump) == (middle, f"0-{middle}")
    require_equal(follower.catalog, replayed, middle, done.through)
    assert answers_at(replayed, middle - 1) is None
    assert histories(replayed, middle) == histories(follower.catalog, middle)
    with replayed.read() as connection:
        assert count_differences(connection) == {}


def test_replay_up_to_a_serial_can_be_resumed(follower: Follower, replayed: Catalog) -> None:
    middle = followed(follower)
    storage = journaled(follower.catalog)
    done = replay(storage, replayed, middle)
    assert (done.through, done.began) == (middle, "from nothing")
    require_equal(follower.catalog, replayed, 0, middle)
    assert answers_at(replayed, middle + 1) is None
    further = replay(storage, replayed)
    assert (further.through, further.began) == (follower.index.serial, "where it was stopped")
    require_equal(follower.catalog, replayed, 0, further.through)
    assert histories(replayed) == histories(follower.catalog)
    again = replay(storage, replayed)
    assert (again.records, again.through) == (0, further.through)
    with pytest.raises(ReplayError, match=naming(18)):
        replay(storage, replayed, middle)
    with pytest.raises(ReplayError, match=naming(28, 27)):
        replay(storage, replayed, further.through + 1)


def test_catalog_with_other_content_is_rejected(follower: Follower) -> None:
    followed(follower)
    with pytest.raises(ReplayError):
        replay(journaled(follower.catalog), follower.catalog)


def test_serials_without_events_have_no_answer(follower: Follower, replayed: Catalog) -> None:
    index = follower.index
    add(index, "demo")
    crawl_full(follower.crawler)
    index.trouble = REFUSED
    index.record_event("demo", None, "docupdate")
    add(index, "demo", "2.0")
    index.record_event("demo", None, "docupdate")
    crawl_incremental(follower.crawler)
    done = replay(journaled(follower.catalog), replayed)
    with follower.catalog.read() as ours, replayed.read() as theirs:
        assert inexact_spans(ours) == inexact_spans(theirs) != []
    require_equal(follower.catalog, replayed, 0, done.through)


def test_catalog_that_followed_lists_is_replayed_with_the_times_of_looks(follower: Follower, replayed: Catalog) -> None:
    index = follower.index
    add(index, "demo")
    crawl_full(follower.crawler)
    add(index, "demo", "2.0")
    crawl_incremental(follower.crawler)
    follower.lister, index.trouble = SIMPLE, REFUSED
    for version in ("3.0", "4.0"):
        follower.now += 10_000
        index.record_event("demo", None, "docupdate")
        add(index, "demo", version)
        crawl_incremental(follower.crawler)
    replay(journaled(follower.catalog), replayed)
    serials = [serial for serial in range(index.serial + 1) if shown_at(follower.catalog, serial) is not None]
    assert serials == [serial for serial in range(index.serial + 1) if shown_at(replayed, serial) is not None]
    for serial in serials:
        assert shown_at(replayed, serial) == shown_at(follower.catalog, serial)
    with follower.catalog.read() as connection, replayed.read() as other:
        for moment in (follower.now, follower.now - 1, follower.now - 10_001):
            at = datetime.fromtimestamp(moment, UTC)
            assert serial_at(other, at, index.serial) == serial_at(connection, at, index.serial)


@pytest.mark.nightly
def test_scoped_catalog_is_replayed(catalog: Catalog, replayed: Catalog) -> None:
    follow_scope(catalog)
    done = replay(journaled(catalog), replayed)
    require_equal(catalog, replayed, 0, done.through)
    with catalog.read() as ours, replayed.read() as theirs:
        assert not follows_all(theirs)
        assert spans(ours) == spans(theirs) != []


def spans(connection: Any) -> list[tuple[Any, ...]]:
    columns = followed_intervals.c
    query = select(projects.c.normalized, columns.start, columns.end, columns.exact_from).join(
        projects, projects.c.id == columns.project_id
    )
    return [tuple(row) for row in connection.execute(query.order_by(projects.c.normalized, columns.start))]


def test_replaced_contents_are_kept(tmp_path: Path, replayed: Catalog) -> None:
    catalog = open_catalog(sqlite_database(tmp_path / "catalog.sqlite"))
    follow_overwritten(catalog, tmp_path)
    done = replay(journaled(catalog), replayed)
    require_equal(catalog, replayed, 0, done.through)
    with catalog.read() as ours, replayed.read() as theirs:
        assert generations(ours) == generations(theirs)
        known = [past_generations_of(one, one.scalar(select(projects.c.id)) or 0) for one in (ours, theirs)]
        assert [place(one) for one in known[0]] == [place(one) for one in known[1]]
        assert [one.generation for one in known[0]] == [1, 2]
    catalog.close()


def generations(connection: Any) -> list[tuple[str, int]]:
    query = select(distributions.c.filename, distributions.c.generation).order_by(distributions.c.filename)
    return [tuple(row) for row in connection.execute(query)]


def place(one: Any) -> tuple[Any, ...]:
    return one.filename, one.generation, one.until, one.sha256


def replay_in_small_batches(catalog: Catalog, storage: Storage, *, from_dump: bool = False) -> None:
    replay_module.BATCH_RECORDS = 5
    replay(storage, catalog, from_dump=from_dump)


@pytest.mark.nightly
@pytest.mark.parametrize("begin", ["journal", "dump"])
def test_replay_resumes_after_a_kill_at_any_transaction(
    storage: Storage, tmp_path: Path, follower: Follower, begin: str
) -> None:
    require_owner(storage, INDEX_URL)
    for number in range(12):
        add(follower.index, f"early{number}")
    crawl_full(follower.crawler)
    full_dump(follower.catalog, storage, 16)
    middle = follower.index.serial
    followed_on = followed_again(follower)
    list(write_missing(follower.catalog, storage))
    catalog = open_catalog(sqlite_database(tmp_path / "killed.sqlite"))
    work = partial(replay_in_small_batches, from_dump=begin == "dump")
    for left in (1, 2, 1):
        reached = run_and_kill(work, catalog, storage, 2 * left, (replay_module, "enter_records"))
        assert reached == "after enter_records"
    with catalog.read() as connection:
        assert connection.scalar(select(func.count()).select_from(events)) is not None
        assert (find_consumer(connection, CONSUMER) is None) == False  # noqa: E712
    done = replay(storage, catalog, from_dump=begin == "dump")
    assert done.began == ("where it was stopped" if begin == "journal" else "with the dump again")
    require_equal(follower.catalog, catalog, middle if begin == "dump" else 0, followed_on)
    catalog.close()


@pytest.mark.nightly
def test_interrupted_replay_with_a_deleted_dump_is_rejected_by_name(
    follower: Follower, replayed: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed(follower)
    storage = journaled(follower.catalog)
    full_dump(follower.catalog, storage)
    monkeypatch.setattr(replay_module, "BATCH_RECORDS", 2)

    def stop(_records: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replay(storage, replayed, from_dump=True, progress=stop)
    dump = newest_full_dump(storage)
    assert dump is not None
    for stored in list(storage.list(DUMPS)):
        storage.delete(stored.path)
    with pytest.raises(ReplayError, match=naming(dump.directory)):
        replay(storage, replayed)


@pytest.mark.nightly
@pytest.mark.parametrize("content", [b"{", b"[]", b"null", b'{"index_url": []}'])
def test_journal_of_an_unknown_index_is_rejected(follower: Follower, replayed: Catalog, content: bytes) -> None:
    followed(follower)
    storage = journaled(follower.catalog)
    storage.put(OWNER, content)
    with pytest.raises(StorageError, match=naming(OWNER)):
        replay(storage, replayed)


def followed_again(follower: Follower) -> int:
    index = follower.index
    for number in range(3):
        index.do("yank", f"early{number}", "1.0")
        add(index, f"early{number}", "2.0")
    index.do("remove-project", "early5")
    crawl_incremental(follower.crawler)
    return index.serial


def test_records_are_inserted_in_batches(
    follower: Follower, replayed: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile, the catalog answers more and more serials."""
    monkeypatch.setattr(replay_module, "BATCH_RECORDS", 2)
    monkeypatch.setattr(replay_module, "STEP_RECORDS", 4)
    reached = []
    finish = replay_module.finish_replay

    def noted(connection: Any, span: Any, now: float) -> None:
        finish(connection, span, now)
        reached.append((complete_serial(connection), count_differences(connection)))

    monkeypatch.setattr(replay_module, "finish_replay", noted)
    followed(follower)
    done = replay(journaled(follower.catalog), replayed)
    require_equal(follower.catalog, replayed, 0, done.through)
    assert histories(replayed) == histories(follower.catalog)
    assert len(reached) > 3
    assert [serial for serial, _ in reached] == sorted({serial for serial, _ in reached})
    assert all(differences == {} for _, differences in reached)
    with replayed.read() as connection:
        assert connection.scalar(select(func.count()).select_from(serial_ranges)) == 1


def test_pages_that_build_on_unknown_visits_are_replayed_without_files(follower: Follower, replayed: Catalog) -> None:
    """Their visits are equal otherwise. A later page with all its files is complete."""
    storage = open_storage("memory:///")
    require_owner(storage, INDEX_URL)
    add(follower.index, "demo")
    crawl_full(follower.crawler)
    full_dump(follower.catalog, storage, 16)
    add(follower.index, "demo", "2.0")
    add(follower.index, "fresh")
    crawl_incremental(follower.crawler)
    list(write_missing(follower.catalog, storage))
    replay(storage, replayed, from_dump=True)
    with replayed.read() as connection, follower.catalog.read() as original:
        for name, has_files in (("demo", False), ("fresh", True)):
            found, wanted = find_project(connection, name), find_project(original, name)
            assert found is not None
            assert wanted is not None
            [visit] = logged_visits(connection, found, VisitFilter())
            assert visit == logged_visits(original, wanted, VisitFilter(limit=1))[0]
            assert visit.snapshot is not None
            if has_files:
                assert shown_files(connection, visit.snapshot) == shown_files(original, visit.snapshot)
            else:
                with pytest.raises(CatalogError):
                    shown_files(connection, visit.snapshot)
