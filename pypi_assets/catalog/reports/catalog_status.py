"""What people ask of the catalog: how things stand, which files are live, and whether the ledger is sound."""

from collections.abc import Iterator
from dataclasses import dataclass

from packaging.utils import canonicalize_name
from sqlalchemy import ColumnElement, Connection, and_, func, literal_column, select

from pypi_assets.catalog.coordination.claims import scopes_at_work
from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.derived.file_history import UNEXPLAINED
from pypi_assets.catalog.ledger.range_ledger import complete_serial, inexact_spans, unfinished_ranges
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.events import first_event_time
from pypi_assets.catalog.observed.lister_states import ChangelogTrouble, changelog_trouble, last_listed
from pypi_assets.catalog.observed.visit_statistics import VisitedProjects, visited_projects
from pypi_assets.catalog.publications.dump_rows import holds_at
from pypi_assets.catalog.reads.read_outcomes import Outcome
from pypi_assets.catalog.reports.failures import VISIT, count_failures
from pypi_assets.catalog.tables import (
    catalog_state,
    changes,
    distribution_data,
    distributions,
    live_intervals,
    projects,
    read_attempts,
    releases,
    serial_ranges,
    visit_queue,
    visits,
    yanked_intervals,
)
from pypi_assets.catalog.work.full_crawls import find_open_crawl, followed_index, last_completed_crawl
from pypi_assets.catalog.work.read_queue import count_pending_reads
from pypi_assets.catalog.work.visit_queue import TaskState, range_scope, scope_progress


@dataclass(frozen=True, slots=True)
class LiveFile:
    """One distribution as it was live at a serial."""

    filename: str
    project: str
    version: str
    kind: str
    sha256: str | None
    yanked: bool
    size: int | None
    uploaded_at: str | None
    requires_python: str | None
    live_since: int
    outcome: str
    url: str | None


@dataclass(frozen=True, slots=True)
class OpenCrawl:
    """How far an open full crawl is. `expected_end` is in unix seconds, None while nothing tells."""

    serial: int
    shards_done: int
    shards: int
    projects_done: int
    projects: int
    projects_per_second: float
    expected_end: float | None


@dataclass(frozen=True, slots=True)
class Followed:
    """How far the index has been followed; what is None is not known yet.

    `next_event_at` is when the first event beyond the complete serial was (unix seconds), if one is stored;
    `listed_serial` that of the list of projects that was compared last, and `listed_at` when that was.
    """

    index_url: str | None
    complete_serial: int | None
    next_event_at: float | None
    changelog_trouble: ChangelogTrouble | None
    listed_serial: int | None
    listed_at: float | None

    @property
    def is_changelog_off(self) -> bool:
        return self.changelog_trouble is not None and self.changelog_trouble.is_off


@dataclass(frozen=True, slots=True)
class ExhaustedWork:
    """What stands as given up after errors that may pass: reads by the kind of error, and visits. `known` is about how
    many distributions and projects have ever been known."""

    kinds: dict[str, int]
    known: int

    @property
    def count(self) -> int:
        return sum(self.kinds.values())

    @property
    def percent(self) -> float:
        return 100 * self.count / max(self.known, 1)


@dataclass(frozen=True, slots=True)
class CatalogStatus:
    """How things stand. Counts of distributions are of those live now; serials are None before a full crawl."""

    followed: Followed
    exact_from: int | None
    events_through: int | None
    live_distributions: int
    outcomes: dict[str, int]
    exhausted: ExhaustedWork
    unexplained_changes: int
    visited: VisitedProjects
    open_ranges: int
    running_ranges: int
    open_crawl: OpenCrawl | None
    last_crawl_completed_at: float | None
    ledger_faults: tuple[str, ...]
    inexact_spans: tuple[SerialRange, ...]

    @property
    def complete_serial(self) -> int | None:
        return self.followed.complete_serial

    @property
    def failed_visits(self) -> int:
        return self.exhausted.kinds.get(VISIT, 0)


def read_followed(connection: Connection) -> Followed:
    """How far the index has been followed; quick on any catalog."""
    index_url = followed_index(connection)
    complete = None if last_completed_crawl(connection) is None else complete_serial(connection)
    listed_serial, listed_at = (None, None) if index_url is None else last_listed(connection, index_url)
    return Followed(
        index_url=index_url,
        complete_serial=complete,
        next_event_at=None if complete is None else first_event_time(connection, complete),
        changelog_trouble=None if index_url is None else changelog_trouble(connection, index_url),
        listed_serial=listed_serial,
        listed_at=listed_at,
    )


def catalog_status(catalog: Catalog) -> CatalogStatus:
    with catalog.read() as connection:
        state = connection.execute(select(catalog_state)).first()
        outcomes = {outcome.value: 0 for outcome in Outcome} | {
            outcome: count
            for outcome, count in connection.execute(
                select(distribution_data.c.outcome, func.count())
                .join(live_intervals, live_intervals.c.distribution_id == distribution_data.c.distribution_id)
                .where(live_intervals.c.end.is_(None))
                .group_by(distribution_data.c.outcome)
            )
        }
        completed = last_completed_crawl(connection)
        entries = unfinished_ranges(connection) if completed else []
        unfinished = {range_scope(entry.serials) for entry in entries}
        return CatalogStatus(
            followed=read_followed(connection),
            exact_from=None if completed is None or state is None else state.exact_from,
            events_through=None if state is None else state.events_through,
            live_distributions=sum(outcomes.values()),
            outcomes=outcomes,
            exhausted=read_exhausted(connection),
            unexplained_changes=count_unexplained(connection),
            visited=visited_projects(connection),
            open_ranges=len(unfinished),
            running_ranges=len(unfinished & scopes_at_work(connection, catalog.clock())),
            open_crawl=_open_crawl(connection, catalog.clock()),
            last_crawl_completed_at=None if completed is None else completed.completed_at,
            ledger_faults=tuple(ledger_faults(connection)),
            inexact_spans=tuple(inexact_spans(connection)),
        )


def work_done(connection: Connection) -> tuple[int, int]:
    """How many visits of pages and how many attempts to read a distribution there have been: both only grow."""
    visited, read = (connection.scalar(select(func.max(table.c.id))) for table in (visits, read_attempts))
    return visited or 0, read or 0


def read_exhausted(connection: Connection) -> ExhaustedWork:
    """What stands as given up; quick on any catalog."""
    return ExhaustedWork(count_failures(connection, only_exhausted=True), about_known(connection))


def about_known(connection: Connection) -> int:
    """About how many projects and distributions have ever been known; quick on any catalog."""
    return sum(connection.scalar(select(func.max(table.c.id))) or 0 for table in (projects, distributions))


def _open_crawl(connection: Connection, now: float) -> OpenCrawl | None:
    crawl = find_open_crawl(connection)
    if crawl is None:
        return None
    progress = scope_progress(connection, crawl.scope)
    todo_shards = connection.scalar(
        select(func.count(visit_queue.c.shard.distinct())).where(
            visit_queue.c.scope == crawl.scope, visit_queue.c.state == TaskState.TODO
        )
    )
    shards = connection.scalar(
        select(func.count(visit_queue.c.shard.distinct())).where(visit_queue.c.scope == crawl.scope)
    )
    done = progress.total - progress.todo
    seconds = max(now - crawl.opened_at, 1e-9)
    read = connection.scalar(
        select(func.count()).select_from(distribution_data).where(distribution_data.c.read_at >= crawl.opened_at)
    )
    pending = count_pending_reads(connection, crawl.scope)
    return OpenCrawl(
        serial=crawl.serial,
        shards_done=(shards or 0) - (todo_shards or 0),
        shards=shards or 0,
        projects_done=done,
        projects=progress.total,
        projects_per_second=done / seconds,
        expected_end=_expected_end(now, seconds, progress.todo, done, pending, read or 0),
    )


def _expected_end(now: float, seconds: float, unvisited: int, visited: int, pending: int, read: int) -> float | None:
    """When a full crawl will end if its requests, one a visit and one a read, go on as in the `seconds` so far.

    Projects that are not visited yet are taken to have as many distributions to read as the others had.
    """
    if not visited:
        return None
    left = unvisited + pending + unvisited * (pending + read) / visited
    return now + seconds * left / (visited + read)


def answerable_serial(catalog: Catalog, serial: int | None = None) -> int:
    """The serial that a question about `serial` (None: the complete serial) is answered at.

    Raises CatalogError, which names the serials that can be asked about, where the catalog is not exact at `serial`.
    """
    with catalog.read() as connection:
        if last_completed_crawl(connection) is None:
            raise CatalogError("no full crawl is complete yet, so nothing can be told: run `pypi-assets crawl full`")
        complete = complete_serial(connection)
        exact_from = connection.scalar(select(catalog_state.c.exact_from)) or 0
        spans = [] if serial is None else inexact_spans(connection, around=serial)
    if serial is None:
        return complete
    if exact_from <= serial <= complete and spans:
        raise CatalogError(
            f"nothing can be told of serial {serial}: the list of projects told what changed between the serials"
            f" {spans[0].start} and {spans[-1].end}, and no events are known of that time; ask for one of the two, or"
            " follow the changelog once it answers (`pypi-assets crawl incremental`)"
        )
    if exact_from <= serial <= complete:
        return serial
    if exact_from > complete:
        raise CatalogError(
            f"nothing can be told of serial {serial} yet: the catalog is exact from serial {exact_from} on, and"
            f" complete up to {complete}; run `pypi-assets crawl incremental`"
        )
    raise CatalogError(f"nothing can be told of serial {serial}, only of serials {exact_from} to {complete}")


def live_files(catalog: Catalog, serial: int | None = None, project: str | None = None) -> Iterator[LiveFile]:
    """The distributions live at `serial` (None: the complete serial), by project, version and filename."""
    with catalog.read() as connection:
        at = complete_serial(connection) if serial is None else serial
        live, yanked = live_intervals, yanked_intervals
        query = (
            select(
                distributions,
                projects.c.name,
                releases.c.version,
                live.c.start.label("live_since"),
                yanked.c.start.label("yanked_since"),
                distribution_data.c.outcome,
            )
            .select_from(live)
            .join(distributions, distributions.c.id == live.c.distribution_id)
            .join(projects, projects.c.id == distributions.c.project_id)
            .join(releases, releases.c.id == distributions.c.release_id)
            .join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
            .outerjoin(
                yanked,
                and_(yanked.c.distribution_id == distributions.c.id, holds_at(yanked.c.start, yanked.c.end, at)),
            )
            .where(holds_at(live.c.start, live.c.end, at))
            .order_by(projects.c.normalized, releases.c.version, distributions.c.filename)
        )
        if project is not None:
            query = query.where(projects.c.normalized == canonicalize_name(project))
        for row in connection.execution_options(yield_per=1_000).execute(query):
            yield LiveFile(
                filename=row.filename,
                project=row.name,
                version=row.version,
                kind=row.kind,
                sha256=row.sha256,
                yanked=row.yanked_since is not None,
                size=row.size,
                uploaded_at=row.uploaded_at,
                requires_python=row.requires_python,
                live_since=row.live_since,
                outcome=row.outcome,
                url=row.url,
            )


def count_live(connection: Connection, serial: int) -> int:
    """How many distributions are live at `serial`."""
    live = live_intervals.c
    query = select(func.count()).where(holds_at(live.start, live.end, serial))
    return int(connection.scalar(query) or 0)


def count_unexplained(connection: Connection, serials: SerialRange | None = None) -> int:
    """How many changes of files no event explains, of all that are logged or of those logged in `serials`."""
    # no parameter, so that the index of these few is used
    cause: ColumnElement[str] = literal_column(f"'{UNEXPLAINED}'")
    query = select(func.count()).select_from(changes).where(changes.c.cause == cause)
    if serials is not None:
        query = query.where(changes.c.logged_serial > serials.start, changes.c.logged_serial <= serials.end)
    return int(connection.scalar(query) or 0)


def ledger_faults(connection: Connection) -> list[str]:
    """What is wrong with the ledger: gaps and overlaps, in words and in order. Empty when all is well."""
    furthest = func.max(serial_ranges.c.end).over(order_by=serial_ranges.c.start, rows=(None, -1))
    ranges = select(serial_ranges.c.start, serial_ranges.c.end, func.coalesce(furthest, 0).label("before")).subquery()
    faulty = select(ranges).where(ranges.c.start != ranges.c.before).order_by(ranges.c.start)
    return [
        f"gap: no range holds the serials {before + 1} to {start}"
        if start > before
        else f"overlap: {SerialRange(start, end)} begins before {before}"
        for start, end, before in connection.execute(faulty)
    ]
