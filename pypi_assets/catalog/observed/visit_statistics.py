"""Statistics of the visits of each project, updated as visits end, and the priority of the next visit.

All of them follow from visits, their statuses and the queue, except the times at which the index named a project.

A priority only orders visits. Which projects are visited is up to a full crawl, a range or an audit. Of the due visits
the one with the lowest nice value comes first, and within it the one that has been due for longest.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, case, func, literal_column, select

from pypi_assets.catalog.database import at_a_time, upsert
from pypi_assets.catalog.observed.followed import follows_all
from pypi_assets.catalog.tables import events, followed_intervals, projects, visit_statistics
from pypi_assets.index.actions import NO_FILE_CHANGE


@dataclass(frozen=True, slots=True)
class Prospect:
    """What is known of a project when a visit of it is queued.

    `lag` is the number of serials since its first change that no page has shown yet; None where no change is known.
    `failures` counts its last visits in a row that failed, and `next_due_at` (unix seconds) is when one is retried.
    """

    is_known: bool
    lag: int | None
    failures: int = 0
    next_due_at: float | None = None


NEVER_VISITED = Prospect(is_known=False, lag=None)


@dataclass(frozen=True, slots=True)
class VisitWeights:
    """By how much a visit comes sooner, in nice values: `unknown` before the first success, `changed` after a change,
    and `lag` each time that the lag doubles. Each failure in a row delays it by `failure`, up to `most_failures` of
    them."""

    unknown: int = 12_000
    changed: int = 5_000
    lag: int = 100
    failure: int = 200
    most_failures: int = 20


WEIGHTS = VisitWeights()


def nice_of(prospect: Prospect, weights: VisitWeights = WEIGHTS) -> int:
    """The nice value of a visit. Lower values come first, and may be negative."""
    gain = 0
    if not prospect.is_known:
        gain = weights.unknown
    elif prospect.lag is not None:
        gain = weights.changed + round(weights.lag * math.log2(1 + max(prospect.lag, 0)))
    return weights.failure * min(prospect.failures, weights.most_failures) - gain


def due_at(prospect: Prospect) -> float:
    """When the project may be visited (unix seconds). A pause after a failure holds for all workloads."""
    return prospect.next_due_at or 0.0


def revisits_for(visits: int, share: float, draw: float) -> int:
    """How many projects to revisit as an audit in addition to `visits`: `share` per cent of them.

    `draw`, uniform from 0 to 1, rounds the fraction up or down, so that many small ranges reach the share as well.
    """
    fraction, whole = math.modf(visits * share / 100)
    return int(whole) + (draw < fraction)


_FAILING: ColumnElement[bool] = literal_column("last_outcome IN ('failed', 'partial')")
"""Without a parameter, so that the partial index is used."""


@dataclass(frozen=True, slots=True)
class EndedVisit:
    """How a visit ended. `due_at` is when it is retried; None where it is not."""

    project_id: int
    outcome: str
    is_success: bool
    due_at: float | None = None


@dataclass(frozen=True, slots=True)
class VisitedProjects:
    """Counts over all projects: those never visited, and those whose last visit failed. `longest_unvisited_at` is when
    the project visited longest ago was visited (unix seconds; None where none ever was)."""

    never_visited: int
    longest_unvisited_at: float | None
    failing: int


def note_seen(connection: Connection, seen_at: Mapping[int, float]) -> None:
    """Records that the index named these projects at these times (unix seconds), in its list or in an event."""
    known = visit_statistics.c.last_seen_at
    upsert(
        connection,
        visit_statistics,
        [{"project_id": id_, "last_seen_at": at} for id_, at in sorted(seen_at.items())],
        key=("project_id",),
        update=lambda new: {"last_seen_at": case((known > new.last_seen_at, known), else_=new.last_seen_at)},
    )


def note_ended(connection: Connection, ended: Iterable[EndedVisit], now: float) -> None:
    """Records ended visits, one of each project. No other transaction may end visits of these projects meanwhile."""
    known = visit_statistics.c
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
            }
            for visit in sorted(ended, key=lambda visit: visit.project_id)
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
        },
    )


def prospects(connection: Connection, min_serials: Mapping[int, int], through: int) -> dict[int, Prospect]:
    """What is known for visits of these projects, whose pages must be at least of `min_serials`.

    Projects never visited are left out. The lag of a project is counted from the first event that no page of it has
    shown, to `through`, the index's serial.
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
        known.last_successful_at,
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
        row.id: Prospect(
            is_known=row.last_successful_at is not None,
            lag=_lag(row.first_unseen, row.page_serial, min_serials[row.id], through),
            failures=row.failures,
            next_due_at=row.next_due_at,
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
    """Counts over all followed projects; quick on any catalog."""
    known = visit_statistics.c
    never = select(func.count()).select_from(visit_statistics).where(known.last_visited_at.is_(None))
    if not follows_all(connection):
        of = followed_intervals.c
        never = (
            select(func.count())
            .select_from(followed_intervals)
            .outerjoin(visit_statistics, known.project_id == of.project_id)
            .where(of.end.is_(None), known.last_visited_at.is_(None))
        )
    failing = select(func.count()).select_from(visit_statistics).where(_FAILING)
    return VisitedProjects(
        never_visited=connection.scalar(never) or 0,
        longest_unvisited_at=connection.scalar(select(func.min(known.last_visited_at))),
        failing=connection.scalar(failing) or 0,
    )
