"""The index's list of projects as it was at a serial: their displayed names, and the serials of their last events.

As on PyPI, the list has each project with a page, even if the page has no files, but no quarantined project. The page
of a project in `past_pages.py` has the same serial.
"""

from collections.abc import Iterator
from typing import NamedTuple

from sqlalchemy import Connection, Row, exists, func, or_, select

from pypi_assets.catalog.database import Catalog, CatalogError, read_by_index
from pypi_assets.catalog.ledger.epochs import epoch_of
from pypi_assets.catalog.observed.followed import answered_at
from pypi_assets.catalog.observed.projects import PROJECT_COLUMNS, QUARANTINED, CatalogProject
from pypi_assets.catalog.publications.dump_rows import holds_at
from pypi_assets.catalog.reports.past_statuses import status_at
from pypi_assets.catalog.tables import distributions, events, live_intervals, projects, sightings
from pypi_assets.index.actions import Action

_AT_ONCE = 2_000
_ENDS = (Action.REMOVE_PROJECT.value, Action.QUARANTINE_PROJECT.value)
_COLUMNS = CatalogProject.__match_args__


class ListedAt(NamedTuple):
    """A project on the list: its normalized and its displayed name, and the serial of its last event, if known."""

    normalized: str
    name: str
    serial: int | None


def projects_at(catalog: Catalog, serial: int, epoch: int | None = None) -> Iterator[ListedAt]:
    """Yield the listed projects at `serial`, which must have an answer, in the order of their normalized names.

    Each batch has its own transaction, so that no transaction stays open for a slow reader. Raises CatalogError if
    `epoch` is given and expires in the meantime, since the parts would then belong to different epochs.
    """
    last = ""
    while True:
        with catalog.read() as connection:
            if epoch is not None and epoch_of(connection, serial) != epoch:
                raise CatalogError(
                    f"the data at serial {serial} changed while its projects were listed: list them again"
                )
            read_by_index(connection)
            rows = _rows_after(connection, serial, last)
            found = [_listed(row, serial) for row in rows if _is_listed(connection, row, serial)]
        yield from found
        if len(rows) < _AT_ONCE:
            return
        last = rows[-1].normalized


def _rows_after(connection: Connection, serial: int, normalized: str) -> list[Row[tuple[object, ...]]]:
    """Return the next projects after a normalized name that may be listed, with facts from a few index entries each."""
    live, seen = live_intervals.c, sightings.c
    last_event = (
        select(events.c.serial)
        .where(events.c.project_id == projects.c.id, events.c.serial <= serial)
        .order_by(events.c.serial.desc())
        .limit(1)
        .correlate(projects)
        .scalar_subquery()
    )
    last_page = (
        select(func.max(seen.page_serial))
        .where(seen.project_id == projects.c.id, seen.page_serial <= serial)
        .correlate(projects)
        .scalar_subquery()
    )
    is_live = exists(
        select(distributions.c.id)
        .join(live_intervals, live.distribution_id == distributions.c.id)
        .where(distributions.c.project_id == projects.c.id, holds_at(live.start, live.end, serial))
    )
    # after an event that ends the page, only a page that was seen later can show the project
    is_seen_again = exists().where(
        seen.project_id == projects.c.id,
        or_(seen.seen_through >= events.c.serial, seen.page_serial >= events.c.serial),
        seen.page_status != QUARANTINED,
    )
    query = (
        select(
            *PROJECT_COLUMNS,
            projects.c.named_at,
            events.c.serial.label("last_event"),
            events.c.name.label("event_name"),
            last_page.label("last_page"),
            is_live.label("is_live"),
        )
        .select_from(projects)
        .outerjoin(events, events.c.serial == last_event)
        .where(
            projects.c.normalized > normalized,
            answered_at(connection, projects.c.id, serial),
            or_(events.c.kind.is_(None), events.c.kind.not_in(_ENDS), is_live, is_seen_again),
        )
        .order_by(projects.c.normalized)
        .limit(_AT_ONCE)
    )
    return list(connection.execute(query))


def _is_listed(connection: Connection, row: Row[tuple[object, ...]], serial: int) -> bool:
    if row.is_live:  # a project with live files is not quarantined
        return True
    project = CatalogProject(*(getattr(row, name) for name in _COLUMNS))
    return status_at(connection, project, serial) not in {None, QUARANTINED}


def _listed(row: Row[tuple[object, ...]], serial: int) -> ListedAt:
    """Return the project with its name at the serial. The present name counts if it was given until then."""
    is_present_name = row.event_name is None or (row.named_at is not None and row.last_event <= row.named_at <= serial)
    serials = [one for one in (row.last_event, row.last_page) if one is not None]
    return ListedAt(row.normalized, row.name if is_present_name else row.event_name, max(serials, default=None))
