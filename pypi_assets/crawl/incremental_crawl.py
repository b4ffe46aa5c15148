"""Incremental crawls, which follow the changelog in serial ranges.

Each range is allocated, its events are stored, its projects are visited, and their new files are read. The ledger
in `catalog/ledger/` defines and stores the ranges.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.derived.visits import parts_of_work, recompute_stored
from pypi_assets.catalog.ledger.epochs import note_change
from pypi_assets.catalog.ledger.range_ledger import (
    SIMPLE,
    XMLRPC,
    LedgerRange,
    RangeState,
    allocate_ranges,
    begin_range,
    complete_range,
    end_inexact_span,
    fail_range,
    last_allocated_at,
    last_allocated_serial,
    leave_range,
    lock_state,
    ranges_to_explain,
    require_range,
    unfinished_ranges,
)
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.events import (
    RangeEvents,
    changed_projects,
    count_events,
    events_through,
    has_at_least,
    range_ends,
)
from pypi_assets.catalog.observed.index_state import count_broken_rows
from pypi_assets.catalog.observed.visit_statistics import revisits_for
from pypi_assets.catalog.reports.range_states import count_unexplained
from pypi_assets.catalog.scopes.stored_scopes import has_scopes
from pypi_assets.catalog.work.finished_workloads import (
    forget_done,
    projects_of_range,
    projects_to_explain,
    queue_again,
    queue_done,
)
from pypi_assets.catalog.work.full_crawls import require_followable
from pypi_assets.catalog.work.listed_projects import exact_again_from
from pypi_assets.catalog.work.read_queue import is_read_pending
from pypi_assets.catalog.work.revisits import abandoned_visits, queue_revisits, revisit_soon
from pypi_assets.catalog.work.visit_queue import (
    REVISITS,
    WorkloadProgress,
    abandoned_projects,
    is_visit_pending,
    queue_visits,
    range_workload,
)
from pypi_assets.crawl.crawler import Crawler, observe
from pypi_assets.crawl.draining import claiming
from pypi_assets.crawl.listers import AUTO, query_changelog
from pypi_assets.crawl.reading import ReadCounts, read_workload
from pypi_assets.crawl.requested import run_requested
from pypi_assets.crawl.scope_crawl import ENTERING_IN_A_RANGE, follow_workload, run_ready_scopes, settle_workload
from pypi_assets.crawl.simple_lister import allocate_listed_ranges
from pypi_assets.crawl.stored_events import catch_up, index_serial
from pypi_assets.crawl.visiting import visit_workload


@dataclass(frozen=True, slots=True)
class RangeResult:
    """A finished range.

    `unexplained_changes` counts the changes in it that pages showed and no event explains. `broken_rows` counts its
    invalid rows of the changelog, which were set aside. `open_projects` has the first projects that could not be
    visited, so that their state follows from events alone.
    """

    serials: SerialRange
    events: RangeEvents
    visits: WorkloadProgress
    reads: ReadCounts
    unexplained_changes: int
    broken_rows: int
    open_projects: tuple[str, ...]
    lister: str | None


def allocate_next_ranges(
    crawler: Crawler,
    changelog_pages: int | None = None,
    list_pause_s: float = 0.0,
    min_age_s: float = 0.0,
    min_events: int = 1,
    *,
    everything: bool = False,
) -> list[SerialRange]:
    """Allocate the ranges up to the index's last serial in the ledger. Returns no range if nothing is new on the index.

    The events are stored first, since a backlog is divided into ranges by the count of events (`range_events` of the
    crawler). With `changelog_pages`, at most that many pages of the changelog are requested, and the ranges end there.
    No range is allocated before `min_age_s` seconds after the last one, unless there are `min_events` new events.

    If the changelog is off, the list of projects is compared instead, at most once in `list_pause_s` seconds. An index
    without serials is polled first: its due projects, or all of them with `everything`.

    Raises CatalogError if no full crawl is complete, or if the index has gone backwards.
    """
    catalog, index = crawler.catalog, crawler.index
    with catalog.read() as connection:
        require_followable(connection, index.index_url, crawler.selection)
    observe(crawler, everything=everything)
    through = query_changelog(crawler, partial(_store_new_events, crawler, changelog_pages), again=True)
    if through is None:
        return allocate_listed_ranges(crawler, list_pause_s)

    def allocate(connection: Connection, end: int) -> list[SerialRange]:
        lock_state(connection, exclusive=True)
        now = catalog.clock()
        if end <= (allocated := last_allocated_serial(connection)):
            return []
        new = SerialRange(allocated, end)
        if now - last_allocated_at(connection) < min_age_s and not has_at_least(connection, new, min_events):
            return []
        ends = range_ends(connection, new, crawler.range_events)
        return allocate_ranges(connection, ends, now, XMLRPC if crawler.lister == AUTO else crawler.lister)

    return catalog.transact(partial(allocate, end=through))


def _store_new_events(crawler: Crawler, changelog_pages: int | None) -> int:
    last = index_serial(crawler)
    return min(catch_up(crawler, last, changelog_pages), last)


def open_ranges(crawler: Crawler) -> list[SerialRange]:
    """Return the incomplete ranges of the ledger in order, without the range of a running full crawl."""
    with crawler.catalog.read() as connection:
        require_followable(connection, crawler.index.index_url, crawler.selection)
        return [entry.serials for entry in unfinished_ranges(connection)]


def store_changelog(crawler: Crawler, serials: SerialRange) -> RangeEvents:
    """Store the events of a range of the ledger, unless it is a listed range.

    Raises RangeError if it is not allocated.
    """
    with _work_on(crawler, serials) as entry:
        if entry.lister != SIMPLE:
            crawler.patiently(partial(catch_up, crawler, serials.end))
    with crawler.catalog.read() as connection:
        return count_events(connection, serials)


def visit_range(crawler: Crawler, serials: SerialRange, *, again: bool = True) -> WorkloadProgress:
    """Visit every project whose files are changed by an event of the range. Return the state of all these visits.

    For a listed range, these are the projects with a new serial on the list. First, earlier listed ranges are corrected
    if their events have arrived. Projects of a complete range are visited again, unless `again` is False.

    As an audit, it also visits some projects that the visit policy chooses. The range does not wait for them.
    """
    workload = range_workload(serials)
    explain_ranges(crawler)
    with _work_on(crawler, serials) as entry:
        if entry.lister != SIMPLE:
            crawler.patiently(partial(catch_up, crawler, serials.end))  # a range may be visited on its own
        crawler.catalog.transact(partial(_queue_range, crawler, serials, again, random.random()))
        progress = visit_workload(crawler, workload)
    _visit_again(crawler)
    return progress


def _visit_again(crawler: Crawler) -> None:
    """Visit each due revisit once: the audit share of ranges, and visits that were abandoned before."""
    with crawler.catalog.read() as connection:
        now = crawler.catalog.clock()
        abandoned = [
            (one.project_id, one.shard, one.min_serial) for one in abandoned_visits(connection) if one.due_at <= now
        ]
    if abandoned:
        crawler.catalog.transact(partial(revisit_soon, tasks=abandoned))
    with crawler.catalog.read() as connection:
        are_left = is_visit_pending(connection, REVISITS)
    if are_left:
        visit_workload(crawler, REVISITS, only_due=True)


def _queue_range(crawler: Crawler, serials: SerialRange, again: bool, chance: float, connection: Connection) -> None:
    workload, entry = range_workload(serials), require_range(connection, serials, lock=True)
    if entry.state != RangeState.COMPLETE:
        new = queue_visits(connection, workload, changed_projects(connection, serials))
        queue_revisits(connection, revisits_for(new, crawler.revisit_share, chance), excluded_workload=workload)
    elif again and not is_visit_pending(connection, workload):
        queue_again(connection, workload, projects_of_range(connection, entry))


def read_range(crawler: Crawler, serials: SerialRange) -> ReadCounts:
    """Read the pending distributions of the range's projects, and complete the range if nothing is left.

    Raises CatalogError if its projects have not been visited.
    """
    workload, catalog = range_workload(serials), crawler.catalog
    with _work_on(crawler, serials):
        catalog.transact(partial(_require_visited, serials))
        counts = _read_and_follow(crawler, workload)
        if catalog.transact(partial(_complete_if_finished, serials, catalog.clock())):
            catalog.transact(partial(_forget_done, serials))
    _read_again(crawler)
    return counts


def _read_again(crawler: Crawler) -> None:
    with crawler.catalog.read() as connection:
        are_left = is_read_pending(connection, REVISITS)
    if are_left:
        read_workload(crawler, REVISITS, only_due=True)


def _read_and_follow(crawler: Crawler, workload: str) -> ReadCounts:
    """Read the pending distributions of the workload. If there are scopes, follow the requirements of new uploads."""
    with crawler.catalog.read() as connection:
        are_scopes = has_scopes(connection)
    if not are_scopes:
        return read_workload(crawler, workload)
    counts = follow_workload(crawler, workload, ENTERING_IN_A_RANGE)
    while settle_workload(crawler, workload):
        counts += follow_workload(crawler, workload, 0)
    return counts


def _require_visited(serials: SerialRange, connection: Connection) -> None:
    workload, entry = range_workload(serials), require_range(connection, serials, lock=True)
    if entry.state == RangeState.COMPLETE:
        queue_done(connection, workload, projects_of_range(connection, entry))
        return
    is_known = entry.lister == SIMPLE or events_through(connection) >= serials.end
    if not is_known or queue_visits(connection, workload, changed_projects(connection, serials)):
        raise CatalogError(
            f"the projects that changed in {serials} have not been visited: visit them first"
            " (changed_distributions, or `pypi-assets crawl incremental`)"
        )


def _complete_if_finished(serials: SerialRange, now: float, connection: Connection) -> bool:
    workload, entry = range_workload(serials), require_range(connection, serials, lock=True)
    if is_visit_pending(connection, workload) or is_read_pending(connection, workload):
        return False
    if entry.state != RangeState.COMPLETE:
        exact_from = exact_again_from(connection, serials) if entry.lister == SIMPLE else None
        complete_range(connection, serials, now, exact_from)
    return True


def _forget_done(serials: SerialRange, connection: Connection) -> None:
    require_range(connection, serials, lock=True)
    forget_done(connection, range_workload(serials))


def crawl_range(crawler: Crawler, serials: SerialRange, *, again: bool = True) -> RangeResult:
    """Run all stages of one range. `again` is as in `visit_range`."""
    with claiming(crawler, range_workload(serials)):  # also between the stages
        events = store_changelog(crawler, serials)
        visits, reads = visit_range(crawler, serials, again=again), read_range(crawler, serials)
    with crawler.catalog.read() as connection:
        lister = require_range(connection, serials).lister
        unexplained, broken = count_unexplained(connection, serials), count_broken_rows(connection, serials)
        left = abandoned_projects(connection, range_workload(serials))
        return RangeResult(serials, events, visits, reads, unexplained, broken, left, lister)


def crawl_incremental(crawler: Crawler, *, everything: bool = False) -> list[RangeResult]:
    """Crawl every range up to the index's last serial, beginning with ranges that earlier runs left open.

    Other processes may work on the same ranges at the same time; completed work is not repeated. At the end, scopes
    with pending work are run, and requested visits are made. `everything` is as in `allocate_next_ranges`.
    """
    allocate_next_ranges(crawler, everything=everything)
    explain_ranges(crawler)
    results = [crawl_range(crawler, serials, again=False) for serials in open_ranges(crawler)]
    if not results:
        _visit_again(crawler)
        _read_again(crawler)
    run_ready_scopes(crawler)
    run_requested(crawler)
    return results


def explain_ranges(crawler: Crawler) -> None:
    """Make complete listed ranges exact, once their events have been stored.

    Projects that the events change are recomputed. Projects that the list had missed are visited first. New files are
    read; a failed read is left to a retry.
    """
    catalog = crawler.catalog
    with catalog.read() as connection:
        found = ranges_to_explain(connection, events_through(connection))
    if not found:
        return
    for serials, span in found:
        catalog.transact(partial(_queue_span, range_workload(serials), span))
        visit_workload(crawler, range_workload(serials))
    with catalog.read() as connection:
        changed = parts_of_work(connection, projects_to_explain(connection, [serials for serials, _ in found]))
    for part in changed:
        catalog.transact(partial(recompute_stored, project_ids=part))
    for serials, _ in found:
        read_workload(crawler, range_workload(serials), only_due=True)
        catalog.transact(partial(_end_span, serials.start))
        catalog.transact(partial(_forget_done, serials))


def _end_span(start: int, connection: Connection) -> None:
    """Mark the span as exact. Its serials have other times than before, on which answers with a cooldown depend."""
    lock_state(connection, exclusive=False)
    note_change(connection, start + 1)
    end_inexact_span(connection, start)


def _queue_span(workload: str, span: SerialRange, connection: Connection) -> None:
    queue_visits(connection, workload, changed_projects(connection, span))


@contextmanager
def _work_on(crawler: Crawler, serials: SerialRange) -> Iterator[LedgerRange]:
    """Yield the range's entry in the ledger, and record an error of the block there.

    Raises RangeError if the range is not allocated.
    """
    catalog = crawler.catalog
    with claiming(crawler, range_workload(serials)):
        entry = catalog.transact(partial(_begin, crawler, serials))
        try:
            yield entry
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            with suppress(SQLAlchemyError):  # maybe it was the catalog that failed
                catalog.transact(partial(fail_range, serials=serials, error_text=text))
            raise
        catalog.transact(partial(leave_range, serials=serials))


def _begin(crawler: Crawler, serials: SerialRange, connection: Connection) -> LedgerRange:
    require_followable(connection, crawler.index.index_url, crawler.selection)
    entry = require_range(connection, serials)
    begin_range(connection, serials, crawler.catalog.clock())
    return entry
