"""Projects that leave scopes: what the roots no longer lead to, and all of a scope that is removed.

A project that no scope leads to any more is not followed from then on. What was known of it stays for past serials.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, delete, select, update

from pypi_assets.catalog.counters import add_counts
from pypi_assets.catalog.database import at_a_time, lock_rows
from pypi_assets.catalog.derived.settling import log_unfollowed
from pypi_assets.catalog.ledger.range_ledger import lock_state
from pypi_assets.catalog.observed.followed import followed_of, follows_all, unfollow
from pypi_assets.catalog.observed.projects import load_projects, project_ids
from pypi_assets.catalog.tables import (
    read_queue,
    scope_edges,
    scope_projects,
    scope_rulesets,
    scopes,
    visit_queue,
)
from pypi_assets.catalog.work.read_queue import QUEUED_READS
from pypi_assets.catalog.work.scope_discovery import search
from pypi_assets.catalog.work.scope_edges import load_edges
from pypi_assets.catalog.work.scopes import Scope, lock_scopes, rulesets_of
from pypi_assets.catalog.work.visit_queue import scope_workload
from pypi_assets.scopes.closure import Reached
from pypi_assets.scopes.spans import OPEN_END


def prune_scope(connection: Connection, scope: Scope, now: float) -> list[str]:
    """Leaves out what the roots no longer lead to now, and counts depths again. Returns the names of what is no longer
    followed, by any scope."""
    lock_scopes(connection)
    rulesets = rulesets_of(connection, scope.id)
    reached = search(connection, scope, rulesets, load_edges(connection, scope.id), since=OPEN_END - 1)
    ids = project_ids(connection, sorted(reached))
    of = scope_projects.c
    members = list(connection.scalars(select(of.project_id).where(of.scope_id == scope.id)))
    gone = sorted(set(members) - set(ids.values()))
    left = _leave(connection, scope, gone)
    _count_depths(connection, scope, {ids[name]: one for name, one in reached.items() if name in ids})
    connection.execute(update(scopes).where(scopes.c.id == scope.id).values(pruned_at=now))
    return left


def remove_scope(connection: Connection, scope: Scope) -> list[str]:
    """Removes a scope. Returns the names of the projects that are no longer followed."""
    lock_scopes(connection)
    of = scope_projects.c
    members = sorted(connection.scalars(select(of.project_id).where(of.scope_id == scope.id)))
    left = _leave(connection, scope, members)
    connection.execute(delete(scope_rulesets).where(scope_rulesets.c.scope_id == scope.id))
    connection.execute(delete(scopes).where(scopes.c.id == scope.id))
    return left


def _leave(connection: Connection, scope: Scope, project_ids: Sequence[int]) -> list[str]:
    """These projects leave the scope."""
    of = scope_projects.c
    wanted = set(connection.scalars(select(of.project_id).where(of.scope_id != scope.id, of.is_beyond.is_(False))))
    unwanted = [] if follows_all(connection) else sorted(followed_of(connection, project_ids) - wanted)
    workloads = [scope_workload(scope.id, is_aborted=is_aborted) for is_aborted in (False, True)]
    for ids in at_a_time(project_ids):
        queued = (visit_queue.c.workload.in_(workloads), visit_queue.c.project_id.in_(ids))
        lock_rows(connection, visit_queue, *queued)
        connection.execute(delete(visit_queue).where(*queued))
    for ids in at_a_time(unwanted):
        lock_rows(connection, read_queue, read_queue.c.project_id.in_(ids))
        gone = connection.execute(delete(read_queue).where(read_queue.c.project_id.in_(ids))).rowcount
        add_counts(connection, {QUEUED_READS: -gone})
    lock_state(connection, exclusive=False)
    log_unfollowed(connection, unwanted)
    unfollow(connection, unwanted)
    for table in (scope_edges, scope_projects):
        for ids in at_a_time(project_ids):
            connection.execute(delete(table).where(table.c.scope_id == scope.id, table.c.project_id.in_(ids)))
    return [project.normalized for project in load_projects(connection, unwanted)]


def _count_depths(connection: Connection, scope: Scope, reached: dict[int, Reached]) -> None:
    of = scope_projects.c
    for project_id, one in sorted(reached.items()):
        is_it = (of.scope_id == scope.id, of.project_id == project_id)
        connection.execute(update(scope_projects).where(*is_it).values(depth=one.depth))
