"""What the pages of projects showed, and at which serials that is known to hold."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select

from pypi_assets.catalog.derived.file_history import SeenPage
from pypi_assets.catalog.observed.snapshots import read_snapshots
from pypi_assets.catalog.tables import visit_statuses, visits
from pypi_assets.index.models import ChangelogEvent


@dataclass(frozen=True, slots=True)
class Sighting:
    """What one visit saw: for each filename on the page, whether it was yanked.

    `page_serial` is the page's own serial; without a page, that of the event that explains the 404, or None. Events
    were stored up to `seen_through` at that time.
    """

    page_serial: int | None
    seen_through: int
    shown: Mapping[str, bool]
    is_page: bool


def seen_pages(sightings: Sequence[Sighting], events: Sequence[ChangelogEvent], known_since: int) -> Iterator[SeenPage]:
    """What the project's pages showed at which serial, in the order of the visits.

    A page holds at its own serial. It also holds at each serial up to which events were stored when it was seen, unless
    an event of the project or a newer page lies between. So a change without an event (drift, an unexplained 404)
    counts from the serial where it was seen, and an earlier page of the same serial stays true of the past. Before the
    first stored event only the newest page up to there counts.
    """
    page_serials = {seen.page_serial for seen in sightings if seen.is_page and seen.page_serial is not None}
    serials = sorted(page_serials.union(event.serial for event in events))
    first = max((serial for serial in page_serials if serial <= known_since), default=0)
    known_pages: set[int] = set()
    for sighting in sightings:
        serial, through = sighting.page_serial, sighting.seen_through
        if serial is not None and serial >= first and serial not in known_pages:
            known_pages.add(serial)
            yield SeenPage(serial, sighting.shown)
        if serial is None or bisect_right(serials, serial) == bisect_right(serials, through):
            yield SeenPage(through, sighting.shown)


def load_sightings(connection: Connection, project_ids: Sequence[int]) -> dict[int, list[Sighting]]:
    """All sightings of each project, in the order of its visits."""
    rows = connection.execute(
        select(
            visits.c.project_id,
            visit_statuses.c.page_serial,
            visit_statuses.c.seen_through,
            visit_statuses.c.snapshot_id,
            visit_statuses.c.page_status.is_not(None).label("is_page"),
        )
        .join(visits, visits.c.id == visit_statuses.c.visit_id)
        .where(visits.c.project_id.in_(project_ids), visit_statuses.c.snapshot_id.is_not(None))
        .order_by(visit_statuses.c.id)
    ).all()
    shown = {
        snapshot_id: {filename: yanked for filename, _, yanked in snapshot.files}
        for snapshot_id, snapshot in read_snapshots(connection, {row.snapshot_id for row in rows})
    }
    found: dict[int, list[Sighting]] = {project_id: [] for project_id in project_ids}
    for row in rows:
        sighting = Sighting(row.page_serial, row.seen_through, shown[row.snapshot_id], bool(row.is_page))
        found[row.project_id].append(sighting)
    return found
