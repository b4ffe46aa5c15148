"""Full crawls: opened at a pinned serial, listed, visited in shards, completed. At most one is open.

The steps themselves are in `crawl/`; the ranges that follow a full crawl are in `ledger/`.
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest

from sqlalchemy import Connection, exists, func, insert, select, update

from pypi_assets.catalog.database import Catalog, CatalogError, at_a_time, insert_missing
from pypi_assets.catalog.ledger.range_ledger import (
    allocate_range,
    begin_range,
    complete_range,
    first_range,
    last_allocated_serial,
    lock_state,
)
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.events import events_since, events_through
from pypi_assets.catalog.observed.followed import follows_all
from pypi_assets.catalog.observed.index_state import replace_list
from pypi_assets.catalog.observed.projects import (
    Selection,
    enter_projects,
    project_ids,
    project_shard,
)
from pypi_assets.catalog.observed.visit_statistics import note_seen
from pypi_assets.catalog.tables import (
    catalog_state,
    full_crawls,
    projects,
    read_attempts,
    scopes,
    visit_queue,
    visit_statuses,
    visits,
)
from pypi_assets.catalog.work.listed_projects import has_live_files, is_any_unseen, rename_listed
from pypi_assets.catalog.work.read_queue import is_read_pending
from pypi_assets.catalog.work.visit_queue import (
    crawl_workload,
    is_visit_pending,
    queue_visits,
    queued_names,
    unqueue_visits,
    workload_progress,
)
from pypi_assets.index.models import BrokenEntry, ListedProject

_LISTED_AT_A_TIME = 50_000
SELECTED = "projects"
"""The name of the scope for PYPI_ASSETS_PROJECTS."""


@dataclass(frozen=True, slots=True)
class FullCrawl:
    """One full crawl, pinned at `serial`. Times are unix seconds.

    `with_history`: all events since serial 0 are stored, and each project that one of them changes is visited.
    `attempts_before` is the number of the last attempt to read a distribution when the crawl was opened. `limited_to`
    is the most projects that a trial visits. It is None if the crawl is of the whole index.
    """

    id: int
    serial: int
    selection: Selection
    opened_at: float
    listed_at: float | None
    listed_serial: int | None
    completed_at: float | None
    with_history: bool = False
    attempts_before: int = 0
    limited_to: int | None = None

    @property
    def workload(self) -> str:
        return crawl_workload(self.id)


@dataclass(frozen=True, slots=True)
class CrawlListing:
    """The number of projects that a crawl visits, and the selected names that the index does not have."""

    projects: int
    missing: tuple[str, ...]


def open_crawl(
    catalog: Catalog, serial: int, since: int, index_url: str, selection: Selection, *, limit: int | None = None
) -> FullCrawl:
    """Join the open full crawl, or open one pinned at `serial`. An empty catalog will store events above `since`.

    `limit` makes a new crawl a trial of that many projects.

    Raises CatalogError if the catalog follows another index, if its serials are beyond the index's, or if the open
    crawl has another selection.
    """
    now = catalog.clock()

    def join_or_open(connection: Connection) -> FullCrawl:
        follows_all = not selection.names
        is_first = begin_catalog(connection, index_url, serial, since, now, exact_from=0, follows_all=follows_all)
        joined = _crawl_where(connection, full_crawls.c.open == 1)
        if joined is not None:
            _require_same_selection(joined.selection, selection, "the open full crawl")
            return joined
        if not is_first:
            _follow_as_selected(connection, selection)
            if serial < last_allocated_serial(connection):
                raise CatalogError(
                    f"the index is at serial {serial}, but the catalog already follows it up to"
                    f" {last_allocated_serial(connection)}: the index has gone backwards (restored from a backup?);"
                    " start a new catalog"
                )
        names = json.dumps(sorted(selection.names))
        before = connection.scalar(select(func.max(read_attempts.c.id))) or 0
        row = insert(full_crawls).values(
            serial=serial, selection=names, opened_at=now, open=1, attempts_before=before, limited_to=limit
        )
        crawl_id = connection.execute(row.returning(full_crawls.c.id)).scalar_one()
        return FullCrawl(crawl_id, serial, selection, now, None, None, None, attempts_before=before, limited_to=limit)

    return catalog.transact(join_or_open)


def begin_catalog(
    connection: Connection, index_url: str, serial: int, since: int, now: float, *, exact_from: int, follows_all: bool
) -> bool:
    """Insert the state of an empty catalog, which stores events above `since`, with its first range, up to `serial`.

    The state is locked until the transaction ends. Return whether the catalog was empty. Raises CatalogError if it
    follows another index.
    """
    state = {
        "id": 1,
        "index_url": index_url,
        "identity": uuid.uuid4().hex,
        "events_since": since,
        "events_through": since,
        "exact_from": exact_from,
        "next_dump_sequence": 1,
        "follows_all": follows_all,
    }
    is_first = insert_missing(connection, catalog_state, [state]) == 1
    lock_state(connection, exclusive=True)  # if two processes begin at the same time, the second joins
    require_same_index(connection, index_url)
    if is_first and (serials := allocate_range(connection, serial, now)):
        begin_range(connection, serials, now)
    return is_first


def find_open_crawl(connection: Connection) -> FullCrawl | None:
    """Return the open full crawl; None if there is none."""
    return _crawl_where(connection, full_crawls.c.open == 1)


def read_crawl(connection: Connection, crawl_id: int) -> FullCrawl:
    """Return the current state of a full crawl. Raises CatalogError if there is none with that id."""
    crawl = _crawl_where(connection, full_crawls.c.id == crawl_id)
    if crawl is None:
        raise CatalogError(f"there is no full crawl {crawl_id}")
    return crawl


def first_crawl(connection: Connection) -> FullCrawl | None:
    """Return the full crawl that was opened first. Its serial ends the first range of the ledger."""
    return _crawl_where(connection, full_crawls.c.id == select(func.min(full_crawls.c.id)).scalar_subquery())


def last_completed_crawl(connection: Connection) -> FullCrawl | None:
    """Return the completed full crawl that was opened last; None if there is none."""
    return _crawl_where(connection, full_crawls.c.completed_at.is_not(None))


def has_baseline(connection: Connection) -> bool:
    """Check whether ranges can follow: whether a full crawl, or the first range of a scope, is complete."""
    if last_completed_crawl(connection) is not None:
        return True
    return not follows_all(connection) and first_range(connection) is None


def require_followable(connection: Connection, index_url: str, selection: Selection) -> None:
    """Raise CatalogError if ranges cannot follow.

    This is so if no full crawl and no scope is complete, or if the catalog follows another index or other projects than
    the selected ones.
    """
    if not has_baseline(connection):
        raise CatalogError(
            "no full crawl is complete: run `pypi-assets crawl full` first, or follow some projects (`pypi-assets"
            " scope create`, then `pypi-assets scope run`)"
        )
    require_same_index(connection, index_url)
    if selection.names and selection.names != selected_names(connection):
        raise CatalogError(
            "PYPI_ASSETS_PROJECTS names other projects than this catalog follows: set it back, or run `pypi-assets"
            " crawl full` to follow these projects"
        )


def selected_names(connection: Connection) -> frozenset[str]:
    """Return the normalized names that PYPI_ASSETS_PROJECTS had when it was last followed; empty if it never was."""
    roots = connection.scalar(select(scopes.c.roots).where(scopes.c.name == SELECTED))
    return frozenset(json.loads(roots)) if roots is not None and not follows_all(connection) else frozenset()


def require_all_followed(connection: Connection, selection: Selection) -> None:
    """Raise CatalogError if scopes decide which projects are followed, unless PYPI_ASSETS_PROJECTS selects them."""
    if not selection.names and not follows_all(connection):
        raise CatalogError(
            "this catalog follows scopes, and an audit compares all projects: run a full crawl of the whole index first"
            " (`pypi-assets crawl full`)"
        )


def require_last_crawl(connection: Connection, index_url: str, selection: Selection) -> FullCrawl:
    """Return the last completed full crawl. Raises CatalogError as `require_followable` does, and if there is none."""
    require_followable(connection, index_url, selection)
    crawl = last_completed_crawl(connection)
    if crawl is None:
        raise CatalogError("this catalog follows scopes, and has no full crawl yet: run `pypi-assets crawl full`")
    return crawl


def list_projects(
    catalog: Catalog,
    crawl: FullCrawl,
    listed: Iterable[ListedProject | BrokenEntry],
    listed_serial: int | None,
    *,
    with_history: bool = False,
    is_all: bool = False,
) -> CrawlListing:
    """Insert the index's projects, and queue a visit of each, and of each unlisted project with live files.

    `listed_serial` is the index's serial when the list was made: a project that it lacks may have existed before.
    `with_history`: the events since serial 0 are stored, and the projects that they change are already queued.
    `is_all`: the list is the only source, since the changelog is off. A crawl is listed once: if another process has
    listed it in the meantime, its list counts. Broken entries of the list are stored separately.
    """
    list_serial = listed_serial if is_all else None
    chunk: dict[str, ListedProject] = {}
    missing = set(crawl.selection.names)
    broken: list[BrokenEntry] = []
    for project in listed:
        if isinstance(project, BrokenEntry):
            broken.append(project)
            continue
        normalized = project.normalized
        if normalized in crawl.selection:
            missing.discard(normalized)
            chunk[normalized] = project
        if len(chunk) >= _LISTED_AT_A_TIME:
            if not _enter_listed(catalog, crawl, chunk, list_serial):
                break
            chunk = {}
    else:
        _enter_listed(catalog, crawl, chunk, list_serial)

    def end(connection: Connection) -> CrawlListing:
        if _is_listed(connection, crawl, lock_exclusive=True):
            return CrawlListing(workload_progress(connection, crawl.workload).total, ())
        unlisted = connection.execute(
            select(projects.c.id, projects.c.shard).where(
                has_live_files(),
                ~exists().where(visit_queue.c.workload == crawl.workload, visit_queue.c.project_id == projects.c.id),
            )
        )
        queue_visits(connection, crawl.workload, [(row.id, row.shard, 0) for row in unlisted], unlisted_at=list_serial)
        connection.execute(
            update(full_crawls)
            .where(full_crawls.c.id == crawl.id)
            .values(listed_at=catalog.clock(), listed_serial=listed_serial, with_history=with_history)
        )
        replace_list(connection, broken, catalog.clock())
        return CrawlListing(workload_progress(connection, crawl.workload).total, tuple(sorted(missing)))

    return catalog.transact(end)


def list_first(
    catalog: Catalog,
    crawl: FullCrawl,
    listed: Iterable[ListedProject | BrokenEntry],
    listed_serial: int | None,
    limit: int,
    *,
    is_all: bool = False,
) -> None:
    """Queue visits for a trial: of the `limit` projects that changed last, by their serials on the list.

    Among equal serials, names ascend. Projects that the trial has already queued count. The crawl does not become
    listed, so nothing completes it. `is_all` is as in `list_projects`.
    """
    with catalog.read() as connection:
        queued = set(queued_names(connection, crawl.workload))
    named = ((project.normalized, project) for project in listed if isinstance(project, ListedProject))
    others = ((name, project) for name, project in named if name and name not in queued)
    first = nsmallest(limit - len(queued), others, key=lambda pair: (-(pair[1].last_serial or 0), pair[0]))
    _enter_listed(catalog, crawl, dict(first), listed_serial if is_all else None)


def limit_trial(catalog: Catalog, crawl: FullCrawl, limit: int) -> int:
    """Record the limit of a trial, and unqueue pending visits beyond it. Return how many projects are then queued.

    Raises CatalogError if the crawl is of the whole index.
    """

    def limited(connection: Connection) -> int:
        _is_listed(connection, crawl, lock_exclusive=True)
        if read_crawl(connection, crawl.id).limited_to is None:
            raise CatalogError(TRIAL_TOO_LATE)
        connection.execute(update(full_crawls).where(full_crawls.c.id == crawl.id).values(limited_to=limit))
        queued = workload_progress(connection, crawl.workload).total
        return queued - unqueue_visits(connection, crawl.workload, queued - limit)

    return catalog.transact(limited)


def end_trial(catalog: Catalog, crawl: FullCrawl) -> None:
    """Make a trial a full crawl of the whole index, which visits the projects of the trial again.

    Their pages are older than the list of projects that follows, so the crawl must not rely on them.
    """

    def end(connection: Connection) -> None:
        _is_listed(connection, crawl, lock_exclusive=True)
        if read_crawl(connection, crawl.id).limited_to is not None:
            unqueue_visits(connection, crawl.workload)
            connection.execute(update(full_crawls).where(full_crawls.c.id == crawl.id).values(limited_to=None))

    catalog.transact(end)


def require_trial(connection: Connection, selection: Selection) -> None:
    """Raise CatalogError unless the catalog is empty, or its open full crawl is a trial."""
    if selection.names:
        raise CatalogError(
            "PYPI_ASSETS_PROJECTS already names the projects of the full crawl: unset it for a trial with --limit, or"
            " name fewer projects"
        )
    crawl = find_open_crawl(connection)
    if (crawl is None and followed_index(connection) is not None) or (crawl is not None and crawl.limited_to is None):
        raise CatalogError(TRIAL_TOO_LATE)


TRIAL_TOO_LATE = (
    "a trial with --limit needs a new catalog, and this one already follows an index: continue with"
    " `pypi-assets crawl full`, or set another PYPI_ASSETS_HOME (and PYPI_ASSETS_DATABASE_URL) for the trial"
)


def list_named(
    catalog: Catalog, crawl: FullCrawl, tasks: Sequence[tuple[int, int, int]], *, with_history: bool
) -> CrawlListing:
    """Queue visits of named projects, as `queue_visits` takes them, in place of a list of all projects."""

    def end(connection: Connection) -> CrawlListing:
        if not _is_listed(connection, crawl, lock_exclusive=True):
            queue_visits(connection, crawl.workload, tasks)
            listed = {"listed_at": catalog.clock(), "with_history": with_history}
            connection.execute(update(full_crawls).where(full_crawls.c.id == crawl.id).values(listed))
        return CrawlListing(workload_progress(connection, crawl.workload).total, ())

    return catalog.transact(end)


def names_without_page(connection: Connection, selection: Selection) -> tuple[str, ...]:
    """Return the selected names of projects of which no page was ever seen."""
    seen = {
        name
        for chunk in at_a_time(sorted(selection.names))
        for name in connection.scalars(
            select(projects.c.normalized).where(projects.c.normalized.in_(chunk), projects.c.page_serial.is_not(None))
        )
    }
    return tuple(sorted(selection.names - seen))


def _enter_listed(
    catalog: Catalog, crawl: FullCrawl, listed: Mapping[str, ListedProject], listed_at: int | None
) -> bool:
    """Queue a visit of each of these projects. Return False if another process has listed the crawl in the meantime."""
    if not listed:
        return True
    serials = {normalized: project.last_serial or 0 for normalized, project in listed.items()}

    def enter(connection: Connection) -> dict[str, int]:
        through = events_through(connection)
        since = 0 if events_since(connection) == 0 else crawl.serial
        known = project_ids(connection, sorted(listed))
        enter_projects(
            connection,
            (
                (project.name, min(since, through) if serials[normalized] > through else since, project.last_serial)
                for normalized, project in listed.items()
                if normalized not in known
            ),
        )
        rename_listed(connection, listed.values())
        return known | project_ids(connection, sorted(listed.keys() - known.keys()))

    ids = catalog.transact(enter)
    seen_at = dict.fromkeys(ids.values(), catalog.clock())

    def queue(connection: Connection) -> bool:
        if _is_listed(connection, crawl):
            return False
        for is_newer in (False, True):  # newer than the crawl: a page with the crawl's serial is enough
            tasks = [
                (project_id, project_shard(normalized), min(serials[normalized], crawl.serial))
                for normalized, project_id in ids.items()
                if (serials[normalized] > crawl.serial) == is_newer
            ]
            queue_visits(connection, crawl.workload, tasks, listed_at=None if is_newer else listed_at)
        note_seen(connection, seen_at)
        return True

    return catalog.transact(queue)


def _is_listed(connection: Connection, crawl: FullCrawl, *, lock_exclusive: bool = False) -> bool:
    """Check whether the crawl is listed, and lock that until the transaction ends."""
    listed_at = select(full_crawls.c.listed_at).where(full_crawls.c.id == crawl.id)
    return connection.scalar(listed_at.with_for_update(read=not lock_exclusive)) is not None


def is_crawl_drained(connection: Connection, crawl: FullCrawl) -> bool:
    """Check whether no visit and no read of the crawl is left."""
    return not is_visit_pending(connection, crawl.workload) and not is_read_pending(connection, crawl.workload)


def complete_crawl(catalog: Catalog, crawl: FullCrawl) -> bool:
    """Complete the crawl if no visit and no read of it is left. Return whether it is complete."""

    def complete(connection: Connection) -> bool:
        _is_listed(connection, crawl, lock_exclusive=True)  # crawls are locked before the state
        lock_state(connection, exclusive=True)
        current = _crawl_where(connection, full_crawls.c.id == crawl.id)
        if current is None or current.listed_at is None:
            return False
        if current.completed_at is not None:
            return True
        if not is_crawl_drained(connection, crawl):
            return False
        greatest_page_serial = connection.scalar(
            select(func.max(visit_statuses.c.page_serial))
            .join(visits, visits.c.id == visit_statuses.c.visit_id)
            .where(visits.c.workload == crawl.workload)
        )
        before = _crawl_where(connection, full_crawls.c.completed_at.is_not(None))
        now = catalog.clock()
        connection.execute(update(full_crawls).where(full_crawls.c.id == crawl.id).values(completed_at=now, open=None))
        if current.with_history:
            connection.execute(update(catalog_state).values(exact_from=0))
        elif crawl.selection.names:  # projects have serials of their own
            connection.execute(
                update(catalog_state).where(catalog_state.c.exact_from == 0).values(exact_from=crawl.serial)
            )
        elif before is None or before.selection != crawl.selection:  # of the new projects, nothing earlier is known
            at = max(crawl.serial, current.listed_serial or 0) + is_any_unseen(connection, crawl.workload)
            seen = (at, greatest_page_serial or 0)
            connection.execute(update(catalog_state).values(exact_from=max(seen)))
        if before is None and crawl.serial > 0:
            complete_range(connection, SerialRange(0, crawl.serial), now)
        return True

    return catalog.transact(complete)


def _crawl_where(connection: Connection, condition: object) -> FullCrawl | None:
    row = connection.execute(
        select(full_crawls).where(condition).order_by(full_crawls.c.id.desc()).limit(1)  # type: ignore[arg-type]
    ).first()
    if row is None:
        return None
    selection = Selection(frozenset(json.loads(row.selection)))
    return FullCrawl(
        id=row.id,
        serial=row.serial,
        selection=selection,
        opened_at=row.opened_at,
        listed_at=row.listed_at,
        listed_serial=row.listed_serial,
        completed_at=row.completed_at,
        with_history=row.with_history,
        attempts_before=row.attempts_before,
        limited_to=row.limited_to,
    )


def followed_index(connection: Connection) -> str | None:
    """Return the URL of the index that the catalog follows; None before the first full crawl."""
    return connection.scalar(select(catalog_state.c.index_url))


def catalog_identity(connection: Connection) -> str | None:
    """Return the identity of this catalog, which a restored backup keeps; None before it follows an index."""
    return connection.scalar(select(catalog_state.c.identity))


def require_same_index(connection: Connection, index_url: str) -> None:
    """Raise CatalogError if the catalog follows another index."""
    known = followed_index(connection)
    if known is not None and known != index_url:
        raise CatalogError(
            f"this catalog follows {known}, not {index_url}: set PYPI_ASSETS_INDEX_URL back, or use another"
            " PYPI_ASSETS_HOME or PYPI_ASSETS_DATABASE_URL"
        )


def _require_same_selection(known: Selection, wanted: Selection, what: str) -> None:
    if known.names != wanted.names:
        raise CatalogError(
            f"PYPI_ASSETS_PROJECTS names other projects than {what}: set it back, or complete that crawl and run"
            " `pypi-assets crawl full` to follow more"
        )


def _follow_as_selected(connection: Connection, selection: Selection) -> None:
    """Follow all projects from now on, if nothing is selected.

    Events of projects that were not followed are known from the serial since which events of all projects are stored.
    Raises CatalogError if all projects are followed, and only some are selected.
    """
    if not selection.names:
        state = catalog_state.c
        since = func.coalesce(state.all_events_since, state.events_since)
        values = {"follows_all": True, "events_since": since, "all_events_since": None}
        connection.execute(update(catalog_state).where(state.follows_all.is_(False)).values(values))
    elif follows_all(connection):
        raise CatalogError(
            "this catalog follows all projects of its index, but PYPI_ASSETS_PROJECTS names some: unset it, or use"
            " another PYPI_ASSETS_HOME for a smaller catalog"
        )
