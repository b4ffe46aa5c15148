"""Keeps the stored events without a gap, as far as they are needed."""

from dataclasses import replace

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.events import events_since, events_through, last_event, store_earlier_events, store_events
from pypi_assets.catalog.ledger import last_asked_serial
from pypi_assets.crawl.crawler import Crawler, Progress
from pypi_assets.index.errors import StaleError
from pypi_assets.index.models import ChangelogEvent

_SERIALS_AT_A_TIME = 50_000
_LONGEST_OVERLAP = 1_000
"""How far back the last stored event may lie, in serials, to be asked for once more beside the new ones."""


def index_serial(crawler: Crawler) -> int:
    """The index's last serial, for a catalog that is not empty.

    Raises CatalogError where it is before what the catalog knows: the index has gone backwards.
    """
    with crawler.catalog.read() as connection:  # first, since others may store what comes in meanwhile
        known = max(events_through(connection), last_asked_serial(connection))
    last = crawler.index.last_serial()
    if last < known:
        raise _gone_backwards(f"the index is at serial {last}, and the catalog already follows it up to {known}")
    return last


def catch_up(crawler: Crawler, until: int, pages: int | None = None) -> int:
    """Stores all events up to `until`, and returns the serial up to which they are stored now.

    With `pages` it stops after so many pages of the changelog (PyPI's have 50,000 events), however far that is.
    Raises StaleError where the changelog does not reach `until` yet, and CatalogError where the index has gone
    backwards, also if it has passed `until` again since: then the last stored event is another one there.
    """
    with crawler.catalog.read() as connection:
        through = start = events_through(connection)
        known = last_event(connection)
    if known is not None and through - known.serial >= _LONGEST_OVERLAP:
        known = None
    reached = False
    stored = 0
    while through < until:
        before = through
        for page in crawler.index.changelog(through if known is None else known.serial - 1, until):
            if known is not None:
                _require_known(page[0], known)
                known = None
            last = max(page[-1].serial, through)
            if last == through:
                continue
            store_events(crawler.catalog, page, through, last, crawler.selection)
            through = last
            crawler.report(Progress("changelog", min(through, until) - start, until - start))
            stored += 1
            if stored == pages:
                return through
        if reached and through == before:  # it reaches `until`, and the last serials have no event of their own
            store_events(crawler.catalog, [], through, until, crawler.selection)
            return until
        if through < until and (last := index_serial(crawler)) < until:
            raise StaleError(f"the changelog ends at serial {last}, before {until}", crawler.index.changelog_url)
        reached = True  # what came in before that was told may not have been on the pages: they are asked for again
    return through


def go_back(crawler: Crawler) -> None:
    """Stores the events from serial 1 on that lie below the stored ones, the latest first: it can stop at any time.

    PyPI tells 50,000 events at once, so there are at most as many as that in what is asked for at a time.
    """
    with crawler.catalog.read() as connection:
        until = start = events_since(connection)
    while until > 0:
        after = max(until - _SERIALS_AT_A_TIME, 0)
        earlier = [event for page in crawler.index.changelog(after, until) for event in page]
        store_earlier_events(crawler.catalog, earlier, after, until, crawler.selection)
        until = after
        crawler.report(Progress("history", start - until, start))


def _require_known(event: ChangelogEvent, known: ChangelogEvent) -> None:
    if replace(event, name=known.name) != known:  # a name may be displayed otherwise now
        raise _gone_backwards(
            f"the index's event {event.serial} ({event.name}: {event.action}) is not what the catalog has as"
            f" {known.serial} ({known.name}: {known.action})"
        )


def _gone_backwards(what: str) -> CatalogError:
    return CatalogError(
        f"{what}: it has gone backwards (restored from a backup?). Nothing was changed; start a new catalog, or wait"
        " for the index"
    )
