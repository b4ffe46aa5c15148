"""The projects that had files at a serial."""

from collections.abc import Iterator

from sqlalchemy import and_, exists, select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.followed import answered_at
from pypi_assets.catalog.publications.dump_rows import holds_at
from pypi_assets.catalog.tables import distributions, live_intervals, projects

_AT_ONCE = 5_000


def live_projects(catalog: Catalog, serial: int) -> Iterator[str]:
    """Yield the normalized names of the projects with a file live at `serial`, in the order of the database.

    Each few thousand are a transaction of their own, so none stays open while a slow reader takes them.
    """
    live = live_intervals
    is_live = exists(
        select(distributions.c.id)
        .join(live, live.c.distribution_id == distributions.c.id)
        .where(distributions.c.project_id == projects.c.id, holds_at(live.c.start, live.c.end, serial))
    )
    last: str | None = None
    while True:
        with catalog.read() as connection:
            query = select(projects.c.normalized).where(and_(is_live, answered_at(connection, projects.c.id, serial)))
            if last is not None:
                query = query.where(projects.c.normalized > last)
            found = connection.scalars(query.order_by(projects.c.normalized).limit(_AT_ONCE)).all()
        yield from found
        if len(found) < _AT_ONCE:
            return
        last = found[-1]
