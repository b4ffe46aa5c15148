"""The reasons that pages gave for yanks at a serial.

A reason counts for the whole interval in which the file was yanked. The two pages next to a serial have all that is
known of them: what an earlier or a later page showed of the same interval, these show too.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, select

from pypi_assets.catalog.database import storable
from pypi_assets.catalog.observed.snapshots import read_snapshots
from pypi_assets.catalog.tables import sightings


class YankedFile(NamedTuple):
    """A file that is yanked from the serial `since` up to `until` (None: it still is). `newest` is the reason that its
    newest page gives."""

    filename: str
    since: int
    until: int | None
    newest: str | None


def yank_reasons(
    connection: Connection, project_id: int, serial: int, yanked: Sequence[YankedFile]
) -> dict[str, str | None]:
    """The reasons at `serial` for these files, by name; None where none was given, or none is known."""
    if not yanked:
        return {}
    found = {file.filename: file.newest if file.until is None else None for file in yanked}
    of = sightings.c
    nearest = (
        _page(connection, (of.project_id == project_id, of.page_serial > serial), of.page_serial, of.seen_through),
        _page(
            connection,
            (of.project_id == project_id, of.page_serial <= serial),
            of.page_serial.desc(),
            of.seen_through.desc(),
        ),
    )
    pages = [page for page in nearest if page is not None]
    shown = dict(read_snapshots(connection, {page.snapshot_id for page in pages}))
    # the page before counts where both have a reason; but a page that can be newer than its serial counts least
    for through, page in [*((page.seen_through, page) for page in pages), *((page.serial, page) for page in pages)]:
        reasons = shown[page.snapshot_id].reasons
        for file in yanked:
            is_of_it = file.since <= through and (file.until is None or page.serial < file.until)
            if is_of_it and file.filename in reasons:
                found[file.filename] = storable(reasons[file.filename])
    return found


class _Page(NamedTuple):
    serial: int
    seen_through: int
    snapshot_id: int


def _page(connection: Connection, where: Sequence[ColumnElement[bool]], *order: ColumnElement[int]) -> _Page | None:
    """The first page in this order."""
    of = sightings.c
    query = select(of.page_serial, of.seen_through, of.snapshot_id).where(*where).order_by(*order, of.id)
    row = connection.execute(query.limit(1)).first()
    return None if row is None else _Page._make(row)
