"""How large the catalog is and how much work it has done, at a cost that does not grow with it."""

from sqlalchemy import Connection, func, select

from pypi_assets.catalog.tables import (
    distributions,
    projects,
    read_attempts,
    visits,
)


def work_done(connection: Connection) -> tuple[int, int]:
    """How many visits of pages and how many attempts to read a distribution there have been: both only grow."""
    visited, read = (connection.scalar(select(func.max(table.c.id))) for table in (visits, read_attempts))
    return visited or 0, read or 0


def about_known(connection: Connection) -> int:
    """About how many projects and distributions have ever been known; quick on any catalog."""
    return sum(connection.scalar(select(func.max(table.c.id))) or 0 for table in (projects, distributions))
