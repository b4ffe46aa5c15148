"""The lister `simple`: compares the index's list of projects with the catalog, while there is no changelog.

The lister of the changelog is in `stored_events.py`. The audit in `index_audit.py` compares the list as well.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from sqlalchemy import Connection

from pypi_assets.catalog.ledger.range_ledger import SIMPLE, last_allocated_serial
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.observed.index_state import Content, OvertakenError, read_lister_state, replace_list
from pypi_assets.catalog.observed.looks import last_look, note_unshown
from pypi_assets.catalog.observed.visit_statistics import note_changes, note_seen
from pypi_assets.catalog.work.listed_projects import (
    ComparedProject,
    allocate_listed_range,
    compare_listed,
    queue_listed,
    rename_listed,
    unlisted_projects,
)
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.listers import run_lister
from pypi_assets.index.errors import RefusedError
from pypi_assets.index.models import BrokenEntry, ListedProject
from pypi_assets.progress import Progress

LIST_PAUSE_S = 1_800.0
"""Seconds between two requests of the list of projects, which is large, and cached for about as long."""
MOST_LOST = 100
MOST_LOST_PERCENT = 5
"""A list that lacks more projects than both of these is confirmed by a second list before it counts."""
_PROJECTS_A_PAGE = 5_000


class ComparedList:
    """The list of projects of one serial, page by page, and a record of which known projects were on it.

    The record takes one bit of memory per project. `broken` has the invalid entries, once all pages were read.
    """

    def __init__(self, crawler: Crawler, serial: int, listed: Iterable[ListedProject | BrokenEntry]) -> None:
        self.serial = serial
        self.projects = 0
        self.broken: list[BrokenEntry] = []
        self._before = 0
        self._crawler = crawler
        self._listed = listed
        self._seen = bytearray()

    def pages(self) -> Iterator[list[ListedProject]]:
        """Yield the listed projects that the catalog follows, up to 5,000 at a time."""
        followed = (project for project in self._usable() if project.normalized in self._crawler.selection)
        while page := list(islice(followed, _PROJECTS_A_PAGE)):
            self._before = self.projects
            yield page

    def _usable(self) -> Iterator[ListedProject]:
        for project in self._listed:
            if isinstance(project, BrokenEntry):
                self.broken.append(project)
            else:
                yield project

    def compare(self, connection: Connection, page: Sequence[ListedProject]) -> list[ComparedProject]:
        """Compare the last page of `pages` with the catalog. It can be called again for the same page."""
        is_selected = bool(self._crawler.selection.names)
        compared = compare_listed(connection, page, self.serial, only_followed=not is_selected)
        for project in compared:
            self._note(project.id)
        self.projects = self._before + len(compared)
        self._crawler.report(Progress("listing", self.projects, 0))
        return compared

    def unlisted(self, connection: Connection) -> list[ComparedProject]:
        """Return the projects with live files that were on no page."""
        return unlisted_projects(connection, self.has, self.serial)

    def has(self, project_id: int) -> bool:
        byte, bit = divmod(project_id, 8)
        return byte < len(self._seen) and bool(self._seen[byte] >> bit & 1)

    def _note(self, project_id: int) -> None:
        byte, bit = divmod(project_id, 8)
        if byte >= len(self._seen):
            self._seen.extend(bytes(byte + 1 - len(self._seen)))
        self._seen[byte] |= 1 << bit


class SimpleLister:
    """Queues visits of projects whose listed serial is above the known one, and of projects that are no longer listed.

    `serials` is the range that it has allocated at the end; None if the list is not newer than the ledger. `lost` is
    the number of known projects that the list lacks if they are too many, so that the list does not count yet.

    The lister's state has `looked_at`, the time of the last list that counts, and `lossy_since`, the time of the first
    of the lists since then that did not count (both in unix seconds).
    """

    name = SIMPLE

    def __init__(self, crawler: Crawler, compared: ComparedList) -> None:
        self.serials: SerialRange | None = None
        self.lost = 0
        self._crawler = crawler
        self._list = compared
        self._is_new = False
        self._since: float | None = None
        self._kept: Content = {}

    def pages(self) -> Iterator[list[ListedProject]]:
        with self._crawler.catalog.read() as connection:
            known = read_lister_state(connection, SIMPLE, self._crawler.index.index_url).content
            self._kept = {key: known[key] for key in ("looked_at", "lossy_since") if key in known}
            self._is_new = self._list.serial > last_allocated_serial(connection)
            self._since = last_look(connection)
        if self._is_new:
            yield from self._list.pages()

    def commit(self, connection: Connection, page: Sequence[ListedProject]) -> Content:
        compared = self._list.compare(connection, page)
        ahead = [project for project in compared if (project.listed_serial or 0) > project.known_serial]
        queue_listed(connection, ahead, self._list.serial)
        rename_listed(connection, page)
        now = self._crawler.catalog.clock()
        ids = [one.id for one in ahead]
        note_seen(connection, dict.fromkeys(ids, now))
        note_changes(connection, dict.fromkeys(ids, (now,)))
        note_unshown(connection, ids, self._since)
        return {**self._kept, "serial": self._list.serial, "projects": self._list.projects}

    def finalize(self, connection: Connection) -> Content:
        now = self._crawler.catalog.clock()
        found = {"serial": self._list.serial, "projects": self._list.projects, "ended_at": now}
        if not self._is_new:
            return {"looked_at": now, **found}
        unlisted = self._list.unlisted(connection)
        lossy_since = self._kept.get("lossy_since", now)
        if self._is_lossy(len(unlisted)) and now < lossy_since + LIST_PAUSE_S:
            self.lost = len(unlisted)
            return {**self._kept, **found, "lossy_since": lossy_since}
        queue_listed(connection, unlisted, self._list.serial)
        self.serials = allocate_listed_range(connection, self._list.serial, now)
        note_unshown(connection, [project.id for project in unlisted], self._since)
        replace_list(connection, self._list.broken, now)
        return {"looked_at": now, **found}

    def _is_lossy(self, lost: int) -> bool:
        return lost > MOST_LOST and lost * 100 > MOST_LOST_PERCENT * (self._list.projects + lost)

    def reconcile(self, stored: Content, own: Content) -> Content:
        raise OvertakenError(
            f"another run compares the list of projects at the same time, at serial {stored.get('serial')}; this run,"
            f" at serial {own['serial']}, has ended, and the other one continues"
        )


def allocate_listed_ranges(crawler: Crawler, pause_s: float = 0.0) -> list[SerialRange]:
    """Allocate the range up to the serial of the index's list of projects, and queue its visits.

    Returns no range if the list is not newer than the ledger, or was compared less than `pause_s` seconds ago. Raises
    RefusedError if the list has no serial, and OvertakenError if another run compares it at the same time.

    A list that lacks very many known projects may be truncated. It counts only if a list of half an hour later lacks as
    many; until then, people are notified.
    """
    with crawler.catalog.read() as connection:
        ended_at = read_lister_state(connection, SIMPLE, crawler.index.index_url).content.get("ended_at")
        known = last_allocated_serial(connection)
    if ended_at is not None and 0 <= crawler.catalog.clock() - ended_at < pause_s:
        return []
    with crawler.index.iter_listing(newer_than=known) as (serial, listed):
        lister = SimpleLister(crawler, ComparedList(crawler, require_serial(crawler, serial), listed))
        run_lister(crawler, lister)
    if lister.lost:
        crawler.notify(
            f"the list of projects at serial {serial} lacks {lister.lost} projects that have files, so it does not"
            f" count unless a list in {LIST_PAUSE_S / 60:.0f} minutes or later lacks as many"
        )
    return [] if lister.serials is None else [lister.serials]


def listed_serial(crawler: Crawler) -> int:
    """Return the serial of the index's list of projects. Raises RefusedError if it has none."""
    with crawler.index.iter_listing() as (serial, _):
        return require_serial(crawler, serial)


def require_serial(crawler: Crawler, serial: int | None) -> int:
    """Return the serial of the list of projects. Raises RefusedError if it has none."""
    if serial is None:
        raise RefusedError(
            "the list of projects has no serial, so it cannot replace the changelog", crawler.index.index_url
        )
    return serial
