"""The status of scopes, and the reasons why a project is in a scope or not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.utils import canonicalize_name
from sqlalchemy import Connection, Row, func, select

from pypi_assets.catalog.coordination.claims import workers_of_workloads
from pypi_assets.catalog.observed.projects import Selection, find_project
from pypi_assets.catalog.reads.kept_lists import forgotten_in, kept_in
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.scopes.discovery import accepted_by, names_of
from pypi_assets.catalog.scopes.edges import Edges, load_edges
from pypi_assets.catalog.scopes.stored_scopes import Scope, StoredRuleset, all_scopes, rulesets_of
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    followed_intervals,
    live_intervals,
    projects,
    read_queue,
    scope_projects,
    visit_queue,
)
from pypi_assets.catalog.work.full_crawls import names_without_page
from pypi_assets.catalog.work.read_queue import count_pending_reads
from pypi_assets.catalog.work.visit_queue import TaskState, WorkloadProgress, scope_workload, workload_progress
from pypi_assets.scopes.closure import OPEN_END, shortest_path
from pypi_assets.scopes.states import ScopeState


@dataclass(frozen=True, slots=True)
class ScopeStatus:
    """The status of a scope.

    `depths` counts its projects by depth, and `beyond` the projects beyond the greatest depth. `late` counts the
    projects that entered late, and `entering` the projects without answers yet. `files` counts the live files by
    outcome. `workers` is the number of processes that work on the scope. `kept_files` counts its files whose bytes are
    kept, and `forgotten_files` its files whose bytes must not be kept. `missing_roots` are the roots of which no page
    was ever seen.
    """

    scope: Scope
    state: ScopeState
    depths: Mapping[int, int]
    beyond: int
    late: int
    entering: int
    visits: WorkloadProgress
    reads_left: int
    files: Mapping[str, int]
    rulesets: Sequence[StoredRuleset]
    workers: int
    kept_files: int = 0
    forgotten_files: int = 0
    missing_roots: Sequence[str] = ()

    @property
    def projects(self) -> int:
        return sum(self.depths.values())


def scope_status(connection: Connection, scope: Scope, now: float, *, counts_files: bool = True) -> ScopeStatus:
    """Return the status of the scope at `now` (unix seconds).

    Counting its files, and its kept files, reads a row for each; with `counts_files=False` they are not counted, and no
    missing roots are looked up.
    """
    c = scope_projects.c
    of_scope = c.scope_id == scope.id
    followed = (of_scope, c.is_beyond.is_(False))
    depths = connection.execute(select(c.depth, func.count()).where(*followed).group_by(c.depth).order_by(c.depth))
    counts: dict[int, int] = {key: count for key, count in depths}
    workload = scope_workload(scope.id, is_aborted=scope.is_aborted)
    visits, reads_left = workload_progress(connection, workload), count_pending_reads(connection, workload)
    workers = workers_of_workloads(connection, now).get(workload)
    entering = (
        select(func.count())
        .select_from(scope_projects)
        .join(followed_intervals, followed_intervals.c.project_id == c.project_id)
        .where(*followed, followed_intervals.c.end.is_(None), followed_intervals.c.exact_from.is_(None))
    )
    none = {outcome.value: 0 for outcome in ReadOutcome}
    return ScopeStatus(
        scope=scope,
        state=scope.state(visits.todo + reads_left, _count_free(connection, workload, now)),
        depths=counts,
        beyond=_count(connection, of_scope, c.is_beyond.is_(True)),
        late=_count(connection, *followed, c.is_late.is_(True)),
        entering=connection.scalar(entering) or 0,
        visits=visits,
        reads_left=reads_left,
        files=none | files_by_outcome(connection, scope.id) if counts_files else {},
        rulesets=rulesets_of(connection, scope.id),
        workers=0 if workers is None else len(workers.processes),
        kept_files=kept_in(connection, scope.id) if counts_files else 0,
        forgotten_files=forgotten_in(connection, scope.id) if counts_files else 0,
        missing_roots=names_without_page(connection, Selection(frozenset(scope.roots))) if counts_files else (),
    )


def files_by_outcome(connection: Connection, scope_id: int) -> dict[str, int]:
    """Return the number of live files of the scope's projects, by outcome. Reads a row for each file."""
    c, data = scope_projects.c, distribution_data.c
    query = (
        select(data.outcome, func.count())
        .select_from(scope_projects)
        .join(distributions, distributions.c.project_id == c.project_id)
        .join(live_intervals, live_intervals.c.distribution_id == distributions.c.id)
        .join(distribution_data, data.distribution_id == distributions.c.id)
        .where(c.scope_id == scope_id, c.is_beyond.is_(False), live_intervals.c.end.is_(None))
        .group_by(data.outcome)
    )
    return {outcome: count for outcome, count in connection.execute(query)}


@dataclass(frozen=True, slots=True)
class DiscoveredSoFar:
    """The number of projects of a scope discovered so far, and the progress of visiting and reading them.

    `depth` is the greatest depth of the projects, and `visited` the number of visited ones. `files` counts their live
    files, of which `read` were read and `skipped` are skipped.
    """

    projects: int
    depth: int
    visited: int
    files: int
    read: int
    skipped: int


def discovered_so_far(connection: Connection, scope_id: int) -> DiscoveredSoFar:
    """Return how much of the scope has been discovered so far. Reads a row for each of its files."""
    c = scope_projects.c
    visited = func.count(projects.c.page_serial)
    known = select(func.count(), func.max(c.depth), visited).select_from(scope_projects)
    known = known.join(projects, projects.c.id == c.project_id)
    count, depth, seen = connection.execute(known.where(c.scope_id == scope_id, c.is_beyond.is_(False))).one()
    outcomes = files_by_outcome(connection, scope_id)
    waiting, skipped = outcomes.get(ReadOutcome.PENDING, 0), outcomes.get(ReadOutcome.SKIPPED, 0)
    total = sum(outcomes.values())
    return DiscoveredSoFar(count, depth or 0, seen, total, total - waiting - skipped, skipped)


def ready_scopes(connection: Connection, now: float) -> list[Scope]:
    """Return the scopes that have work that no worker has claimed, in order of priority."""
    return [scope for scope in all_scopes(connection) if _is_ready(connection, scope, now)]


def _is_ready(connection: Connection, scope: Scope, now: float) -> bool:
    if not scope.may_go_on:
        return False
    left = workload_progress(connection, scope.workload).todo + count_pending_reads(connection, scope.workload)
    return scope.state(left, _count_free(connection, scope.workload, now)) is ScopeState.ACTIVE


def _count_free(connection: Connection, workload: str, now: float) -> int:
    """Return the number of visits and reads of the workload that no worker has claimed."""
    visits = select(func.count()).where(
        visit_queue.c.workload == workload, visit_queue.c.state == TaskState.TODO, visit_queue.c.claimed_until <= now
    )
    reads = (
        select(func.count())
        .select_from(read_queue)
        .join(visit_queue, visit_queue.c.project_id == read_queue.c.project_id)
        .where(visit_queue.c.workload == workload, read_queue.c.claimed_until <= now)
    )
    return (connection.scalar(visits) or 0) + (connection.scalar(reads) or 0)


def _count(connection: Connection, *where: object) -> int:
    query = select(func.count()).select_from(scope_projects).where(*where)  # type: ignore[arg-type]
    return connection.scalar(query) or 0


@dataclass(frozen=True, slots=True)
class ScopeReason:
    """The reasons, as sentences, why a project `is_in` a scope or not. `path` leads to it from a root, if any does."""

    project: str
    is_in: bool
    path: Sequence[str]
    sentences: Sequence[str]


def why(connection: Connection, scope: Scope, name: str) -> ScopeReason:
    """Return the reasons why the project with this name, in any spelling, is in the scope or not."""
    normalized = canonicalize_name(name)
    rulesets = rulesets_of(connection, scope.id)
    stored = load_edges(connection, scope.id)
    names = names_of(connection, stored)
    edges = {names[project_id]: found for project_id, found in stored.items()}
    roots = dict.fromkeys(scope.roots, ((scope.created_serial, OPEN_END),))
    path = shortest_path(
        roots, lambda one: edges.get(one, {}), normalized, OPEN_END - 1, accepted=accepted_by(rulesets)
    )
    project = find_project(connection, name)
    member = None
    if project is not None:
        c = scope_projects.c
        matches = (c.scope_id == scope.id, c.project_id == project.id)
        member = connection.execute(select(scope_projects).where(*matches)).first()
    if member is None or member.is_beyond:
        return ScopeReason(normalized, False, path, list(_why_not(scope, rulesets[-1], normalized, edges, member)))
    sentences = list(_why_in(scope, normalized, path, member))
    if _is_entering(connection, member.project_id):
        sentences.append("it is entering: there are no answers about it until it is visited and its files are read")
    return ScopeReason(normalized, True, path, sentences)


def _why_not(
    scope: Scope, rules: StoredRuleset, name: str, edges: Mapping[str, Edges], member: Row[Any] | None
) -> Iterator[str]:
    number, is_accepted = rules.ruleset.deciding_rule(name, "accept")
    requiring = sorted(one for one, found in edges.items() if name in found and found[name][-1][1] == OPEN_END)
    if is_accepted is False:
        yield f"rule {number} does not accept it"
    if member is not None:
        yield f"it is {member.depth} requirements away from the roots, and the scope follows {scope.most_depth}"
    elif requiring:
        yield f"it is required by {_some(requiring)}" + (
            "" if is_accepted is False else ", but not by a requirement that the scope follows"
        )
    else:
        yield "no file that was read and is selected by the rules requires it"


def _why_in(scope: Scope, name: str, path: Sequence[str], member: Row[Any]) -> Iterator[str]:
    if name in scope.roots:
        yield "it is a root"
    elif path:
        yield f"the roots lead to it: {' -> '.join(path)}"
    else:
        yield "the roots no longer lead to it; it stays until the scope is pruned"
    late = f" (late: the roots have led to it since serial {member.first_serial})" if member.is_late else ""
    yield f"it has been in the scope since serial {member.entered_serial}{late}"


def _is_entering(connection: Connection, project_id: int) -> bool:
    c = followed_intervals.c
    query = select(c.start).where(c.project_id == project_id, c.end.is_(None), c.exact_from.is_(None))
    return connection.scalar(query) is not None


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
