"""How far consumers of the journal lag: in serials, and in seconds since the first event that they lack."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import insert

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.journal_deliveries import UNSEEN_S, consumer_lags, move_consumer
from pypi_assets.catalog.tables import journal_letters
from pypi_assets_tests.catalog.reports.test_serials_of_times import store
from pypi_assets_tests.small_catalog import small_catalog


@pytest.fixture
def at_serial_20(tmp_path: Path, database_url: str) -> Iterator[Catalog]:
    """Complete up to serial 20, with events at some serials."""
    small = small_catalog(tmp_path, database_url)
    object.__setattr__(small.catalog, "clock", lambda: 1_000.0)
    with small.catalog.write() as connection:
        store(connection, {3: 100, 7: 200, 8: 150, 19: 300, 25: 400})
    small.complete(20)
    yield small.catalog
    small.catalog.close()


def test_each_consumer_lags_by_what_it_lacks(at_serial_20: Catalog):
    for name, serial in {"far": 2, "near": 8, "quiet": 19, "there": 20, "beyond": 30}.items():
        move_consumer(at_serial_20, name, f"after {serial}", serial)
    with at_serial_20.read() as connection:
        found = {one.name: (one.lag_serials, one.lag_seconds) for one in consumer_lags(connection, 1_000.0)}
    assert found == {
        "far": (18, 900.0),
        "near": (12, 700.0),
        "quiet": (1, None),
        "there": (0, 0.0),
        "beyond": (0, 0.0),
    }


def test_letters_are_counted_and_one_not_seen_for_long_is_not_living(at_serial_20: Catalog):
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
