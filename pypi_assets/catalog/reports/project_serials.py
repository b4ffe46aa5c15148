"""When the files of a project changed first and last."""

from sqlalchemy import ColumnElement, Connection, Table, func, select

from pypi_assets.catalog.database import storable
from pypi_assets.catalog.tables import distributions, live_intervals, projects, yanked_intervals


def first_and_last_serial(connection: Connection, normalized: str, serial: int) -> tuple[int | None, int | None]:
    """The serials of the first and of the last change of a project's files up to `serial`: a file came, went, was
    yanked or no longer so. None where there was none.
    """
    found = [
        _ends_of(connection, intervals, end, normalized, serial)
        for intervals in (live_intervals, yanked_intervals)
        for end in (intervals.c.start, intervals.c.end)
    ]
    serials = [one for ends in found for one in ends if one is not None]
    return min(serials, default=None), max(serials, default=None)


def _ends_of(
    connection: Connection, intervals: Table, end: ColumnElement[int], normalized: str, serial: int
) -> tuple[int | None, ...]:
    """The least and the greatest of these ends up to `serial`."""
    query = (
        select(func.min(end), func.max(end))
        .select_from(intervals)
        .join(distributions, distributions.c.id == intervals.c.distribution_id)
        .join(projects, projects.c.id == distributions.c.project_id)
        .where(projects.c.normalized == storable(normalized), end <= serial)
    )
    return tuple(connection.execute(query).one())
