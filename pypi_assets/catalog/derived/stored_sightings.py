"""Loads what was seen of projects, as file_history.py takes it."""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Connection

from pypi_assets.catalog.derived.seen_pages import Sighting
from pypi_assets.catalog.observed.sightings import StoredSighting, sightings_of
from pypi_assets.catalog.observed.snapshots import read_snapshots
from pypi_assets.catalog.tables import checkpoints, sightings

_Shown = Mapping[int, Mapping[str, bool]]


def load_sightings(
    connection: Connection, project_ids: Collection[int], shown: _Shown | None = None
) -> dict[int, list[Sighting]]:
    """All sightings of each project, in the order in which they were stored.

    `shown` is what some snapshots show, by id, where the caller knows it already.
    """
    return _loaded(connection, project_ids, sightings_of(connection, project_ids), shown or {})


def sightings_beyond_checkpoints(
    connection: Connection, project_ids: Collection[int], shown: _Shown | None = None
) -> dict[int, list[Sighting]]:
    """The same, without those from before the checkpoint of each project. All of them have one."""
    has_checkpoint = checkpoints.c.project_id == sightings.c.project_id
    rows = sightings_of(connection, project_ids, has_checkpoint, sightings.c.seen_through >= checkpoints.c.serial)
    return _loaded(connection, project_ids, rows, shown or {})


def _loaded(
    connection: Connection, project_ids: Collection[int], rows: Sequence[StoredSighting], known: _Shown
) -> dict[int, list[Sighting]]:
    shown = dict(known)
    names: dict[str, str] = {}  # pages of one project have mostly the same ones
    for snapshot_id, snapshot in read_snapshots(connection, {row.snapshot_id for row in rows} - shown.keys()):
        shown[snapshot_id] = {names.setdefault(name, name): yanked for name, (_, yanked) in snapshot.entries.items()}
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
