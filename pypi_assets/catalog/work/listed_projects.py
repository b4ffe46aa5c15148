"""Compare the index's list of projects with the catalog: find projects whose serial differs, and unlisted projects."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, exists, func, or_, select, update

from pypi_assets.catalog.database import at_a_time, lock_rows, upsert
from pypi_assets.catalog.ledger.range_ledger import SIMPLE, allocate_range, lock_state
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.events import changed_projects, events_through
from pypi_assets.catalog.observed.followed import followed_of, follows_all, is_followed
from pypi_assets.catalog.observed.projects import ShownName, enter_projects, log_renamed, project_ids, rename_projects
from pypi_assets.catalog.tables import (
    distributions,
    events,
    live_intervals,
    projects,
    sightings,
    visit_queue,
)
from pypi_assets.catalog.work.visit_queue import LISTING, TaskState, queue_visits, range_workload, turns_of
from pypi_assets.index.models import ListedProject


@dataclass(frozen=True, slots=True)
class ComparedProject:
    """The catalog's and the list's facts about a project.

    `known_serial` is the greatest serial of its events and pages; -1 if it has none. `listed_serial` is None if the
    project is not listed.
    """

    id: int
    shard: int
    name: str
    known_serial: int
    listed_serial: int | None


def compare_listed(
    connection: Connection, page: Sequence[ListedProject], list_serial: int, *, only_followed: bool = False
) -> list[ComparedProject]:
    """Return the projects of one page of the list, which has the serial `list_serial`. New projects are inserted.

    Their `listed_serial` is 0 if the list has no serial for them. With `only_followed`, other projects are omitted, and
    none is inserted, if scopes decide which projects are followed.
    """
    through = events_through(connection)
    listed = {project.normalized: project for project in page}
    if only_followed and not follows_all(connection):
        known = project_ids(connection, sorted(listed))
        followed = followed_of(connection, sorted(known.values()))
        listed = {name: listed[name] for name, id_ in known.items() if id_ in followed}
    serials = {name: project.last_serial or 0 for name, project in listed.items()}
    new = listed.keys() - project_ids(connection, sorted(listed)).keys()
    # no event lies between a project's last one and the list, so all events above the list's serial are stored later
    enter_projects(
        connection,
        [
            (listed[name].name, through if serials[name] > through else list_serial, listed[name].last_serial)
            for name in sorted(new)
        ],
    )
    return [
        ComparedProject(row.id, row.shard, row.name, _known(row), serials[row.normalized])
        for names in at_a_time(sorted(listed))
        for row in connection.execute(_known_projects().where(projects.c.normalized.in_(names)))
    ]


def rename_listed(connection: Connection, page: Iterable[ListedProject]) -> None:
    """Give the projects of one page of the list the names that it shows.

    Queue visits before that, since this locks projects and the state of the catalog.
    """
    log_renamed(connection, rename_projects(connection, shown_names(page)))


def shown_names(listed: Iterable[ListedProject]) -> Iterator[ShownName]:
    """Return the names of projects on the list that have a serial there."""
    return (ShownName(project.name, project.last_serial) for project in listed if project.last_serial is not None)


def unlisted_projects(
    connection: Connection, is_listed: Callable[[int], bool], list_serial: int
) -> list[ComparedProject]:
    """Return the followed projects with live files that the list lacks; `is_listed` is called with their ids.

    Projects with a known serial above `list_serial` are skipped: they appeared after the list was made.
    """
    is_wanted = has_live_files(), is_followed(connection, projects.c.id)
    query = _known_projects().where(*is_wanted).execution_options(yield_per=1_000)
    return [
        ComparedProject(row.id, row.shard, row.name, known, None)
        for row in connection.execute(query)
        if not is_listed(row.id) and (known := _known(row)) <= list_serial
    ]


def known_serials(connection: Connection, ids: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return (id, shard, greatest known serial) for each of these projects; the serial is 0 if none is known."""
    return [
        (row.id, row.shard, max(_known(row), 0))
        for chunk in at_a_time(ids)
        for row in connection.execute(_known_projects().where(projects.c.id.in_(chunk)))
    ]


def has_live_files() -> ColumnElement[bool]:
    """Return the condition that a file of the row of `projects` is live now."""
    return exists().where(
        distributions.c.project_id == projects.c.id,
        live_intervals.c.distribution_id == distributions.c.id,
        live_intervals.c.end.is_(None),
    )


def _known_projects() -> Select[Any]:
    last_event = select(func.max(events.c.serial)).where(events.c.project_id == projects.c.id).scalar_subquery()
    columns = (projects.c.id, projects.c.shard, projects.c.normalized, projects.c.name, projects.c.page_serial)
    return select(*columns, last_event.label("event_serial"))


def _known(row: Row[Any]) -> int:
    return max(-1 if row.page_serial is None else row.page_serial, -1 if row.event_serial is None else row.event_serial)


def queue_listed(
    connection: Connection, compared: Collection[ComparedProject], list_serial: int, workload: str = LISTING
) -> None:
    """Queue visits of these projects for `workload`, by default for the next range.

    They replace visits that an older list queued. The page of an unlisted project must be newer than everything known
    of it.
    """
    min_serials = {
        project.id: project.known_serial + 1 if project.listed_serial is None else project.listed_serial
        for project in compared
    }
    turns = turns_of(connection, min_serials)
    rows = [
        {
            "workload": workload,
            "project_id": project.id,
            "shard": project.shard,
            "min_serial": min_serials[project.id],
            "listed_at": None if project.listed_serial is None else list_serial,
            "unlisted_at": list_serial if project.listed_serial is None else None,
            "state": TaskState.TODO,
        }
        | turns[project.id]
        for project in sorted(compared, key=lambda project: project.id)
    ]
    replaced = ("min_serial", "listed_at", "unlisted_at", "state", "nice", "due_at")
    upsert(connection, visit_queue, rows, key=("workload", "project_id"), update=replaced)


def allocate_listed_range(connection: Connection, list_serial: int, now: float) -> SerialRange | None:
    """Allocate the range up to `list_serial`, which makes the queued visits. Return None if it has no serials.

    Stored events may be newer than the list, so the projects that they change are visited too.
    """
    lock_rows(connection, visit_queue, visit_queue.c.workload == LISTING)
    lock_state(connection, exclusive=True)
    serials = allocate_range(connection, list_serial, now, SIMPLE)
    if serials is None:
        return None
    workload = range_workload(serials)
    connection.execute(update(visit_queue).where(visit_queue.c.workload == LISTING).values(workload=workload))
    queue_visits(connection, workload, changed_projects(connection, serials))
    return serials


def exact_again_from(connection: Connection, serials: SerialRange) -> int:
    """Return the first serial after a listed range for which the catalog will have answers once the range is complete.

    This is the serial of the list, unless a page was newer, or no page with a project's listed serial was seen. Then
    the state at the serial of the list is not known.
    """
    newest_page = connection.scalar(select(func.max(projects.c.page_serial))) or 0
    return max(serials.end + is_any_unseen(connection, range_workload(serials)), newest_page)


def is_any_unseen(connection: Connection, workload: str) -> bool:
    """Check whether a list had `workload` visit a project, but the visit did not show it as the list does.

    No page with its listed serial was seen, or an unlisted project still has its page.
    """
    last_404 = select(sightings.c.page_status).where(sightings.c.project_id == projects.c.id)
    last_404 = last_404.order_by(sightings.c.seen_through.desc(), sightings.c.id.desc()).limit(1)
    unseen = (
        select(visit_queue.c.project_id)
        .join(projects, projects.c.id == visit_queue.c.project_id)
        .where(
            visit_queue.c.workload == workload,
            or_(visit_queue.c.listed_at.is_not(None), visit_queue.c.unlisted_at.is_not(None)),
            or_(projects.c.page_serial.is_(None), projects.c.page_serial < visit_queue.c.min_serial),
            or_(visit_queue.c.listed_at.is_not(None), last_404.scalar_subquery().is_not(None)),
        )
    )
    return connection.scalar(unseen.limit(1)) is not None
