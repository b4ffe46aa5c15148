"""The status of the catalog: what it contains, what is open, what failed."""

from dataclasses import dataclass

from sqlalchemy import Connection, select

from pypi_assets.catalog.coordination.claims import workloads_at_work
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import complete_serial, newest_inexact_spans, unfinished_ranges
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.followed import count_answered
from pypi_assets.catalog.observed.kept_aside import count_kept_aside
from pypi_assets.catalog.observed.visit_statistics import VisitedProjects, visited_projects
from pypi_assets.catalog.reads.file_counts import live_outcomes
from pypi_assets.catalog.reads.read_outcomes import Outcome
from pypi_assets.catalog.reports.catalog_totals import work_done
from pypi_assets.catalog.reports.exhausted_work import ExhaustedWork, read_exhausted
from pypi_assets.catalog.reports.failures import VISIT
from pypi_assets.catalog.reports.followed_index import Followed, read_followed
from pypi_assets.catalog.reports.journal_lags import ConsumerLag, consumer_lags
from pypi_assets.catalog.reports.ledger_faults import ledger_faults
from pypi_assets.catalog.reports.range_changes import count_unexplained
from pypi_assets.catalog.reports.running_work import RunningWork, running_work
from pypi_assets.catalog.reports.scope_status import ScopeStatus, scope_status
from pypi_assets.catalog.tables import catalog_state
from pypi_assets.catalog.work.full_crawls import find_open_crawl, has_baseline, last_completed_crawl
from pypi_assets.catalog.work.read_queue import count_queued_reads
from pypi_assets.catalog.work.scopes import all_scopes
from pypi_assets.catalog.work.visit_queue import WorkloadProgress, progress_by_shard, range_workload

MOST_SPANS = 100


@dataclass(frozen=True, slots=True)
class OpenCrawl:
    """The progress of an open full crawl. `expected_end` is in unix seconds; None until a visit has ended."""

    serial: int
    shards_done: int
    shards: int
    projects_done: int
    projects: int
    projects_per_second: float
    expected_end: float | None


@dataclass(frozen=True, slots=True)
class CatalogStatus:
    """The status of the catalog. Counts of distributions are of those live now. Serials are None before a full
    crawl. `running` is what workers are at work on. `broken_entries` are counts of what was kept aside, by source.
    `inexact_spans` are the newest, at most `MOST_SPANS`. `scopes` come without counts of their files, and
    `followed_projects` counts the projects with answers; None: all of the index is followed. `consumers` are the named
    readers of the journal."""

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

    @property
    def complete_serial(self) -> int | None:
        return self.followed.complete_serial

    @property
    def failed_visits(self) -> int:
        return self.exhausted.kinds.get(VISIT, 0)


def catalog_status(catalog: Catalog) -> CatalogStatus:
    """The status of the catalog now; quick on any catalog, since counts are kept."""
    with catalog.read() as connection:
        state = connection.execute(select(catalog_state)).first()
        outcomes = {outcome.value: 0 for outcome in Outcome} | live_outcomes(connection)
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
    )


def _expected_end(now: float, seconds: float, unvisited: int, visited: int, pending: int, read: int) -> float | None:
    """When a full crawl will end (unix seconds) if its requests, one a visit and one a read, go on as in the `seconds`
    so far.

    Projects that are not visited yet are assumed to have as many reads as the others had on average.
    """
    if not visited:
        return None
    left = unvisited + pending + unvisited * (pending + read) / visited
    return now + seconds * left / (visited + read)
