"""Deliveries: stored as their consumer advances, due in order for each project, dead after failures, and sent again."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import insert, select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.journal_deliveries import (
    UNSEEN_S,
    Consumer,
    ConsumerNameError,
    Letter,
    NewLetter,
    advance_consumer,
    all_consumers,
    check_name,
    consumer_lags,
    count_letters,
    delete_letter,
    due_letters,
    find_consumer,
    forget_consumer,
    letters_of,
    move_consumer,
    note_failure,
    resend_letters,
    store_letters,
)
from pypi_assets.catalog.tables import journal_letters
from pypi_assets_tests.catalog.reports.test_moments import store
from pypi_assets_tests.naming import naming
from pypi_assets_tests.small_catalog import small_catalog


def test_consumer_is_created_by_its_first_move_and_keeps_its_start(catalog: Catalog):
    times = iter([100.0, 200.0, 300.0])
    object.__setattr__(catalog, "clock", lambda: next(times))
    move_consumer(catalog, "mirror", "one", 10)
    move_consumer(catalog, "alerts", "two", 12)
    move_consumer(catalog, "mirror", "three", 30)
    with catalog.read() as connection:
        assert find_consumer(connection, "mirror") == Consumer("mirror", "three", 30, 100.0, 300.0)
        assert find_consumer(connection, "other") is None
        assert [consumer.name for consumer in all_consumers(connection)] == ["alerts", "mirror"]


def test_forgotten_consumer_leaves_no_rows(catalog: Catalog):
    for name in ("mirror", "alerts"):
        move_consumer(catalog, name, "one", 10)
        letter = {"consumer": name, "project": "demo", "cursor": "one", "content": b"", "due_at": 1.0}
        catalog.transact(lambda connection, letter=letter: connection.execute(insert(journal_letters).values(letter)))
    assert forget_consumer(catalog, "mirror")
    assert not forget_consumer(catalog, "mirror")
    with catalog.read() as connection:
        assert [consumer.name for consumer in all_consumers(connection)] == ["alerts"]
        assert list(connection.scalars(select(journal_letters.c.consumer))) == ["alerts"]


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 201, "a\u202eb"])
def test_consumer_name_must_be_printable_and_short(name: str):
    check_name("mirror of company/1")
    with pytest.raises(ConsumerNameError, match=naming(1, 200)):
        check_name(name)


def test_consumer_advances_only_from_the_expected_position(catalog: Catalog):
    def advance(expected: str | None, cursor: str) -> bool:
        return catalog.transact(lambda connection: advance_consumer(connection, "hook", expected, cursor, 1, 5.0))

    assert not advance("one", "two")
    assert advance(None, "one")
    assert not advance(None, "two")
    assert advance("one", "two")
    assert not advance("one", "three")
    with catalog.read() as connection:
        assert find_consumer(connection, "hook") == Consumer("hook", "two", 1, 5.0, 5.0)


@pytest.fixture
def stored(catalog: Catalog) -> Catalog:
    """Store two deliveries for a project, one for another project, and one for another consumer."""
    object.__setattr__(catalog, "clock", lambda: 100.0)
    letters = [NewLetter(project, f"after {number}", b"[1]") for number, project in enumerate(("a", "b", "a"))]
    assert store_letters(catalog, "hook", letters, "one", 1, None)
    assert store_letters(catalog, "other", [NewLetter("a", "after 9", b"[9]")], "one", 1, None)
    return catalog


def due(catalog: Catalog, now: float = 100.0, limit: int = 10) -> list[Letter]:
    with catalog.read() as connection:
        return due_letters(connection, "hook", now, limit)


def test_deliveries_are_stored_once_as_the_consumer_advances(stored: Catalog):
    more = [NewLetter("c", "after 3", b"[3]")]
    assert not store_letters(stored, "hook", more, "two", 2, None)
    assert not store_letters(stored, "hook", more, "two", 2, "elsewhere")
    with stored.read() as connection:
        assert count_letters(connection, "hook") == 3
    assert store_letters(stored, "hook", more, "two", 2, "one")
    assert store_letters(stored, "hook", [], "three", 3, "two")
    with stored.read() as connection:
        assert count_letters(connection, "hook") == 4
        consumer = find_consumer(connection, "hook")
        assert consumer is not None
        assert (consumer.cursor, consumer.serial) == ("three", 3)
        assert [one.content for one in letters_of(connection, "hook")] == [b"[1]", b"[1]", b"[1]", b"[3]"]


def test_first_delivery_of_each_project_is_due(stored: Catalog):
    assert [letter.cursor for letter in due(stored)] == ["after 0", "after 1"]
    assert [letter.cursor for letter in due(stored, limit=1)] == ["after 0"]
    first = due(stored)[0]
    note_failure(stored, first, 160.0, "it fails", is_dead=False)
    assert [letter.cursor for letter in due(stored)] == ["after 1"]
    assert [letter.cursor for letter in due(stored, now=159.0)] == ["after 1"]
    again = due(stored, now=160.0)
    assert [letter.cursor for letter in again] == ["after 1", "after 0"]
    assert (again[1].attempts, again[1].error_text) == (1, "it fails")
    delete_letter(stored, first.id)
    assert [letter.cursor for letter in due(stored)] == ["after 1", "after 2"]


def test_dead_letter_blocks_nothing_and_can_be_retried(stored: Catalog):
    first = due(stored)[0]
    note_failure(stored, first, 100.0, "x" * 2_000, is_dead=True)
    assert [letter.cursor for letter in due(stored)] == ["after 1", "after 2"]
    with stored.read() as connection:
        [dead] = letters_of(connection, dead_only=True)
        assert count_letters(connection, "hook") == 2
    assert (dead.id, dead.attempts, len(dead.error_text or "")) == (first.id, 1, 500)
    assert resend_letters(stored, "other") == 0
    assert resend_letters(stored, "hook", first.id + 100) == 0
    assert resend_letters(stored, "hook", first.id) == 1
    assert [letter.cursor for letter in due(stored)] == ["after 0", "after 1"]
    assert due(stored)[0].attempts == 0


def test_untried_delivery_is_due_even_if_written_with_a_fast_clock(stored: Catalog):
    day_before = 100.0 - 86_400
    assert [letter.cursor for letter in due(stored, now=day_before)] == ["after 0", "after 1"]
    note_failure(stored, due(stored)[0], day_before + 60, "it fails", is_dead=False)
    assert [letter.cursor for letter in due(stored, now=day_before)] == ["after 1"]


@pytest.fixture
def at_serial_20(tmp_path: Path, database_url: str) -> Iterator[Catalog]:
    """Yield a catalog that is complete up to serial 20 and has events at some serials."""
    small = small_catalog(tmp_path, database_url)
    object.__setattr__(small.catalog, "clock", lambda: 1_000.0)
    with small.catalog.write() as connection:
        store(connection, {3: 100, 7: 200, 8: 150, 19: 300, 25: 400})
    small.complete(20)
    yield small.catalog
    small.catalog.close()


def test_consumer_lag_counts_undelivered_events(at_serial_20: Catalog):
    for name, serial in {"far": 2, "near": 8, "quiet": 19, "there": 20, "beyond": 30}.items():
        move_consumer(at_serial_20, name, f"after {serial}", serial)
    with at_serial_20.read() as connection:
        found = {lag.name: (lag.lag_serials, lag.lag_seconds) for lag in consumer_lags(connection, 1_000.0)}
    assert found == {
        "far": (18, 900.0),
        "near": (12, 700.0),
        "quiet": (1, None),
        "there": (0, 0.0),
        "beyond": (0, 0.0),
    }


def test_deliveries_are_counted_and_long_unseen_consumer_is_not_live(at_serial_20: Catalog):
    move_consumer(at_serial_20, "hook", "one", 20)
    row = {"consumer": "hook", "project": "demo", "cursor": "one", "content": b"", "due_at": 1.0}
    for is_dead in (False, True, False):
        with at_serial_20.write() as connection:
            connection.execute(insert(journal_letters).values(row | {"is_dead": is_dead}))
    with at_serial_20.read() as connection:
        [found] = consumer_lags(connection, 1_000.0)
    assert (found.waiting, found.dead, found.seen_at) == (2, 1, 1_000.0)
    assert found.is_living(1_000.0 + UNSEEN_S)
    assert not found.is_living(1_001.0 + UNSEEN_S)
