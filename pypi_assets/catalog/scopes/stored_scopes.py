"""Scopes: what to follow, by which rules, and each scope's own queue of visits.

The projects that the roots of a scope lead to are found in `discovery.py`.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Row, exists, insert, select, update

from pypi_assets.catalog.database import CatalogError, lock_name
from pypi_assets.catalog.ledger.range_ledger import (
    complete_serial,
    first_range,
    last_allocated_serial,
    lock_state,
)
from pypi_assets.catalog.observed.followed import mark_projects
from pypi_assets.catalog.tables import (
    scope_marks,
    scope_projects,
    scope_rulesets,
    scopes,
    visit_queue,
)
from pypi_assets.catalog.work.full_crawls import SELECTED, begin_catalog
from pypi_assets.catalog.work.visit_queue import move_projects, scope_workload
from pypi_assets.scopes.plan import ScopePlan, check_field
from pypi_assets.scopes.ruleset import Ruleset, parse_ruleset
from pypi_assets.scopes.states import ScopeState, state_of

_LOCK = "scopes"
SEARCH_ALL = 0
"""A mark with this number in place of a project's id makes the next discovery search the closure of each scope."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A stored scope. Times are unix seconds; `completed_at` is None while the scope has pending work."""

    id: int
    name: str
    created_at: float
    created_serial: int
    roots: Mapping[str, frozenset[str]]
    most_depth: int | None
    nice: int
    concurrency: int | None
    tag: str | None
    match_only: bool
    is_aborted: bool
    completed_at: float | None
    pruned_at: float | None
    pruned_serial: int | None = None
    keep_files: bool = False
    most: int | None = None
    kept_bytes: int = 0
    evicted_files: int = 0
    evicted_bytes: int = 0

    @property
    def since(self) -> int:
        """Return the first serial whose requirements count: the serial of its creation, or of its last prune."""
        return max(self.created_serial, self.pruned_serial or 0)

    @property
    def workload(self) -> str:
        return scope_workload(self.id)

    def state(self, left: int, free: int) -> ScopeState:
        """Return the state of the scope with `left` pending visits and reads, `free` of which no worker has claimed."""
        return state_of(
            is_aborted=self.is_aborted,
            is_paused=self.concurrency == 0,
            is_completed=self.completed_at is not None,
            left=left,
            free=free,
        )

    @property
    def may_go_on(self) -> bool:
        """Check whether the scope may have pending work, and is neither paused nor aborted."""
        return self.state(left=0, free=0) is ScopeState.ACTIVE

    def is_for(self, tag: str | None, *, is_match_only: bool = False) -> bool:
        """Check whether a worker for `tag` (None: without a tag) takes work of this scope.

        With `is_match_only`, the worker takes only work with its tag.
        """
        if self.tag == tag:
            return True
        if is_match_only or self.match_only:
            return False
        return tag is None or self.tag is None


@dataclass(frozen=True, slots=True)
class StoredRuleset:
    """One version of a scope's rules, in force from the serial `from_serial` until the next version is."""

    version: int
    from_serial: int
    created_at: float
    content: str

    @property
    def ruleset(self) -> Ruleset:
        return _parsed(self.content)


_parsed = lru_cache(maxsize=256)(parse_ruleset)


def lock_scopes(connection: Connection) -> None:
    """Lock all scopes and their projects, so that one transaction at a time changes them.

    Call it before any other lock.
    """
    lock_name(connection, _LOCK)


def create_scope(connection: Connection, plan: ScopePlan, serial: int, index_url: str, now: float) -> Scope:
    """Store a new scope. On an empty catalog, everything begins at `serial`, the index's last one.

    Raises CatalogError if the name is taken, or the catalog follows another index.
    """
    lock_scopes(connection)
    if find_scope(connection, plan.name) is not None:
        raise CatalogError(
            f"the scope {plan.name} already exists: choose another name, or remove it (`pypi-assets scope remove"
            f" {plan.name}`)"
        )
    created_serial = _first_serial(connection, serial, index_url, now)
    parse_ruleset(plan.rules)
    return _enter(connection, plan, created_serial, now)


def _enter(connection: Connection, plan: ScopePlan, created_serial: int, now: float) -> Scope:
    row = {
        "name": plan.name,
        "created_at": now,
        "created_serial": created_serial,
        "roots": _stored_roots(plan.roots),
        "most_depth": plan.most_depth,
        "nice": plan.nice,
        "concurrency": plan.concurrency,
        "tag": plan.tag,
        "match_only": plan.match_only,
        "keep_files": plan.keep_files,
        "most": plan.most,
    }
    scope_id = connection.execute(insert(scopes).values(row).returning(scopes.c.id)).scalar_one()
    _enter_ruleset(connection, scope_id, StoredRuleset(1, created_serial, now, plan.rules))
    _mark_all(connection)
    return require_scope(connection, plan.name)


def _enter_ruleset(connection: Connection, scope_id: int, rules: StoredRuleset) -> None:
    connection.execute(insert(scope_rulesets).values(scope_id=scope_id, **asdict(rules)))


def _stored_roots(roots: Mapping[str, frozenset[str]]) -> str:
    return json.dumps({name: sorted(extras) for name, extras in sorted(roots.items())})


def _first_serial(connection: Connection, serial: int, index_url: str, now: float) -> int:
    """Return the serial from which a new scope counts: the first after all ranges, or `serial` on an empty catalog."""
    is_first = begin_catalog(connection, index_url, serial, serial, now, exact_from=serial, follows_all=False)
    return max(serial, 1) if is_first else last_allocated_serial(connection) + 1  # nothing happens at serial 0


def follow_selected(connection: Connection, names: Collection[str], serial: int, now: float) -> Scope:
    """Update the scope of PYPI_ASSETS_PROJECTS to these normalized names, which are roots without their requirements.

    The scope is created if it does not exist. It then begins at `serial` if the first range is incomplete.
    """
    lock_scopes(connection)
    roots = dict.fromkeys(names, frozenset[str]())
    known = find_scope(connection, SELECTED)
    if known is None:
        start = serial if first_range(connection) is not None else last_allocated_serial(connection) + 1
        return _enter(connection, ScopePlan(SELECTED, roots, most_depth=0), max(start, 1), now)
    if set(known.roots) != set(names):
        connection.execute(update(scopes).where(scopes.c.id == known.id).values(roots=_stored_roots(roots)))
        _mark_all(connection)
    return require_scope(connection, SELECTED)


def find_scope(connection: Connection, name: str) -> Scope | None:
    """Return the scope with this name; None if there is none."""
    row = connection.execute(select(scopes).where(scopes.c.name == name)).first()
    return None if row is None else _scope(row)


def require_scope(connection: Connection, name: str) -> Scope:
    """Return the scope with this name. Raises CatalogError, which lists the existing names."""
    if (scope := find_scope(connection, name)) is not None:
        return scope
    known = ", ".join(connection.scalars(select(scopes.c.name).order_by(scopes.c.name)))
    others = f"the scopes are: {known}" if known else "create the first one with `pypi-assets scope create`"
    raise CatalogError(f"there is no scope {name}: {others}")


def all_scopes(connection: Connection) -> list[Scope]:
    """Return all scopes in order of priority: by `nice`, then the oldest first."""
    return [_scope(row) for row in connection.execute(select(scopes).order_by(scopes.c.nice, scopes.c.id))]


def has_scopes(connection: Connection) -> bool:
    """Check whether there is any scope."""
    return bool(connection.scalar(select(exists(select(scopes.c.id)))))


def rulesets_of(connection: Connection, scope_id: int) -> list[StoredRuleset]:
    """Return the versions of a scope's rules, the oldest first."""
    rows = connection.execute(
        select(scope_rulesets).where(scope_rulesets.c.scope_id == scope_id).order_by(scope_rulesets.c.version)
    )
    return [StoredRuleset(row.version, row.from_serial, row.created_at, row.content) for row in rows]


def members_of(connection: Connection, scope_id: int) -> list[int]:
    """Return, in order, the ids of the projects that a scope leads to and follows."""
    c = scope_projects.c
    query = select(c.project_id).where(c.scope_id == scope_id, c.is_beyond.is_(False)).order_by(c.project_id)
    return list(connection.scalars(query))


def add_ruleset(connection: Connection, scope: Scope, content: str, now: float) -> StoredRuleset:
    """Store the next version of the rules, in force after the complete serial. Each project is then searched again.

    Raises RulesError if the rules are invalid. Equal rules create no new version.
    """
    lock_scopes(connection)
    ruleset = parse_ruleset(content)
    known = rulesets_of(connection, scope.id)
    if known[-1].ruleset == ruleset:
        return known[-1]
    lock_state(connection, exclusive=False)
    start = max(complete_serial(connection) + 1, scope.created_serial)
    new = StoredRuleset(known[-1].version + 1, start, now, content)
    _enter_ruleset(connection, scope.id, new)
    mark_scope(connection, scope.id)
    return new


def mark_scope(connection: Connection, scope_id: int) -> None:
    """Mark all projects of the scope, so that they are searched again, and the scope as having pending work."""
    mark_projects(connection, members_of(connection, scope_id))
    _mark_all(connection)
    note_left(connection, scope_id)


def _mark_all(connection: Connection) -> None:
    """Mark all scopes for a new search of their closures, even if no requirement of their projects has changed."""
    connection.execute(insert(scope_marks).values(project_id=SEARCH_ALL))


def set_aborted(connection: Connection, scope: Scope, is_aborted: bool) -> None:
    """Abort or resume the scope. While it is aborted, its pending work is kept, but no worker can claim it.

    Visits of projects that other scopes lead to are moved to those scopes.
    """
    lock_scopes(connection)
    active, resting = scope.workload, scope_workload(scope.id, is_aborted=True)
    before, after = (active, resting) if is_aborted else (resting, active)
    connection.execute(
        update(visit_queue)
        .where(visit_queue.c.workload == before)
        .values(workload=after, claimed_by=None, claimed_until=0.0)
    )
    connection.execute(update(scopes).where(scopes.c.id == scope.id).values(is_aborted=is_aborted))
    if is_aborted:
        others = {one.id: one.workload for one in all_scopes(connection) if not one.is_aborted}
        for scope_id in sorted(move_projects(connection, resting, members_of(connection, scope.id), others)):
            note_left(connection, scope_id)
    else:
        mark_scope(connection, scope.id)


def take_resting(connection: Connection, scope: Scope) -> None:
    """Move pending visits from aborted scopes to this scope, if it leads to their projects."""
    for other in all_scopes(connection):
        if other.is_aborted and other.id != scope.id:
            resting = scope_workload(other.id, is_aborted=True)
            move_projects(connection, resting, members_of(connection, scope.id), {scope.id: scope.workload})


def differing(connection: Connection, plan: ScopePlan) -> list[str]:
    """Return the stated fields of the plan that differ from the stored scope of the same name, in order.

    Raises CatalogError if the scope does not exist, and RulesError.
    """
    scope = require_scope(connection, plan.name)
    found = [key for key in plan.stated - {"rules"} if getattr(scope, key) != getattr(plan, key)]
    if "rules" in plan.stated and rulesets_of(connection, scope.id)[-1].ruleset != parse_ruleset(plan.rules):
        found.append("rules")
    return sorted(found)


def bring_in_line(connection: Connection, plan: ScopePlan, now: float) -> list[str]:
    """Update the scope of the plan's name to the plan's stated fields. Return the fields that changed.

    Projects in the scope stay until it is pruned, even if they are no longer roots, or the depth is reduced. Raises
    CatalogError as `require_scope` does, and RulesError.
    """
    lock_scopes(connection)
    changed = differing(connection, plan)
    scope = require_scope(connection, plan.name)
    if "rules" in changed:  # it locks the state, so it must run before scopes are changed
        add_ruleset(connection, scope, plan.rules, now)
    values = {key: getattr(plan, key) for key in changed if key != "rules"}
    if values:
        change_scope(connection, scope, values | ({"roots": _stored_roots(plan.roots)} if "roots" in values else {}))
    if {"roots", "most_depth"} & values.keys():
        mark_scope(connection, scope.id)
    return changed


def change_scope(connection: Connection, scope: Scope, values: Mapping[str, int | str | bool | None]) -> None:
    """Change fields of a scope, such as `nice` or `tag`, for work that is queued from now on.

    If it begins to keep files, or may keep more bytes, it has pending work. If it may keep fewer, the caller evicts
    files (`enforce_budgets`). Raises PlanError if the tag is invalid.
    """
    lock_scopes(connection)
    if (tag := values.get("tag")) is not None:
        check_field(scope.name, "tag", tag)
    connection.execute(update(scopes).where(scopes.c.id == scope.id).values(dict(values)))
    if {"keep_files", "most"} & values.keys() and values.get("keep_files", scope.keep_files):
        note_left(connection, scope.id)


def note_left(connection: Connection, scope_id: int) -> None:
    """Record that the scope has pending work."""
    connection.execute(update(scopes).where(scopes.c.id == scope_id).values(completed_at=None))


def note_completed(connection: Connection, scope_id: int, now: float) -> None:
    """Record that the scope has no pending work for now."""
    connection.execute(update(scopes).where(scopes.c.id == scope_id).values(completed_at=now))


def _scope(row: Row[Any]) -> Scope:
    roots = {name: frozenset(extras) for name, extras in json.loads(row.roots).items()}
    return Scope(
        id=row.id,
        name=row.name,
        created_at=row.created_at,
        created_serial=row.created_serial,
        roots=roots,
        most_depth=row.most_depth,
        nice=row.nice,
        concurrency=row.concurrency,
        tag=row.tag,
        match_only=row.match_only,
        is_aborted=row.is_aborted,
        completed_at=row.completed_at,
        pruned_at=row.pruned_at,
        pruned_serial=row.pruned_serial,
        keep_files=row.keep_files,
        most=row.most,
        kept_bytes=row.kept_bytes,
        evicted_files=row.evicted_files,
        evicted_bytes=row.evicted_bytes,
    )
