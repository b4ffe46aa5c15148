"""Derive visit statistics from all visits, and read the statistics that the catalog stores, to compare them."""

from dataclasses import dataclass, fields

from sqlalchemy import Connection, select

from pypi_assets.catalog.derived.visits import SUCCESSFUL, VisitStatus
from pypi_assets.catalog.tables import visit_statistics, visit_statuses, visits


@dataclass(frozen=True, slots=True)
class Derived:
    """Statistics of a project's ended visits. Times are unix seconds."""

    last_visited_at: float
    last_successful_at: float | None
    last_outcome: str
    successive_outcomes: int


@dataclass(frozen=True, slots=True)
class VisitStatistics:
    """Statistics of one project's visits. Times are unix seconds, or None for an event that never happened."""

    last_seen_at: float | None
    last_visited_at: float | None
    last_successful_at: float | None
    last_outcome: str | None
    successive_outcomes: int
    next_due_at: float | None


def derived_statistics(connection: Connection) -> dict[int, Derived]:
    """Return statistics by project ID for each project with an ended visit. The latest status of a visit is its
    outcome.
    """
    latest: dict[int, tuple[int, int, float, str]] = {}
    statuses = (
        select(visits.c.id, visits.c.project_id, visit_statuses.c.id, visit_statuses.c.at, visit_statuses.c.status)
        .join(visits, visits.c.id == visit_statuses.c.visit_id)
        .order_by(visit_statuses.c.id)
    )
    for visit_id, project_id, status_id, at, status in connection.execute(statuses):
        latest[visit_id] = (status_id, project_id, at, status)
    found: dict[int, Derived] = {}
    for _, project_id, at, status in sorted(latest.values()):
        if status == VisitStatus.ONGOING:
            continue
        before = found.get(project_id)
        in_a_row = before.successive_outcomes if before is not None and before.last_outcome == status else 0
        succeeded_at = at if status in SUCCESSFUL else before and before.last_successful_at
        found[project_id] = Derived(at, succeeded_at, status, in_a_row + 1)
    return found


def kept_statistics(connection: Connection) -> dict[int, Derived]:
    """Return the statistics that the catalog stores, in the same form."""
    kept = visit_statistics.c
    columns = (kept.last_visited_at, kept.last_successful_at, kept.last_outcome, kept.successive_outcomes)
    rows = connection.execute(select(kept.project_id, *columns).where(kept.last_visited_at.is_not(None)))
    return {project_id: Derived(*values) for project_id, *values in rows}


def find_visit_statistics(connection: Connection, project_id: int) -> VisitStatistics | None:
    """Return the statistics of a project, or None if neither the index nor a visit ever named it."""
    columns = (visit_statistics.c[field.name] for field in fields(VisitStatistics))
    row = connection.execute(select(*columns).where(visit_statistics.c.project_id == project_id)).first()
    return None if row is None else VisitStatistics(*row)
