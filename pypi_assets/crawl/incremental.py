"""Follows the changelog in serial ranges: each is asked for, its events stored, its projects visited and read."""

from dataclasses import dataclass

from pypi_assets.catalog.crawls import require_followable
from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.events import RangeEvents, changed_projects, count_events, events_through
from pypi_assets.catalog.ledger import (
    LedgerRange,
    RangeState,
    ask_range,
    complete_range,
    last_asked_serial,
    ledger,
    require_range,
)
from pypi_assets.catalog.queue import ScopeProgress, queue_visits, range_scope, requeue_visits, scope_progress
from pypi_assets.catalog.ranges import SerialRange
from pypi_assets.catalog.reads import is_read_pending
from pypi_assets.crawl.changelog import catch_up
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.reading import ReadCounts, read_scope
from pypi_assets.crawl.visiting import visit_scope


@dataclass(frozen=True, slots=True)
class RangeResult:
    serials: SerialRange
    events: RangeEvents
    visits: ScopeProgress
    reads: ReadCounts


def ask_next_range(crawler: Crawler) -> SerialRange | None:
    """Brings the range up to the index's last serial into the ledger; None where the index has nothing new.

    Raises CatalogError where no full crawl is complete, or where the index has gone backwards.
    """
    catalog, index = crawler.catalog, crawler.index
    with catalog.read() as connection:
        require_followable(connection, index.index_url, crawler.selection)
    last = index.last_serial()
    with catalog.write() as connection:
        asked = last_asked_serial(connection)
        if last < asked:
            raise CatalogError(
                f"the index is at serial {last}, but the catalog already follows it up to {asked}: it has gone"
                " backwards (restored from a backup?). Nothing was changed; start a new catalog, or wait for the index"
            )
        return ask_range(connection, last, catalog.clock())


def open_ranges(crawler: Crawler) -> list[SerialRange]:
    """The ranges of the ledger that are not complete, in order. The one of a full crawl under way is not among them."""
    with crawler.catalog.read() as connection:
        require_followable(connection, crawler.index.index_url, crawler.selection)
        return [entry.serials for entry in ledger(connection) if entry.state != RangeState.COMPLETE]


def store_changelog(crawler: Crawler, serials: SerialRange) -> RangeEvents:
    """Stores the events of a range of the ledger. Raises RangeError for any other range."""
    _require(crawler, serials)
    catch_up(crawler, serials.end)
    with crawler.catalog.read() as connection:
        return count_events(connection, serials)


def visit_range(crawler: Crawler, serials: SerialRange) -> ScopeProgress:
    """Visits every project of which an event in the range changes files; those of a complete range once more."""
    entry, scope = _require(crawler, serials), range_scope(serials)
    catch_up(crawler, serials.end)  # a range may be visited by itself, and what its events change is to be known
    with crawler.catalog.write() as connection:
        queue_visits(connection, scope, changed_projects(connection, serials))
        if entry.state == RangeState.COMPLETE and scope_progress(connection, scope).todo == 0:
            requeue_visits(connection, scope)
    return visit_scope(crawler, scope, "incremental")


def read_range(crawler: Crawler, serials: SerialRange) -> ReadCounts:
    """Reads what the range's projects have pending, and completes the range if nothing of it is left.

    Raises CatalogError where its projects have not been visited.
    """
    _require(crawler, serials)
    scope, catalog = range_scope(serials), crawler.catalog
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


def crawl_range(crawler: Crawler, serials: SerialRange) -> RangeResult:
    """All of one range."""
    events = store_changelog(crawler, serials)
    return RangeResult(serials, events, visit_range(crawler, serials), read_range(crawler, serials))


def crawl_incremental(crawler: Crawler) -> list[RangeResult]:
    """Every range up to the index's last serial, those left open by earlier runs first."""
    ask_next_range(crawler)
    return [crawl_range(crawler, serials) for serials in open_ranges(crawler)]


def _require(crawler: Crawler, serials: SerialRange) -> LedgerRange:
    with crawler.catalog.read() as connection:
        require_followable(connection, crawler.index.index_url, crawler.selection)
        return require_range(connection, serials.key)
