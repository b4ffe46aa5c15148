"""Comparison of the project list with the catalog, and the range that visits the differences."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select, update

from pypi_assets.catalog.ledger.range_ledger import SIMPLE, require_range
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.events import store_events
from pypi_assets.catalog.observed.projects import find_project
from pypi_assets.catalog.tables import catalog_state, projects, visit_queue
from pypi_assets.catalog.work.listed_projects import (
    LISTING,
    allocate_listed_range,
    compare_listed,
    exact_again_from,
    known_serials,
    queue_listed,
    unlisted_projects,
)
from pypi_assets.catalog.work.visit_queue import projects_to_visit, range_workload
from pypi_assets.index.models import ChangelogEvent, ListedProject
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

LISTED = {"Kept": 9, "newer": 12, "older": 7, "bare": None}


@pytest.fixture
def small(tmp_path: Path, database_url: str) -> Iterator[SmallCatalog]:
    """Yield a catalog complete up to serial 10, in which `kept` and `gone` have one live file each."""
    made = small_catalog(tmp_path, database_url)
    made = SmallCatalog(made.catalog, itertools.count(1_000))  # ids above those that the database assigns
    made.complete(10)
    for serial, name in ((3, "kept"), (4, "gone")):
        made.add(serial, name, "1.0", f"{name}-1.0.tar.gz")
    with made.catalog.write() as connection:
        connection.execute(update(projects).values(page_serial=5))
        connection.execute(update(catalog_state).values(events_through=10))
    yield made
    made.catalog.close()


def ids(small: SmallCatalog, *names: str) -> list[int]:
    with small.catalog.read() as connection:
        found = [find_project(connection, name) for name in names]
    return [project.id for project in found if project is not None]


def test_listed_projects_are_compared_and_new_ones_entered(small: SmallCatalog):
    page = [
        ListedProject("Kept", 9),
        ListedProject("newer", 12),
        ListedProject("older", 7),
        ListedProject("bare", None),
    ]
    with small.catalog.write() as connection:
        compared = {one.name: one for one in compare_listed(connection, page, 15)}
        rows = connection.execute(select(projects.c.name, projects.c.known_since))
        entered = {row.name: row.known_since for row in rows if row.name in {"newer", "older"}}
    assert {name: (one.known_serial, one.listed_serial) for name, one in compared.items()} == {
        "kept": (5, 9),
        "newer": (-1, 12),
        "older": (-1, 7),
        "bare": (-1, 0),
    }
    assert entered == {"newer": 10, "older": 15}  # events are stored up to 10


def test_unlisted_projects_have_live_files_as_old_as_the_list(small: SmallCatalog):
    kept, gone = ids(small, "kept", "gone")
    with small.catalog.write() as connection:
        found = unlisted_projects(connection, lambda id_: id_ == kept, 15)
        assert [(project.name, project.known_serial, project.listed_serial) for project in found] == [("gone", 5, None)]
        assert unlisted_projects(connection, lambda id_: id_ == kept, 4) == []  # its page of serial 5 is newer
        event = ChangelogEvent("gone", None, 1, "docupdate", 12)
        store_events(connection, [event], 10, 12)
        assert [(id_, serial) for id_, _, serial in known_serials(connection, [kept, gone])] == [(kept, 5), (gone, 12)]
    small.remove(13, "gone-1.0.tar.gz")
    with small.catalog.read() as connection:
        assert unlisted_projects(connection, lambda id_: id_ == kept, 15) == []


def test_next_range_visits_queued_and_changed_projects(small: SmallCatalog):
    [gone] = ids(small, "gone")
    with small.catalog.write() as connection:
        compared = compare_listed(connection, [ListedProject("kept", 9), ListedProject("new", 12)], 14)
        queue_listed(connection, compared, 14)
        queue_listed(connection, compare_listed(connection, [ListedProject("kept", 13)], 15), 15)
        queue_listed(connection, unlisted_projects(connection, lambda id_: id_ != gone, 15), 15)
        event = ChangelogEvent("evented", "1.0", 1, "add source file evented-1.0.tar.gz", 11)
        store_events(connection, [event], 10, 11)
        serials = allocate_listed_range(connection, 15, 1.0)
        assert serials == SerialRange(10, 15)
        assert require_range(connection, serials).lister == SIMPLE
        assert allocate_listed_range(connection, 15, 1.0) is None
        assert projects_to_visit(connection, LISTING) == []
        columns = (projects.c.name, visit_queue.c.min_serial, visit_queue.c.listed_at, visit_queue.c.unlisted_at)
        queued = (
            select(*columns)
            .join(projects, projects.c.id == visit_queue.c.project_id)
            .where(visit_queue.c.workload == range_workload(serials))
            .order_by(projects.c.name)
        )
        assert connection.execute(queued).all() == [
            ("evented", 11, None, None),
            ("gone", 6, None, 15),  # a page newer than the known one
            ("kept", 13, 15, None),
            ("new", 12, 14, None),
        ]


def test_catalog_is_exact_again_from_the_list_end_or_the_newest_page(small: SmallCatalog):
    with small.catalog.write() as connection:
        queue_listed(connection, compare_listed(connection, [ListedProject("kept", 13)], 15), 15)
        serials = allocate_listed_range(connection, 15, 1.0)
        assert serials is not None
        kept = projects.c.name == "kept"
        found = []
        for page_serial in (5, 13, 20):
            connection.execute(update(projects).where(kept).values(page_serial=page_serial))
            found.append(exact_again_from(connection, serials))
    assert found == [16, 15, 20]
