"""Projects whose visits ended in chosen ways, for tests of statistics and of the order of visits."""

import itertools
from collections.abc import Sequence

from sqlalchemy import Connection, insert, select

from pypi_assets.catalog.derived.visits import VisitStatus, VisitVerdict, begin_visits, record_verdicts
from pypi_assets.catalog.observed.projects import CatalogProject, enter_projects, find_project
from pypi_assets.catalog.tables import catalog_state
from pypi_assets.index.models import ProjectPage

_numbers = itertools.count()


def enter(connection: Connection, count: int) -> list[CatalogProject]:
    """Enter and return `count` new projects in a catalog that has events up to serial 1,000."""
    if connection.scalar(select(catalog_state.c.id)) is None:
        state = {"events_since": 0, "events_through": 1_000, "exact_from": 0, "next_dump_sequence": 1}
        connection.execute(insert(catalog_state).values(id=1, index_url="", **state))
    names = [f"visited-{next(_numbers)}" for _ in range(count)]
    enter_projects(connection, [(name, 0) for name in names])
    found = [find_project(connection, name) for name in names]
    return [project for project in found if project is not None]


def verdict_of(project: CatalogProject, visit_id: int, ending: str, now: float) -> VisitVerdict:
    page = ProjectPage(project.name, 5, "active", ())
    match ending:
        case "page":
            return VisitVerdict(visit_id, project, VisitStatus.FULL, page)
        case "no page":
            return VisitVerdict(visit_id, project, VisitStatus.NOT_FOUND, explained_at=7)
        case "old page":
            return VisitVerdict(visit_id, project, VisitStatus.PARTIAL, page, text="stale")
        case "put off":
            return VisitVerdict(visit_id, project, VisitStatus.FAILED, text="503", is_conclusive=False, due_at=now + 10)
    return VisitVerdict(visit_id, project, VisitStatus.FAILED, text="503")


def visit(
    connection: Connection, found: Sequence[CatalogProject], ending: str, now: float, workload: str = "crawl:1"
) -> None:
    ids = begin_visits(connection, [project.id for project in found], "full", workload, now)
    if ending != "abandoned":
        record_verdicts(connection, [verdict_of(project, ids[project.id], ending, now) for project in found], now + 0.5)
