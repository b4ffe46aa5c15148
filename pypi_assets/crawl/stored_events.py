"""Stores the changelog's events without a gap, as far as they are needed, with the lister `xmlrpc`.

`catalog/derived/` computes what the events change.
"""

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial

from sqlalchemy import Connection

from pypi_assets.catalog.database import CatalogError
from pypi_assets.catalog.ledger.range_ledger import XMLRPC, last_allocated_serial
from pypi_assets.catalog.observed.events import (
    events_since,
    events_through,
    last_event,
    store_earlier_events,
    store_events,
)
from pypi_assets.catalog.observed.index_state import Content, keep_rows
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.listers import run_lister
from pypi_assets.index.errors import StaleError
from pypi_assets.index.models import BrokenEntry, ChangelogEvent, ChangelogRow, broken_entry, last_usable_serial
from pypi_assets.progress import Progress

_SERIALS_AT_A_TIME = 50_000
_LONGEST_OVERLAP = 1_000
"""If the last stored event is at most this many serials back, it is requested again together with the new events."""


def index_serial(crawler: Crawler) -> int:
    """Return the index's last serial, for a catalog that is not empty.

    Raises CatalogError if it is below the catalog's serials: the index has gone backwards.
    """
    with crawler.catalog.read() as connection:  # first, since other processes may store newer events meanwhile
        known = max(events_through(connection), last_allocated_serial(connection))
    last = crawler.index.last_serial()
    if last < known:
        raise _gone_backwards(f"the index is at serial {last}, and the catalog already follows it up to {known}")
    return last


def catch_up(crawler: Crawler, until: int, pages: int | None = None) -> int:
    """Store all events up to `until`. Return the serial up to which events are stored now.

    It stops after `pages` pages of the changelog (those of PyPI have 50,000 events), at any serial. Raises StaleError
    if the changelog does not reach `until` yet. Raises CatalogError if the index has gone backwards. That is noticed
    even if the index has passed `until` again since, because its event at the last stored serial then differs.
    """
    with crawler.catalog.read() as connection:
        through = events_through(connection)
    if through >= until:
        return through
    lister = ChangelogLister(crawler, until, pages)
    run_lister(crawler, lister)
    return lister.through


def store_all_events(crawler: Crawler) -> int:
    """Store all events up to the index's last serial, and return that serial."""
    last = index_serial(crawler)
    return min(catch_up(crawler, last), last)


@dataclass(frozen=True, slots=True)
class ChangelogPage:
    """All rows with `after` < serial <= `through`, and the rows between them without a usable serial."""

    rows: Sequence[ChangelogRow]
    after: int
    through: int

    @property
    def events(self) -> list[ChangelogEvent]:
        return [row for row in self.rows if isinstance(row, ChangelogEvent)]

    @property
    def broken(self) -> list[BrokenEntry]:
        return [row for row in self.rows if isinstance(row, BrokenEntry)]


class ChangelogLister:
    """The lister `xmlrpc`: stores the events up to `until`, or at most `most_pages` pages of them.

    The catalog has the serial up to which events are stored. The lister's state has only the changelog's last known
    serial, and since when the changelog fails. So any number of runs can store the same events.
    """

    name = XMLRPC

    def __init__(self, crawler: Crawler, until: int, most_pages: int | None = None) -> None:
        with crawler.catalog.read() as connection:
            self.through = self._start = events_through(connection)
            self._known = last_event(connection)
        if self._known is not None and self.through - self._known.serial >= _LONGEST_OVERLAP:
            self._known = None
        self._crawler, self._until, self._most_pages = crawler, until, most_pages

    def pages(self) -> Iterator[ChangelogPage]:
        is_reached = False
        count = 0
        while self.through < self._until:
            before = self.through
            for rows in self._new_pages():
                after = self.through
                usable = self._within_index(rows, after)
                page = ChangelogPage(usable, after, max(last_usable_serial(usable) or 0, after))
                if page.through == after and not page.broken:
                    continue
                yield page
                count += 1
                if count == self._most_pages:
                    return
            if is_reached and self.through == before:  # the last serials have no event of their own
                yield ChangelogPage((), before, self._until)
                return
            if self.through < self._until and (last := index_serial(self._crawler)) < self._until:
                raise StaleError(
                    f"the changelog ends at serial {last}, before {self._until}", self._crawler.index.changelog_url
                )
            is_reached = True  # events before this answer may be missing on the pages: request them again

    def _new_pages(self) -> Iterator[Sequence[ChangelogRow]]:
        known, self._known = self._known, None
        for rows in self._crawler.index.changelog(self.through if known is None else known.serial - 1, self._until):
            if known is not None and isinstance(rows[0], ChangelogEvent):
                _require_known(rows[0], known)
            known = None
            yield rows

    def _within_index(self, rows: Sequence[ChangelogRow], after: int) -> Sequence[ChangelogRow]:
        """Return `rows`, with rows above the index's last serial turned into broken entries.

        If such a row is the last one, nothing else shows that its serial is far too great, and events would count as
        stored up to it.
        """
        if (last_usable_serial(rows) or 0) <= self._until:
            return rows
        last = max(index_serial(self._crawler), self._until)
        return [row if (row.serial or 0) <= last else _beyond_index(row, rows, after, last) for row in rows]

    def commit(self, connection: Connection, page: ChangelogPage) -> Content:
        store_events(connection, page.events, page.after, page.through)
        keep_rows(connection, page.broken, self._crawler.catalog.clock())
        self.through = page.through
        progress = Progress("changelog", min(page.through, self._until) - self._start, self._until - self._start)
        self._crawler.report(progress)
        return {"serial": page.through}

    def finalize(self, _: Connection) -> None:
        """Do nothing, since each page is complete in itself."""

    def reconcile(self, stored: Content, own: Content) -> Content:
        return {"serial": max(stored.get("serial", 0), own["serial"])}


def _beyond_index(row: ChangelogRow, rows: Sequence[ChangelogRow], after: int, last: int) -> BrokenEntry:
    before = max((one.serial for one in rows if one.serial is not None and one.serial <= last), default=after)
    if isinstance(row, BrokenEntry):
        return replace(row, serial=None, after=before)
    return broken_entry("its serial is beyond the index's last one", list(astuple(row)), name=row.name, after=before)


def store_history(crawler: Crawler) -> None:
    """Store the events from serial 1 up to the stored ones, the latest first, so that it can be stopped at any time.

    It requests 50,000 serials at a time, which have at most the 50,000 events of one page of PyPI's changelog.
    """
    with crawler.catalog.read() as connection:
        until = start = events_since(connection)
    while until > 0:
        after = max(until - _SERIALS_AT_A_TIME, 0)
        rows = [row for page in crawler.index.changelog(after, until) for row in page]
        page = ChangelogPage(rows, after, until)
        broken = [row for row in page.broken if (row.after or 0) < until]  # later rows are stored already
        crawler.catalog.transact(partial(keep_rows, rows=broken, now=crawler.catalog.clock()))
        store_earlier_events(crawler.catalog, page.events, after, until, crawler.selection)
        until = after
        crawler.report(Progress("history", start - until, start))


def _require_known(event: ChangelogEvent, known: ChangelogEvent) -> None:
    if replace(event, name=known.name) != known:  # a project's displayed name may have changed
        raise _gone_backwards(
            f"the index's event {event.serial} ({event.name}: {event.action}) differs from the catalog's event"
            f" {known.serial} ({known.name}: {known.action})"
        )


def _gone_backwards(what: str) -> CatalogError:
    return CatalogError(
        f"{what}: it has gone backwards (restored from a backup?). Nothing was changed; start a new catalog, or wait"
        " until the index has caught up"
    )
