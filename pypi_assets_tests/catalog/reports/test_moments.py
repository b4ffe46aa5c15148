"""A moment is a serial or a time. It stands for one exact serial, or has no answer."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, delete, insert, update

from pypi_assets.catalog.database import Catalog, CatalogError, open_catalog
from pypi_assets.catalog.reports.live_files import live_files
from pypi_assets.catalog.reports.moments import (
    InexactSerialError,
    Moment,
    NoMomentError,
    answerable_serial,
    first_and_last_serial,
    parse_moment,
    pinned_answer,
    serial_at,
    serial_of,
    time_of,
)
from pypi_assets.catalog.tables import catalog_state, events, full_crawls, projects
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.naming import naming
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


def crawled(small: SmallCatalog, exact_from: int) -> None:
    with small.catalog.write() as connection:
        crawl = {"serial": 10, "selection": "[]", "opened_at": 0.0, "listed_at": 0.0, "completed_at": 0.0}
        connection.execute(insert(full_crawls).values(**crawl))
        connection.execute(update(catalog_state).values(exact_from=exact_from))
    small.complete(10)


def test_no_serial_is_answerable_before_a_complete_full_crawl(small: SmallCatalog) -> None:
    for serial in (None, 0, 10):
        with pytest.raises(CatalogError, match=naming("crawl full")):
            answerable_serial(small.catalog, serial)


def test_serials_from_first_exact_to_complete_are_answerable(small: SmallCatalog) -> None:
    crawled(small, exact_from=10)
    small.complete(25)
    assert [answerable_serial(small.catalog, serial) for serial in (None, 10, 17, 25)] == [25, 10, 17, 25]
    for serial in (0, 9, 26):
        with pytest.raises(CatalogError, match=naming(serial, 10, 25)):
            answerable_serial(small.catalog, serial)


def test_only_the_present_is_answerable_while_pages_are_newer_than_ranges(small: SmallCatalog) -> None:
    crawled(small, exact_from=15)
    assert answerable_serial(small.catalog) == 10
    with pytest.raises(CatalogError, match=naming(15, 10, "crawl incremental")):
        answerable_serial(small.catalog, 10)


def test_answer_is_computed_again_if_it_changes_meanwhile(small: SmallCatalog) -> None:
    """The answer therefore always belongs to the returned epoch."""
    small.add(5, "demo", "1.0", "demo-1.0.tar.gz", modules=None)
    small.complete(10)
    shown: list[str] = []

    def answer() -> str:
        [file] = live_files(small.catalog, 10)
        shown.append(file.outcome)
        if len(shown) == 1:
            small.read("demo-1.0.tar.gz", ("demo",), ())
        return file.outcome

    assert pinned_answer(small.catalog, 10, answer) == ("data", 11)
    assert shown == ["error", "data"]


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


def test_moment_means_the_last_serial_before_the_next_event(catalog: Catalog):
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
def test_answerable_serial_follows_the_rule(
    opened: Catalog, times: dict[int, int], at: int, crawled_at: int | None, beyond: int
):
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


NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("1350", 1350),
        ("2026-03-03", datetime(2026, 3, 3, tzinfo=UTC)),
        ("2026-03-03T12:00", NOON),
        ("2026-03-03T12:00:00Z", NOON),
        ("2026-03-03T14:00+02:00", NOON.astimezone(timezone(timedelta(hours=2)))),
    ],
)
def test_serials_and_times_are_parsed(text: str, expected: Moment):
    assert parse_moment(text) == expected


def test_other_moments_are_rejected(subtests: pytest.Subtests):
    cases = [
        *((text, False) for text in ("", "-1", "1.5", "yesterday", "٣", "9" * 19, "2026-3-3", "2026-03-03\n")),
        *((text, True) for text in ("2026-02-30", "2026-03-03T25:00")),
    ]
    for text, is_time in cases:
        with subtests.test(text=text, is_time=is_time):
            with pytest.raises(NoMomentError) as raised:
                parse_moment(text)
            assert raised.value.is_time == is_time


def test_moment_means_a_serial_or_has_no_answer(tmp_path: Path):
    small = small_catalog(tmp_path, clock=lambda: NOON.timestamp() + 3_600)
    small.add(3, "demo", "1.0", "demo-1.0.zip")
    small.complete(7)
    at = {3: NOON - timedelta(hours=2), 7: NOON}
    with small.catalog.write() as connection:
        connection.execute(insert(full_crawls).values(serial=3, selection="[]", opened_at=0.0, completed_at=0.0))
        rows = [
            {"serial": serial, "project_id": 1, "name": "demo", "timestamp": int(time.timestamp())}
            for serial, time in at.items()
        ]
        connection.execute(insert(events), [{**row, "action": "create", "kind": "create project"} for row in rows])
    found = [serial_of(small.catalog, one) for one in (None, 5, NOON, NOON - timedelta(hours=1))]
    assert found == [7, 5, 7, 6]
    for moment, values in (
        (8, (8, 0, 7)),
        (NOON + timedelta(hours=2), ("2026-03-03T14:00:00Z",)),
        (NOON - timedelta(hours=3), ("2026-03-03T09:00:00Z", "2026-03-03T10:00:00Z")),
    ):
        with pytest.raises(InexactSerialError, match=naming(*values)):
            serial_of(small.catalog, moment)
    small.catalog.close()


def test_changes_of_any_file_count_up_to_the_serial(tmp_path):
    small = small_catalog(tmp_path)
    small.add(5, "demo", "1", "demo-1.tar.gz")
    small.add(10, "demo", "2", "demo-2.tar.gz")
    small.yank(15, "demo-1.tar.gz")
    small.unyank(20, "demo-1.tar.gz")
    small.remove(25, "demo-2.tar.gz")
    with small.catalog.read() as connection:
        found = {serial: first_and_last_serial(connection, "demo", serial) for serial in (4, 5, 12, 17, 22, 99)}
        assert first_and_last_serial(connection, "none", 99) == (None, None)
    small.catalog.close()
    assert found == {4: (None, None), 5: (5, 5), 12: (5, 10), 17: (5, 15), 22: (5, 20), 99: (5, 25)}
