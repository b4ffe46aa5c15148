"""Sightings: new facts of a page are stored, and a revisit that agrees adds nothing."""

from sqlalchemy import func, select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.events import store_events
from pypi_assets.catalog.observed.projects import CatalogProject, enter_projects
from pypi_assets.catalog.observed.sightings import (
    SeenNow,
    newest_events,
    newest_sightings,
    sightings_of,
    store_sightings,
)
from pypi_assets.catalog.observed.snapshots import snapshot_content
from pypi_assets.catalog.tables import projects, sightings, snapshots
from pypi_assets.index.models import ChangelogEvent, IndexFile
from pypi_assets_tests.catalog.ended_visits import enter


def test_project_has_the_serial_of_its_newest_event(opened: Catalog):
    serials = {"one": (13, 17), "two": (15,)}
    rows = [ChangelogEvent(name, None, 0, "docupdate", serial) for name, found in serials.items() for serial in found]
    with opened.write() as connection:
        store_events(connection, sorted(rows, key=lambda row: row.serial), 10, 18)
        enter_projects(connection, [("three", 10)])
        ids = {name: id_ for id_, name in connection.execute(select(projects.c.id, projects.c.name))}
        assert newest_events(connection, ids.values()) == {ids["one"]: 17, ids["two"]: 15}
        assert newest_events(connection, [ids["two"]]) == {ids["two"]: 15}
        assert newest_events(connection, []) == {}


FILE = IndexFile("demo-1.0.zip", "https://example.org/demo-1.0.zip", "a" * 64, 1, None, None, False, None, False, None)


def seen(
    project: CatalogProject, page_serial: int | None, through: int, *files: IndexFile, status: str | None = "active"
) -> SeenNow:
    return SeenNow(project.id, 1, page_serial, through, snapshot_content(files), status)


def test_only_differences_from_the_newest_page_are_stored(catalog: Catalog):
    with catalog.write() as connection:
        [one] = enter(connection, 1)
        stored = []
        for now in (
            seen(one, 5, 1_000, FILE),
            seen(one, 5, 1_000, FILE),
            seen(one, 5, 1_500, FILE),
            seen(one, 5, 1_500, FILE, status="archived"),
            seen(one, 6, 1_500, FILE, status="archived"),
            seen(one, 6, 1_600, status="archived"),
            seen(one, 5, 1_600, FILE),
            seen(one, 6, 1_400, status="archived"),  # no other sighting shows when the status became true
        ):
            store_sightings(connection, [now], 1.0)
            stored.append(connection.scalar(select(func.count()).select_from(sightings)))
        found = sightings_of(connection, [one.id])
        assert connection.scalar(select(func.count()).select_from(snapshots)) == 2
        newest = newest_sightings(connection, [one.id])[one.id]
    assert stored == [1, 1, 1, 2, 3, 4, 5, 6]
    assert [row.id for row in found] == sorted(row.id for row in found)
    assert (newest.page_serial, newest.seen_through) == (5, 1_600)


def test_unexplained_404_counts_again_only_after_an_event(catalog: Catalog):
    with catalog.write() as connection:
        one, other = enter(connection, 2)
        counts = []
        for through in (1_000, 1_001, 1_002, 1_003):
            if through == 1_002:
                event = ChangelogEvent(one.name, "1.0", 0, "add source file demo-1.0.zip", 1_002)
                store_events(connection, [event], 1_000, 1_002)
            gone = [seen(project, None, through, status=None) for project in (one, other)]
            store_sightings(connection, gone, 1.0)
            counts.append([len(sightings_of(connection, [project.id])) for project in (one, other)])
    assert counts == [[1, 1], [1, 1], [2, 1], [2, 1]]
