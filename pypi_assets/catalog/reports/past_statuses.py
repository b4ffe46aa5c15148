"""The status of a project at a serial (PEP 792), whether it had a page then, and the reasons of its yanks.

Quarantines, removals and registrations are events. Other statuses are known only from pages: a page is true at its own
serial, and also at the serial up to which events were known when it was seen, unless an event of the project lies
between. Each query reads a few rows through an index.

A reason counts for the whole interval in which the file was yanked. The last page before a serial and the first page
after it have all known reasons, since they show what any other page showed of the same interval.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import BindParameter, ColumnElement, Connection, Select, and_, bindparam, func, or_, select, union_all

from pypi_assets.catalog.database import storable
from pypi_assets.catalog.observed.projects import QUARANTINED, CatalogProject
from pypi_assets.catalog.observed.snapshots import read_snapshots
from pypi_assets.catalog.tables import events, sightings
from pypi_assets.index.actions import Action

ACTIVE = "active"
_DECIDING = (
    Action.QUARANTINE_PROJECT.value,
    Action.UNQUARANTINE_PROJECT.value,
    Action.REMOVE_PROJECT.value,
    Action.CREATE_PROJECT.value,
)
"""The kinds of events after which the status of a project is known."""

# Statements are built once: each page at a serial uses them, and building them takes longer than running them.
_PROJECT: BindParameter[int] = bindparam("project")
_SERIAL: BindParameter[int] = bindparam("serial")
_AFTER: BindParameter[int] = bindparam("after")
_LAST_SERIALS = union_all(
    select(func.max(events.c.serial)).where(events.c.project_id == _PROJECT, events.c.serial <= _SERIAL),
    select(func.max(sightings.c.page_serial)).where(
        sightings.c.project_id == _PROJECT, sightings.c.page_serial <= _SERIAL
    ),
)
_NEXT_EVENT = (
    select(events.c.serial)
    .where(events.c.project_id == _PROJECT, events.c.serial > _AFTER, events.c.serial <= _SERIAL)
    .order_by(events.c.serial)
    .limit(1)
)
_LAST_DECIDING_EVENT, _LAST_ADDED_FILE = (
    select(events.c.serial, events.c.kind)
    .where(
        events.c.project_id == _PROJECT,
        events.c.serial > _AFTER,
        events.c.serial <= _SERIAL,
        events.c.kind.in_(kinds),
    )
    .order_by(events.c.serial.desc())
    .limit(1)
    for kinds in (_DECIDING, (Action.ADD_FILE.value,))
)
_OWN_PAGE = (
    select(sightings.c.page_serial, sightings.c.page_status)
    .where(sightings.c.project_id == _PROJECT, sightings.c.page_serial <= _SERIAL)
    .order_by(sightings.c.page_serial.desc(), sightings.c.seen_through, sightings.c.id)
    .limit(1)
)
_LAST_SEEN_PAGE = (
    select(sightings.c.seen_through, sightings.c.page_status)
    .where(
        sightings.c.project_id == _PROJECT,
        sightings.c.seen_through <= _SERIAL,
        sightings.c.seen_through >= _AFTER,
        or_(
            and_(sightings.c.page_serial == _AFTER, sightings.c.seen_through < bindparam("next_event")),
            sightings.c.page_serial.is_(None),
        ),
    )
    .order_by(sightings.c.seen_through.desc(), sightings.c.id.desc())
    .limit(1)
)


class _ShownStatus(NamedTuple):
    """The status on a page, and the serial from which it counts. A status of None means that there was no page."""

    serial: int
    status: str | None


def page_status_at(connection: Connection, project: CatalogProject, serial: int, *, has_live_files: bool) -> str | None:
    """Return the status that the project's page showed at `serial`; None if it had no page.

    A project with live files was not quarantined.
    """
    status = status_at(connection, project, serial)
    return ACTIVE if has_live_files and status in {None, QUARANTINED} else status


def status_at(connection: Connection, project: CatalogProject, serial: int) -> str | None:
    """Return the status of the project at `serial`; None if it had no page.

    It is also None if no page and no event shows that the project had a page. For a project with live files, None means
    that its status is not known to differ from `active`.
    """
    shown = _page_until(connection, project.id, serial)
    since = project.known_since if shown is None else shown.serial
    decided = _last_event(connection, _LAST_DECIDING_EVENT, project.id, since, serial)
    if decided is not None:
        return _after(connection, project.id, decided, serial)
    if shown is None:
        return _before_all(connection, project, serial)
    return _again(connection, project.id, shown.serial, serial) if shown.status is None else shown.status


def last_serial_at(connection: Connection, project_id: int, serial: int) -> int | None:
    """Return the serial of the project's last event up to `serial`, from stored events and seen pages.

    Return None if neither is known.
    """
    found = connection.scalars(_LAST_SERIALS, {"project": project_id, "serial": serial})
    return max((one for one in found if one is not None), default=None)


def _page_until(connection: Connection, project_id: int, serial: int) -> _ShownStatus | None:
    """Return the status on the newest page that counts at `serial` or before."""
    place = {"project": project_id, "serial": serial}
    own = connection.execute(_OWN_PAGE, place).first()
    place["after"] = -1 if own is None else own.page_serial
    next_event = connection.scalar(_NEXT_EVENT, place)
    place["next_event"] = serial + 1 if next_event is None else next_event
    later = connection.execute(_LAST_SEEN_PAGE, place).first()
    found = later if later is not None else own
    return None if found is None else _ShownStatus(found[0], found[1])


def _last_event(
    connection: Connection, event: Select[tuple[int, str]], project_id: int, after: int, serial: int
) -> _ShownStatus | None:
    """Return the last event of a kind after the serial `after` and up to `serial`, with its kind as the status."""
    row = connection.execute(event, {"project": project_id, "after": after, "serial": serial}).first()
    return None if row is None else _ShownStatus(row.serial, row.kind)


def _after(connection: Connection, project_id: int, event: _ShownStatus, serial: int) -> str | None:
    if event.status == Action.QUARANTINE_PROJECT:
        return QUARANTINED
    return _again(connection, project_id, event.serial, serial) if event.status == Action.REMOVE_PROJECT else ACTIVE


def _again(connection: Connection, project_id: int, gone: int, serial: int) -> str | None:
    """Return the status of a project that had no page at the serial `gone`. It has one again once a file is added."""
    added = _last_event(connection, _LAST_ADDED_FILE, project_id, gone, serial)
    return None if added is None else ACTIVE


def _before_all(connection: Connection, project: CatalogProject, serial: int) -> str | None:
    """Return the status before the first page and the first deciding event, as far as these imply it."""
    c = events.c
    first = connection.execute(
        select(c.serial, c.kind)
        .where(c.project_id == project.id, c.serial > max(serial, project.known_since), c.kind.in_(_DECIDING))
        .order_by(c.serial)
        .limit(1)
    ).first()
    if first is not None and first.kind == Action.UNQUARANTINE_PROJECT:
        return QUARANTINED
    seen = sightings.c
    page = connection.execute(
        select(seen.page_serial, seen.page_status)
        .where(seen.project_id == project.id, seen.page_serial > serial)
        .order_by(seen.page_serial, seen.seen_through, seen.id)
        .limit(1)
    ).first()
    if page is None or (first is not None and first.serial <= page.page_serial):
        return None
    return str(page.page_status) if page.page_status not in {None, ACTIVE} else None


class YankedFile(NamedTuple):
    """A file that is yanked from the serial `since` up to `until` (None: it still is).

    `newest` is the reason on its newest page.
    """

    filename: str
    since: int
    until: int | None
    newest: str | None


def yank_reasons(
    connection: Connection, project_id: int, serial: int, yanked: Sequence[YankedFile]
) -> dict[str, str | None]:
    """Return the reasons at `serial` for these files, by name; None if no reason was given or known."""
    if not yanked:
        return {}
    found = {file.filename: file.newest if file.until is None else None for file in yanked}
    c = sightings.c
    nearest = (
        _page(connection, (c.project_id == project_id, c.page_serial > serial), c.page_serial, c.seen_through),
        _page(
            connection,
            (c.project_id == project_id, c.page_serial <= serial),
            c.page_serial.desc(),
            c.seen_through.desc(),
        ),
    )
    pages = [page for page in nearest if page is not None]
    shown = dict(read_snapshots(connection, {page.snapshot_id for page in pages}))
    # Later items win: the page before the serial over the page after it, and a page's own serial over its
    # seen_through, since a page can be newer than its serial.
    for through, page in [*((page.seen_through, page) for page in pages), *((page.serial, page) for page in pages)]:
        reasons = shown[page.snapshot_id].reasons
        for file in yanked:
            is_of_it = file.since <= through and (file.until is None or page.serial < file.until)
            if is_of_it and file.filename in reasons:
                found[file.filename] = storable(reasons[file.filename])
    return found


class _Page(NamedTuple):
    serial: int
    seen_through: int
    snapshot_id: int


def _page(connection: Connection, where: Sequence[ColumnElement[bool]], *order: ColumnElement[int]) -> _Page | None:
    """Return the first page in this order; None if there is none."""
    c = sightings.c
    query = select(c.page_serial, c.seen_through, c.snapshot_id).where(*where).order_by(*order, c.id)
    row = connection.execute(query.limit(1)).first()
    return None if row is None else _Page._make(row)
