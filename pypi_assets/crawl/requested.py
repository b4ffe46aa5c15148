"""Makes the visits that people requested, and reads the files that they find."""

from collections.abc import Collection, Sequence
from functools import partial

from pypi_assets.catalog.work.full_crawls import require_followable
from pypi_assets.catalog.work.requested_visits import (
    UnknownProjectsError,
    are_requests_due,
    end_requests,
    open_names,
    request_visits,
)
from pypi_assets.catalog.work.visit_queue import REQUESTED
from pypi_assets.crawl.crawler import Crawler, observe
from pypi_assets.crawl.listers import query_changelog
from pypi_assets.crawl.reading import read_workload
from pypi_assets.crawl.stored_events import store_all_events
from pypi_assets.crawl.visiting import visit_workload


def request_now(crawler: Crawler, names: Collection[str]) -> list[int]:
    """Request visits of these projects, and return the ids of the requests.

    If the catalog does not have a project, the index is asked for new events first, or polled for it. Raises
    CatalogError if the project is still unknown, or if nothing can follow the index.
    """
    catalog = crawler.catalog
    with catalog.read() as connection:
        require_followable(connection, crawler.index.index_url, crawler.selection)
    request = partial(request_visits, names=names, now=catalog.clock())
    try:
        return catalog.transact(request)
    except UnknownProjectsError:
        _learn(crawler, names)
        return catalog.transact(request)


def _learn(crawler: Crawler, names: Collection[str]) -> None:
    if crawler.index.is_observed:
        observe(crawler, only=names)
    query_changelog(crawler, partial(store_all_events, crawler))


def run_requested(crawler: Crawler) -> int:
    """Make each requested visit that is due and free once, and return how many requests have ended.

    The visits use the same queue, claims and request rate as all others. A page that fails stays queued for the next
    call. An index without serials is polled for these projects first.
    """
    catalog = crawler.catalog
    with catalog.read() as connection:
        if not are_requests_due(connection, catalog.clock()):
            return 0
        require_followable(connection, crawler.index.index_url, crawler.selection)
        names: Sequence[str] = open_names(connection)
    if crawler.index.is_observed:
        observe(crawler, only=names)
        query_changelog(crawler, partial(store_all_events, crawler))
    visit_workload(crawler, REQUESTED, only_due=True)
    read_workload(crawler, REQUESTED, only_due=True)
    return catalog.transact(partial(end_requests, now=catalog.clock()))
