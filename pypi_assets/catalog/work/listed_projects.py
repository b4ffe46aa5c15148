"""The index's list of projects compared with the catalog: projects whose serial differs, and those not listed."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, exists, func, or_, select, update

from pypi_assets.catalog.database import at_a_time, lock_rows, upsert
from pypi_assets.catalog.ledger.range_ledger import SIMPLE, allocate_range, lock_state
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.events import changed_projects, events_through
from pypi_assets.catalog.observed.projects import ShownName, enter_projects, log_renamed, project_ids, rename_projects
from pypi_assets.catalog.tables import (
    distributions,
    events,
    live_intervals,
    projects,
    visit_queue,
)
from pypi_assets.catalog.work.visit_queue import LISTING, TaskState, queue_visits, range_workload, turns_of
from pypi_assets.index.models import ListedProject


@dataclass(frozen=True, slots=True)
class ComparedProject:
    """A project as the catalog knows it and as it is listed.

    `known_serial` is the greatest serial of its events and pages; -1 without any. `listed_serial` is None where the
    project is not listed.
    """

    id: int
    shard: int
    name: str
    known_serial: int
    listed_serial: int | None


def compare_listed(connection: Connection, page: Sequence[ListedProject], list_serial: int) -> list[ComparedProject]:
    """The projects of one page of the list, which is of `list_serial`. New ones are entered.

    Their `listed_serial` is 0 where the list has none.
    """
    through = events_through(connection)
    listed = {project.normalized: project for project in page}
    serials = {name: project.last_serial or 0 for name, project in listed.items()}
    new = listed.keys() - project_ids(connection, sorted(listed)).keys()
    enter_projects(  # no event lies between a project's last one and the list, so those above the latter are stored too
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
    """Gives the projects of one page of the list the names that it shows. Visits are queued before that, since this
    locks projects, and the state of the catalog."""
    log_renamed(connection, rename_projects(connection, shown_names(page)))


def shown_names(listed: Iterable[ListedProject]) -> Iterator[ShownName]:
    """The names of projects on the list, where it has the serial at which a project is displayed so."""
    return (ShownName(project.name, project.last_serial) for project in listed if project.last_serial is not None)


def unlisted_projects(
    connection: Connection, is_listed: Callable[[int], bool], list_serial: int
) -> list[ComparedProject]:
    """The projects with live files that the list lacks; `is_listed` is called with their ids.

    Projects with a known serial above `list_serial` are left out: they appeared after the list was made.
    """
    query = _known_projects().where(has_live_files()).execution_options(yield_per=1_000)
    return [
        ComparedProject(row.id, row.shard, row.name, known, None)
        for row in connection.execute(query)
        if not is_listed(row.id) and (known := _known(row)) <= list_serial
    ]


def known_serials(connection: Connection, ids: Sequence[int]) -> list[tuple[int, int, int]]:
    """For each of these projects: its id, its shard, and its greatest known serial (0 without any)."""
    return [
        (row.id, row.shard, max(_known(row), 0))
        for some in at_a_time(ids)
        for row in connection.execute(_known_projects().where(projects.c.id.in_(some)))
    ]


def has_live_files() -> ColumnElement[bool]:
    """Whether any file of the row of `projects` is live now."""
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
    """Queues visits of these projects for `workload`, by default for the next range.

    They replace visits that an older list queued. Of an unlisted project, a page newer than all that is known is
    needed.
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
    """Allocates the range up to `list_serial`, which visits what was queued; None where there are no serials for it.

    Stored events know more than the list, so the projects that they change are visited too.
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
    """The first serial after a range that a list brought for which the catalog has answers, once it is complete.

    It is the serial of the list, unless a page was newer, or no page was seen of the serial that the list shows for a
    project. Then the state at the serial of the list is not known.
    """
    newest_page = connection.scalar(select(func.max(projects.c.page_serial))) or 0
    return max(serials.end + is_any_unseen(connection, range_workload(serials)), newest_page)


def is_any_unseen(connection: Connection, workload: str) -> bool:
    """Whether a list had `workload` visit a project of which no page of its listed serial was seen."""
    unseen = (
        select(visit_queue.c.project_id)
        .join(projects, projects.c.id == visit_queue.c.project_id)
        .where(
            visit_queue.c.workload == workload,
            visit_queue.c.listed_at.is_not(None),
            or_(projects.c.page_serial.is_(None), projects.c.page_serial < visit_queue.c.min_serial),
        )
    )
    return connection.scalar(unseen.limit(1)) is not None
