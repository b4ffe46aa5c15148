"""Follows the changelog in serial ranges: each is asked for, its events stored, its projects visited and read."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from sqlalchemy.exc import SQLAlchemyError

from pypi_assets.catalog.answers import count_unexplained
from pypi_assets.catalog.crawls import require_followable
from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.events import RangeEvents, changed_projects, count_events, events_through, range_ends
from pypi_assets.catalog.ledger import (
    LedgerRange,
    RangeState,
    ask_ranges,
    begin_range,
    complete_range,
    fail_range,
    last_asked_serial,
    ledger,
    lock_state,
    require_range,
)
from pypi_assets.catalog.queue import ScopeProgress, queue_visits, range_scope, requeue_visits, scope_progress
from pypi_assets.catalog.ranges import SerialRange
from pypi_assets.catalog.read_queue import is_read_pending
from pypi_assets.crawl.changelog import catch_up, index_serial
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.reading import ReadCounts, read_scope
from pypi_assets.crawl.visiting import visit_scope


@dataclass(frozen=True, slots=True)
class RangeResult:
    serials: SerialRange
    events: RangeEvents
    visits: ScopeProgress
    reads: ReadCounts
    unexplained_changes: int


def ask_next_ranges(crawler: Crawler, changelog_pages: int | None = None) -> list[SerialRange]:
    """Brings the ranges up to the index's last serial into the ledger; none where the index has nothing new.

    Their events are stored first, since a backlog is cut by their number (`range_events` of the crawler). With
    `changelog_pages` no more is asked of the changelog at once, and the ranges reach as far as that.
    Raises CatalogError where no full crawl is complete, or where the index has gone backwards.
    """
    catalog, index = crawler.catalog, crawler.index
    with catalog.read() as connection:
        require_followable(connection, index.index_url, crawler.selection)
    last = index_serial(crawler)
    through = min(catch_up(crawler, last, changelog_pages), last)
    with catalog.write() as connection:
        lock_state(connection, exclusive=True)
        if through <= (asked := last_asked_serial(connection)):
            return []
        ends = range_ends(connection, SerialRange(asked, through), crawler.range_events)
        return ask_ranges(connection, ends, catalog.clock())


def open_ranges(crawler: Crawler) -> list[SerialRange]:
    """The ranges of the ledger that are not complete, in order. The one of a full crawl under way is not among them."""
    with crawler.catalog.read() as connection:
        require_followable(connection, crawler.index.index_url, crawler.selection)
        return [entry.serials for entry in ledger(connection) if entry.state != RangeState.COMPLETE]


def store_changelog(crawler: Crawler, serials: SerialRange) -> RangeEvents:
    """Stores the events of a range of the ledger. Raises RangeError for any other range."""
    with _work_on(crawler, serials):
        catch_up(crawler, serials.end)
    with crawler.catalog.read() as connection:
        return count_events(connection, serials)


def visit_range(crawler: Crawler, serials: SerialRange, *, again: bool = True) -> ScopeProgress:
    """Visits every project of which an event in the range changes files; those of a complete range once more, unless
    `again` says otherwise."""
    scope = range_scope(serials)
    with _work_on(crawler, serials) as entry:
        catch_up(crawler, serials.end)  # a range may be visited by itself, and what its events change is to be known
        with crawler.catalog.write() as connection:
            queue_visits(connection, scope, changed_projects(connection, serials))
            if again and entry.state == RangeState.COMPLETE and scope_progress(connection, scope).todo == 0:
                requeue_visits(connection, scope)
        return visit_scope(crawler, scope, "incremental")


def read_range(crawler: Crawler, serials: SerialRange) -> ReadCounts:
    """Reads what the range's projects have pending, and completes the range if nothing of it is left.

    Raises CatalogError where its projects have not been visited.
    """
    scope, catalog = range_scope(serials), crawler.catalog
    with _work_on(crawler, serials):
        with catalog.write() as connection:
            through = events_through(connection)
            if through < serials.end or queue_visits(connection, scope, changed_projects(connection, serials)):
                raise CatalogError(
                    f"the projects that changed in {serials} have not been visited: visit them first"
                    " (changed_distributions, or `pypi-assets crawl incremental`)"
                )
        counts = read_scope(crawler, scope)
        with catalog.write() as connection:
            if not scope_progress(connection, scope).todo and not is_read_pending(connection, scope):
                complete_range(connection, serials, catalog.clock())
        return counts


def crawl_range(crawler: Crawler, serials: SerialRange, *, again: bool = True) -> RangeResult:
    """All of one range; `again` as in `visit_range`."""
    events = store_changelog(crawler, serials)
    visits, reads = visit_range(crawler, serials, again=again), read_range(crawler, serials)
    with crawler.catalog.read() as connection:
        return RangeResult(serials, events, visits, reads, count_unexplained(connection, serials))


def crawl_incremental(crawler: Crawler) -> list[RangeResult]:
    """Every range up to the index's last serial, those left open by earlier runs first.

    Others can work on the same ranges meanwhile; what they complete is not done again.
    """
    ask_next_ranges(crawler)
    return [crawl_range(crawler, serials, again=False) for serials in open_ranges(crawler)]


@contextmanager
def _work_on(crawler: Crawler, serials: SerialRange) -> Iterator[LedgerRange]:
    """The range as the ledger has it; what ends the work on it is kept there. Raises RangeError for any other range."""
    catalog = crawler.catalog
    with catalog.write() as connection:
        require_followable(connection, crawler.index.index_url, crawler.selection)
        entry = require_range(connection, serials.key)
        begin_range(connection, serials, catalog.clock())
    try:
        yield entry
    except Exception as error:
        with suppress(SQLAlchemyError), catalog.write() as connection:  # where the catalog itself is what failed
            fail_range(connection, serials, f"{type(error).__name__}: {error}")
        raise
