"""The status of the catalog: its contents, how far it follows its index, open and running work, and failures."""

import zlib
from dataclasses import dataclass, field

from sqlalchemy import Connection, func, literal_column, select

from pypi_assets.catalog.coordination.claims import workers_of_workloads, workloads_at_work
from pypi_assets.catalog.counters import read_counts
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.derived.file_history import UNEXPLAINED
from pypi_assets.catalog.derived.recompute import UNEXPLAINED_CHANGES
from pypi_assets.catalog.ledger.range_ledger import (
    complete_serial,
    faulty_ranges,
    newest_inexact_spans,
    unfinished_ranges,
)
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.events import first_event_time
from pypi_assets.catalog.observed.followed import count_answered
from pypi_assets.catalog.observed.index_state import (
    ChangelogTrouble,
    changelog_trouble,
    count_kept_aside,
    known_file_origin,
    last_listed,
)
from pypi_assets.catalog.observed.observations import PAGE_DECODER, first_observed_at, observed_serial
from pypi_assets.catalog.observed.visit_statistics import VisitedProjects, visited_projects
from pypi_assets.catalog.publications.journal_deliveries import ConsumerLag, consumer_lags
from pypi_assets.catalog.reads.file_counts import live_outcomes, recount_files
from pypi_assets.catalog.reads.kept_lists import KeptTotals, kept_totals
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.reports.failures import VISIT, count_failures
from pypi_assets.catalog.reports.range_states import count_unexplained
from pypi_assets.catalog.scopes.scope_status import ScopeStatus, scope_status
from pypi_assets.catalog.scopes.stored_scopes import all_scopes
from pypi_assets.catalog.tables import (
    catalog_state,
    changes,
    distributions,
    observed_projects,
    projects,
    read_attempts,
    read_queue,
    visits,
)
from pypi_assets.catalog.work.audits import find_open_audit
from pypi_assets.catalog.work.full_crawls import find_open_crawl, followed_index, has_baseline, last_completed_crawl
from pypi_assets.catalog.work.read_queue import QUEUED_READS, count_pending_reads, count_queued_reads
from pypi_assets.catalog.work.visit_queue import WorkloadProgress, progress_by_shard, range_workload, workload_progress


def work_done(connection: Connection) -> tuple[int, int]:
    """Return how many visits and how many attempts to read a distribution were ever made. Both only grow."""
    visited, read = (connection.scalar(select(func.max(table.c.id))) for table in (visits, read_attempts))
    return visited or 0, read or 0


def about_known(connection: Connection) -> int:
    """Return the approximate number of projects and distributions ever known."""
    return sum(connection.scalar(select(func.max(table.c.id))) or 0 for table in (projects, distributions))


@dataclass(frozen=True, slots=True)
class ExhaustedWork:
    """The currently exhausted work, by kind: kinds of errors of reads, and visits.

    `known` is the approximate number of distributions and projects ever known.
    """

    kinds: dict[str, int]
    known: int

    @property
    def count(self) -> int:
        return sum(self.kinds.values())

    @property
    def percent(self) -> float:
        """Return the share of all projects and distributions ever known, in per cent."""
        return 100 * self.count / max(self.known, 1)


def read_exhausted(connection: Connection) -> ExhaustedWork:
    """Return the currently exhausted work. The query is fast on any catalog."""
    return ExhaustedWork(count_failures(connection, only_exhausted=True), about_known(connection))


@dataclass(frozen=True, slots=True)
class Followed:
    """The progress of following the index. Unknown values are None.

    `next_event_at` is the time of the first stored event beyond the complete serial (unix seconds). `listed_serial` is
    the serial of the list of projects that was compared last, and `listed_at` the time of the comparison. `file_origin`
    is the origin of the files on the first pages; it is empty if that is only the index itself. For an index without
    serials, `observed_serial` is the last serial of its counter, and `next_observed_at` the time when the first event
    beyond the complete serial was seen.
    """

    index_url: str | None
    complete_serial: int | None
    next_event_at: float | None
    changelog_trouble: ChangelogTrouble | None
    listed_serial: int | None
    listed_at: float | None
    file_origin: str | None = None
    observed_serial: int | None = None
    next_observed_at: float | None = None

    @property
    def is_changelog_off(self) -> bool:
        return self.changelog_trouble is not None and self.changelog_trouble.is_off


def read_followed(connection: Connection) -> Followed:
    """Return how far the index is followed. The query is fast on any catalog."""
    index_url = followed_index(connection)
    complete = complete_serial(connection) if has_baseline(connection) else None
    listed_serial, listed_at = (None, None) if index_url is None else last_listed(connection, index_url)
    return Followed(
        index_url=index_url,
        complete_serial=complete,
        next_event_at=None if complete is None else first_event_time(connection, complete),
        changelog_trouble=None if index_url is None else changelog_trouble(connection, index_url),
        listed_serial=listed_serial,
        listed_at=listed_at,
        file_origin=known_file_origin(connection),
        observed_serial=None if index_url is None else observed_serial(connection, index_url),
        next_observed_at=None if complete is None else first_observed_at(connection, complete),
    )


_WAITING = b'"waiting":'  # absent from the JSON of a page without unconfirmed changes
_AT_A_TIME = 500
_NAMED = 3


@dataclass(frozen=True, slots=True)
class ObservedState:
    """The projects of an observed index: their number, how many are `due`, and when the next one is due.

    `unconfirmed` counts the projects whose page no longer shows something, or shows an earlier state again. Such a
    change counts once later polls agree. `first_unconfirmed` names a few of these projects. The last of them is polled
    again at `confirmed_from` or later. Times are unix seconds; None if there is no such project.
    """

    projects: int
    due: int
    next_due_at: float | None
    unconfirmed: int
    first_unconfirmed: tuple[str, ...]
    confirmed_from: float | None


def observed_state(connection: Connection, now: float, confirm_after_s: float) -> ObservedState:
    """Return the state at `now` (unix seconds). It reads the pages that are due within `confirm_after_s` seconds."""
    c = observed_projects.c
    counts = select(func.count(), func.count().filter(c.due_at <= now), func.min(c.due_at).filter(c.due_at > now))
    projects, due, next_due_at = connection.execute(counts.select_from(observed_projects)).one()
    # An unconfirmed project is due again once it can be confirmed, or sooner.
    pages = select(c.project, c.content, c.due_at).where(c.content.is_not(None), c.due_at <= now + confirm_after_s)
    waiting: list[tuple[float, str]] = []
    for project, content, due_at in connection.execute(pages.execution_options(yield_per=_AT_A_TIME)):
        page = zlib.decompress(content)
        if _WAITING in page and PAGE_DECODER.decode(page).waiting:
            waiting.append((due_at, project))
    return ObservedState(
        projects,
        due,
        next_due_at,
        len(waiting),
        tuple(sorted(project for _, project in waiting)[:_NAMED]),
        max((due_at for due_at, _ in waiting), default=None),
    )


def ledger_faults(connection: Connection, *, only_newest: bool = True) -> list[str]:
    """Return descriptions of the gaps and overlaps of the ledger, or of its newest ranges. A sound ledger has none."""
    return [
        f"gap: no range contains the serials {before + 1} to {serials.start}"
        if serials.start > before
        else f"overlap: {serials} begins before {before}"
        for serials, before in faulty_ranges(connection, only_newest=only_newest)
    ]


@dataclass(frozen=True, slots=True)
class RunningWork:
    """One piece of running work. `name` is for people: `full crawl at serial 17`, `scope tools`, `range 17-23`.

    `processes` counts the processes that are known to live, on the machines `hosts`. `since` is when the work first
    began (unix seconds), even if it was stopped and continued; None if it is unknown. `projects` is 0 until they are
    listed. `reads_left` counts the unread distributions of visited projects; for a full crawl, which visits every
    project, it counts all unread distributions.
    """

    name: str
    is_full_crawl: bool
    processes: int
    since: float | None
    projects_done: int
    projects: int
    reads_left: int
    hosts: tuple[str, ...] = ()


def running_work(connection: Connection, now: float) -> list[RunningWork]:
    """Return the running work at `now` (unix seconds), full crawls first. It is empty if no worker is known to live."""
    workers = workers_of_workloads(connection, now)
    if not workers:
        return []
    known: dict[str, tuple[str, float | None]] = {}
    if crawl := find_open_crawl(connection):
        known[crawl.workload] = (f"full crawl at serial {crawl.serial}", crawl.opened_at)
    known |= {scope.workload: (f"scope {scope.name}", scope.created_at) for scope in all_scopes(connection)}
    for entry in unfinished_ranges(connection):
        known.setdefault(range_workload(entry.serials), (f"range {entry.serials.key}", entry.begun_at))
    if audit := find_open_audit(connection):
        at = "" if audit.serial is None else f" at serial {audit.serial}"
        known[audit.workload] = (f"audit{at}", audit.opened_at)
    found = []
    for workload, (name, since) in known.items():
        if (by := workers.get(workload)) is not None:
            is_full_crawl = crawl is not None and workload == crawl.workload
            progress = workload_progress(connection, workload)
            reads_left = count_queued_reads(connection) if is_full_crawl else count_pending_reads(connection, workload)
            done = progress.total - progress.todo
            hosts = tuple(sorted(by.hosts))
            done_of = (done, progress.total, reads_left)
            found.append(RunningWork(name, is_full_crawl, len(by.processes), since, *done_of, hosts))
    return found


def count_again(connection: Connection) -> dict[str, int]:
    """Return every stored count by its name, counted from the rows. On a large catalog this takes minutes."""
    unexplained = select(func.count()).where(changes.c.cause == literal_column(f"'{UNEXPLAINED}'"))
    counted = recount_files(connection)
    counted[UNEXPLAINED_CHANGES] = connection.scalar(unexplained) or 0
    counted[QUEUED_READS] = connection.scalar(select(func.count()).select_from(read_queue)) or 0
    return {name: count for name, count in counted.items() if count}


def count_differences(connection: Connection) -> dict[str, int]:
    """Return by how much the rows exceed each stored count, for counts that are wrong.

    Rows and counts are read in one transaction.
    """
    kept, counted = read_counts(connection), count_again(connection)
    names = sorted(kept.keys() | counted.keys())
    return {name: counted.get(name, 0) - kept.get(name, 0) for name in names if counted.get(name) != kept.get(name)}


MOST_SPANS = 100


@dataclass(frozen=True, slots=True)
class OpenCrawl:
    """The progress of an open full crawl. `expected_end` is in unix seconds; None until a visit has ended.

    `limited_to` is the limit of a trial; None if the crawl is of the whole index.
    """

    serial: int
    shards_done: int
    shards: int
    projects_done: int
    projects: int
    projects_per_second: float
    expected_end: float | None
    limited_to: int | None = None


@dataclass(frozen=True, slots=True)
class CatalogStatus:
    """The status of the catalog.

    Counts of distributions include only distributions live now. Serials are None before a full crawl. `running` is the
    work of living workers. `broken_entries` counts broken entries by source. `inexact_spans` are the newest ones, at
    most `MOST_SPANS`. `scopes` have no counts of their files. `followed_projects` counts the projects with answers;
    None if the whole index is followed. `consumers` are the named readers of the journal.
    """

    followed: Followed
    exact_from: int | None
    events_through: int | None
    live_distributions: int
    outcomes: dict[str, int]
    exhausted: ExhaustedWork
    unexplained_changes: int
    broken_entries: dict[str, int]
    visited: VisitedProjects
    open_ranges: int
    running_ranges: int
    running: tuple[RunningWork, ...]
    open_crawl: OpenCrawl | None
    last_crawl_completed_at: float | None
    ledger_faults: tuple[str, ...]
    inexact_spans: tuple[SerialRange, ...]
    scopes: tuple[ScopeStatus, ...] = ()
    followed_projects: int | None = None
    consumers: tuple[ConsumerLag, ...] = ()
    kept: KeptTotals = field(default_factory=KeptTotals)

    @property
    def complete_serial(self) -> int | None:
        return self.followed.complete_serial

    @property
    def failed_visits(self) -> int:
        return self.exhausted.kinds.get(VISIT, 0)


def catalog_status(catalog: Catalog) -> CatalogStatus:
    """Return the current status of the catalog. It is fast on any catalog, since counts are stored."""
    with catalog.read() as connection:
        state = connection.execute(select(catalog_state)).first()
        outcomes = {outcome.value: 0 for outcome in ReadOutcome} | live_outcomes(connection)
        completed = last_completed_crawl(connection)
        is_begun = has_baseline(connection)
        entries = unfinished_ranges(connection) if is_begun else []
        now = catalog.clock()
        unfinished = {range_workload(entry.serials) for entry in entries}
        return CatalogStatus(
            followed=read_followed(connection),
            exact_from=None if state is None or not is_begun else state.exact_from,
            events_through=None if state is None else state.events_through,
            live_distributions=sum(outcomes.values()),
            outcomes=outcomes,
            exhausted=read_exhausted(connection),
            unexplained_changes=count_unexplained(connection),
            broken_entries=count_kept_aside(connection),
            visited=visited_projects(connection),
            open_ranges=len(unfinished),
            running_ranges=len(unfinished & workloads_at_work(connection, now)),
            running=tuple(running_work(connection, now)),
            open_crawl=_open_crawl(connection, now),
            last_crawl_completed_at=None if completed is None else completed.completed_at,
            ledger_faults=tuple(ledger_faults(connection)),
            inexact_spans=tuple(newest_inexact_spans(connection, MOST_SPANS)),
            scopes=tuple(scope_status(connection, scope, now, counts_files=False) for scope in all_scopes(connection)),
            followed_projects=count_answered(connection, complete_serial(connection)),
            consumers=tuple(consumer_lags(connection, now)),
            kept=kept_totals(connection),
        )


def _open_crawl(connection: Connection, now: float) -> OpenCrawl | None:
    crawl = find_open_crawl(connection)
    if crawl is None:
        return None
    shards = progress_by_shard(connection, crawl.workload)
    progress = sum(shards.values(), start=WorkloadProgress(0, 0, 0))
    done = progress.total - progress.todo
    seconds = max(now - crawl.opened_at, 1e-9)
    read = max(work_done(connection)[1] - crawl.attempts_before, 0)
    pending = count_queued_reads(connection)
    return OpenCrawl(
        serial=crawl.serial,
        shards_done=sum(not one.todo for one in shards.values()),
        shards=len(shards),
        projects_done=done,
        projects=progress.total,
        projects_per_second=done / seconds,
        expected_end=_expected_end(now, seconds, progress.todo, done, pending, read),
        limited_to=crawl.limited_to,
    )


def _expected_end(now: float, seconds: float, unvisited: int, visited: int, pending: int, read: int) -> float | None:
    """Estimate when a full crawl will end (unix seconds), at the rate of requests of the `seconds` so far.

    There is one request for each visit and for each read. Unvisited projects are assumed to have as many reads as the
    visited ones on average.
    """
    if not visited:
        return None
    left = unvisited + pending + unvisited * (pending + read) / visited
    return now + seconds * left / (visited + read)
