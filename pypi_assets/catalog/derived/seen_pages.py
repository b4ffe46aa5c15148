"""What the pages of a project showed, and at which serials that is known to hold."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import inf

from pypi_assets.index.models import ChangelogEvent

_CLOCKS_DIFFER_S = 300.0
"""By how many seconds the clock of an index can be ahead of ours."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """What one visit saw: for each filename on the page, whether it was yanked.

    `page_serial` is the page's own serial; without a page, that of the event that explains the 404, or None. Events
    were stored up to `seen_through` at that time. The index's serial was `shows_through` after the page was answered;
    None: it was `seen_through`. `seen_at` is in unix seconds; None: not known.
    """

    page_serial: int | None
    seen_through: int
    shown: Mapping[str, bool]
    is_page: bool
    shows_through: int | None = None
    seen_at: float | None = None

    @property
    def known_through(self) -> int:
        """The serial that the index had named when the page was answered."""
        return self.seen_through if self.shows_through is None else max(self.seen_through, self.shows_through)

    @property
    def may_show_until(self) -> float:
        """The last unix second, by the index's clock, of an event that the page can show."""
        return -inf if self.seen_at is None else self.seen_at + _CLOCKS_DIFFER_S


@dataclass(frozen=True, slots=True)
class SeenPage:
    """What a page showed at `serial`: for each filename, whether it was yanked. A 404 that is believed has no files.

    A page can be newer than its serial, but not newer than `through`, the index's own serial at that time. An index can
    show a change before its changelog does: `may_show_through` is the last event that can have happened by then.
    `sighting` counts the sightings.
    """

    serial: int
    yanked: Mapping[str, bool]
    through: int
    sighting: int
    may_show_through: int


def in_order(sightings: Iterable[Sighting]) -> list[Sighting]:
    """Sightings in order of what was known when they were made."""
    return sorted(sightings, key=lambda sighting: sighting.seen_through)


def seen_pages(
    sightings: Sequence[Sighting],
    events: Sequence[ChangelogEvent],
    known_since: int,
    *,
    after: int | None = None,
    last_serial: int = 0,
) -> Iterator[SeenPage]:
    """What the project's pages showed at which serial, from `sightings` in order.

    A page holds at its own serial. It also holds at each serial up to which events were stored when it was seen, unless
    an event of the project or a newer page lies between. So a change without an event (drift, an unexplained 404)
    counts from the serial where it was seen, and an earlier page of the same serial stays true of the past. Before the
    first stored event only the newest page up to there counts.

    With `after`, events and sightings are those that reach beyond that serial. Up to there the last event or page
    has the serial `last_serial`, and what pages showed at their own serials is known.
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
    """Return for each serial the page that was given last, in order.

    Given again with the same files, a page is as old as it was: it cannot show what came after it was first seen.
    """
    latest: dict[int, SeenPage] = {}
    for page in pages:
        before = latest.get(page.serial)
        if before is not None and before.yanked == page.yanked:
            through = min(before.through, page.through)
            page = replace(page, through=through, may_show_through=min(before.may_show_through, page.may_show_through))
        latest[page.serial] = page
    return [latest[serial] for serial in sorted(latest)]
