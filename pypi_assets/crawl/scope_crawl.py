"""Follows scopes: visits and reads the projects that their roots lead to, until no new project enters.

`catalog/scopes/discovery.py` finds these projects. An incremental crawl does the same for the uploads of a range.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from sqlalchemy import Connection

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.derived.visits import explain_entering, parts_of_work
from pypi_assets.catalog.ledger.range_ledger import complete_range, first_range, require_range
from pypi_assets.catalog.observed.observations import begin_counter, require_counter
from pypi_assets.catalog.scopes.discovery import discover
from pypi_assets.catalog.scopes.members import entering_in, settle_projects
from pypi_assets.catalog.scopes.reading_rules import apply_rules, projects_to_rule, queue_lifted
from pypi_assets.catalog.scopes.scope_status import discovered_so_far
from pypi_assets.catalog.scopes.stored_scopes import (
    Scope,
    all_scopes,
    bring_in_line,
    create_scope,
    differing,
    find_scope,
    note_completed,
    note_left,
    require_scope,
    take_resting,
)
from pypi_assets.catalog.work.finished_workloads import forget_visits
from pypi_assets.catalog.work.full_crawls import find_open_crawl
from pypi_assets.catalog.work.read_queue import is_read_pending
from pypi_assets.catalog.work.visit_queue import (
    WorkloadProgress,
    is_visit_pending,
    move_projects,
    workload_progress,
)
from pypi_assets.crawl.crawler import Crawler, require_answer
from pypi_assets.crawl.draining import claiming
from pypi_assets.crawl.fetching import choose_file_origin
from pypi_assets.crawl.keeping import KeptCounts, keep_missing_files
from pypi_assets.crawl.listers import query_changelog
from pypi_assets.crawl.reading import ReadCounts, read_workload
from pypi_assets.crawl.simple_lister import listed_serial
from pypi_assets.crawl.stored_events import store_all_events
from pypi_assets.crawl.visiting import visit_workload
from pypi_assets.scopes.plan import ScopePlan
from pypi_assets.scopes.states import STATES

ENTERING_IN_A_RANGE = 200
"""The most projects that enter within one range. Other projects are left to the workloads of their scopes."""
FILES_IN_A_RANGE = 1_000
"""A project with more files to read is left to the workload of its scope."""
_RULED_AT_A_TIME = 200


@dataclass(frozen=True, slots=True)
class ScopeResult:
    """A scope after a run: the state of its visits, and its reads. `is_complete` is set if no work is left.

    `kept` are the files that were fetched only to keep them.
    """

    scope: Scope
    visits: WorkloadProgress
    reads: ReadCounts
    is_complete: bool
    kept: KeptCounts = field(default_factory=KeptCounts)


def start_scope(crawler: Crawler, plan: ScopePlan) -> Scope:
    """Create a scope, and queue visits of its roots. On an empty catalog, pin the index's last serial.

    The list of projects is requested only if the changelog is off, or if the catalog is empty and the index has none of
    the first roots. Raises CatalogError as `create_scope` does, and RefusedError if a list has no serial.
    """
    catalog, index = crawler.catalog, crawler.index
    with catalog.read() as connection:
        require_counter(connection, index.index_url, is_observed=index.is_observed)
    require_answer(crawler, plan.roots.keys())
    if index.is_observed:
        catalog.transact(partial(begin_counter, instance=index.index_url, now=catalog.clock()))
    serial = crawler.patiently(lambda: query_changelog(crawler, index.last_serial, again=True))
    if serial is None:
        serial = crawler.patiently(partial(listed_serial, crawler))
    scope = catalog.transact(
        partial(create_scope, plan=plan, serial=serial, index_url=index.index_url, now=catalog.clock())
    )
    discover_all(crawler)
    return scope


def keep_in_line(crawler: Crawler, plans: Iterable[ScopePlan]) -> None:
    """Create the scopes of these plans that do not exist, and update existing scopes to their plans.

    People are notified of changes. A repetition changes nothing. Raises CatalogError and RulesError.
    """
    for plan in plans:
        changed = _apply(crawler, plan)
        if changed is None:
            crawler.notify(f"scope {plan.name}: created, since the file of indexes declares it")
        elif changed:
            crawler.notify(f"scope {plan.name}: updated from the file of indexes: {', '.join(changed)}")
        if changed is None or "roots" in changed:
            for sentence in plan.skipped:
                crawler.notify(f"scope {plan.name}: skipped: {sentence}")


def _apply(crawler: Crawler, plan: ScopePlan) -> list[str] | None:
    """Return the changed fields of an existing scope; None if the scope was created."""
    catalog = crawler.catalog
    if not _exists(crawler, plan.name):
        try:
            start_scope(crawler, plan)
        except CatalogError:
            if not _exists(crawler, plan.name):  # otherwise another process has created it
                raise
        else:
            return None
    with catalog.read() as connection:
        if not differing(connection, plan):
            return []
    return catalog.transact(partial(bring_in_line, plan=plan, now=catalog.clock()))


def _exists(crawler: Crawler, name: str) -> bool:
    with crawler.catalog.read() as connection:
        return find_scope(connection, name) is not None


def run_scope(crawler: Crawler, name: str) -> ScopeResult:
    """Visit and read a scope's projects, and the projects that they lead to, until no work is left.

    If the scope keeps files, the files that were read before are then fetched, as far as its budget has room.

    Requirements in the files of the newest releases are read first, to find all projects, before the other files.
    Raises CatalogError for an unknown, aborted or paused scope.
    """
    catalog = crawler.catalog
    crawler, scope = _for_scope(crawler, name)
    counts, kept = ReadCounts(), KeptCounts()
    report = partial(_report_discovered, crawler, scope)
    with claiming(crawler, scope.workload):
        discover_all(crawler)
        _take_over(crawler, scope)
        while True:
            counts += follow_workload(crawler, scope.workload, discovered=report)
            settle_workload(crawler, scope.workload)
            _take_over(crawler, scope)
            if catalog.transact(partial(_complete, scope, catalog.clock())):
                break
            with catalog.read() as connection:
                if require_scope(connection, name).is_aborted:
                    break
        kept = _keep_files(crawler, scope)
    forget_visits(catalog, scope.workload)
    with catalog.read() as connection:
        after = require_scope(connection, name)
        visits = workload_progress(connection, scope.workload)
    return ScopeResult(after, visits, counts, after.completed_at is not None, kept)


def _keep_files(crawler: Crawler, scope: Scope) -> KeptCounts:
    """Fetch the missing files of a complete scope that keeps files. It has pending work until all were tried."""
    catalog = crawler.catalog
    with catalog.read() as connection:
        current = require_scope(connection, scope.name)
    if not current.keep_files or current.completed_at is None:
        return KeptCounts()
    catalog.transact(partial(note_left, scope_id=scope.id))
    choose_file_origin(crawler)
    kept = keep_missing_files(crawler, scope.id)
    catalog.transact(partial(_complete, scope, catalog.clock()))
    return kept


def find_scope_projects(crawler: Crawler, name: str) -> Scope:
    """Find all projects of a scope: visit them, and read only files that may bring further projects into it.

    Other files are left to `run_scope`. Raises CatalogError as `run_scope` does.
    """
    crawler, scope = _for_scope(crawler, name)
    with claiming(crawler, scope.workload):
        discover_all(crawler)
        _take_over(crawler, scope)
        while _find(crawler, scope.workload, None)[1]:
            _report_discovered(crawler, scope)
    return scope


def _for_scope(crawler: Crawler, name: str) -> tuple[Crawler, Scope]:
    """Return the scope, and a crawler limited to the scope's concurrency. Raises CatalogError if it must not run."""
    with crawler.catalog.read() as connection:
        scope = require_scope(connection, name)
    state = scope.state(left=1, free=1)
    if remedy := STATES[state].remedy:
        raise CatalogError(f"scope {name} is {state}: {remedy.format(name=name)}")
    if scope.concurrency is None:
        return crawler, scope
    most = scope.concurrency
    limited = replace(crawler, connections=min(most, crawler.connections), in_flight=min(most, crawler.in_flight))
    return limited, scope


def _take_over(crawler: Crawler, scope: Scope) -> None:
    """Move pending work of projects that were followed before this scope led to them into the scope's workload.

    These are visits that wait with an aborted scope, and files that the current rules skip or admit.
    """
    catalog = crawler.catalog
    catalog.transact(partial(take_resting, scope=scope))
    with catalog.read() as connection:
        ruled = projects_to_rule(connection, scope.id)
    for start in range(0, len(ruled), _RULED_AT_A_TIME):
        some = ruled[start : start + _RULED_AT_A_TIME]
        catalog.transact(partial(queue_lifted, project_ids=some, workload=scope.workload))
        catalog.transact(partial(apply_rules, project_ids=some))


def _report_discovered(crawler: Crawler, scope: Scope) -> None:
    """Notify people how far the scope is discovered, which tells how many requests it will take."""
    with crawler.catalog.read() as connection:
        found = discovered_so_far(connection, scope.id)
    crawler.notify(
        f"scope {scope.name}: projects discovered: {found.projects}, to depth {found.depth}, visited: {found.visited};"
        f" files: {found.files}, read: {found.read}, skipped: {found.skipped}"
    )


def follow_workload(
    crawler: Crawler, workload: str, most: int | None = None, discovered: Callable[[], None] = lambda: None
) -> ReadCounts:
    """Visit and read the work of a workload, and let the projects that it leads to enter, until no new project is
    found.

    At most `most` projects enter the workload (None: any number). `discovered` is called each time after projects have
    entered, and before the other files are read.
    """
    counts = ReadCounts()
    left = most
    while True:
        read, entered = _find(crawler, workload, left)
        counts += read
        left = None if left is None else left - entered
        discovered()
        if not entered:
            counts += read_workload(crawler, workload)
            entered = discover_all(crawler, workload, left)
            left = None if left is None else left - entered
            if not entered:
                return counts


def _find(crawler: Crawler, workload: str, most: int | None) -> tuple[ReadCounts, int]:
    """Do one step of discovery: visit, read files that may lead to further projects, and let these enter.

    Returns the reads, and how many projects have entered.
    """
    with crawler.catalog.read() as connection:
        are_visits = is_visit_pending(connection, workload)
    if are_visits:
        visit_workload(crawler, workload)
        if most is not None:
            crawler.catalog.transact(partial(_leave_large, workload))
    counts = read_workload(crawler, workload, only_first=True)
    return counts, discover_all(crawler, workload, most)


def discover_all(crawler: Crawler, workload: str | None = None, most: int | None = None) -> int:
    """Run `discover` on all marked projects, in transactions of bounded size. Return how many projects have entered."""
    catalog, entered = crawler.catalog, 0
    while True:
        left = None if most is None else most - entered
        found = catalog.transact(partial(discover, now=catalog.clock(), workload=workload, most=left))
        entered += found.entered
        if found.is_all:
            return entered


def _leave_large(workload: str, connection: Connection) -> None:
    """Move entering projects with very many files to the workloads of their scopes."""
    large = entering_in(connection, workload, more_files_than=FILES_IN_A_RANGE)
    scopes = {scope.id: scope.workload for scope in all_scopes(connection) if not scope.is_aborted}
    for scope_id in move_projects(connection, workload, large, scopes):
        note_left(connection, scope_id)


def settle_workload(crawler: Crawler, workload: str) -> bool:
    """Settle the workload's entering projects without pending work, so that they have answers. Return whether there
    were any.

    A page may be newer than its serial, so the events up to the index's last serial are stored first. These events may
    change files, so new reads may be pending afterwards. While the changelog is off, projects are settled without them.
    """
    catalog = crawler.catalog
    with catalog.read() as connection:
        entering = entering_in(connection, workload)
    if not entering:
        return False
    through = crawler.patiently(lambda: query_changelog(crawler, partial(store_all_events, crawler)))
    if through is not None:
        with catalog.read() as connection:
            parts = parts_of_work(connection, entering)
        for part in parts:
            catalog.transact(partial(explain_entering, project_ids=part, through=through))
    catalog.transact(partial(settle_projects, workload=workload, project_ids=entering))
    return True


def _complete(scope: Scope, now: float, connection: Connection) -> bool:
    """Mark the scope as complete if no work is left. Return whether it is.

    The first scope that completes also completes the first range; the projects of other scopes are then still entering.
    """
    first = first_range(connection)
    if first is not None:
        require_range(connection, first, lock=True)
    current = require_scope(connection, scope.name)
    is_left = is_visit_pending(connection, scope.workload) or is_read_pending(connection, scope.workload)
    if current.is_aborted or is_left or entering_in(connection, scope.workload):
        return False
    if first is not None and find_open_crawl(connection) is None:
        complete_range(connection, first, now)
    note_completed(connection, scope.id, now)
    return True


def run_ready_scopes(
    crawler: Crawler, names: Sequence[str] | None = None, tag: str | None = None, *, is_match_only: bool = False
) -> list[ScopeResult]:
    """Run each scope that has pending work and is for a worker of `tag`, or the scopes in `names`, in order of
    priority."""
    discover_all(crawler)
    with crawler.catalog.read() as connection:
        scopes = all_scopes(connection)
        if names is not None:
            wanted = {require_scope(connection, name).name for name in names}
            scopes = [scope for scope in scopes if scope.name in wanted]
    ready = [
        scope
        for scope in scopes
        if names is not None or (scope.may_go_on and scope.is_for(tag, is_match_only=is_match_only))
    ]
    return [run_scope(crawler, scope.name) for scope in ready]
