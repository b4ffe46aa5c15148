"""How scopes stand, why a project is in one or not, and whether there are answers about it at a serial."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from packaging.utils import canonicalize_name
from sqlalchemy import Connection, Row, func, select

from pypi_assets.catalog.coordination.claims import workers_of_workloads
from pypi_assets.catalog.database import Catalog, storable
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.observed.followed import count_answered, follows_all
from pypi_assets.catalog.observed.projects import find_project
from pypi_assets.catalog.publications.dump_rows import holds_at
from pypi_assets.catalog.reads.read_outcomes import Outcome
from pypi_assets.catalog.scopes.discovery import accepted_by, names_of
from pypi_assets.catalog.scopes.edges import Edges, load_edges
from pypi_assets.catalog.scopes.stored_scopes import Scope, StoredRuleset, all_scopes, files_by_outcome, rulesets_of
from pypi_assets.catalog.tables import (
    distributions,
    followed_intervals,
    live_intervals,
    projects,
    read_queue,
    scope_projects,
    visit_queue,
)
from pypi_assets.catalog.work.read_queue import count_pending_reads
from pypi_assets.catalog.work.visit_queue import TaskState, WorkloadProgress, scope_workload, workload_progress
from pypi_assets.errors import NotAnsweredError
from pypi_assets.scopes.spans import OPEN_END, shortest_path
from pypi_assets.scopes.states import ScopeState


class Following(StrEnum):
    """ANSWERED: there are answers. ENTERING: none before it was visited and read. EARLIER: none at this serial, but at
    later ones. ENDED: it is no longer followed. NEVER: no scope has led to it by then."""

    ANSWERED = "answered"
    ENTERING = "entering"
    EARLIER = "earlier"
    ENDED = "ended"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class ProjectFollowing:
    """How the project `name` (normalized) is followed at `serial`, next to `projects` that have answers there.

    `since` is the first serial with answers, for EARLIER alone; None where it is entering again. `ended` is the serial
    from which on it is not followed, for ENDED alone. `is_beyond`: it is known, and too deep for its scopes.
    """

    name: str
    serial: int
    state: Following
    projects: int
    since: int | None = None
    ended: int | None = None
    is_beyond: bool = False

    def sentence(self) -> str | None:
        """The reason why there is no answer, and what helps; None where there are answers."""
        add = f"`pypi-assets scope create NAME {self.name}` and `pypi-assets scope run NAME` add it"
        match self.state:
            case Following.ANSWERED:
                return None
            case Following.ENTERING:
                return (
                    f"{self.name} is entering: there is no answer about it before it was visited and read"
                    " (`pypi-assets scope run`)"
                )
            case Following.EARLIER:
                return (
                    f"there is no answer about {self.name} at serial {self.serial}: it is known from serial"
                    f" {self.since} on"
                )
            case Following.ENDED:
                return f"{self.name} is not followed since serial {self.ended}, when it left the scopes: {add}"
            case Following.NEVER:
                beyond = ", since it is beyond the depth of its scope" if self.is_beyond else ""
                return f"{self.name} is not followed{beyond}, so there is no answer about it: {add}"


def following_at(connection: Connection, name: str, serial: int | None = None) -> ProjectFollowing | None:
    """How the project of this name, in any spelling, is followed at `serial` (None: the complete serial).

    None where all of the index is followed: then each project has answers.
    """
    if follows_all(connection):
        return None
    at = complete_serial(connection) if serial is None else serial
    count = count_answered(connection, at) or 0
    project = find_project(connection, storable(name))
    if project is None:
        return ProjectFollowing(canonicalize_name(name), at, Following.NEVER, count)
    of = followed_intervals.c
    rows = connection.execute(select(followed_intervals).where(of.project_id == project.id).order_by(of.start)).all()
    known = [row for row in rows if row.exact_from is not None]
    if any(row.exact_from <= at and (row.end is None or row.end > at) for row in known):
        return ProjectFollowing(project.normalized, at, Following.ANSWERED, count)
    later = [row.exact_from for row in known if row.exact_from > at]
    if later:
        return ProjectFollowing(project.normalized, at, Following.EARLIER, count, since=min(later))
    if any(row.end is None for row in rows):
        return ProjectFollowing(project.normalized, at, Following.ENTERING, count)
    if known:
        return ProjectFollowing(project.normalized, at, Following.ENDED, count, ended=known[-1].end)
    in_scopes = connection.scalars(select(scope_projects.c.is_beyond).where(scope_projects.c.project_id == project.id))
    is_beyond = any(in_scopes)
    return ProjectFollowing(project.normalized, at, Following.NEVER, count, is_beyond=is_beyond)


def unfollowed_at(catalog: Catalog, serial: int, name: str) -> str | None:
    """Return why there is no answer about a project at `serial`; None where there are answers."""
    with catalog.read() as connection:
        found = following_at(connection, name, serial)
    return None if found is None else found.sentence()


def require_answered(connection: Connection, name: str, serial: int) -> ProjectFollowing | None:
    """The same as `following_at`. Raises NotAnsweredError, with the first serial that has answers, where `serial` lies
    before it."""
    found = following_at(connection, name, serial)
    if found is not None and found.state == Following.EARLIER:
        raise NotAnsweredError(str(found.sentence()))
    return found


def unpublished_sentence(connection: Connection, name: str, serial: int) -> str | None:
    """Why a publication of `serial` has nothing about the project; None where it has no file there, as is known."""
    now = following_at(connection, name)
    if now is None or now.state != Following.ANSWERED:
        return None if now is None else now.sentence()
    then = following_at(connection, name, serial)
    if then is not None and then.state == Following.ANSWERED and not _has_live_files(connection, now.name, serial):
        return None
    return (
        f"{now.name} has entered since then: the next version has it (`pypi-assets dump incremental`, then"
        " `pypi-assets leveldb update`)"
    )


def _has_live_files(connection: Connection, normalized: str, serial: int) -> bool:
    query = (
        select(live_intervals.c.distribution_id)
        .join(distributions, distributions.c.id == live_intervals.c.distribution_id)
        .join(projects, projects.c.id == distributions.c.project_id)
        .where(projects.c.normalized == normalized, holds_at(live_intervals.c.start, live_intervals.c.end, serial))
    )
    return connection.execute(query.limit(1)).first() is not None


@dataclass(frozen=True, slots=True)
class ScopeStatus:
    """How a scope stands. `depths` counts its projects by depth, `beyond` those beyond the greatest depth, `late` those
    that entered late, `entering` those about which there is no answer yet. `files` counts the files that are live now,
    by the outcome of reading them. `workers` are at work on it."""

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

    @property
    def projects(self) -> int:
        return sum(self.depths.values())


def scope_status(connection: Connection, scope: Scope, now: float, *, counts_files: bool = True) -> ScopeStatus:
    """How the scope stands at `now` (unix seconds). Files are counted one by one, or not at all."""
    of = scope_projects.c
    of_scope = of.scope_id == scope.id
    followed = (of_scope, of.is_beyond.is_(False))
    depths = connection.execute(select(of.depth, func.count()).where(*followed).group_by(of.depth).order_by(of.depth))
    counts: dict[int, int] = {key: count for key, count in depths}
    workload = scope_workload(scope.id, is_aborted=scope.is_aborted)
    visits, reads_left = workload_progress(connection, workload), count_pending_reads(connection, workload)
    workers = workers_of_workloads(connection, now).get(workload)
    entering = (
        select(func.count())
        .select_from(scope_projects)
        .join(followed_intervals, followed_intervals.c.project_id == of.project_id)
        .where(*followed, followed_intervals.c.end.is_(None), followed_intervals.c.exact_from.is_(None))
    )
    none = {outcome.value: 0 for outcome in Outcome}
    return ScopeStatus(
        scope=scope,
        state=scope.state(visits.todo + reads_left, _count_free(connection, workload, now)),
        depths=counts,
        beyond=_count(connection, of_scope, of.is_beyond.is_(True)),
        late=_count(connection, *followed, of.is_late.is_(True)),
        entering=connection.scalar(entering) or 0,
        visits=visits,
        reads_left=reads_left,
        files=none | files_by_outcome(connection, scope.id) if counts_files else {},
        rulesets=rulesets_of(connection, scope.id),
        workers=0 if workers is None else len(workers.processes),
    )


def ready_scopes(connection: Connection, now: float) -> list[Scope]:
    """The scopes in which a run would find work that no worker has claimed, in the order of their turns."""
    return [scope for scope in all_scopes(connection) if _is_ready(connection, scope, now)]


def _is_ready(connection: Connection, scope: Scope, now: float) -> bool:
    if not scope.may_go_on:
        return False
    left = workload_progress(connection, scope.workload).todo + count_pending_reads(connection, scope.workload)
    return scope.state(left, _count_free(connection, scope.workload, now)) is ScopeState.ACTIVE


def _count_free(connection: Connection, workload: str, now: float) -> int:
    """How many visits and reads of the workload no worker has claimed."""
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
class Reason:
    """Why a project `is_in` a scope or not, in sentences. `path` leads to it from a root, where one does now."""

    project: str
    is_in: bool
    path: Sequence[str]
    sentences: Sequence[str]


def why(connection: Connection, scope: Scope, name: str) -> Reason:
    """Why the project of this name, in any spelling, is in the scope or not."""
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
        of = scope_projects.c
        is_it = (of.scope_id == scope.id, of.project_id == project.id)
        member = connection.execute(select(scope_projects).where(*is_it)).first()
    if member is None or member.is_beyond:
        return Reason(normalized, False, path, list(_why_not(scope, rulesets[-1], normalized, edges, member)))
    sentences = list(_why_in(scope, normalized, path, member))
    if _is_entering(connection, member.project_id):
        sentences.append("it is entering: there is no answer about it before it was visited and read")
    return Reason(normalized, True, path, sentences)


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
            "" if is_accepted is False else ", outside of what is followed"
        )
    else:
        yield "no file that was read and that the rules select requires it"


def _why_in(scope: Scope, name: str, path: Sequence[str], member: Row[Any]) -> Iterator[str]:
    if name in scope.roots:
        yield "it is a root"
    elif path:
        yield f"the roots lead to it: {' -> '.join(path)}"
    else:
        yield "the roots no longer lead to it; it stays until the scope is pruned"
    late = f", late: the roots led to it from serial {member.first_serial} on" if member.is_late else ""
    yield f"it is in from serial {member.entered_serial} on{late}"


def _is_entering(connection: Connection, project_id: int) -> bool:
    of = followed_intervals.c
    query = select(of.start).where(of.project_id == project_id, of.end.is_(None), of.exact_from.is_(None))
    return connection.scalar(query) is not None


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
