"""The origin of the files that the first pages of the index agreed on, stored once and for all processes.

What they agree on is decided in `index/file_origins.py`.
"""

from sqlalchemy import Connection, exists, select, update

from pypi_assets.catalog.tables import catalog_state, distributions, visits


def known_file_origin(connection: Connection) -> str | None:
    """The stored origin, such as `https://files.example.org`; empty: the index's own hosts alone; None: not decided."""
    return connection.scalar(select(catalog_state.c.file_origin))


def first_file_urls(connection: Connection, pages: int) -> list[str]:
    """The URLs of the files on the first `pages` pages that were visited and have any."""
    has_files = exists().where(distributions.c.project_id == visits.c.project_id, distributions.c.url.is_not(None))
    first = select(visits.c.project_id).where(visits.c.visit == 1, has_files).order_by(visits.c.id).limit(pages)
    ids = connection.scalars(first).all()
    query = select(distributions.c.url).where(distributions.c.project_id.in_(ids), distributions.c.url.is_not(None))
    return list(connection.scalars(query.order_by(distributions.c.id)))


def store_file_origin(connection: Connection, origin: str) -> bool:
    """Stores `origin`, unless one is stored already. Returns whether this one was."""
    statement = update(catalog_state).where(catalog_state.c.file_origin.is_(None)).values(file_origin=origin)
    return connection.execute(statement).rowcount == 1
