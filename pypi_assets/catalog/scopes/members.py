"""Projects that enter and leave scopes: the serials from which, and up to which, there are answers about them.

Settling ends the entering of projects, and decides which of their files dumps publish. A project is unfollowed once no
scope leads to it any more. Its history is kept for past serials.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy import Connection, delete, false, func, literal, or_, select, update

from pypi_assets.catalog.database import at_a_time, lock_rows
from pypi_assets.catalog.ledger.epochs import note_change
from pypi_assets.catalog.ledger.range_ledger import (
    complete_serial,
    first_range,
    last_allocated_serial,
    lock_state,
    log_changes,
    sealed_end,
)
from pypi_assets.catalog.observed.events import events_through
from pypi_assets.catalog.observed.followed import (
    FOLLOWED,
    UNFOLLOWED,
    end_entering,
    followed_of,
    follows_all,
    unfollow,
    unfollowed_at,
)
from pypi_assets.catalog.observed.projects import load_projects, project_ids
from pypi_assets.catalog.reads.kept_files import release_scope
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.scopes.discovery import search, store_members
from pypi_assets.catalog.scopes.edges import load_edges
from pypi_assets.catalog.scopes.stored_scopes import Scope, all_scopes, lock_scopes, note_left, rulesets_of
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    events,
    followed_intervals,
    live_intervals,
    projects,
    read_queue,
    scope_edges,
    scope_projects,
    scope_rulesets,
    scopes,
    visit_queue,
)
from pypi_assets.catalog.work.read_queue import remove_reads
from pypi_assets.catalog.work.visit_queue import TaskState, move_projects, scope_workload
from pypi_assets.index.actions import Action

_TAKES_AWAY = (
    Action.REMOVE_FILE,
    Action.REMOVE_RELEASE,
    Action.REMOVE_PROJECT,
    Action.QUARANTINE_PROJECT,
    Action.QUARANTINE_RELEASE,
)
"""Events that hide files. If they come before a project's first page, those files can never be seen."""


def entering_in(connection: Connection, workload: str, more_files_than: int | None = None) -> list[int]:
    """Return the projects of `workload` that are entering, were visited, and have no file left to read.

    With `more_files_than`, return instead the visited projects that have more than this number of files left to read.
    """
    left = (
        select(func.count())
        .select_from(read_queue)
        .where(read_queue.c.project_id == visit_queue.c.project_id)
        .correlate(visit_queue)
        .scalar_subquery()
    )
    c = followed_intervals.c
    query = (
        select(visit_queue.c.project_id)
        .join(followed_intervals, c.project_id == visit_queue.c.project_id)
        .where(
            visit_queue.c.workload == workload,
            visit_queue.c.state == TaskState.DONE,
            c.exact_from.is_(None),
            c.end.is_(None),
            left == 0 if more_files_than is None else left > more_files_than,
        )
        .order_by(visit_queue.c.project_id)
    )
    return list(connection.scalars(query))


def settle_projects(connection: Connection, workload: str, project_ids: Sequence[int]) -> int:
    """Settle the projects among these that still have nothing left to do, and log their files for the next dump.

    Return the number of settled projects.
    """
    lock_rows(connection, projects, projects.c.id.in_(project_ids))
    settled = sorted(set(project_ids) & set(entering_in(connection, workload)))
    exact_from = _exact_from(connection, settled)
    log_following(connection, exact_from, FOLLOWED)
    end_entering(connection, exact_from)
    if exact_from:
        lock_state(connection, exclusive=False)
        note_change(connection, min(exact_from.values()))
    return len(settled)


def log_following(connection: Connection, since: Mapping[int, int], cause: str) -> None:
    """Log a change with this `cause` for each file of these projects that is live at the logged serial.

    `since` maps each project to the serial from which dumps show its files (FOLLOWED), or no longer show them
    (UNFOLLOWED). Sealed serials do not change: the change is then logged after them, for the next dump. Files that the
    first dump will contain anyway are not logged.
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
    c = live_intervals.c
    for ids in at_a_time(sorted(logged)):
        query = (
            select(distributions.c.id, distributions.c.project_id, c.end)
            .join(live_intervals, c.distribution_id == distributions.c.id)
            .where(distributions.c.project_id.in_(ids), or_(c.end.is_(None), c.end > sealed + 1))
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
    """Log that dumps no longer show the files of these projects, from the serial at which their following ends."""
    log_following(connection, dict.fromkeys(project_ids, unfollowed_at(connection)), UNFOLLOWED)


def _exact_from(connection: Connection, project_ids: Sequence[int]) -> dict[int, int]:
    """Return for each entering project the first serial from which all its files are known, including deleted files.

    It is the latest of these serials: the one since which the project's events are known, the end of an earlier time in
    which it was followed, the last event before its first page that hid files, and the end of a file that vanished
    before it could be read, since that file was live and unread until then. A page beyond the stored events proves
    nothing about serials before its own, and a 404 nothing about the serials of ranges without events.
    """
    of_file = live_intervals.join(distributions, distributions.c.id == live_intervals.c.distribution_id)
    of_file = of_file.join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
    is_removal = (
        events.c.kind.in_(_TAKES_AWAY),
        events.c.serial > projects.c.known_since,
        or_(projects.c.page_serial.is_(None), events.c.serial <= projects.c.page_serial),
    )
    followed, project_id = followed_intervals.c, distributions.c.project_id
    through, allocated = events_through(connection), last_allocated_serial(connection)
    has_no_page = projects.c.page_serial.is_(None) if allocated > through else false()
    found: dict[int, int] = {}
    for ids in at_a_time(project_ids):
        for query in (
            select(projects.c.id, projects.c.known_since).where(projects.c.id.in_(ids)),
            select(projects.c.id, projects.c.page_serial).where(
                projects.c.id.in_(ids), projects.c.page_serial > through
            ),
            select(projects.c.id, literal(allocated + 1)).where(projects.c.id.in_(ids), has_no_page),
            select(followed.project_id, func.max(followed.end))
            .where(followed.project_id.in_(ids), followed.end.is_not(None))
            .group_by(followed.project_id),
            select(events.c.project_id, func.max(events.c.serial))
            .join(projects, projects.c.id == events.c.project_id)
            .where(events.c.project_id.in_(ids), *is_removal)
            .group_by(events.c.project_id),
            select(project_id, func.max(live_intervals.c.end))
            .select_from(of_file)
            .where(project_id.in_(ids), distribution_data.c.outcome == ReadOutcome.VANISHED)
            .where(live_intervals.c.end.is_not(None))
            .group_by(project_id),
        ):
            for id_, serial in connection.execute(query):
                found[id_] = max(found.get(id_, 0), serial)
    return found


def prune_scope(connection: Connection, scope: Scope, now: float) -> list[str]:
    """Remove the projects that the roots no longer lead to, and compute depths again.

    Return the names of the projects that no scope follows any longer.
    """
    lock_scopes(connection)
    rulesets, c = rulesets_of(connection, scope.id), scope_projects.c
    known = max(complete_serial(connection), events_through(connection))
    pruned = replace(scope, pruned_serial=known + 1)
    found = search(connection, pruned, rulesets, load_edges(connection, scope.id))
    ids = project_ids(connection, sorted(found))
    rows = connection.execute(select(scope_projects).where(c.scope_id == scope.id))
    members = {row.project_id: row for row in rows}
    entered = {id_ for id_, row in members.items() if not row.is_beyond}  # others are left to the next search
    reached = {name: one for name, one in found.items() if name in ids and (one.is_beyond or ids[name] in entered)}
    stay = {ids[name] for name, one in reached.items() if not one.is_beyond}
    left = _leave(connection, scope, sorted(members.keys() - stay))
    kept = {id_: row for id_, row in members.items() if id_ in stay}
    store_members(connection, pruned, rulesets[-1], reached, kept, ids, now)
    ended = (scope_edges.c.scope_id == scope.id, scope_edges.c.end <= pruned.since)  # edges that count no longer
    connection.execute(delete(scope_edges).where(*ended))
    values = {"pruned_at": now, "pruned_serial": pruned.pruned_serial}
    connection.execute(update(scopes).where(scopes.c.id == scope.id).values(values))
    return left


def remove_scope(connection: Connection, scope: Scope) -> list[str]:
    """Delete a scope. Return the names of the projects that no scope follows any longer."""
    lock_scopes(connection)
    release_scope(connection, scope.id)
    c = scope_projects.c
    members = sorted(connection.scalars(select(c.project_id).where(c.scope_id == scope.id)))
    left = _leave(connection, scope, members)
    connection.execute(delete(scope_rulesets).where(scope_rulesets.c.scope_id == scope.id))
    connection.execute(delete(scopes).where(scopes.c.id == scope.id))
    return left


def _leave(connection: Connection, scope: Scope, project_ids: Sequence[int]) -> list[str]:
    """Remove these projects from the scope. Return the names of the projects that no scope follows any longer."""
    c = scope_projects.c
    wanted = set(connection.scalars(select(c.project_id).where(c.scope_id != scope.id, c.is_beyond.is_(False))))
    unwanted = [] if follows_all(connection) else sorted(followed_of(connection, project_ids) - wanted)
    workloads = [scope_workload(scope.id, is_aborted=is_aborted) for is_aborted in (False, True)]
    _pass_on(connection, scope, sorted(set(project_ids) & wanted), workloads)
    for ids in at_a_time(project_ids):
        queued = (visit_queue.c.workload.in_(workloads), visit_queue.c.project_id.in_(ids))
        lock_rows(connection, visit_queue, *queued)
        connection.execute(delete(visit_queue).where(*queued))
    for ids in at_a_time(unwanted):
        lock_rows(connection, read_queue, read_queue.c.project_id.in_(ids))
        remove_reads(connection, read_queue.c.project_id.in_(ids))
    lock_state(connection, exclusive=False)
    log_unfollowed(connection, unwanted)
    unfollow(connection, unwanted)
    for table in (scope_edges, scope_projects):
        for ids in at_a_time(project_ids):
            connection.execute(delete(table).where(table.c.scope_id == scope.id, table.c.project_id.in_(ids)))
    return sorted(project.normalized for project in load_projects(connection, unwanted))


def _pass_on(connection: Connection, scope: Scope, project_ids: Sequence[int], workloads: Sequence[str]) -> None:
    """Give this scope's pending visits of projects that other scopes lead to, to those scopes."""
    others = {other.id: other.workload for other in all_scopes(connection) if other.id != scope.id}
    for workload in workloads:
        for scope_id in sorted(move_projects(connection, workload, project_ids, others)):
            note_left(connection, scope_id)
