"""The newest stored event of each of some projects."""

from sqlalchemy import select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.events import store_events
from pypi_assets.catalog.observed.projects import enter_projects
from pypi_assets.catalog.observed.sightings import newest_events
from pypi_assets.catalog.tables import projects
from pypi_assets.index.models import ChangelogEvent


def test_each_project_has_the_serial_of_its_newest_event(opened: Catalog):
    serials = {"one": (13, 17), "two": (15,)}
    rows = [ChangelogEvent(name, None, 0, "docupdate", serial) for name, found in serials.items() for serial in found]
    with opened.write() as connection:
        store_events(connection, sorted(rows, key=lambda row: row.serial), 10, 18)
        enter_projects(connection, [("three", 10)])
        ids = {name: id_ for id_, name in connection.execute(select(projects.c.id, projects.c.name))}
        assert newest_events(connection, ids.values()) == {ids["one"]: 17, ids["two"]: 15}
        assert newest_events(connection, [ids["two"]]) == {ids["two"]: 15}
        assert newest_events(connection, []) == {}
