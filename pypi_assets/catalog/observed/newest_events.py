"""The newest stored event of each of some projects, by a look at one row each."""

from collections.abc import Collection

from sqlalchemy import Connection, select

from pypi_assets.catalog.database import at_a_time
from pypi_assets.catalog.tables import events, projects


def newest_events(connection: Connection, project_ids: Collection[int]) -> dict[int, int]:
    """The serial of the newest stored event of each project that has any, by project id."""
    newest = select(events.c.serial).where(events.c.project_id == projects.c.id).order_by(events.c.serial.desc())
    serial = newest.limit(1).correlate(projects).scalar_subquery()
    return {
        project_id: found
        for ids in at_a_time(sorted(project_ids))
        for project_id, found in connection.execute(select(projects.c.id, serial).where(projects.c.id.in_(ids)))
        if found is not None
    }
