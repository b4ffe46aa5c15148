"""Letters: stored as their consumer moves on, due in order for each project, dead after failures, and sent again."""

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.journal_deliveries import (
    Letter,
    NewLetter,
    count_letters,
    delete_letter,
    due_letters,
    find_consumer,
    letters_of,
    note_failure,
    resend_letters,
    store_letters,
)


@pytest.fixture
def stored(catalog: Catalog) -> Catalog:
    """Two letters of a project, one of another, and one of another consumer."""
    object.__setattr__(catalog, "clock", lambda: 100.0)
    letters = [NewLetter(project, f"after {number}", b"[1]") for number, project in enumerate(("a", "b", "a"))]
    assert store_letters(catalog, "hook", letters, "one", 1, None)
    assert store_letters(catalog, "other", [NewLetter("a", "after 9", b"[9]")], "one", 1, None)
    return catalog


def due(catalog: Catalog, now: float = 100.0, limit: int = 10) -> list[Letter]:
    with catalog.read() as connection:
        return due_letters(connection, "hook", now, limit)


def test_letters_are_stored_once_with_the_move_of_their_consumer(stored: Catalog):
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


def test_the_first_letter_of_each_project_is_due(stored: Catalog):
    assert [one.cursor for one in due(stored)] == ["after 0", "after 1"]
    assert [one.cursor for one in due(stored, limit=1)] == ["after 0"]
    first = due(stored)[0]
    note_failure(stored, first, 160.0, "it fails", is_dead=False)
    assert [one.cursor for one in due(stored)] == ["after 1"]
    assert [one.cursor for one in due(stored, now=159.0)] == ["after 1"]
    again = due(stored, now=160.0)
    assert [one.cursor for one in again] == ["after 1", "after 0"]
    assert (again[1].attempts, again[1].error_text) == (1, "it fails")
    delete_letter(stored, first.id)
    assert [one.cursor for one in due(stored)] == ["after 1", "after 2"]


def test_a_dead_letter_holds_up_nothing_and_comes_back(stored: Catalog):
    first = due(stored)[0]
    note_failure(stored, first, 100.0, "x" * 2_000, is_dead=True)
    assert [one.cursor for one in due(stored)] == ["after 1", "after 2"]
    with stored.read() as connection:
        [dead] = letters_of(connection, dead_only=True)
        assert count_letters(connection, "hook") == 2
    assert (dead.id, dead.attempts, len(dead.error_text or "")) == (first.id, 1, 500)
    assert resend_letters(stored, "other") == 0
    assert resend_letters(stored, "hook", first.id + 100) == 0
    assert resend_letters(stored, "hook", first.id) == 1
    assert [one.cursor for one in due(stored)] == ["after 0", "after 1"]
    assert due(stored)[0].attempts == 0


def test_a_letter_that_was_not_tried_yet_is_due_also_where_the_clock_was_ahead_as_it_was_written(stored: Catalog):
    day_before = 100.0 - 86_400
    assert [one.cursor for one in due(stored, now=day_before)] == ["after 0", "after 1"]
    note_failure(stored, due(stored)[0], day_before + 60, "it fails", is_dead=False)
    assert [one.cursor for one in due(stored, now=day_before)] == ["after 1"]
