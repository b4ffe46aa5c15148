"""Projects that leave scopes: what the roots no longer lead to, and all of a scope that is removed.

A project that no scope leads to any more is not followed from then on. What was known of it stays for past serials.
"""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection, delete, select, update

from pypi_assets.catalog.database import at_a_time, lock_rows
from pypi_assets.catalog.derived.settling import log_unfollowed
from pypi_assets.catalog.ledger.range_ledger import complete_serial, lock_state
from pypi_assets.catalog.observed.events import events_through
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
from pypi_assets.catalog.work.read_queue import remove_reads
from pypi_assets.catalog.work.scope_discovery import search, store_members
from pypi_assets.catalog.work.scope_edges import load_edges
from pypi_assets.catalog.work.scopes import Scope, all_scopes, lock_scopes, note_left, rulesets_of
from pypi_assets.catalog.work.visit_queue import move_projects, scope_workload


def prune_scope(connection: Connection, scope: Scope, now: float) -> list[str]:
    """Leaves out what the roots no longer lead to now, and counts depths again. Returns the names of what is no longer
    followed, by any scope."""
    lock_scopes(connection)
    rulesets, of = rulesets_of(connection, scope.id), scope_projects.c
    known = max(complete_serial(connection), events_through(connection))
    pruned = replace(scope, pruned_serial=known + 1)
    found = search(connection, pruned, rulesets, load_edges(connection, scope.id))
    ids = project_ids(connection, sorted(found))
    rows = connection.execute(select(scope_projects).where(of.scope_id == scope.id))
    members = {row.project_id: row for row in rows}
    entered = {id_ for id_, row in members.items() if not row.is_beyond}  # what has not is left to the next search
    reached = {name: one for name, one in found.items() if name in ids and (one.is_beyond or ids[name] in entered)}
    stay = {ids[name] for name, one in reached.items() if not one.is_beyond}
    left = _leave(connection, scope, sorted(members.keys() - stay))
    kept = {id_: row for id_, row in members.items() if id_ in stay}
    store_members(connection, pruned, rulesets[-1], reached, kept, ids, now)
    ended = (scope_edges.c.scope_id == scope.id, scope_edges.c.end <= pruned.since)  # they count no more
    connection.execute(delete(scope_edges).where(*ended))
    values = {"pruned_at": now, "pruned_serial": pruned.pruned_serial}
    connection.execute(update(scopes).where(scopes.c.id == scope.id).values(values))
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
    """What this scope was to visit, and others lead to, is theirs to visit."""
    others = {other.id: other.workload for other in all_scopes(connection) if other.id != scope.id}
    for workload in workloads:
        for scope_id in sorted(move_projects(connection, workload, project_ids, others)):
            note_left(connection, scope_id)
