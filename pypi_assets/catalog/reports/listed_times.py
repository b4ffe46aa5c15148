"""The times of changes that only the list of projects and pages showed, and what they can have been.

Such a change has the cause *listed*. Its time lies between two looks: `not_before` is the earlier one, and `at` is when
its page was seen. Several actions can explain it, unless its page tells which.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, case, func, or_, select

from pypi_assets.catalog.database import at_a_time
from pypi_assets.catalog.ledger.range_ledger import SIMPLE
from pypi_assets.catalog.observed.projects import QUARANTINED
from pypi_assets.catalog.tables import full_crawls, serial_ranges, sightings
from pypi_assets.index.actions import Action

_CAME = (Action.ADD_FILE, Action.UNQUARANTINE_PROJECT, Action.UNQUARANTINE_RELEASE)
_WENT = (Action.REMOVE_FILE, Action.REMOVE_RELEASE, Action.QUARANTINE_RELEASE)
_YANKED = (Action.YANK_RELEASE, Action.YANK_FILE)
_UNYANKED = (Action.UNYANK_RELEASE, Action.UNYANK_FILE)


@dataclass(frozen=True, slots=True)
class ListedTime:
    """The times between which a change happened, in unix seconds; `not_before` is None if it is unknown.

    `page_status` is the status of the page that showed it; None if there was no page.
    """

    not_before: float | None
    at: float
    page_status: str | None

    def possible_kinds(
        self, live: Collection[str], away: Collection[str], yanked: Collection[str], unyanked: Collection[str]
    ) -> tuple[str, ...]:
        """Return the actions that alone can have made these files live, away, yanked and unyanked."""
        return (
            *(_CAME if live else ()),
            *(_went(self.page_status) if away else ()),
            *(_YANKED if yanked else ()),
            *(_UNYANKED if unyanked else ()),
        )


def _went(page_status: str | None) -> Iterable[Action]:
    if page_status is None:
        return (Action.REMOVE_PROJECT,)
    return (Action.QUARANTINE_PROJECT,) if page_status == QUARANTINED else _WENT


def listed_times(connection: Connection, changed: Collection[tuple[int, int]]) -> dict[tuple[int, int], ListedTime]:
    """Return the times of listed changes, given as (project id, serial). Changes that no page showed are omitted."""
    wanted = set(changed)
    found: dict[tuple[int, int], ListedTime] = {}
    c = sightings.c
    columns = (c.project_id, c.page_serial, c.seen_through, c.at, c.not_before, c.page_status)
    for ids in at_a_time(sorted({id_ for id_, _ in wanted})):
        serials = sorted({serial for id_, serial in wanted if id_ in ids})
        for some in at_a_time(serials):
            shown = or_(c.page_serial.in_(some), c.seen_through.in_(some))
            query = select(*columns).where(c.project_id.in_(ids), shown).order_by(c.at, c.id)
            for row in connection.execute(query):
                for serial in (row.page_serial, row.seen_through):
                    if (row.project_id, serial) in wanted:  # the first page that showed it counts
                        found.setdefault((row.project_id, serial), ListedTime(row.not_before, row.at, row.page_status))
    return found


_LOOKED_AT = case(
    (serial_ranges.c.exact_from > serial_ranges.c.end, serial_ranges.c.completed_at),
    else_=serial_ranges.c.requested_at,
)
"""When the last page was seen that a span without events needs for an exact answer at its end."""
_IS_INEXACT = (serial_ranges.c.exact_from.is_not(None), serial_ranges.c.lister == SIMPLE)


def look_before(connection: Connection, serial: int) -> float | None:
    """Return when the span without events up to which `serial` is known was looked at (unix seconds).

    None if the events below `serial` are known.
    """
    looks = select(_LOOKED_AT).where(serial_ranges.c.start < serial, *_IS_INEXACT)
    at = connection.scalar(looks.order_by(serial_ranges.c.start.desc()).limit(1))
    return None if at is None else float(at)


def looks_at_spans(connection: Connection, starts: Collection[int]) -> dict[int, float]:
    """Return when the spans without events that begin at `starts` were looked at (unix seconds)."""
    found: dict[int, float] = {}
    for some in at_a_time(sorted(starts)):
        query = select(serial_ranges.c.start, _LOOKED_AT).where(serial_ranges.c.start.in_(some), *_IS_INEXACT)
        found.update((start, float(at)) for start, at in connection.execute(query))
    return found


def first_look_after(connection: Connection, seconds: float, through: int) -> int | None:
    """Return the start of the first span without events below `through` that was looked at after a time; else None.

    The state of the index at that time is known up to this serial: a later change may be of a later time.
    """
    later = select(func.min(serial_ranges.c.start)).where(
        *_IS_INEXACT, serial_ranges.c.start < through, seconds < _LOOKED_AT
    )
    start = connection.scalar(later)
    return None if start is None else int(start)


def crawled_at(connection: Connection, serial: int) -> float | None:
    """Return when the newest full crawl at or below `serial` was opened (unix seconds); None if there is none."""
    newest = select(full_crawls.c.opened_at).where(full_crawls.c.serial <= serial)
    at = connection.scalar(newest.order_by(full_crawls.c.serial.desc(), full_crawls.c.id.desc()).limit(1))
    return None if at is None else float(at)
