"""The pages of projects as they were seen, without repetitions of a project's newest page.

File states are derived from sightings and events, so sightings are never pruned. The log of visits can be pruned.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, func, insert, select, update

from pypi_assets.catalog.database import at_a_time
from pypi_assets.catalog.observed.snapshots import store_snapshots
from pypi_assets.catalog.tables import events, projects, serial_ranges, sightings


def newest_events(connection: Connection, project_ids: Collection[int]) -> dict[int, int]:
    """Return the serial of the newest stored event of each project that has one, by project id."""
    newest = select(events.c.serial).where(events.c.project_id == projects.c.id).order_by(events.c.serial.desc())
    serial = newest.limit(1).correlate(projects).scalar_subquery()
    return {
        project_id: found
        for ids in at_a_time(sorted(project_ids))
        for project_id, found in connection.execute(select(projects.c.id, serial).where(projects.c.id.in_(ids)))
        if found is not None
    }


@dataclass(frozen=True, slots=True)
class SeenNow:
    """The result of a visit that was just made.

    `page_serial` is the page's own serial; for a 404, the serial of the event that explains it, or None. Events are
    stored up to `seen_through`. The page shows no change beyond `shows_through`; None if this is unknown. `content` is
    the page's snapshot. `page_status` is None for a 404. `not_before` is the time (unix seconds) after which the
    changes on a page beyond the stored events happened; None if it is unknown.
    """

    project_id: int
    visit_id: int
    page_serial: int | None
    seen_through: int
    content: bytes
    page_status: str | None
    shows_through: int | None = None
    not_before: float | None = None


class StoredSighting(NamedTuple):
    """A row of `sightings`; `at` is in unix seconds.

    If `shows_through` was not stored, it is computed from the ranges that were allocated next, which extend to the
    index's serial. The second of them was certainly requested after the page.
    """

    id: int
    project_id: int
    visit_id: int | None
    page_serial: int | None
    seen_through: int
    snapshot_id: int
    page_status: str | None
    shows_through: int | None
    at: float


_NEXT_RANGES = (
    select(serial_ranges.c.end)
    .where(serial_ranges.c.requested_at >= sightings.c.at, serial_ranges.c.end > sightings.c.seen_through)
    .order_by(serial_ranges.c.requested_at, serial_ranges.c.start)
    .limit(1)
    .correlate(sightings)
)
_SHOWS_THROUGH = func.coalesce(
    sightings.c.shows_through, _NEXT_RANGES.offset(1).scalar_subquery(), _NEXT_RANGES.scalar_subquery()
)
_COLUMNS = (
    *(_SHOWS_THROUGH.label(name) if name == "shows_through" else sightings.c[name] for name in StoredSighting._fields),
)


def store_sightings(
    connection: Connection, seen: Sequence[SeenNow], now: float
) -> tuple[dict[int, int], dict[int, StoredSighting]]:
    """Store the sightings in `seen` that are new. There is at most one for each project.

    Return the snapshot id of each project, and the new sightings, by project id. A page that repeats its project's
    newest sighting is not stored again, nor is a 404 if no event came since.
    """
    newest = newest_sightings(connection, [one.project_id for one in seen])
    after = {one.content: newest[one.project_id].snapshot_id for one in seen if one.project_id in newest}
    by_content = store_snapshots(connection, [one.content for one in seen], after)
    snapshot_ids = {one.project_id: by_content[one.content] for one in seen}
    repeating = {
        one.project_id: before.seen_through
        for one in seen
        if (before := newest.get(one.project_id)) is not None
        and before.seen_through <= one.seen_through
        and (before.page_serial, before.snapshot_id, before.page_status)
        == (one.page_serial, snapshot_ids[one.project_id], one.page_status)
    }
    unexplained = {one.project_id for one in seen if one.page_serial is None and one.project_id in repeating}
    for project_id, serial in newest_events(connection, unexplained).items():
        if serial > repeating[project_id]:
            del repeating[project_id]
    new = [one for one in seen if one.project_id not in repeating]
    rows = [
        {
            "project_id": one.project_id,
            "visit_id": one.visit_id,
            "at": now,
            "page_serial": one.page_serial,
            "seen_through": one.seen_through,
            "snapshot_id": snapshot_ids[one.project_id],
            "page_status": one.page_status,
            "shows_through": one.shows_through,
            "not_before": one.not_before,
        }
        for one in new
    ]
    if not rows:
        return snapshot_ids, {}
    stored = connection.execute(
        insert(sightings).returning(*(sightings.c[name] for name in StoredSighting._fields)), rows
    )
    return snapshot_ids, {row.project_id: StoredSighting._make(row) for row in stored}


def bound_sightings(connection: Connection, project_ids: Sequence[int], since: float, through: int) -> None:
    """Store `through` as the limit of sightings of these projects that were made since `since` (unix seconds).

    They show no change beyond this serial. Sightings whose limit is known do not change.
    """
    for ids in at_a_time(sorted(project_ids)):
        unbound = (sightings.c.project_id.in_(ids), sightings.c.at >= since, sightings.c.shows_through.is_(None))
        connection.execute(update(sightings).where(*unbound).values(shows_through=through))


def has_page_of(connection: Connection, seen: StoredSighting) -> bool:
    """Check whether a page with this serial was seen before."""
    before = select(sightings.c.id).where(
        sightings.c.project_id == seen.project_id,
        sightings.c.page_serial == seen.page_serial,
        sightings.c.seen_through <= seen.seen_through,
        sightings.c.id != seen.id,
    )
    return connection.scalar(before.limit(1)) is not None


def newest_sightings(
    connection: Connection, project_ids: Collection[int], *where: ColumnElement[bool]
) -> dict[int, StoredSighting]:
    """Return the last sighting of each project that has one: the greatest `seen_through`, then the greatest id."""
    newest = select(sightings.c.id).where(sightings.c.project_id == projects.c.id, *where)
    newest = newest.order_by(sightings.c.seen_through.desc(), sightings.c.id.desc())
    return _of_each(connection, project_ids, newest)


def _of_each(
    connection: Connection, project_ids: Collection[int], first: Select[tuple[int]]
) -> dict[int, StoredSighting]:
    """Return the first sighting that `first` finds for each project. It reads one row for each project."""
    found: dict[int, StoredSighting] = {}
    query: Select[Any] = select(*_COLUMNS).join_from(
        projects, sightings, sightings.c.id == first.limit(1).correlate(projects).scalar_subquery()
    )
    for ids in at_a_time(sorted(project_ids)):
        for row in connection.execute(query.where(projects.c.id.in_(ids))):
            found[row.project_id] = StoredSighting._make(row)
    return found


def sightings_of(
    connection: Connection, project_ids: Collection[int], *where: ColumnElement[bool]
) -> list[StoredSighting]:
    """Return the sightings of these projects, in the order in which they were stored."""
    found = [
        StoredSighting._make(row)
        for ids in at_a_time(sorted(project_ids))
        for row in connection.execute(select(*_COLUMNS).where(sightings.c.project_id.in_(ids), *where))
    ]
    return sorted(found)
