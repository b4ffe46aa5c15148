"""The statistics of visits as they follow from all visits and their statuses, to compare the kept ones with."""

from dataclasses import dataclass

from sqlalchemy import Connection, select

from pypi_assets.catalog.derived.visits import SUCCESSFUL, VisitStatus
from pypi_assets.catalog.tables import visit_statistics, visit_statuses, visits


@dataclass(frozen=True, slots=True)
class Derived:
    """What the ended visits of a project come to; times are unix seconds."""

    last_visited_at: float
    last_successful_at: float | None
    last_outcome: str
    successive_outcomes: int


def derived_statistics(connection: Connection) -> dict[int, Derived]:
    """Of each project that has an ended visit, by its id: the latest status of a visit is how it ended."""
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
    """The same as the catalog keeps it."""
    kept = visit_statistics.c
    columns = (kept.last_visited_at, kept.last_successful_at, kept.last_outcome, kept.successive_outcomes)
    rows = connection.execute(select(kept.project_id, *columns).where(kept.last_visited_at.is_not(None)))
    return {project_id: Derived(*values) for project_id, *values in rows}
