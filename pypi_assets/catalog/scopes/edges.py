"""Edges of a scope: which project requires which, at which serials; computed from the files read so far, and stored.

An edge exists as long as a file that the rules select requires the other project.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from sqlalchemy import Connection, Table, bindparam, delete, insert, or_, select

from pypi_assets.catalog.database import at_a_time
from pypi_assets.catalog.observed.projects import project_ids as project_ids_of
from pypi_assets.catalog.reads.stored_contents import StoredLists
from pypi_assets.catalog.scopes.stored_scopes import Scope, StoredRuleset
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    live_intervals,
    releases,
    required_names,
    scope_edges,
    yanked_intervals,
)
from pypi_assets.distributions.metadata import normalized_extra
from pypi_assets.distributions.requirement_names import CONDITIONS, parse_requirement
from pypi_assets.scopes.closure import OPEN_END, Span, Spans, intersection, span, union
from pypi_assets.scopes.ruleset import RequirementRules, ScopeFile, selected_spans

Edges = dict[str, Spans]
"""The requirements of a project: the serials at which it requires another, by that project's normalized name."""
_ONLY_WITH_EXTRA = CONDITIONS.index("extra")
_EXTRAS = re.compile(r"\bextra\s*==\s*['\"]([^'\"]*)['\"]|['\"]([^'\"]*)['\"]\s*==\s*extra\b", re.ASCII)
_OWN_EXTRAS = re.compile(r"\s*[\w.-]+\s*\[([^\]]*)\]", re.ASCII)


def force_spans(rulesets: Sequence[StoredRuleset]) -> list[Spans]:
    """Return the serials at which each version of the rules is in force."""
    starts = [*(stored.from_serial for stored in rulesets), OPEN_END]
    return [((start, end),) if start < end else () for start, end in pairwise(starts)]


def compute_edges(
    connection: Connection, scope: Scope, rulesets: Sequence[StoredRuleset], project_ids: Sequence[int]
) -> dict[int, Edges]:
    """Return the edges of each of these projects since the scope was created or pruned, from the files read so far.

    The number of SQL statements does not grow with the number of projects.
    """
    since: Spans = ((scope.since, OPEN_END),)
    lists = {
        project_id: _selected_lists(files, rulesets)
        for project_id, files in _files_of(connection, scope.since, project_ids).items()
    }
    required = _required(connection, {list_id for of_it in lists.values() for list_id in of_it})
    extras = _extras_of_roots(connection, scope)
    found: dict[int, Edges] = {}
    for project_id, of_it in lists.items():
        edges: dict[str, list[Span]] = {}
        for list_id, (held, with_extras) in of_it.items():
            for name, is_extra in required.get(list_id, ()):
                edges.setdefault(name, []).extend(with_extras if is_extra else held)
        if project_id in extras:
            for list_id, requirements in StoredLists(connection).load(list(of_it)).items():
                for name in required_with(requirements, extras[project_id]):
                    edges.setdefault(name, []).extend(of_it[list_id][0])
        found[project_id] = {name: cut for name, spans in edges.items() if (cut := intersection(union(spans), since))}
    return found


def _selected_lists(
    files: Sequence[tuple[ScopeFile, int | None]], rulesets: Sequence[StoredRuleset]
) -> dict[int, tuple[list[Span], list[Span]]]:
    """Return the requirement lists of a project's selected files, by id.

    For each: the spans at which it counts, and the spans at which its requirements that need an extra count too.
    """
    found: dict[int, tuple[list[Span], list[Span]]] = {}
    for rules, spans in _requirement_rules(rulesets).items():
        selected = selected_spans([file for file, _ in files], rules)
        for (_, list_id), of_file in zip(files, selected, strict=True):
            if list_id is not None and (both := intersection(of_file, spans)):
                held, with_extras = found.setdefault(list_id, ([], []))
                held.extend(both)
                if rules.extras:
                    with_extras.extend(both)
    return found


def _requirement_rules(rulesets: Sequence[StoredRuleset]) -> dict[RequirementRules, Spans]:
    """Return the serials at which each set of requirement rules is in force."""
    found: dict[RequirementRules, Spans] = {}
    for stored, spans in zip(rulesets, force_spans(rulesets), strict=True):
        rules = stored.ruleset.requirements
        found[rules] = union((*found.get(rules, ()), *spans))
    return found


def _files_of(
    connection: Connection, since: int, project_ids: Sequence[int]
) -> dict[int, list[tuple[ScopeFile, int | None]]]:
    """Return the files of each project that are live at `since` or later, each with the id of its requirement list."""
    found: dict[int, list[tuple[ScopeFile, int | None]]] = {project_id: [] for project_id in project_ids}
    for ids in at_a_time(sorted(project_ids)):
        live = _spans(connection, live_intervals, ids, since)
        yanked = _spans(connection, yanked_intervals, ids, since)
        query = (
            select(
                distributions.c.id,
                distributions.c.project_id,
                distributions.c.kind,
                releases.c.version,
                distribution_data.c.requires_dist_id,
            )
            .join(releases, releases.c.id == distributions.c.release_id)
            .join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
            .where(distributions.c.project_id.in_(ids))
            .order_by(distributions.c.id)
        )
        for row in connection.execute(query):
            if row.id in live:
                file = ScopeFile(row.version, row.kind, live[row.id], yanked.get(row.id, ()))
                found[row.project_id].append((file, row.requires_dist_id))
    return found


def _spans(connection: Connection, table: Table, project_ids: Sequence[int], since: int) -> dict[int, Spans]:
    query = (
        select(table.c.distribution_id, table.c.start, table.c.end)
        .join(distributions, distributions.c.id == table.c.distribution_id)
        .where(distributions.c.project_id.in_(project_ids), or_(table.c.end.is_(None), table.c.end > since))
    )
    spans: dict[int, list[tuple[int, int]]] = {}
    for id_, start, end in connection.execute(query):
        spans.setdefault(id_, []).append(span(start, end))
    return {id_: union(of_file) for id_, of_file in spans.items()}


def _extras_of_roots(connection: Connection, scope: Scope) -> dict[int, Collection[str]]:
    """Return the extras named with roots, by project id. They are followed even if the rules exclude extras."""
    named = {name: extras for name, extras in scope.roots.items() if extras}
    return {id_: named[name] for name, id_ in project_ids_of(connection, sorted(named)).items()}


def _required(connection: Connection, lists: Collection[int]) -> dict[int, list[tuple[str, bool]]]:
    """Return the projects in each of these lists, each with whether it is followed only with extras."""
    c = required_names.c
    found: dict[int, list[tuple[str, bool]]] = {}
    for ids in at_a_time(sorted(lists)):
        for row in connection.execute(select(c.list_id, c.name, c.condition).where(c.list_id.in_(ids))):
            found.setdefault(row.list_id, []).append((row.name, row.condition == _ONLY_WITH_EXTRA))
    return found


def required_with(requirements: Sequence[str], extras: Collection[str]) -> set[str]:
    """Return the projects that these requirements of a project need for the given extras of that project.

    An extra of the project can require further extras of it, which are included.

    >>> sorted(required_with(["a ; extra == 'one'", "b ; extra == 'two'"], ["two"]))
    ['b']
    """
    parsed = [(parse_requirement(text), text) for text in requirements]
    wanted = {normalized_extra(extra) for extra in extras}
    found: set[str] = set()
    for _ in range(len(requirements) + 1):
        named = {
            (one[0], text)
            for one, text in parsed
            if one is not None and wanted & {normalized_extra(a or b) for a, b in _EXTRAS.findall(text)}
        }
        found = {name for name, _ in named}
        more = {
            normalized_extra(extra)
            for _, text in named
            if (match := _OWN_EXTRAS.match(text))
            for extra in match[1].split(",")
        }
        if more <= wanted:
            break
        wanted |= more
    return found


def load_edges(connection: Connection, scope_id: int, project_ids: Sequence[int] | None = None) -> dict[int, Edges]:
    """Return the stored edges of these projects (None: all projects) by project id."""
    c = scope_edges.c
    query = select(c.project_id, c.required, c.start, c.end).where(c.scope_id == scope_id).order_by(c.start)
    parts = [query] if project_ids is None else [query.where(c.project_id.in_(ids)) for ids in at_a_time(project_ids)]
    found: dict[int, Edges] = {}
    for part in parts:
        for project_id, required, start, end in connection.execute(part):
            edges = found.setdefault(project_id, {})
            edges[required] = (*edges.get(required, ()), span(start, end))
    return found


def store_edges(connection: Connection, scope_id: int, old: Mapping[int, Edges], new: Mapping[int, Edges]) -> None:
    """Replace the `old` edges of the projects in `new`."""
    before = {row for project_id in new for row in _rows(project_id, old.get(project_id, {}))}
    after = {row for project_id in new for row in _rows(project_id, new[project_id])}
    c = scope_edges.c
    gone = [
        {"of_project": project_id, "name": required, "since": start}
        for project_id, required, start, _ in sorted(before - after)
    ]
    if gone:
        matches = (c.project_id == bindparam("of_project"), c.required == bindparam("name"))
        is_there = (c.scope_id == scope_id, c.start == bindparam("since"))
        connection.execute(delete(scope_edges).where(*matches, *is_there), gone)
    rows = [
        {
            "scope_id": scope_id,
            "project_id": project_id,
            "required": required,
            "start": start,
            "end": None if end == OPEN_END else end,
        }
        for project_id, required, start, end in sorted(after - before)
    ]
    if rows:
        connection.execute(insert(scope_edges), rows)


def _rows(project_id: int, edges: Edges) -> Iterable[tuple[int, str, int, int]]:
    return ((project_id, required, start, end) for required, spans in edges.items() for start, end in spans)
