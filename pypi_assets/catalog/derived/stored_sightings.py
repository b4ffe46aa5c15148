"""Loads what was seen of projects, as file_history.py takes it."""

from collections.abc import Collection, ItemsView, Iterator, KeysView, Mapping, Sequence

from sqlalchemy import Connection

from pypi_assets.catalog.derived.seen_pages import Sighting
from pypi_assets.catalog.observed.sightings import StoredSighting, sightings_of
from pypi_assets.catalog.observed.snapshots import SnapshotWalk, walk_snapshots
from pypi_assets.catalog.tables import checkpoints, sightings

_Known = Mapping[int, Mapping[str, bool]]


def load_sightings(
    connection: Connection, project_ids: Collection[int], shown: _Known | None = None
) -> dict[int, list[Sighting]]:
    """All sightings of each project, in the order in which they were stored.

    `shown` is what some snapshots show, by id, where the caller knows it already.
    """
    return _loaded(connection, project_ids, sightings_of(connection, project_ids), shown or {})


def sightings_beyond_checkpoints(
    connection: Connection, project_ids: Collection[int], shown: _Known | None = None
) -> dict[int, list[Sighting]]:
    """The same, without those from before the checkpoint of each project. All of them have one."""
    has_checkpoint = checkpoints.c.project_id == sightings.c.project_id
    rows = sightings_of(connection, project_ids, has_checkpoint, sightings.c.seen_through >= checkpoints.c.serial)
    return _loaded(connection, project_ids, rows, shown or {})


class _Shown(Mapping[str, bool]):
    """What one snapshot shows. It is decoded when it is used, so only one of a project is in memory."""

    __slots__ = ("_snapshot_id", "_walk")

    def __init__(self, walk: SnapshotWalk, snapshot_id: int) -> None:
        self._walk = walk
        self._snapshot_id = snapshot_id

    def _now(self) -> Mapping[str, bool]:
        return self._walk.shown(self._snapshot_id)

    def __getitem__(self, filename: str) -> bool:
        return self._now()[filename]

    def __contains__(self, filename: object) -> bool:
        return filename in self._now()

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())

    def keys(self) -> KeysView[str]:
        return self._now().keys()

    def items(self) -> ItemsView[str, bool]:
        return self._now().items()

    def __eq__(self, other: object) -> bool:
        return self._now() == other


def _loaded(
    connection: Connection, project_ids: Collection[int], rows: Sequence[StoredSighting], known: _Known
) -> dict[int, list[Sighting]]:
    unknown: dict[int, set[int]] = {}
    for row in rows:
        if row.snapshot_id not in known:
            unknown.setdefault(row.project_id, set()).add(row.snapshot_id)
    walks = walk_snapshots(connection, unknown)
    found: dict[int, list[Sighting]] = {project_id: [] for project_id in project_ids}
    for row in rows:
        id_ = row.snapshot_id
        found[row.project_id].append(
            Sighting(
                row.page_serial,
                row.seen_through,
                known[id_] if id_ in known else _Shown(walks[row.project_id], id_),
                is_page=row.page_status is not None,
                shows_through=row.shows_through,
                seen_at=row.at,
            )
        )
    return found
