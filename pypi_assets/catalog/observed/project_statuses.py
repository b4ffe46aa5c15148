"""The statuses of projects as their newest pages show them (PEP 792).

A status can change without an event. Rows of live files hold it, so they are published again. A status counts from the
serial of a page that is new, or from where it was seen, like all that changes without an event.
"""

from collections.abc import Iterable, Mapping

from sqlalchemy import Connection, bindparam, or_, select, update

from pypi_assets.catalog.database import at_a_time, storable
from pypi_assets.catalog.ledger.epochs import note_change
from pypi_assets.catalog.ledger.range_ledger import lock_state
from pypi_assets.catalog.observed.project_names import log_live_files
from pypi_assets.catalog.observed.projects import Project
from pypi_assets.catalog.observed.sightings import StoredSighting
from pypi_assets.catalog.tables import projects
from pypi_assets.index.models import ProjectPage

QUARANTINED = "quarantined"
"""The status of a project all of whose files are hidden."""


def note_statuses(
    connection: Connection,
    visited: Iterable[Project],
    pages: Mapping[int, ProjectPage],
    seen: Mapping[int, StoredSighting],
) -> None:
    """Stores the statuses that pages of these projects show, and logs what follows for dumps and for epochs.

    `pages` were just seen, and `seen` is what is new of that; both by project id. The projects are locked.
    """
    changed = _changed(connection, pages, seen)
    if pages:
        is_newest = or_(projects.c.page_serial.is_(None), projects.c.page_serial <= bindparam("serial"))
        connection.execute(
            update(projects)
            .where(projects.c.id == bindparam("of_project"), is_newest)
            .values(page_serial=bindparam("serial"), status=bindparam("page_status")),
            [
                {"of_project": id_, "serial": page.last_serial, "page_status": storable(page.status)}
                for id_, page in sorted(pages.items())
            ],
        )
    if changed:
        log_live_files(connection, changed)
    visible = [*changed.values(), *_first_quarantines(visited, pages), *_vanished(seen)]
    if visible:
        lock_state(connection, exclusive=False)
        note_change(connection, min(visible))


def _changed(
    connection: Connection, pages: Mapping[int, ProjectPage], seen: Mapping[int, StoredSighting]
) -> dict[int, int]:
    """The projects whose status is another one than on the page before, each with the serial from which that counts."""
    found = {}
    of = projects.c
    for ids in at_a_time(sorted(pages.keys() & seen.keys())):
        for row in connection.execute(select(of.id, of.status, of.page_serial).where(of.id.in_(ids))):
            page, before = pages[row.id], row.page_serial
            if before is not None and before <= page.last_serial and row.status != storable(page.status):
                found[row.id] = page.last_serial if page.last_serial > before else seen[row.id].seen_through
    return found


def _first_quarantines(visited: Iterable[Project], pages: Mapping[int, ProjectPage]) -> Iterable[int]:
    """Since when projects have a page that are quarantined on the first one that was ever seen."""
    for project in visited:
        page = pages.get(project.id)
        if page is not None and project.page_serial is None and page.status == QUARANTINED:
            yield project.known_since


def _vanished(seen: Mapping[int, StoredSighting]) -> Iterable[int]:
    """From where on projects have no page any more."""
    return (one.seen_through for one in seen.values() if one.page_status is None)
