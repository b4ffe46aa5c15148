"""Times and serials: a moment means the greatest serial all of whose predecessors are not later."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, delete, insert

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.reports.moments import serial_at, time_of
from pypi_assets.catalog.tables import events, full_crawls, projects
from pypi_assets_tests.databases import sqlite_database


def store(connection: Connection, times: dict[int, int]) -> None:
    connection.execute(insert(projects).values(id=1, normalized="demo", name="demo", bucket=0, shard=0, known_since=0))
    store_events(connection, times)


def store_events(connection: Connection, times: dict[int, int]) -> None:
    rows = [
        {"serial": serial, "project_id": 1, "name": "demo", "timestamp": at, "action": "create", "kind": 0}
        for serial, at in times.items()
    ]
    if rows:
        connection.execute(insert(events), rows)


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def test_a_moment_between_events(catalog: Catalog):
    with catalog.write() as connection:
        store(connection, {3: 100, 7: 200, 8: 150, 9: 300})
    with catalog.read() as connection:
        found = {at: serial_at(connection, moment(at), 20) for at in (99, 100, 199, 200, 299, 300, 1_000)}
        times = [time_of(connection, serial) for serial in (2, 3, 6, 8, 20)]
    assert found == {99: None, 100: 6, 199: 6, 200: 8, 299: 8, 300: 20, 1_000: 20}
    assert times == [None, moment(100), moment(100), moment(150), moment(300)]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory):
    catalog = open_catalog(sqlite_database(tmp_path_factory.mktemp("times") / "catalog.sqlite"))
    with catalog.write() as connection:
        store(connection, {})
    yield catalog
    catalog.close()


@given(
    times=st.dictionaries(st.integers(1, 60), st.integers(0, 40), max_size=20),
    at=st.integers(0, 40),
    crawled_at=st.none() | st.integers(0, 40),
    beyond=st.integers(0, 5),
)
def test_it_is_as_the_rule_has_it(opened: Catalog, times: dict[int, int], at: int, crawled_at: int | None, beyond: int):
    complete = max(times, default=0) + beyond
    with opened.write() as connection:
        connection.execute(delete(events))
        connection.execute(delete(full_crawls))
        store_events(connection, times)
        if crawled_at is not None:
            crawl = {"serial": 0, "selection": "[]", "opened_at": crawled_at, "completed_at": crawled_at}
            connection.execute(insert(full_crawls).values(crawl))
    with opened.read() as connection:
        found = serial_at(connection, moment(at), complete)
    later = [serial for serial, time in times.items() if time > at]
    expected = min(later) - 1 if later else complete
    was_crawled = crawled_at is not None and crawled_at <= at
    is_known = any(serial <= expected for serial in times) or (not later and was_crawled)
    assert found == (expected if is_known else None)
