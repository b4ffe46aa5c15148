"""The serials at which answers about a project changed, and how soon uploads were removed or quarantined.

The latter helps to choose how long to wait before using an upload.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Subquery, and_, case, func, or_, select, union

from pypi_assets.catalog.database import storable
from pypi_assets.catalog.ledger.range_ledger import inexact_spans
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reports.moments import time_of
from pypi_assets.catalog.tables import (
    changes,
    distributions,
    events,
    followed_intervals,
    live_intervals,
    past_generations,
    projects,
    yanked_intervals,
)
from pypi_assets.index.actions import Action

DAY_S = 86_400
_REMOVALS = (Action.REMOVE_FILE, Action.REMOVE_RELEASE, Action.REMOVE_PROJECT)
_QUARANTINES = (Action.QUARANTINE_PROJECT, Action.QUARANTINE_RELEASE)


@dataclass(frozen=True, slots=True)
class RemovalWindow:
    """The numbers of uploads that were removed, quarantined, or either, within `within_days`.

    `uploads` counts the uploads that were at least this old.
    """

    within_days: int
    uploads: int
    removed: int
    quarantined: int
    either: int

    def share(self, count: int) -> float | None:
        """Return the share of the uploads that `count` is; None without uploads."""
        return count / self.uploads if self.uploads else None


@dataclass(frozen=True, slots=True)
class Removals:
    """The windows as of `serial`, whose time is `at`.

    `uploads` counts all known uploads, the first of which was at `first_upload`; None if there is none.
    """

    serial: int
    at: datetime | None
    uploads: int
    first_upload: datetime | None
    windows: tuple[RemovalWindow, ...]


def count_removals(connection: Connection, serial: int, within_days: Sequence[int]) -> Removals:
    """Count the uploads up to `serial` whose event is known, and those that were removed or quarantined soon.

    An upload is a file. Its times are taken from events, and its age is its age at the time of the serial. A file that
    vanished without an event counts as neither. The database counts the rows, with one statement over all uploads.
    """
    at = time_of(connection, serial)
    if at is None:
        windows = tuple(RemovalWindow(days, 0, 0, 0, 0) for days in within_days)
        return Removals(serial, None, 0, None, windows)
    found = _uploads(serial)
    columns: list[ColumnElement[Any]] = [func.count(), func.min(found.c.uploaded)]
    for days in within_days:
        columns += _counts_within(found, days * DAY_S, int(at.timestamp()))
    uploads, first, *counts = connection.execute(select(*columns).select_from(found)).one()
    windows = tuple(
        RemovalWindow(days, *(int(count or 0) for count in counts[4 * place : 4 * place + 4]))
        for place, days in enumerate(within_days)
    )
    first_upload = None if first is None else datetime.fromtimestamp(first, UTC)
    return Removals(serial, at, int(uploads), first_upload, windows)


def _uploads(serial: int) -> Subquery:
    """Return each upload up to `serial` with its time, and the times of its first removal and first quarantine."""
    upload, added = live_intervals.alias(), changes.alias()
    gone, caused = live_intervals.alias(), changes.alias()
    uploading, going = events.alias(), events.alias()
    times = {
        name: func.min(case((caused.c.cause.in_(causes), going.c.timestamp)))
        for name, causes in (("removed", _REMOVALS), ("quarantined", _QUARANTINES))
    }
    same_file = gone.c.distribution_id == upload.c.distribution_id
    return (
        select(uploading.c.timestamp.label("uploaded"), *(time.label(name) for name, time in times.items()))
        .select_from(upload)
        .join(
            added,
            and_(
                added.c.distribution_id == upload.c.distribution_id,
                added.c.serial == upload.c.start,
                added.c.cause == Action.ADD_FILE,
            ),
        )
        .join(uploading, uploading.c.serial == upload.c.start)
        .outerjoin(gone, and_(same_file, gone.c.end > upload.c.start, gone.c.end <= serial))
        .outerjoin(caused, and_(caused.c.distribution_id == gone.c.distribution_id, caused.c.serial == gone.c.end))
        .outerjoin(going, going.c.serial == gone.c.end)
        .where(upload.c.start <= serial)
        .group_by(upload.c.distribution_id, upload.c.start, uploading.c.timestamp)
        .subquery()
    )


def _counts_within(found: Subquery, seconds: int, now: int) -> list[ColumnElement[Any]]:
    """Return the numbers of uploads that are old enough, and of those removed, quarantined, or either, in time."""
    is_old = found.c.uploaded <= now - seconds
    is_removed, is_quarantined = (
        and_(is_old, time - found.c.uploaded <= seconds) for time in (found.c.removed, found.c.quarantined)
    )
    return [
        func.sum(case((one, 1), else_=0))
        for one in (is_old, is_removed, is_quarantined, or_(is_removed, is_quarantined))
    ]


def changed_serials(connection: Connection, normalized: str, after: int, through: int) -> list[int]:
    """Return in ascending order the serials in (after, through] at which any answer about a project changed.

    The cost depends on the number of files that the project has had.
    """
    id_ = connection.scalar(select(projects.c.id).where(projects.c.normalized == storable(normalized)))
    if id_ is None:
        return []
    return sorted(connection.scalars(union(*_boundaries(id_, after, through))))


def answerable_changes(connection: Connection, normalized: str, after: int, through: int) -> list[int]:
    """Return the changed serials, each moved to the first later serial that has answers, if it has none."""
    serials = changed_serials(connection, normalized, after, through)
    spans = inexact_spans(connection) if serials else []
    return sorted({min(_answerable(serial, spans), through) for serial in serials})


def answerable_before(connection: Connection, serial: int) -> int:
    """Return the greatest serial below `serial` that has answers, if `serial` and any lower serial do."""
    return min((span.start for span in inexact_spans(connection, around=serial - 1)), default=serial - 1)


def _answerable(serial: int, spans: Sequence[SerialRange]) -> int:
    inside = (span.end for span in spans if span.start < serial < span.end)
    return max(inside, default=serial)


def _boundaries(project_id: int, after: int, through: int) -> Iterator[Select[tuple[int]]]:
    def within(serial: ColumnElement[int]) -> ColumnElement[bool]:
        return (serial > after) & (serial <= through)

    live, yanked, past = live_intervals.c, yanked_intervals.c, past_generations.c
    of_files = [(table.distribution_id, serial) for table in (live, yanked) for serial in (table.start, table.end)]
    for distribution_id, serial in [*of_files, (past.distribution_id, past.until)]:
        yield (
            select(serial)
            .join(distributions, distributions.c.id == distribution_id)
            .where(distributions.c.project_id == project_id, within(serial))
        )
    for serial in (followed_intervals.c.start, followed_intervals.c.end):
        yield select(serial).where(followed_intervals.c.project_id == project_id, within(serial))
