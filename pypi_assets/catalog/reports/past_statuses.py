"""The status of a project at a serial (PEP 792), and whether it had a page there.

Quarantines, removals and registrations are events. Other statuses are known from pages alone: a page holds at its own
serial, and where it was seen, unless an event of the project lies between. Each query looks at a few rows by an index.
"""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import Connection, and_, or_, select

from pypi_assets.catalog.observed.project_statuses import QUARANTINED
from pypi_assets.catalog.observed.projects import Project
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


class _Shown(NamedTuple):
    """What a page showed: the serial where that counts from, and the status. None: there was no page."""

    serial: int
    status: str | None


def status_at(connection: Connection, project: Project, serial: int) -> str | None:
    """The status of the project at `serial`; None where it had no page, or where no page and no event shows that it
    had one. Of a project with live files that means that its status is not known to differ from `active`."""
    shown = _page_until(connection, project.id, serial)
    since = project.known_since if shown is None else shown.serial
    decided = _deciding_event(connection, project.id, since, serial)
    if decided is not None:
        return _after(connection, project.id, decided, serial)
    if shown is None:
        return _before_all(connection, project, serial)
    return _again(connection, project.id, shown.serial, serial) if shown.status is None else shown.status


def last_event_at(connection: Connection, project_id: int, serial: int) -> int | None:
    """The serial of the project's last event up to `serial`, as far as events are stored."""
    of = events.c
    query = select(of.serial).where(of.project_id == project_id, of.serial <= serial)
    return connection.scalar(query.order_by(of.serial.desc()).limit(1))


def _page_until(connection: Connection, project_id: int, serial: int) -> _Shown | None:
    """What the newest page showed that counts at `serial` or before."""
    of = sightings.c
    own = connection.execute(
        select(of.page_serial, of.page_status)
        .where(of.project_id == project_id, of.page_serial <= serial)
        .order_by(of.page_serial.desc(), of.seen_through, of.id)
        .limit(1)
    ).first()
    newest = -1 if own is None else own.page_serial
    following = select(events.c.serial).where(
        events.c.project_id == project_id, events.c.serial > newest, events.c.serial <= serial
    )
    next_event = connection.scalar(following.order_by(events.c.serial).limit(1))
    holds = and_(of.page_serial == newest, of.seen_through < (serial + 1 if next_event is None else next_event))
    later = connection.execute(
        select(of.seen_through, of.page_status)
        .where(
            of.project_id == project_id,
            of.seen_through <= serial,
            of.seen_through >= newest,
            or_(holds, of.page_serial.is_(None)),
        )
        .order_by(of.seen_through.desc(), of.id.desc())
        .limit(1)
    ).first()
    found = later if later is not None else own
    return None if found is None else _Shown(found[0], found[1])


def _deciding_event(
    connection: Connection, project_id: int, after: int, serial: int, kinds: Collection[str] = _DECIDING
) -> _Shown | None:
    """The last of these events after the serial `after` and up to `serial`, with its kind as the status."""
    of = events.c
    query = select(of.serial, of.kind).where(
        of.project_id == project_id, of.serial > after, of.serial <= serial, of.kind.in_(kinds)
    )
    row = connection.execute(query.order_by(of.serial.desc()).limit(1)).first()
    return None if row is None else _Shown(row.serial, row.kind)


def _after(connection: Connection, project_id: int, event: _Shown, serial: int) -> str | None:
    if event.status == Action.QUARANTINE_PROJECT:
        return QUARANTINED
    return _again(connection, project_id, event.serial, serial) if event.status == Action.REMOVE_PROJECT else ACTIVE


def _again(connection: Connection, project_id: int, gone: int, serial: int) -> str | None:
    """The status of a project that had no page at the serial `gone`: it has one again once a file is added."""
    added = _deciding_event(connection, project_id, gone, serial, (Action.ADD_FILE.value,))
    return None if added is None else ACTIVE


def _before_all(connection: Connection, project: Project, serial: int) -> str | None:
    """The status before the first page and the first deciding event: what follows from these."""
    of = events.c
    first = connection.execute(
        select(of.serial, of.kind)
        .where(of.project_id == project.id, of.serial > max(serial, project.known_since), of.kind.in_(_DECIDING))
        .order_by(of.serial)
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
