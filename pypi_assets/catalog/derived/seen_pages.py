"""Determine the files that a project's pages showed, and the serials at which this is known to be true."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import inf

from pypi_assets.index.models import ChangelogEvent

_CLOCKS_DIFFER_S = 300.0
"""How many seconds the clock of an index can be ahead of ours, at most."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """The result of one visit: the files on the page, each with whether it was yanked.

    `page_serial` is the page's own serial. For a 404, it is the serial of the event that explains it, or None. At the
    time of the visit, events were stored up to `seen_through`. After the page was answered, the serial of the index was
    `shows_through`; if it is None, it was `seen_through`. `seen_at` is in unix seconds; None if it is unknown.
    """

    page_serial: int | None
    seen_through: int
    shown: Mapping[str, bool]
    is_page: bool
    shows_through: int | None = None
    seen_at: float | None = None

    @property
    def known_through(self) -> int:
        """Return the serial that the index had reported when it answered the page."""
        return self.seen_through if self.shows_through is None else max(self.seen_through, self.shows_through)

    @property
    def may_show_until(self) -> float:
        """Return the latest time, in unix seconds of the index's clock, of an event that the page can show."""
        return -inf if self.seen_at is None else self.seen_at + _CLOCKS_DIFFER_S


@dataclass(frozen=True, slots=True)
class SeenPage:
    """The files that a page showed at `serial`, each with whether it was yanked. A credible 404 has no files.

    A page can be newer than its serial, but not newer than `through`, the serial of the index at that time. An index
    can show a change on a page before the changelog has it: `may_show_through` is the last event that can have happened
    by then. `sighting` is the index of the sighting.
    """

    serial: int
    yanked: Mapping[str, bool]
    through: int
    sighting: int
    may_show_through: int


def in_order(sightings: Iterable[Sighting]) -> list[Sighting]:
    """Return the sightings in the order of the serials up to which events were known at the time."""
    return sorted(sightings, key=lambda sighting: sighting.seen_through)


def seen_pages(
    sightings: Sequence[Sighting],
    events: Sequence[ChangelogEvent],
    known_since: int,
    *,
    after: int | None = None,
    last_serial: int = 0,
) -> Iterator[SeenPage]:
    """Yield the states of the project's page, each with a serial at which it is true, from `sightings` in order.

    A page is true at its own serial. It is also true at the serial up to which events were stored when it was seen,
    unless the project has an event or a newer page between the two. So a change without an event (drift, an unexplained
    404) counts from the serial at which it was seen, and an earlier page with the same serial stays true for the past.
    For serials before the first stored event, only the most recent page is used.

    For example, a page of serial 100 that is seen when events are stored up to 130 is true at 100, and also at 130 if
    the project has no event from 101 to 130.

    With `after`, `events` and `sightings` must be those that reach beyond that serial. `last_serial` is then the serial
    of the last event or page up to it, and pages with a serial up to `after` are not repeated at their own serials.
    """
    page_serials = {seen.page_serial for seen in sightings if seen.is_page and seen.page_serial is not None}
    serials = sorted({last_serial} | page_serials.union(event.serial for event in events))
    first = max((serial for serial in page_serials if serial <= known_since), default=0)
    earliest = list(accumulate((event.timestamp for event in reversed(events)), min))[::-1]  # of each event and later
    known_pages: set[int] = set()
    for number, sighting in enumerate(sightings):
        serial, through = sighting.page_serial, sighting.seen_through
        limit = sighting.known_through
        shown_events = bisect_right(earliest, sighting.may_show_until)
        may_show = max(limit, events[shown_events - 1].serial) if shown_events else limit
        if serial is not None and serial >= first and serial not in known_pages and (after is None or serial > after):
            known_pages.add(serial)
            yield SeenPage(serial, sighting.shown, limit, number, may_show)
        if serial is None or bisect_right(serials, serial) == bisect_right(serials, through):
            yield SeenPage(through, sighting.shown, limit, number, may_show)


def newest_by_serial(pages: Iterable[SeenPage]) -> list[SeenPage]:
    """Return the last given page for each serial, in order of serials.

    If the same files are given again for a serial, the page keeps its earlier limits: it cannot show events from after
    it was first seen.
    """
    latest: dict[int, SeenPage] = {}
    for page in pages:
        before = latest.get(page.serial)
        if before is not None and before.yanked == page.yanked:
            through = min(before.through, page.through)
            page = replace(page, through=through, may_show_through=min(before.may_show_through, page.may_show_through))
        latest[page.serial] = page
    return [latest[serial] for serial in sorted(latest)]
