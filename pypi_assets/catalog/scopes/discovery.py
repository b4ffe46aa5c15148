"""Discover the projects that the roots of scopes lead to, from the files read so far, and follow them.

It starts from marks: a project is marked when its requirements may have changed. If its edges did change, the closure
of the scope is searched again. So a range that changes no requirement costs no search.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, func, select, update

from pypi_assets.catalog.database import at_a_time, insert_missing, lock_rows
from pypi_assets.catalog.ledger.range_ledger import complete_serial, lock_state, read_state
from pypi_assets.catalog.observed.followed import follow, followed_of, mark_projects
from pypi_assets.catalog.observed.projects import enter_projects, project_ids
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.scopes.edges import Edges, compute_edges, force_spans, load_edges, store_edges
from pypi_assets.catalog.scopes.stored_scopes import (
    SEARCH_ALL,
    Scope,
    StoredRuleset,
    all_scopes,
    lock_scopes,
    note_left,
    rulesets_of,
)
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    events,
    projects,
    scope_marks,
    scope_projects,
)
from pypi_assets.catalog.work.read_queue import queue_reads
from pypi_assets.catalog.work.visit_queue import queue_visits
from pypi_assets.index.actions import NO_FILE_CHANGE
from pypi_assets.scopes.closure import OPEN_END, Reached, Spans, closure, intersection, union
from pypi_assets.visit_policies import LEAST_NICE, MOST_NICE

_MARKS_AT_ONCE = 5_000
_MEMBERSHIP = ("depth", "is_beyond", "first_serial", "entered_serial", "is_late", "entered_at")
"""The columns that describe how a scope leads to a project."""


@dataclass(frozen=True, slots=True)
class Discovered:
    """The result of a search: how many projects entered the workload, and whether no mark is left (`is_all`)."""

    entered: int = 0
    is_all: bool = True


def discover(
    connection: Connection,
    now: float,
    workload: str | None = None,
    most: int | None = None,
) -> Discovered:
    """Search the scopes of marked projects again, and follow the projects that are found. Aborted scopes are skipped.

    `workload` visits at most `most` of the newly followed projects. The workload of their scope visits the remaining
    ones, or all of them if `workload` is None.
    """
    if connection.scalar(select(func.min(scope_marks.c.id))) is None:
        return Discovered()
    lock_scopes(connection)
    marks = connection.execute(select(scope_marks).order_by(scope_marks.c.id).limit(_MARKS_AT_ONCE)).all()
    marked = sorted({row.project_id for row in marks})
    searches = [_search(connection, scope, marked) for scope in all_scopes(connection) if not scope.is_aborted]
    ids = {row.normalized: id_ for one in searches for id_, row in one.members.items()}
    ids |= _known_ids(connection, {name for one in searches for name in one.reached} - ids.keys())
    new = {one.scope.id: [ids[name] for name in one.new_names(ids)] for one in searches}
    entering = _not_followed(connection, new)
    queued: dict[int, dict[str, list[int]]] = {}
    entered = 0
    for one in searches:
        of_scope, own = entering[one.scope.id], one.scope.workload
        into = own if workload is None or workload.startswith("scope:") else workload
        taken = of_scope if into == own or most is None else of_scope[: max(most - entered, 0)]
        queued[one.scope.id] = {into: taken}
        if rest := of_scope[len(taken) :]:
            queued[one.scope.id][own] = rest
        entered += len(taken) if workload is None or into == workload else 0
    _queue(connection, searches, ids, queued)
    lock_state(connection, exclusive=False)
    follow(connection, [id_ for of_scope in entering.values() for id_ in of_scope])
    for one in searches:
        store_edges(connection, one.scope.id, one.old, one.new)
        store_members(connection, one.scope, one.rulesets[-1], one.reached, one.members, ids, now)
    for chunk in at_a_time(row.id for row in marks):
        connection.execute(delete(scope_marks).where(scope_marks.c.id.in_(chunk)))
    # including projects that other scopes already follow
    again = {id_ for of_scope in new.values() for id_ in of_scope}
    mark_projects(connection, again)
    for one in searches:
        # work that other scopes leave undone is also this scope's work
        is_shared = len(new[one.scope.id]) > len(entering[one.scope.id])
        if queued[one.scope.id].get(one.scope.workload) or is_shared:
            note_left(connection, one.scope.id)
    return Discovered(entered, is_all=len(marks) < _MARKS_AT_ONCE and not again)


@dataclass(frozen=True, slots=True)
class _Search:
    """The result for one scope: old and new edges of marked projects, and the reached projects, if they can differ."""

    scope: Scope
    rulesets: Sequence[StoredRuleset]
    members: Mapping[int, Row[Any]]
    old: Mapping[int, Edges]
    new: Mapping[int, Edges]
    reached: Mapping[str, Reached]

    def new_names(self, ids: Mapping[str, int]) -> list[str]:
        """Return the projects that enter the scope, nearest to the roots first."""
        return [
            name
            for name, one in self.reached.items()
            if not one.is_beyond and ((before := self.members.get(ids[name])) is None or before.is_beyond)
        ]


def _search(connection: Connection, scope: Scope, marked: Sequence[int]) -> _Search:
    c = scope_projects.c
    rulesets = rulesets_of(connection, scope.id)
    followed = select(c.project_id, c.first_serial).where(c.scope_id == scope.id, c.is_beyond.is_(False))
    changed: dict[int, int] = {}
    for ids in at_a_time(marked):
        changed.update((id_, first) for id_, first in connection.execute(followed.where(c.project_id.in_(ids))))
    old = load_edges(connection, scope.id, list(changed)) if changed else {}
    new = compute_edges(connection, scope, rulesets, list(changed)) if changed else {}
    differs = any(_differ_from(max(first, scope.since), old.get(id_, {}), new[id_]) for id_, first in changed.items())
    if not (differs or SEARCH_ALL in marked):
        return _Search(scope, rulesets, {}, old, new, {})
    query = select(scope_projects, projects.c.normalized).join(projects, projects.c.id == c.project_id)
    members = {row.project_id: row for row in connection.execute(query.where(c.scope_id == scope.id))}
    reached = search(connection, scope, rulesets, load_edges(connection, scope.id) | new)
    return _Search(scope, rulesets, members, old, new, reached)


def _differ_from(first: int, old: Edges, new: Edges) -> bool:
    """Check whether a project's edges differ at a serial of at least `first`, the first at which the roots lead to it.

    Earlier edges make no difference, since no search reaches them.
    """
    if old == new:
        return False
    since: Spans = ((first, OPEN_END),)
    return any(
        intersection(old.get(name, ()), since) != intersection(new.get(name, ()), since)
        for name in old.keys() | new.keys()
    )


def _all_events_since(connection: Connection) -> int:
    """Return the serial above which the events of all projects are stored."""
    state = read_state(connection)
    since: int = state["events_since"] if state["all_events_since"] is None else state["all_events_since"]
    return since


def _known_ids(connection: Connection, names: Collection[str]) -> dict[str, int]:
    """Return the ids of these projects. Unknown projects are added to the catalog."""
    since = _all_events_since(connection)
    known = project_ids(connection, sorted(names))
    missing = sorted(names - known.keys())
    enter_projects(connection, ((name, since) for name in missing))
    return known | project_ids(connection, missing)


def _not_followed(connection: Connection, new: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    """Return for each scope, by id, its `new` projects that were not followed before. Each project is returned once."""
    found: dict[int, list[int]] = {}
    known: set[int] = set()
    for scope_id, project_ids_ in new.items():
        known |= followed_of(connection, project_ids_)
        found[scope_id] = [id_ for id_ in project_ids_ if id_ not in known]
        known.update(project_ids_)
    return found


def search(
    connection: Connection,
    scope: Scope,
    rulesets: Sequence[StoredRuleset],
    graph: Mapping[int, Edges],
) -> dict[str, Reached]:
    """Return the closure of a scope by normalized name, from its edges since its creation or last prune."""
    names = {normalized: id_ for id_, normalized in names_of(connection, graph).items()}
    return closure(
        dict.fromkeys(scope.roots, ((scope.since, OPEN_END),)),
        lambda name: graph.get(names.get(name, 0), {}),
        accepted=accepted_by(rulesets),
        most_depth=scope.most_depth,
    )


def names_of(connection: Connection, project_ids: Iterable[int]) -> dict[int, str]:
    """Return the normalized names of these projects, by their ids."""
    found: dict[int, str] = {}
    for ids in at_a_time(sorted(project_ids)):
        query = select(projects.c.id, projects.c.normalized).where(projects.c.id.in_(ids))
        found.update((id_, normalized) for id_, normalized in connection.execute(query))
    return found


def accepted_by(rulesets: Sequence[StoredRuleset]) -> Callable[[str], Spans]:
    """Return a function from a project's normalized name to the serials at which the rules accept it."""
    in_force = [(stored.ruleset, spans) for stored, spans in zip(rulesets, force_spans(rulesets), strict=True)]
    always = union(span for _, spans in in_force for span in spans)
    if not any(rule.accept is False for ruleset, _ in in_force for rule in ruleset.rules):
        return lambda _: always

    @cache
    def accepted(name: str) -> Spans:
        return union(span for ruleset, spans in in_force if ruleset.accepts(name) for span in spans)

    return accepted


def store_members(
    connection: Connection,
    scope: Scope,
    rules: StoredRuleset,
    reached: Mapping[str, Reached],
    members: Mapping[int, Row[Any]],
    ids: Mapping[str, int],
    now: float,
) -> None:
    """Store which projects are reached, and how. `members` are the stored rows of the scope, by project id."""
    complete = complete_serial(connection)
    rows: list[dict[str, Any]] = []
    updates: list[dict[str, Any]] = []
    is_nice_alike = not any(rule.nice for rule in rules.ruleset.rules)
    for name, one in reached.items():
        before = members.get(ids[name])
        nice = scope.nice if is_nice_alike else scope.nice + rules.ruleset.nice(name)
        nice = max(LEAST_NICE, min(nice, MOST_NICE))
        row = {"project_id": ids[name], "nice": nice} | _membership(one, before, scope.since, complete, now)
        if before is None:
            rows.append({"scope_id": scope.id} | row)
        elif any(getattr(before, key) != value for key, value in row.items()):
            updates.append({f"new_{key}": value for key, value in row.items()})
    insert_missing(connection, scope_projects, rows)
    if updates:
        c = scope_projects.c
        matches = (c.scope_id == scope.id, c.project_id == bindparam("new_project_id"))
        columns = [key for key in updates[0] if key != "new_project_id"]
        values: dict[str, Any] = {key.removeprefix("new_"): bindparam(key) for key in columns}
        connection.execute(update(scope_projects).where(*matches).values(values), updates)


def _membership(reached: Reached, before: Row[Any] | None, since: int, complete: int, now: float) -> dict[str, Any]:
    """Return the columns of a reached project.

    `before` is its stored row, `since` the first serial that counts, and `complete` the complete serial.

    If a project is found after serials at which it is reached were complete, answers at those serials are not changed:
    the project enters after the complete serial, which is late. The result depends only on the facts known by now, not
    on the order in which they were learnt.
    """
    if before is not None and reached.is_beyond and not before.is_beyond:  # a project in the scope stays
        return {key: getattr(before, key) for key in _MEMBERSHIP}
    first, entered, at = reached.first, complete + 1, now
    if before is not None and before.is_beyond == reached.is_beyond:
        first = before.first_serial if before.first_serial < since else first
        entered, at = min(before.entered_serial, entered), before.entered_at
    entered = max(first, entered)
    return {
        "depth": reached.depth,
        "is_beyond": reached.is_beyond,
        "first_serial": first,
        "entered_serial": entered,
        "is_late": entered > first,
        "entered_at": at,
    }


def _queue(
    connection: Connection,
    searches: Sequence[_Search],
    ids: Mapping[str, int],
    queued: Mapping[int, Mapping[str, Sequence[int]]],
) -> None:
    """Queue a visit of each project that enters. The visit expects a page of the project's last event, or newer."""
    since = _all_events_since(connection)
    for one in searches:
        nice = {ids[name]: one.rulesets[-1].ruleset.nice(name) + one.scope.nice for name in one.reached}
        for workload, of_workload in queued[one.scope.id].items():
            tasks = tasks_of(connection, of_workload)
            queue_visits(connection, workload, tasks, nice={id_: nice[id_] for id_, _, _ in tasks})
    entering = sorted(id_ for of_scope in queued.values() for found in of_scope.values() for id_ in found)
    for chunk in at_a_time(entering):
        unseen = (projects.c.id.in_(chunk), projects.c.page_serial.is_(None), projects.c.known_since > since)
        lock_rows(connection, projects, *unseen)
        connection.execute(update(projects).where(*unseen).values(known_since=since))
    for chunk in at_a_time(entering):
        _queue_unread(connection, chunk)


def tasks_of(connection: Connection, project_ids: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return the projects in the form that `queue_visits` takes, each with its last event that changes files."""
    last = (
        select(func.max(events.c.serial))
        .where(events.c.project_id == projects.c.id, events.c.kind.not_in(sorted(NO_FILE_CHANGE)))
        .scalar_subquery()
    )
    query = select(projects.c.id, projects.c.shard, func.coalesce(last, 0))
    return [
        (id_, shard, serial)
        for ids in at_a_time(sorted(project_ids))
        for id_, shard, serial in connection.execute(query.where(projects.c.id.in_(ids)))
    ]


def _queue_unread(connection: Connection, project_ids: Sequence[int]) -> None:
    """Queue the files of these projects that were still pending when the projects were unfollowed."""
    query = (
        select(distributions.c.id, distributions.c.project_id)
        .join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
        .where(
            distributions.c.project_id.in_(project_ids),
            distributions.c.url.is_not(None),
            distribution_data.c.outcome == ReadOutcome.PENDING,
        )
    )
    queue_reads(connection, [(id_, project_id) for id_, project_id in connection.execute(query)])
