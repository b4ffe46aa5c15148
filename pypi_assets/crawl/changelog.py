"""Keeps the stored events without a gap, as far as they are needed."""

from pypi_assets.catalog.events import events_through, store_events
from pypi_assets.crawl.crawler import Crawler, Progress
from pypi_assets.index.errors import StaleError


def catch_up(crawler: Crawler, until: int, pages: int | None = None) -> int:
    """Stores all events up to `until`, and returns the serial up to which they are stored now.

    With `pages` it stops after so many pages of the changelog (PyPI's have 50,000 events), however far that is.
    Raises StaleError where the changelog does not reach `until` yet.
    """
    with crawler.catalog.read() as connection:
        through = start = events_through(connection)
    reached = False
    stored = 0
    while through < until:
        before = through
        for page in crawler.index.changelog(through, until):
            last = page[-1].serial
            store_events(crawler.catalog, page, through, last, crawler.selection)
            through = last
            crawler.report(Progress("changelog", min(through, until) - start, until - start))
            stored += 1
            if stored == pages:
                return through
        if reached and through == before:  # it reaches `until`, and the last serials have no event of their own
            store_events(crawler.catalog, [], through, until, crawler.selection)
            return until
        if through < until and (last := crawler.index.last_serial()) < until:
            raise StaleError(f"the changelog ends at serial {last}, before {until}", crawler.index.changelog_url)
        reached = True  # what came in before that was told may not have been on the pages: they are asked for again
    return through
