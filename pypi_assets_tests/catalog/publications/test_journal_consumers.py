"""Named readers of the journal: created as they move, listed by name, forgotten with what they were to receive."""

import pytest
from sqlalchemy import insert, select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.journal_deliveries import (
    Consumer,
    ConsumerNameError,
    advance_consumer,
    all_consumers,
    check_name,
    find_consumer,
    forget_consumer,
    move_consumer,
)
from pypi_assets.catalog.tables import journal_letters
from pypi_assets_tests.naming import naming


def test_a_consumer_is_created_as_it_moves_and_keeps_its_birth(catalog: Catalog):
    times = iter([100.0, 200.0, 300.0])
    object.__setattr__(catalog, "clock", lambda: next(times))
    move_consumer(catalog, "mirror", "one", 10)
    move_consumer(catalog, "alerts", "two", 12)
    move_consumer(catalog, "mirror", "three", 30)
    with catalog.read() as connection:
        assert find_consumer(connection, "mirror") == Consumer("mirror", "three", 30, 100.0, 300.0)
        assert find_consumer(connection, "other") is None
        assert [one.name for one in all_consumers(connection)] == ["alerts", "mirror"]


def test_a_forgotten_consumer_leaves_nothing(catalog: Catalog):
    for name in ("mirror", "alerts"):
        move_consumer(catalog, name, "one", 10)
        letter = {"consumer": name, "project": "demo", "cursor": "one", "content": b"", "due_at": 1.0}
        catalog.transact(lambda connection, letter=letter: connection.execute(insert(journal_letters).values(letter)))
    assert forget_consumer(catalog, "mirror")
    assert not forget_consumer(catalog, "mirror")
    with catalog.read() as connection:
        assert [one.name for one in all_consumers(connection)] == ["alerts"]
        assert list(connection.scalars(select(journal_letters.c.consumer))) == ["alerts"]


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 201, "a\u202eb"])
def test_a_name_is_printable_and_short(name: str):
    check_name("mirror of company/1")
    with pytest.raises(ConsumerNameError, match=naming(1, 200)):
        check_name(name)


def test_a_consumer_advances_only_from_where_it_is_expected(catalog: Catalog):
    def advance(expected: str | None, cursor: str) -> bool:
        return catalog.transact(lambda connection: advance_consumer(connection, "hook", expected, cursor, 1, 5.0))

    assert not advance("one", "two")
    assert advance(None, "one")
    assert not advance(None, "two")
    assert advance("one", "two")
    assert not advance("one", "three")
    with catalog.read() as connection:
        assert find_consumer(connection, "hook") == Consumer("hook", "two", 1, 5.0, 5.0)
