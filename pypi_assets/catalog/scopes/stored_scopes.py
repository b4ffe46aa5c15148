"""Scopes: what to follow, by which rules, and the queue of visits that is a scope's own.

What the roots of a scope lead to is found in `discovery.py`.
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
"""In place of a project's id: a mark that has the closure of each scope searched."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A scope as it is stored. Times are unix seconds; `completed_at` is None while something is left to do."""

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

    @property
    def since(self) -> int:
        """The first serial whose requirements count: that of its creation, or of its last prune."""
        return max(self.created_serial, self.pruned_serial or 0)

    @property
    def workload(self) -> str:
        return scope_workload(self.id)

    def state(self, left: int, free: int) -> ScopeState:
        """Return its state with `left` visits and reads, of which no worker has claimed `free`."""
        return state_of(
            is_aborted=self.is_aborted,
            is_paused=self.concurrency == 0,
            is_completed=self.completed_at is not None,
            left=left,
            free=free,
        )

    @property
    def may_go_on(self) -> bool:
        """Whether something is left to do that workers may do."""
        return self.state(left=0, free=0) is ScopeState.ACTIVE

    def is_for(self, tag: str | None, *, is_match_only: bool = False) -> bool:
        """Whether a worker for `tag` (None: for none) takes its work; `is_match_only`: only of its tag."""
        if self.tag == tag:
            return True
        if is_match_only or self.match_only:
            return False
        return tag is None or self.tag is None


@dataclass(frozen=True, slots=True)
class StoredRuleset:
    """One version of a scope's rules, in force from the serial `from_serial` until the next one is."""

    version: int
    from_serial: int
    created_at: float
    content: str

    @property
    def ruleset(self) -> Ruleset:
        return _parsed(self.content)


_parsed = lru_cache(maxsize=256)(parse_ruleset)


def lock_scopes(connection: Connection) -> None:
    """Only one transaction at a time changes scopes and what they lead to. It locks nothing before that."""
    lock_name(connection, _LOCK)


def create_scope(connection: Connection, plan: ScopePlan, serial: int, index_url: str, now: float) -> Scope:
    """Enters a scope. On an empty catalog `serial`, the index's last one, is where everything begins.

    Raises CatalogError for a name that is taken, or where the catalog follows another index.
    """
    lock_scopes(connection)
    if find_scope(connection, plan.name) is not None:
        raise CatalogError(
            f"there is a scope {plan.name} already: choose another name, or remove it (`pypi-assets scope remove"
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
    """The serial from which a new scope counts: the first one that no range has, or `serial` of an empty catalog."""
    is_first = begin_catalog(connection, index_url, serial, serial, now, exact_from=serial, follows_all=False)
    return max(serial, 1) if is_first else last_allocated_serial(connection) + 1  # nothing is at 0


def follow_selected(connection: Connection, names: Collection[str], serial: int, now: float) -> Scope:
    """Brings the scope of PYPI_ASSETS_PROJECTS in line with these normalized names: roots alone, without what they
    require. It is created where there is none, and begins at `serial` where no range is complete."""
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
    """The scope of that name; None without one."""
    row = connection.execute(select(scopes).where(scopes.c.name == name)).first()
    return None if row is None else _scope(row)


def require_scope(connection: Connection, name: str) -> Scope:
    """The scope of that name. Raises CatalogError, with the names that there are."""
    if (scope := find_scope(connection, name)) is not None:
        return scope
    known = ", ".join(connection.scalars(select(scopes.c.name).order_by(scopes.c.name)))
    others = f"the scopes are: {known}" if known else "`pypi-assets scope create` makes the first one"
    raise CatalogError(f"no scope is called {name}: {others}")


def all_scopes(connection: Connection) -> list[Scope]:
    """The scopes in the order of their work: by niceness, then the oldest first."""
    return [_scope(row) for row in connection.execute(select(scopes).order_by(scopes.c.nice, scopes.c.id))]


def has_scopes(connection: Connection) -> bool:
    """Whether there is any scope."""
    return bool(connection.scalar(select(exists(select(scopes.c.id)))))


def rulesets_of(connection: Connection, scope_id: int) -> list[StoredRuleset]:
    """The versions of a scope's rules, the oldest first."""
    rows = connection.execute(
        select(scope_rulesets).where(scope_rulesets.c.scope_id == scope_id).order_by(scope_rulesets.c.version)
    )
    return [StoredRuleset(row.version, row.from_serial, row.created_at, row.content) for row in rows]


def members_of(connection: Connection, scope_id: int) -> list[int]:
    """The ids of the projects that a scope leads to and follows, in order."""
    of = scope_projects.c
    query = select(of.project_id).where(of.scope_id == scope_id, of.is_beyond.is_(False)).order_by(of.project_id)
    return list(connection.scalars(query))


def add_ruleset(connection: Connection, scope: Scope, content: str, now: float) -> StoredRuleset:
    """Enters the next version of the rules, in force after what is complete. Each project is looked at again.

    Raises RulesError where the rules are wrong. Equal rules make no new version.
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
    """All projects of the scope are looked at again, and something is left to do."""
    mark_projects(connection, members_of(connection, scope_id))
    _mark_all(connection)
    note_left(connection, scope_id)


def _mark_all(connection: Connection) -> None:
    """What the roots of scopes lead to is searched again, whatever their projects require."""
    connection.execute(insert(scope_marks).values(project_id=SEARCH_ALL))


def set_aborted(connection: Connection, scope: Scope, is_aborted: bool) -> None:
    """Lets the scope rest, or go on. What it has left to do is kept meanwhile; no worker can claim it.

    What other scopes lead to as well is theirs to visit.
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
    """Moves visits that rest with aborted scopes to this one, where it leads to their projects."""
    for other in all_scopes(connection):
        if other.is_aborted and other.id != scope.id:
            resting = scope_workload(other.id, is_aborted=True)
            move_projects(connection, resting, members_of(connection, scope.id), {scope.id: scope.workload})


def differing(connection: Connection, plan: ScopePlan) -> list[str]:
    """Return which of the stated fields of the plan the scope of its name has otherwise, in order.

    Raises CatalogError where there is no such scope, and RulesError.
    """
    scope = require_scope(connection, plan.name)
    found = [key for key in plan.stated - {"rules"} if getattr(scope, key) != getattr(plan, key)]
    if "rules" in plan.stated and rulesets_of(connection, scope.id)[-1].ruleset != parse_ruleset(plan.rules):
        found.append("rules")
    return sorted(found)


def bring_in_line(connection: Connection, plan: ScopePlan, now: float) -> list[str]:
    """Gives the scope of the plan's name the stated fields of the plan. Returns those that it changed.

    What is in stays until the scope is pruned, also where it is no root any more, or the depth is less. Raises
    CatalogError as `create_scope` does, and RulesError.
    """
    lock_scopes(connection)
    changed = differing(connection, plan)
    scope = require_scope(connection, plan.name)
    if "rules" in changed:  # which locks the state, before scopes
        add_ruleset(connection, scope, plan.rules, now)
    values = {key: getattr(plan, key) for key in changed if key != "rules"}
    if values:
        change_scope(connection, scope, values | ({"roots": _stored_roots(plan.roots)} if "roots" in values else {}))
    if {"roots", "most_depth"} & values.keys():
        mark_scope(connection, scope.id)
    return changed


def change_scope(connection: Connection, scope: Scope, values: Mapping[str, int | str | bool | None]) -> None:
    """Changes `nice`, `concurrency`, `tag` or `match_only` of a scope, for what is queued from now on.

    Raises PlanError for a tag that workers cannot have.
    """
    lock_scopes(connection)
    if (tag := values.get("tag")) is not None:
        check_field(scope.name, "tag", tag)
    connection.execute(update(scopes).where(scopes.c.id == scope.id).values(dict(values)))


def note_left(connection: Connection, scope_id: int) -> None:
    """Something is left to do in the scope."""
    connection.execute(update(scopes).where(scopes.c.id == scope_id).values(completed_at=None))


def note_completed(connection: Connection, scope_id: int, now: float) -> None:
    """Nothing is left to do in the scope, for now."""
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
    )
