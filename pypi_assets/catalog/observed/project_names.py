"""The names of projects as displayed, and their statuses (PEP 792).

A name follows the newest event or list of projects that shows another one, and a status the newest page.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from packaging.utils import canonicalize_name
from sqlalchemy import Connection, bindparam, func, or_, select, update

from pypi_assets.catalog.database import at_a_time, sent_values, storable
from pypi_assets.catalog.ledger.epochs import note_change, note_changed_projects
from pypi_assets.catalog.ledger.range_ledger import lock_state, log_changes, seals
from pypi_assets.catalog.observed.projects import Project
from pypi_assets.catalog.observed.sightings import StoredSighting, newest_events
from pypi_assets.catalog.tables import distributions, live_intervals, projects
from pypi_assets.index.models import ProjectPage

CORRECTED = "corrected"
"""The cause of a change that is in no history of a file: its row is recorded otherwise than before."""


class ShownName(NamedTuple):
    """A project's name as displayed by an event or on a list, with the serial of that event or of the project there."""

    name: str
    serial: int


def rename_projects(connection: Connection, shown: Iterable[ShownName], *, are_events: bool = False) -> dict[int, int]:
    """Gives known projects the names that are newer than theirs. Returns the serials of the new names, by project id.

    A list counts before the event of the same serial, which can be stored once more after it.
    It locks these projects, so call it before anything that locks the state of the catalog. `log_renamed` follows.
    """
    newest: dict[str, ShownName] = {}
    for one in shown:
        normalized = canonicalize_name(one.name)
        if normalized not in newest or one.serial >= newest[normalized].serial:
            newest[normalized] = one
    named = sent_values(connection, projects.c.normalized, sorted(newest))
    columns = (projects.c.id, projects.c.normalized, projects.c.name, projects.c.named_at)
    known = connection.execute(select(*columns).join(named, projects.c.normalized == named.c.value)).all()
    other = {row.id: row for row in known if storable(newest[row.normalized].name) != row.name}
    last_events = newest_events(connection, other)
    renamed = {
        id_: newest[row.normalized]
        for id_, row in sorted(other.items())
        if newest[row.normalized].serial >= max((row.named_at or 0) + are_events, last_events.get(id_, 0))
    }
    if renamed:
        connection.execute(
            update(projects)
            .where(projects.c.id == bindparam("of_project"), func.coalesce(projects.c.named_at, 0) <= bindparam("at"))
            .values(name=bindparam("new_name"), named_at=bindparam("at")),
            [{"of_project": id_, "new_name": storable(one.name), "at": one.serial} for id_, one in renamed.items()],
        )
    return {id_: one.serial for id_, one in renamed.items()}


def log_renamed(connection: Connection, renamed: Mapping[int, int]) -> None:
    """Logs the live files of renamed projects, so that the next dumps have their rows; serials by project id."""
    if not renamed:
        return
    log_live_files(connection, renamed)
    note_changed_projects(connection, renamed)


def log_live_files(connection: Connection, serials: Mapping[int, int]) -> None:
    """Logs the live files of these projects at a serial each, so that the next dumps have their rows: what rows hold of
    a project has changed. It costs by the files of the projects, and locks the state."""
    lock_state(connection, exclusive=False)
    sealed = seals(connection)
    is_live = live_intervals.c.distribution_id == distributions.c.id
    live = select(distributions.c.id, distributions.c.project_id).join(live_intervals, is_live)
    live = live.where(live_intervals.c.end.is_(None))
    for ids in at_a_time(sorted(serials)):
        rows = [
            {"distribution_id": id_, "serial": serials[project_id], "cause": CORRECTED, "logged_serial": logged}
            for id_, project_id in connection.execute(live.where(distributions.c.project_id.in_(ids)))
            for logged in sealed.logged_serials(max(serials[project_id], 1))
        ]
        log_changes(connection, rows)


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
