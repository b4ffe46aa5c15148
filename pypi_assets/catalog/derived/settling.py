"""Ends the entering of projects: from which serial on there are answers about them, and what dumps publish of that."""

from collections.abc import Sequence

from sqlalchemy import Connection, func, select

from pypi_assets.catalog.database import at_a_time, insert_missing, lock_rows
from pypi_assets.catalog.derived.visits import recompute_explained
from pypi_assets.catalog.ledger.epochs import note_change
from pypi_assets.catalog.ledger.range_ledger import complete_serial, first_range, lock_state, sealed_end
from pypi_assets.catalog.observed.followed import FOLLOWED, UNFOLLOWED, settle
from pypi_assets.catalog.observed.projects import PROJECT_COLUMNS, Project
from pypi_assets.catalog.reads.read_outcomes import Outcome
from pypi_assets.catalog.tables import (
    changes,
    distribution_data,
    distributions,
    events,
    followed_intervals,
    live_intervals,
    projects,
    read_queue,
    scope_projects,
    visit_queue,
)
from pypi_assets.catalog.work.visit_queue import TaskState
from pypi_assets.index.actions import Action

_TAKES_AWAY = (
    Action.REMOVE_FILE,
    Action.REMOVE_RELEASE,
    Action.REMOVE_PROJECT,
    Action.QUARANTINE_PROJECT,
    Action.QUARANTINE_RELEASE,
)
"""What these hide before a project's first page can never be seen."""


def entering_in(connection: Connection, workload: str, more_files_than: int | None = None) -> list[int]:
    """The projects of `workload` that are entering, were visited, and have no file left to read; with
    `more_files_than` instead those that have more left to read than that."""
    left = (
        select(func.count())
        .select_from(read_queue)
        .where(read_queue.c.project_id == visit_queue.c.project_id)
        .correlate(visit_queue)
        .scalar_subquery()
    )
    of = followed_intervals.c
    query = (
        select(visit_queue.c.project_id)
        .join(followed_intervals, of.project_id == visit_queue.c.project_id)
        .where(
            visit_queue.c.workload == workload,
            visit_queue.c.state == TaskState.DONE,
            of.exact_from.is_(None),
            of.end.is_(None),
            left == 0 if more_files_than is None else left > more_files_than,
        )
        .order_by(visit_queue.c.project_id)
    )
    return list(connection.scalars(query))


def explain_entering(connection: Connection, project_ids: Sequence[int], through: int) -> None:
    """Computes these projects again, now that the events are stored up to `through`: the index's last serial after
    their first pages were fetched."""
    since: dict[int, float] = {}
    for ids in at_a_time(project_ids):
        of = scope_projects.c
        query = select(of.project_id, func.min(of.entered_at)).where(of.project_id.in_(ids)).group_by(of.project_id)
        since.update((project_id, at) for project_id, at in connection.execute(query))
    recompute_explained(connection, project_ids, min(since.values(), default=0.0), through)


def settle_projects(connection: Connection, workload: str, project_ids: Sequence[int]) -> int:
    """Settles those of these projects of which still nothing is left, and logs their files for the next dump.

    Returns how many.
    """
    lock_rows(connection, projects, projects.c.id.in_(project_ids))
    settled = sorted(set(project_ids) & set(entering_in(connection, workload)))
    exact_from = {}
    for ids in at_a_time(settled):
        query = select(*PROJECT_COLUMNS).where(projects.c.id.in_(ids))
        for row in connection.execute(query).all():
            exact_from[row.id] = _exact_from(connection, Project(*row))
    for project_id, serial in sorted(exact_from.items()):
        log_following(connection, [project_id], FOLLOWED, serial)
    settle(connection, exact_from)
    if exact_from:
        lock_state(connection, exclusive=False)
        note_change(connection, min(exact_from.values()))
    return len(settled)


def log_following(connection: Connection, project_ids: Sequence[int], cause: str, serial: int = 0) -> None:
    """Logs every file that these projects have live now, with why dumps show them from `serial` on, or no longer.

    What a dump has sealed stays as it is: the next one has it. What the first dump will have anyway is not logged.
    """
    lock_state(connection, exclusive=False)
    sealed = sealed_end(connection)
    logged = max(sealed + 1, serial)
    first = first_range(connection)
    if not sealed and cause == FOLLOWED and serial <= (complete_serial(connection) if first is None else first.end):
        return
    for ids in at_a_time(project_ids):
        of = live_intervals.c
        query = (
            select(distributions.c.id)
            .join(live_intervals, of.distribution_id == distributions.c.id)
            .where(distributions.c.project_id.in_(ids), of.end.is_(None))
        )
        rows = [
            {"distribution_id": id_, "serial": logged, "cause": cause, "logged_serial": logged}
            for id_ in connection.scalars(query)
        ]
        insert_missing(connection, changes, rows)


def log_unfollowed(connection: Connection, project_ids: Sequence[int]) -> None:
    """Logs that dumps no longer show the files of these projects."""
    log_following(connection, project_ids, UNFOLLOWED)


def _exact_from(connection: Connection, project: Project) -> int:
    """The least serial from which on all files of an entering project are known, also those that are gone.

    That is since its events are known, or since the last event before its first page that took something away. What
    vanished before it could be read was there until then, unread.
    """
    before = select(func.max(followed_intervals.c.end)).where(followed_intervals.c.project_id == project.id)
    since = max(project.known_since, connection.scalar(before) or 0)
    removed = select(func.max(events.c.serial)).where(
        events.c.project_id == project.id,
        events.c.kind.in_(_TAKES_AWAY),
        events.c.serial > since,
        events.c.serial <= (project.page_serial if project.page_serial is not None else 2**62),
    )
    ended = (
        select(func.max(live_intervals.c.end))
        .join(distributions, distributions.c.id == live_intervals.c.distribution_id)
        .join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
        .where(distributions.c.project_id == project.id, distribution_data.c.outcome == Outcome.VANISHED)
    )
    return max(since, connection.scalar(removed) or 0, connection.scalar(ended) or 0)
