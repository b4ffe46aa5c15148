"""Loads what was seen of projects, as file_history.py takes it."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection

from pypi_assets.catalog.derived.seen_pages import Sighting
from pypi_assets.catalog.observed.sightings import sightings_of
from pypi_assets.catalog.observed.snapshots import read_snapshots


def load_sightings(
    connection: Connection, project_ids: Sequence[int], *where: ColumnElement[bool]
) -> dict[int, list[Sighting]]:
    """The sightings of each project, in the order in which they were stored."""
    rows = sightings_of(connection, project_ids, *where)
    shown = {
        snapshot_id: {filename: yanked for filename, (_, yanked) in snapshot.entries.items()}
        for snapshot_id, snapshot in read_snapshots(connection, {row.snapshot_id for row in rows})
    }
    found: dict[int, list[Sighting]] = {project_id: [] for project_id in project_ids}
    for row in rows:
        found[row.project_id].append(
            Sighting(
                row.page_serial,
                row.seen_through,
                shown[row.snapshot_id],
                is_page=row.page_status is not None,
                shows_through=row.shows_through,
            )
        )
    return found
