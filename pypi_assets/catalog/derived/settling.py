"""Ends the entering of projects: from which serial on there are answers about them, and what dumps publish of that."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, func, or_, select

from pypi_assets.catalog.database import at_a_time, lock_rows
from pypi_assets.catalog.derived.visits import recompute_explained
from pypi_assets.catalog.ledger.epochs import note_change
from pypi_assets.catalog.ledger.logged_changes import log_changes
from pypi_assets.catalog.ledger.range_ledger import complete_serial, first_range, lock_state, sealed_end
from pypi_assets.catalog.observed.followed import FOLLOWED, UNFOLLOWED, settle, unfollowed_at
from pypi_assets.catalog.reads.read_outcomes import Outcome
from pypi_assets.catalog.tables import (
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
    exact_from = _exact_from(connection, settled)
    log_following(connection, exact_from, FOLLOWED)
    settle(connection, exact_from)
    if exact_from:
        lock_state(connection, exclusive=False)
        note_change(connection, min(exact_from.values()))
    return len(settled)


def log_following(connection: Connection, since: Mapping[int, int], cause: str) -> None:
    """Logs every file of these projects that dumps have not ended, with why they show it, or no longer, from the serial
    of its project in `since` on.

    What a dump has sealed stays as it is: the next one has it. What the first dump will have anyway is not logged.
    """
    if not since:
        return
    lock_state(connection, exclusive=False)
    sealed = sealed_end(connection)
    if not sealed and cause == FOLLOWED:
        first = first_range(connection)
        in_first = complete_serial(connection) if first is None else first.end
        since = {project_id: serial for project_id, serial in since.items() if serial > in_first}
    logged = {project_id: max(sealed + 1, serial) for project_id, serial in since.items()}
    of = live_intervals.c
    for ids in at_a_time(sorted(logged)):
        query = (
            select(distributions.c.id, distributions.c.project_id, of.end)
            .join(live_intervals, of.distribution_id == distributions.c.id)
            .where(distributions.c.project_id.in_(ids), or_(of.end.is_(None), of.end > sealed + 1))
            .order_by(distributions.c.id)
        )
        rows = [
            {"distribution_id": id_, "serial": serial, "cause": cause, "logged_serial": serial}
            for id_, project_id, end in connection.execute(query)
            for serial in [logged[project_id]]
            if end is None or end > serial
        ]
        log_changes(connection, rows)


def log_unfollowed(connection: Connection, project_ids: Sequence[int]) -> None:
    """Logs that dumps no longer show the files of these projects, from the serial on at which their following ends."""
    log_following(connection, dict.fromkeys(project_ids, unfollowed_at(connection)), UNFOLLOWED)


def _exact_from(connection: Connection, project_ids: Sequence[int]) -> dict[int, int]:
    """For each of these entering projects, the least serial from which on all its files are known, also those that are
    gone.

    That is since its events are known, or since the last event before its first page that took something away. What
    vanished before it could be read was there until then, unread.
    """
    of_file = live_intervals.join(distributions, distributions.c.id == live_intervals.c.distribution_id)
    of_file = of_file.join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
    is_removal = (
        events.c.kind.in_(_TAKES_AWAY),
        events.c.serial > projects.c.known_since,
        or_(projects.c.page_serial.is_(None), events.c.serial <= projects.c.page_serial),
    )
    followed, project_id = followed_intervals.c, distributions.c.project_id
    found: dict[int, int] = {}
    for ids in at_a_time(project_ids):
        for query in (
            select(projects.c.id, projects.c.known_since).where(projects.c.id.in_(ids)),
            select(followed.project_id, func.max(followed.end))
            .where(followed.project_id.in_(ids), followed.end.is_not(None))
            .group_by(followed.project_id),
            select(events.c.project_id, func.max(events.c.serial))
            .join(projects, projects.c.id == events.c.project_id)
            .where(events.c.project_id.in_(ids), *is_removal)
            .group_by(events.c.project_id),
            select(project_id, func.max(live_intervals.c.end))
            .select_from(of_file)
            .where(project_id.in_(ids), distribution_data.c.outcome == Outcome.VANISHED)
            .where(live_intervals.c.end.is_not(None))
            .group_by(project_id),
        ):
            for id_, serial in connection.execute(query):
                found[id_] = max(found.get(id_, 0), serial)
    return found
