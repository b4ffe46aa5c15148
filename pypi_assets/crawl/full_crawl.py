"""Full crawls, which set the baseline: pin a serial, list all projects, visit and read them in shards, complete.

If no full crawl is open, the same functions visit the projects of a shard again.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from sqlalchemy import Connection

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.derived.visits import recompute_explained
from pypi_assets.catalog.ledger.range_ledger import last_allocated_serial, read_state
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.events import changed_projects
from pypi_assets.catalog.observed.projects import know_from_the_beginning, projects_in_shards
from pypi_assets.catalog.reads.read_outcomes import ShardReads, reads_by_shard
from pypi_assets.catalog.reports.range_states import unexplained_projects
from pypi_assets.catalog.scopes.discovery import tasks_of
from pypi_assets.catalog.scopes.members import prune_scope
from pypi_assets.catalog.scopes.stored_scopes import follow_selected, members_of
from pypi_assets.catalog.work.finished_workloads import forget_visits, queue_again
from pypi_assets.catalog.work.full_crawls import (
    CrawlListing,
    FullCrawl,
    complete_crawl,
    end_trial,
    find_open_crawl,
    is_crawl_drained,
    last_completed_crawl,
    limit_trial,
    list_first,
    list_named,
    list_projects,
    names_without_page,
    open_crawl,
    read_crawl,
    require_last_crawl,
    require_trial,
)
from pypi_assets.catalog.work.visit_queue import (
    WorkloadProgress,
    progress_by_shard,
    queue_visits,
    shards_with_projects,
    workload_progress,
)
from pypi_assets.crawl.crawler import Crawler, observe, query_first, require_answer
from pypi_assets.crawl.draining import claiming
from pypi_assets.crawl.listers import query_changelog
from pypi_assets.crawl.reading import ReadCounts, in_groups, read_workload
from pypi_assets.crawl.scope_crawl import discover_all, settle_workload
from pypi_assets.crawl.simple_lister import require_serial
from pypi_assets.crawl.stored_events import catch_up, index_serial, store_all_events, store_history
from pypi_assets.crawl.visiting import visit_workload
from pypi_assets.index.errors import StaleError
from pypi_assets.progress import Progress

_QUEUED_AT_A_TIME = 5_000
_COMPUTED_AT_A_TIME = 100


@dataclass(frozen=True, slots=True)
class FullCrawlResult:
    """The full crawl, its listing, and all its visits and reads."""

    crawl: FullCrawl
    listing: CrawlListing
    visits: WorkloadProgress
    reads: ReadCounts


def list_index(
    crawler: Crawler, *, with_history: bool = False, limit: int | None = None
) -> tuple[FullCrawl, CrawlListing]:
    """Join the open full crawl, or open one at the index's last serial and queue a visit of every project.

    The index's list is cached, so it may be older than the pinned serial. In that case, the events between the two
    serials are stored, and the projects that they change are visited as well. `with_history` stores all events from
    serial 0 on. If the changelog is off, the crawl uses only the list, at the list's own serial.

    An index without serials is polled first, with all its projects. Its history is what polls have found so far, and it
    is always stored.

    With a `limit`, the crawl is a trial: it visits only that many projects, and nothing completes it. A later call
    without a limit makes it a crawl of the whole index.

    Raises CatalogError for `with_history` without a changelog, or if the open crawl was listed without history; and for
    a `limit` if the catalog already follows an index other than by a trial.
    """
    with crawler.catalog.read() as connection:
        if limit is not None:
            require_trial(connection, crawler.selection)
        joined = find_open_crawl(connection)
        is_followed = joined is not None or last_completed_crawl(connection) is not None
    observe(crawler, everything=joined is None, with_list=joined is None)
    with_history = with_history or crawler.index.is_observed
    index, catalog = crawler.index, crawler.catalog
    if joined is not None and limit is not None and limit_trial(catalog, joined, limit) >= limit:
        return joined, CrawlListing(limit, ())
    if is_followed:
        serial = query_changelog(crawler, partial(index_serial, crawler), again=True)
    else:
        serial = query_first(crawler, lambda: query_changelog(crawler, index.last_serial, again=True))
    if joined is not None and joined.listed_at is not None and joined.selection == crawler.selection:
        _require_history(joined, with_history)
        with catalog.read() as connection:
            return joined, CrawlListing(workload_progress(connection, joined.workload).total, ())
    if crawler.selection.names and serial is not None:
        return _list_selected(crawler, serial, with_history=with_history)
    with ExitStack() as opened:
        is_known = is_followed or serial is not None  # the index has answered before, so the settings are right
        query = crawler.patiently if is_known else partial(query_first, crawler)
        listing_serial, listed = query(lambda: opened.enter_context(index.iter_listing()))
        is_all = serial is None
        if serial is None and with_history:
            raise CatalogError("the changelog is off, so no history can be stored: run it without --with-history")
        if serial is None:
            serial = _list_serial(crawler, listing_serial)
        since = serial if listing_serial is None else min(listing_serial, serial)
        crawl = open_crawl(catalog, serial, since, index.index_url, crawler.selection, limit=limit)
        opened.enter_context(claiming(crawler, crawl.workload))
        _require_events_since(crawler, since)
        if not is_all:
            crawler.patiently(partial(catch_up, crawler, crawl.serial))
        if limit is not None:
            list_first(catalog, crawl, listed, listing_serial, limit, is_all=is_all)
            return crawl, CrawlListing(limit_trial(catalog, crawl, limit), ())
        if crawl.limited_to is not None:
            end_trial(catalog, crawl)
        if with_history:
            crawler.patiently(partial(store_history, crawler))
            since = 0
        if since < crawl.serial:
            catalog.transact(partial(_queue_changed, workload=crawl.workload, serials=SerialRange(since, crawl.serial)))
        listing = list_projects(catalog, crawl, listed, listing_serial, with_history=with_history, is_all=is_all)
        if crawler.selection.names:
            _follow_selected(crawler, crawl)
        crawler.report(Progress("listing", listing.projects, listing.projects))
        with catalog.read() as connection:
            crawl = read_crawl(connection, crawl.id)
        _require_history(crawl, with_history)
    return crawl, listing


def _list_selected(crawler: Crawler, serial: int, *, with_history: bool) -> tuple[FullCrawl, CrawlListing]:
    """Open a full crawl of the selected projects, and queue a visit of each, without requesting the list of
    projects."""
    catalog, names = crawler.catalog, crawler.selection.names
    require_answer(crawler, names)
    crawl = open_crawl(catalog, serial, serial, crawler.index.index_url, crawler.selection)
    with claiming(crawler, crawl.workload):
        tasks = _follow_selected(crawler, crawl)
        crawler.patiently(partial(catch_up, crawler, crawl.serial))
        if with_history:
            crawler.patiently(partial(store_history, crawler))
            catalog.transact(partial(know_from_the_beginning, normalized=names))
        listing = list_named(catalog, crawl, tasks, with_history=with_history)
        with catalog.read() as connection:
            crawl = read_crawl(connection, crawl.id)
        _require_history(crawl, with_history)
    return crawl, listing


def _follow_selected(crawler: Crawler, crawl: FullCrawl) -> list[tuple[int, int, int]]:
    """Follow the selected projects, and unfollow projects that are no longer selected.

    Returns the tasks of the followed projects, for `queue_visits`.
    """
    catalog, names = crawler.catalog, crawler.selection.names
    scope = catalog.transact(partial(follow_selected, names=names, serial=crawl.serial, now=catalog.clock()))
    discover_all(crawler, crawl.workload)
    left = catalog.transact(partial(prune_scope, scope=scope, now=catalog.clock()))
    if left:
        crawler.notify(f"no longer followed, since PYPI_ASSETS_PROJECTS does not name them: {', '.join(left)}")
    with catalog.read() as connection:
        return tasks_of(connection, members_of(connection, scope.id))


def _require_history(crawl: FullCrawl, with_history: bool) -> None:
    """Raise CatalogError if `with_history` is set and the crawl was listed without history."""
    if with_history and not crawl.with_history:
        raise CatalogError(
            f"the full crawl that is open at serial {crawl.serial} has no history: complete it first"
            " (`pypi-assets crawl full`), then run `pypi-assets crawl full --with-history`"
        )


def _queue_changed(connection: Connection, workload: str, serials: SerialRange) -> None:
    changed = changed_projects(connection, serials)
    for start in range(0, len(changed), _QUEUED_AT_A_TIME):
        queue_visits(connection, workload, changed[start : start + _QUEUED_AT_A_TIME])


def _list_serial(crawler: Crawler, listed_serial: int | None) -> int:
    """Return the serial of the list, if it is the only known serial.

    Raises StaleError if the catalog is ahead of it.
    """
    serial = require_serial(crawler, listed_serial)
    with crawler.catalog.read() as connection:
        allocated = last_allocated_serial(connection)
    if serial < allocated:
        raise StaleError(
            f"the list of projects has serial {serial}, and the catalog already follows the index up to {allocated}:"
            " a cache serves an old list; try again in some minutes",
            crawler.index.index_url,
        )
    return serial


def _require_events_since(crawler: Crawler, listed_serial: int) -> None:
    """Raise StaleError if the list is older than all stored events, since the changes in between would be missed."""
    with crawler.catalog.read() as connection:
        since = read_state(connection)["events_since"]
    if listed_serial < since:
        raise StaleError(
            f"the list of projects has serial {listed_serial}, but events are stored only from {since} on:"
            " a cache serves an old list; try again in some minutes",
            crawler.index.index_url,
        )


def require_open_crawl(crawler: Crawler) -> FullCrawl:
    """Return the open full crawl, which must be listed. Raises CatalogError if there is none."""
    with crawler.catalog.read() as connection:
        crawl = find_open_crawl(connection)
    if crawl is None or crawl.listed_at is None:
        raise CatalogError("no full crawl is open: list the index first (project_listing, or `pypi-assets crawl full`)")
    return crawl


def visit_shards(
    crawler: Crawler, crawl: FullCrawl, shards: Sequence[int] | None = None, *, only_due: bool = False
) -> WorkloadProgress:
    """Visit the crawl's remaining projects in `shards` (None: all). `only_due` is as in `visit_workload`."""
    return visit_workload(crawler, crawl.workload, shards, only_due=only_due)


def read_shards(crawler: Crawler, crawl: FullCrawl, shards: Sequence[int] | None = None) -> ReadCounts:
    """Read the crawl's pending distributions in `shards` (None: all). Complete the crawl if nothing is left."""
    counts = read_workload(crawler, crawl.workload, shards)
    _explain_pages(crawler, crawl)
    if crawl.selection.names and settle_workload(crawler, crawl.workload):
        counts += read_workload(crawler, crawl.workload, shards)
    complete_crawl(crawler.catalog, crawl)
    return counts


def _explain_pages(crawler: Crawler, crawl: FullCrawl) -> None:
    """Store the events up to the index's last serial once all work of the crawl is done, and recompute the
    projects that they change.

    A page may be newer than its serial, and show or omit a file too early. These events explain such differences. With
    the history, earlier events explain changes that had no event before.
    """
    catalog = crawler.catalog
    with catalog.read() as connection:
        if not is_crawl_drained(connection, crawl):
            return
    through = crawler.patiently(lambda: query_changelog(crawler, partial(store_all_events, crawler)))
    if through is None:
        return
    changed: list[int] = []
    with catalog.read() as connection:
        if through > crawl.serial:
            changed += [id_ for id_, *_ in changed_projects(connection, SerialRange(crawl.serial, through))]
        if crawl.with_history:
            changed += unexplained_projects(connection)
    changed = sorted(set(changed))
    for start in range(0, len(changed), _COMPUTED_AT_A_TIME):
        ids = changed[start : start + _COMPUTED_AT_A_TIME]
        work = partial(recompute_explained, project_ids=ids, since=crawl.opened_at, through=through)
        catalog.transact(work)


def crawl_full(crawler: Crawler, *, with_history: bool = False, limit: int | None = None) -> FullCrawlResult:
    """Run a full crawl, or the rest of the open one. `with_history` and `limit` are as in `list_index`."""
    crawl, listing = list_index(crawler, with_history=with_history, limit=limit)
    with claiming(crawler, crawl.workload):
        visits, reads = visit_shards(crawler, crawl, only_due=True), ReadCounts()
        if visits.todo:  # readable files do not wait for failing pages
            reads = read_workload(crawler, crawl.workload, only_due=True)
            rest = visit_shards(crawler, crawl)
            visits = replace(rest, lost=visits.lost + rest.lost)
        if limit is not None:
            return FullCrawlResult(crawl, listing, visits, reads + read_workload(crawler, crawl.workload))
        reads += read_shards(crawler, crawl)
        with crawler.catalog.read() as connection:
            missing = names_without_page(connection, crawl.selection)
    forget_visits(crawler.catalog, crawl.workload)
    return FullCrawlResult(crawl, replace(listing, missing=missing), visits, reads)


_GROUP_PROJECTS = 500


@dataclass(frozen=True, slots=True)
class FinishedShard:
    """A finished shard: the state of its visits and reads, and the seconds that its group of shards took."""

    shard: int
    visits: WorkloadProgress
    reads: ShardReads
    seconds: float


def crawl_of_shards(crawler: Crawler) -> FullCrawl:
    """Return the open full crawl, or else the last completed one. Raises CatalogError if there is neither."""
    with crawler.catalog.read() as connection:
        if find_open_crawl(connection) is None:
            return require_last_crawl(connection, crawler.index.index_url, crawler.selection)
    return require_open_crawl(crawler)


def visit_each_shard(crawler: Crawler, shards: Sequence[int]) -> Iterator[FinishedShard]:
    """Visit the open full crawl's remaining projects in `shards`, and yield each shard when it is finished.

    If no full crawl is open, all known projects in `shards` are visited again. A call that was stopped is resumed.
    """
    crawl = crawl_of_shards(crawler)
    if crawl.completed_at is not None:
        _queue_again(crawler, crawl, shards)
    with claiming(crawler, crawl.workload):  # otherwise another process might delete the visits before they are counted
        for group in _groups(crawler, crawl, shards):
            started = time.monotonic()
            visit_shards(crawler, crawl, group)
            yield from _finished(crawler, crawl, group, started)


def read_each_shard(crawler: Crawler, shards: Sequence[int]) -> Iterator[FinishedShard]:
    """Read the pending distributions in `shards`, yield each finished shard, and complete the crawl if nothing is
    left."""
    crawl = crawl_of_shards(crawler)
    workload = crawl.workload if crawl.completed_at is None else None
    with claiming(crawler, crawl.workload):
        for group in _groups(crawler, crawl, shards):
            started = time.monotonic()
            read_workload(crawler, workload, group)
            yield from _finished(crawler, crawl, group, started)
        complete_crawl(crawler.catalog, crawl)
    forget_visits(crawler.catalog, crawl.workload)


def _queue_again(crawler: Crawler, crawl: FullCrawl, shards: Sequence[int]) -> None:
    def queue(connection: Connection) -> None:
        if workload_progress(connection, crawl.workload, shards).todo:
            return
        known = projects_in_shards(connection, shards)
        queue_again(connection, crawl.workload, [(project_id, shard, 0) for project_id, shard in known], shards)

    crawler.catalog.transact(queue)


def _groups(crawler: Crawler, crawl: FullCrawl, shards: Sequence[int]) -> Iterator[list[int]]:
    with crawler.catalog.read() as connection:
        sizes = shards_with_projects(connection, crawl.workload)
    return in_groups(shards, sizes, _GROUP_PROJECTS)


def _finished(crawler: Crawler, crawl: FullCrawl, group: Sequence[int], started: float) -> Iterator[FinishedShard]:
    with crawler.catalog.read() as connection:
        visits = progress_by_shard(connection, crawl.workload, group)
        reads = reads_by_shard(connection, group)
    seconds = time.monotonic() - started
    for shard in group:
        yield FinishedShard(shard, visits[shard], reads[shard], seconds)


SHARDS_IN_ONE_RUN = 100
"""Enough runs for several machines, and few enough that their start-up time does not matter."""
SMALL_SELECTION = 10_000
"""The number of projects that one process visits and reads within an hour."""


def shards_in_one_run(database_url: str, selected_projects: int) -> int | None:
    """Return the most shards for one run of a backfill; None for all shards.

    One run takes all shards if a second machine would not help. That is so if the catalog is an SQLite file, which only
    this machine can use: one run then has all its cores and the whole rate of requests. It is also so if few projects
    are selected (0 means the whole index). Otherwise several machines may share the shards.

    >>> shards_in_one_run("sqlite:////data/catalog.sqlite", 0) is None
    True
    >>> shards_in_one_run("postgresql+psycopg://host/catalog", 0)
    100
    """
    if database_url.startswith("sqlite") or 0 < selected_projects <= SMALL_SELECTION:
        return None
    return SHARDS_IN_ONE_RUN
