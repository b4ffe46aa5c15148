"""Totals that are quick on a catalog of any size."""

from sqlalchemy import Connection, func, select

from pypi_assets.catalog.tables import (
    distributions,
    projects,
    read_attempts,
    visits,
)


def work_done(connection: Connection) -> tuple[int, int]:
    """How many visits and how many attempts to read a distribution were ever made. Both only grow."""
    visited, read = (connection.scalar(select(func.max(table.c.id))) for table in (visits, read_attempts))
    return visited or 0, read or 0


def about_known(connection: Connection) -> int:
    """Roughly how many projects and distributions were ever known."""
    return sum(connection.scalar(select(func.max(table.c.id))) or 0 for table in (projects, distributions))
