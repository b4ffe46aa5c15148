"""Comparison of a catalog with a replay of its journal."""

from typing import Any

from sqlalchemy import select

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.observed.projects import PROJECT_COLUMNS, CatalogProject
from pypi_assets.catalog.publications.dump_rows import rows_at, stream_rows
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.reports.moments import answerable_serial
from pypi_assets.catalog.reports.project_history import VISIT, read_history
from pypi_assets.catalog.tables import projects
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


def require_equal(original: Catalog, replayed: Catalog, first: int, through: int) -> None:
    """Assert that all answers from the serial `first` on are equal, including missing answers."""
    for serial in range(first, through + 1):
        assert answers_at(replayed, serial) == answers_at(original, serial), f"at serial {serial}"
