"""Statistics of the visits and the changes of each project: the facts from which a visit policy places its next visit.

They can be derived from visits, their statuses, the queue and events, except the time when the index last named a
project.

A place only orders visits: full crawls, ranges and audits decide how many projects are visited.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, case, exists, func, literal_column, select, update

from pypi_assets.catalog.database import at_a_time, upsert
from pypi_assets.catalog.observed.followed import follows_all
from pypi_assets.catalog.tables import events, followed_intervals, projects, visit_statistics
from pypi_assets.index.actions import NO_FILE_CHANGE
from pypi_assets.visit_policies import NO_CHANGES, ChangeTimes, VisitFacts


def revisits_for(visits: int, share: float, draw: float) -> int:
    """Return how many projects to revisit as an audit in addition to `visits`: `share` per cent of them.

    `draw`, uniform from 0 to 1, rounds the fraction up or down, so that many small ranges reach the share as well.
    """
    fraction, whole = math.modf(visits * share / 100)
    return int(whole) + (draw < fraction)


_FAILING: ColumnElement[bool] = literal_column("last_outcome IN ('failed', 'partial')")
"""It has no parameter, so that the partial index is used."""


@dataclass(frozen=True, slots=True)
class EndedVisit:
    """The outcome of a visit. `due_at` is the time of its retry; None if it is not retried.

    `shows_all` is set if the project's page is as new as the list of projects, so that no listed change is left.
    """

    project_id: int
    outcome: str
    is_success: bool
    due_at: float | None = None
    shows_all: bool = False


@dataclass(frozen=True, slots=True)
class VisitedProjects:
    """Counts over all projects: those never visited, and those whose last visit failed.

    `longest_unvisited_at` is the least of the times of last visits (unix seconds); None if no project was visited.
    """

    never_visited: int
    longest_unvisited_at: float | None
    failing: int


def note_seen(connection: Connection, seen_at: Mapping[int, float]) -> None:
    """Record that the index named these projects at these times (unix seconds), in its list or in an event."""
    known = visit_statistics.c.last_seen_at
    upsert(
        connection,
        visit_statistics,
        [{"project_id": id_, "last_seen_at": at} for id_, at in sorted(seen_at.items())],
        key=("project_id",),
        update=lambda new: {"last_seen_at": case((known > new.last_seen_at, known), else_=new.last_seen_at)},
    )


def note_changes(connection: Connection, changed_at: Mapping[int, Collection[float]]) -> None:
    """Record the times (unix seconds) at which the files of projects changed, by project id.

    The transaction has called `note_seen` for these projects, which locks their rows. Times that are not after the last
    known change are skipped, so events can be stored again.
    """
    for ids in at_a_time(sorted(changed_at)):
        known = _change_times(connection, ids)
        rows = []
        for project_id in ids:
            before = times = known.get(project_id, NO_CHANGES)
            for at in sorted(changed_at[project_id]):
                times = times.with_change(at)
            if times != before:
                gap_s = None if times.every_s is None else float(times.every_s)
                last_at = None if times.last_at is None else float(times.last_at)
                rows.append({"project_id": project_id, "last_changed_at": last_at, "change_gap_s": gap_s})
        upsert(connection, visit_statistics, rows, key=("project_id",), update=("last_changed_at", "change_gap_s"))


def _change_times(connection: Connection, project_ids: Collection[int]) -> dict[int, ChangeTimes]:
    c = visit_statistics.c
    return {
        row.project_id: ChangeTimes(row.last_changed_at, row.change_gap_s)
        for ids in at_a_time(project_ids)
        for row in connection.execute(
            select(c.project_id, c.last_changed_at, c.change_gap_s).where(c.project_id.in_(ids))
        )
    }


def note_ended(connection: Connection, ended: Collection[EndedVisit], now: float) -> None:
    """Record ended visits, at most one of each project.

    No other transaction may end visits of these projects at the same time.
    """
    known = visit_statistics.c
    ended = sorted(ended, key=lambda visit: visit.project_id)
    changes = _change_times(connection, [visit.project_id for visit in ended])
    upsert(
        connection,
        visit_statistics,
        [
            {
                "project_id": visit.project_id,
                "last_visited_at": now,
                "last_successful_at": now if visit.is_success else None,
                "last_outcome": visit.outcome,
                "successive_outcomes": 1,
                "next_due_at": visit.due_at,
                "pace": changes.get(visit.project_id, NO_CHANGES).pace(now),
            }
            for visit in ended
        ],
        key=("project_id",),
        update=lambda new: {
            "last_visited_at": new.last_visited_at,
            "last_successful_at": func.coalesce(new.last_successful_at, known.last_successful_at),
            "last_outcome": new.last_outcome,
            "successive_outcomes": case(
                (known.last_outcome == new.last_outcome, known.successive_outcomes + 1), else_=1
            ),
            "next_due_at": new.next_due_at,
            "pace": new.pace,
        },
    )
    for ids in at_a_time([visit.project_id for visit in ended if visit.shows_all]):
        shown = known.project_id.in_(ids), known.unshown_since.is_not(None)
        connection.execute(update(visit_statistics).where(*shown).values(unshown_since=None))


def is_failing(project_id: ColumnElement[int]) -> ColumnElement[bool]:
    """Return the condition that the last visit of a project failed."""
    return exists().where(visit_statistics.c.project_id == project_id, _FAILING)


def prospects(connection: Connection, min_serials: Mapping[int, int], through: int) -> dict[int, VisitFacts]:
    """Return the known facts for visits of these projects. `min_serials` has the serials that their pages must reach.

    Projects that were never visited are skipped. The lag of a project is counted from the first event that no page of
    it has shown, to `through`, the index's serial.
    """
    known = visit_statistics.c
    first_unseen = (
        select(events.c.serial)
        .where(
            events.c.project_id == projects.c.id,
            events.c.serial > projects.c.page_serial,
            events.c.kind.not_in(sorted(NO_FILE_CHANGE)),
        )
        .order_by(events.c.serial)
        .limit(1)
        .correlate(projects)
        .scalar_subquery()
    )
    columns = (
        projects.c.id,
        projects.c.page_serial,
        known.last_visited_at,
        known.last_successful_at,
        known.pace,
        case((_FAILING, known.successive_outcomes), else_=0).label("failures"),
        known.next_due_at,
        first_unseen.label("first_unseen"),
    )
    visited = (
        select(*columns)
        .join(visit_statistics, known.project_id == projects.c.id)
        .where(known.last_visited_at.is_not(None))
    )
    return {
        row.id: VisitFacts(
            is_known=row.last_successful_at is not None,
            lag=_lag(row.first_unseen, row.page_serial, min_serials[row.id], through),
            last_visited_at=row.last_visited_at,
            pace=row.pace,
            failures=row.failures,
            retry_at=row.next_due_at,
        )
        for ids in at_a_time(min_serials)
        for row in connection.execute(visited.where(known.project_id.in_(ids)))
    }


def _lag(first_unseen: int | None, page_serial: int | None, min_serial: int, through: int) -> int | None:
    changed_at = first_unseen
    if changed_at is None and min_serial > (page_serial or 0):
        changed_at = min_serial
    return None if changed_at is None else max(through - changed_at, 0)


def visited_projects(connection: Connection) -> VisitedProjects:
    """Return counts over all followed projects. The query is fast on any catalog."""
    known = visit_statistics.c
    never = select(func.count()).select_from(visit_statistics).where(known.last_visited_at.is_(None))
    if not follows_all(connection):
        c = followed_intervals.c
        never = (
            select(func.count())
            .select_from(followed_intervals)
            .outerjoin(visit_statistics, known.project_id == c.project_id)
            .where(c.end.is_(None), known.last_visited_at.is_(None))
        )
    failing = select(func.count()).select_from(visit_statistics).where(_FAILING)
    return VisitedProjects(
        never_visited=connection.scalar(never) or 0,
        longest_unvisited_at=connection.scalar(select(func.min(known.last_visited_at))),
        failing=connection.scalar(failing) or 0,
    )
