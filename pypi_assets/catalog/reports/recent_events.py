"""What happened last on the index: the newest events that change files, of projects that are followed."""

from collections.abc import Iterator
from itertools import groupby, islice
from typing import TypedDict

from sqlalchemy import Connection, select

from pypi_assets.catalog.observed.followed import answered_at
from pypi_assets.catalog.reports.project_history import describe_event
from pypi_assets.catalog.tables import events, projects
from pypi_assets.index.actions import NO_FILE_CHANGE, Action, FileChange, file_change
from pypi_assets.index.models import ChangelogEvent

_LOOKED_AT = 500
"""How many events are looked at, at most: events of roles can follow each other for long."""
_Found = tuple[str, ChangelogEvent, FileChange]


class RecentEvent(TypedDict):
    """An event of a project (normalized), or the uploads to one release that followed each other.

    It is of `first_serial` to `serial`, `at` (unix seconds) the latter; `kind` is an Action.
    """

    serial: int
    first_serial: int
    at: int
    project: str
    kind: str
    text: str


def recent_events(connection: Connection, serial: int, most: int) -> list[RecentEvent]:
    """The newest `most` events up to `serial`, the newest first. It costs the same however many there are."""
    grouped = groupby(_newest(connection, serial), key=_group_of)
    return [_summarize(list(some)) for _, some in islice(grouped, most)]


def _newest(connection: Connection, serial: int) -> Iterator[_Found]:
    newest = select(events).where(events.c.serial <= serial).order_by(events.c.serial.desc()).limit(_LOOKED_AT)
    some = newest.subquery()
    rows = connection.execute(
        select(some, projects.c.normalized)
        .join(projects, projects.c.id == some.c.project_id)
        .where(answered_at(connection, projects.c.id, serial))
        .order_by(some.c.serial.desc())
    )
    for row in rows:
        event = ChangelogEvent(row.name, row.version, row.timestamp, row.action, row.serial)
        change = file_change(event)
        if change.action not in NO_FILE_CHANGE:
            yield row.normalized, event, change


def _group_of(found: _Found) -> tuple[object, ...]:
    project, event, change = found
    return (project, event.version) if change.action == Action.ADD_FILE else (event.serial,)


def _summarize(some: list[_Found]) -> RecentEvent:
    project, event, change = some[0]
    is_one = len(some) == 1
    return RecentEvent(
        serial=event.serial,
        first_serial=some[-1][1].serial,
        at=event.timestamp,
        project=project,
        kind=change.action.value,
        text=describe_event(event, change) if is_one else f"{len(some)} files of release {event.version} uploaded",
    )
