"""Events: stored once and without a gap, and counted by range."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, delete, select, update

from pypi_assets.catalog.database import Catalog, CatalogError, open_catalog
from pypi_assets.catalog.ledger.range_ledger import lock_state
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.events import (
    RangeEvents,
    changed_projects,
    count_events,
    events_by_project,
    events_since,
    events_through,
    explained_absences,
    first_event_time,
    has_at_least,
    last_event,
    range_ends,
    store_earlier_events,
    store_events,
    without_file_changes,
)
from pypi_assets.catalog.observed.projects import Selection, find_project, know_from_the_beginning
from pypi_assets.catalog.observed.visit_statistics import EndedVisit, note_ended, prospects
from pypi_assets.catalog.tables import catalog_state, events, projects
from pypi_assets.catalog.work.full_crawls import open_crawl
from pypi_assets.index.models import ChangelogEvent
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.examples import examples
from pypi_assets_tests.naming import naming

EVERYTHING = Selection()


def event(serial: int, action: str = "docupdate", name: str = "Demo") -> ChangelogEvent:
    return ChangelogEvent(name, "1.0", 1_000 + serial, action, serial)


def project_id(catalog: Catalog, name: str) -> int:
    with catalog.read() as connection:
        project = find_project(connection, name)
    assert project is not None
    return project.id


def test_page_with_gap_is_rejected_and_overlap_is_stored_once(opened: Catalog):
    refused = pytest.raises(CatalogError, match=naming(10, 11))
    with refused, opened.write() as connection:
        store_events(connection, [event(12)], 11, 12)
    pages = [([event(11), event(12), event(13)], 10, 12), ([event(12), event(13)], 11, 14), ([event(11)], 10, 11)]
    with opened.write() as connection:
        for page, after, through in pages:
            store_events(connection, page, after, through)
        assert events_through(connection) == 14
        assert last_event(connection) == event(13)
        assert first_event_time(connection, 11) == 1_012
        assert first_event_time(connection, 13) is None
    found = project_id(opened, "demo")
    with opened.read() as connection:
        assert events_by_project(connection, [found, -1]) == {found: [event(11), event(12), event(13)], -1: []}


def test_new_project_is_known_since_its_first_event(opened: Catalog):
    page = [event(11, name="Followed"), event(12, name="other"), event(13, name="followed")]
    with opened.write() as connection:
        store_events(connection, page, 10, 13)
        project = find_project(connection, "FOLLOWED")
        assert project is not None
        assert (project.name, project.known_since) == ("followed", 10)  # as the newest event spells it


def test_earlier_events_are_stored_for_the_selection_only(opened: Catalog):
    earlier = [event(5, name="wanted"), event(6, name="other")]
    store_earlier_events(opened, earlier, 0, 10, Selection(frozenset({"wanted"})))
    with opened.write() as connection:
        assert find_project(connection, "other") is None
        store_events(connection, [event(11, name="other")], 10, 11)
        other, wanted = find_project(connection, "other"), find_project(connection, "wanted")
        assert other is not None
        assert wanted is not None
        assert (other.known_since, wanted.known_since) == (10, 4)
        know_from_the_beginning(connection, {"wanted"})
        wanted = find_project(connection, "wanted")
        assert wanted is not None
        assert wanted.known_since == 0


def test_earlier_events_are_stored_down_to_serial_0(opened: Catalog):
    with opened.write() as connection:
        store_events(connection, [event(11)], 10, 11)
    store_earlier_events(opened, [event(5), event(9)], 4, 10, EVERYTHING)
    with pytest.raises(CatalogError, match=naming(4, 3)):
        store_earlier_events(opened, [event(2)], 1, 3, EVERYTHING)
    with opened.read() as connection:
        project = find_project(connection, "demo")
        assert project is not None
        assert (events_since(connection), project.known_since) == (4, 10)
    store_earlier_events(opened, [event(2)], 0, 4, EVERYTHING)
    with opened.read() as connection:
        project = find_project(connection, "demo")
        assert project is not None
        assert (events_since(connection), project.known_since) == (0, 0)
        assert connection.scalars(select(projects.c.known_since)).all() == [10]  # the end of the history is one row
        assert [one.serial for one in events_by_project(connection, [project.id])[project.id]] == [2, 5, 9, 11]


def test_end_of_history_does_not_wait_for_visits(opened: Catalog):
    if opened.is_sqlite:
        return  # SQLite has one writer at a time
    with opened.write() as connection:
        store_events(connection, [event(11)], 10, 11)
    with ThreadPoolExecutor(1) as pool, opened.write() as visit:
        visit.execute(select(projects).with_for_update(key_share=True))
        pool.submit(store_earlier_events, opened, [event(2)], 0, 10, EVERYTHING).result(timeout=60)
        lock_state(visit, exclusive=False)


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    serials=st.sets(st.integers(11, 60), max_size=30),
    start=st.integers(10, 58),
    length=st.integers(1, 30),
    each=st.integers(1, 8),
)
def test_range_is_split_into_parts_of_equal_counts(
    opened: Catalog, serials: set[int], start: int, length: int, each: int
):
    with opened.write() as connection:
        connection.execute(delete(events))
        connection.execute(update(catalog_state).values(events_through=10))
        store_events(connection, [event(serial) for serial in sorted(serials)], 10, 100)
        whole = SerialRange(start, start + length)
        inside = sorted(serial for serial in serials if serial in whole)
        ends = range_ends(connection, whole, each)
        assert ends == sorted(set(ends))
        assert ends[-1] == whole.end
        parts = [SerialRange(*pair) for pair in zip([start, *ends[:-1]], ends, strict=True)]
        counts = [sum(serial in part for serial in inside) for part in parts]
        assert sum(counts) == len(inside)
        assert all(count == each for count in counts[:-1])
        assert counts[-1] <= each
        for count in (1, max(len(inside), 1), len(inside) + 1):
            assert has_at_least(connection, whole, count) == (len(inside) >= count)


def test_events_are_counted_by_kind_of_change(opened: Catalog):
    page = [
        event(11, "add source file one-1.0.tar.gz", "one"),
        event(12, "an action of no known kind", "one"),
        event(13, "yank release", "two"),
        event(14, "docupdate", "three"),
        event(15, "remove project", "one"),
    ]
    with opened.write() as connection:
        store_events(connection, page, 10, 15)
        assert count_events(connection, SerialRange(10, 15)) == RangeEvents(5, 1, 2)
        assert count_events(connection, SerialRange(13, 14)) == RangeEvents(1, 0, 0)
        changed = [(id_, serial) for id_, _, serial in changed_projects(connection, SerialRange(10, 14))]
    assert sorted(changed) == sorted([(project_id(opened, "one"), 11), (project_id(opened, "two"), 13)])


def test_404_is_explained_by_removal_or_by_creation_without_upload(opened: Catalog):
    page = [
        event(11, "create", "never-uploaded"),
        event(12, "add source file kept-1.0.tar.gz", "kept"),
        event(13, "remove project", "removed"),
        event(14, "remove project", "uploaded-again"),
        event(15, "add source file uploaded_again-1.0.tar.gz", "uploaded-again"),
        event(16, "docupdate", "removed"),
    ]
    with opened.write() as connection:
        store_events(connection, page, 10, 16)
    ids = {name: project_id(opened, name) for name in ("never-uploaded", "kept", "removed", "uploaded-again")}
    with opened.read() as connection:
        explained = explained_absences(connection, ids.values())
    assert explained == {ids["never-uploaded"]: 11, ids["removed"]: 13}


def test_projects_without_file_events_are_found(opened: Catalog):
    kinds = ["docupdate", "add source file x", "add Owner x", "mystery"]
    page = [event(11 + number, action) for number, action in enumerate(kinds)]
    with opened.write() as connection:
        store_events(connection, [*page, event(15, name="two")], 10, 16)
    demo, two = project_id(opened, "Demo"), project_id(opened, "two")
    expected = {(10, 11): True, (11, 12): False, (12, 16): True, (12, 17): False, (10, 16): False, (16, 16): True}
    with opened.write() as connection:
        for span, is_found in expected.items():
            found = without_file_changes(connection, {demo: span, two: (10, 16)})
            assert found == ({demo, two} if is_found else {two}), span
        assert without_file_changes(connection, {demo: (9, 11), two: (11, 12)}) == {two}
        many = dict.fromkeys(range(1_000, 2_500), (12, 16))
        assert without_file_changes(connection, many) == many.keys()
        assert without_file_changes(connection, {}) == set()


def test_event_reads_of_visits_and_ranges_do_not_grow(tmp_path: Path):
    steps = {}
    for age in (10, 1_000):
        catalog = open_catalog(sqlite_database(tmp_path / f"{age}.sqlite"))
        open_crawl(catalog, 10, 10, "http://127.0.0.1/simple/", EVERYTHING)
        page = [event(11 + number, f"add source file demo-{number}.tar.gz") for number in range(4 * age)]
        last = page[-1].serial
        page += [event(last + 1, "remove project"), event(last + 2, name="other")]
        with catalog.write() as connection:
            store_events(connection, page, 10, last + 2)
        found = project_id(catalog, "demo")
        with catalog.write() as connection:
            connection.execute(update(projects).values(page_serial=12))
            note_ended(connection, [EndedVisit(found, "full", True)], 1.0)
        newest = SerialRange(last - 20, last + 2)
        with catalog.read() as connection:
            assert explained_absences(connection, [found]) == {found: last + 1}  # also prepares the statement
            with counted_steps(connection) as counted:
                explained_absences(connection, [found])
                prospects(connection, {found: last + 1}, last + 2)
                count_events(connection, newest)
                range_ends(connection, newest, 5)
                has_at_least(connection, newest, 5)
                last_event(connection)
                first_event_time(connection, last)
        steps[age] = counted[0]
        catalog.close()
    assert steps[1_000] < 1.5 * steps[10]


@contextmanager
def counted_steps(connection: Connection) -> Iterator[list[int]]:
    """Count how many steps SQLite's virtual machine takes in the block."""
    counted = [0]

    def count() -> int:
        counted[0] += 1
        return 0

    driver: Any = connection.connection.dbapi_connection
    driver.set_progress_handler(count, 1)
    try:
        yield counted
    finally:
        driver.set_progress_handler(None, 0)
