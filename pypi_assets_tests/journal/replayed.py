"""Comparison of a catalog with a replay of its journal."""

from typing import Any

from sqlalchemy import select

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.observed.projects import PROJECT_COLUMNS, CatalogProject
from pypi_assets.catalog.observed.snapshots import read_snapshots
from pypi_assets.catalog.publications.dump_rows import rows_at, stream_rows
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.reports.moments import answerable_serial
from pypi_assets.catalog.reports.project_history import VISIT, read_history
from pypi_assets.catalog.tables import projects, visit_statistics, visit_statuses, visits
from pypi_assets.dumps.dump_format import as_dumped
from pypi_assets_tests.journal.model_journal import compared

_SHOWN = (
    *("serial", "at", "kind", "text", "version", "filenames", "outcome", "error", "live", "away", "yanked", "unyanked"),
)
_NEVER_READ = (ReadOutcome.PENDING, ReadOutcome.VANISHED)
"""Outcomes of files that are not live any more and were not read: the journal has no word of them."""


def answers_at(catalog: Catalog, serial: int) -> list[dict[str, Any]] | None:
    """Return the live files at a serial, or None if the catalog cannot answer."""
    try:
        answerable_serial(catalog, serial)
    except CatalogError:
        return None
    rows = map(as_dumped, stream_rows(catalog, rows_at(catalog, serial), serial))
    return [compared(row) for row in rows if not row["tombstone"]]


def histories(catalog: Catalog, since: int = 0) -> dict[str, list[Any]]:
    """Return each project's history after the serial `since`.

    Visits and epochs are omitted, since each catalog has its own.
    """
    by_project = {}
    with catalog.read() as connection:
        for row in connection.execute(select(*PROJECT_COLUMNS).order_by(projects.c.normalized)).all():
            project = CatalogProject(*row)
            entries = read_history(connection, project)
            own = [_plain(entry) for entry in entries if entry.kind != VISIT and entry.serial > since]
            if own:
                by_project[project.normalized] = own
    return by_project


def _plain(entry: Any) -> tuple[Any, ...]:
    shown = {name: getattr(entry, name) for name in _SHOWN}
    return tuple((shown | {"outcome": None} if entry.outcome in _NEVER_READ else shown).values())


def visits_of(catalog: Catalog, through: int | None = None) -> list[tuple[Any, ...]]:
    """Return all ended visits with their statuses, the files of their pages, and the serial at which they are logged.

    If `through` is given, visits that are logged after this serial are omitted.
    """
    found = []
    with catalog.read() as connection:
        names = {row.id: row.normalized for row in connection.execute(select(projects.c.id, projects.c.normalized))}
        for visit in connection.execute(select(visits)).all():
            query = select(visit_statuses).where(visit_statuses.c.visit_id == visit.id).order_by(visit_statuses.c.id)
            statuses = connection.execute(query).all()
            logged = statuses[-1].logged_serial
            if logged is None or (through is not None and logged > through):
                continue
            shown = dict(read_snapshots(connection, {row.snapshot_id for row in statuses} - {None}))
            plain = [
                (
                    *(row.at, row.status, row.page_serial, row.seen_through, row.page_status, row.text),
                    None if row.snapshot_id is None else (shown[row.snapshot_id].files, shown[row.snapshot_id].reasons),
                )
                for row in statuses
            ]
            facts = (visit.kind, visit.workload, visit.started_at, visit.rulesets, logged)
            found.append((names[visit.project_id], visit.visit, *facts, plain))
    return sorted(found, key=lambda one: one[:2])


def visited_statistics(catalog: Catalog) -> dict[str, tuple[Any, ...]]:
    """Return the statistics of the visits of each project that was visited."""
    c = visit_statistics.c
    columns = (c.last_visited_at, c.last_successful_at, c.last_outcome, c.successive_outcomes)
    query = select(projects.c.normalized, *columns).join(projects, projects.c.id == c.project_id)
    with catalog.read() as connection:
        rows = connection.execute(query.where(c.last_visited_at.is_not(None))).all()
    return {name: tuple(values) for name, *values in rows}


def require_equal(original: Catalog, replayed: Catalog, first: int, through: int) -> None:
    """Assert that all answers from the serial `first` on are equal, including missing answers."""
    for serial in range(first, through + 1):
        assert answers_at(replayed, serial) == answers_at(original, serial), f"at serial {serial}"
