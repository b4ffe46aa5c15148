"""What changed in a serial range, as its dump shows it: counts by cause, and the first changes."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, func, literal_column, select

from pypi_assets.catalog.counters import read_counts
from pypi_assets.catalog.derived.file_history import UNEXPLAINED
from pypi_assets.catalog.derived.recompute import UNEXPLAINED_CHANGES
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.tables import changes, distributions, projects, releases

_IS_UNEXPLAINED: ColumnElement[bool] = changes.c.cause == literal_column(f"'{UNEXPLAINED}'")
"""Without a parameter, so that the partial index is used."""


@dataclass(frozen=True, slots=True)
class RangeChange:
    """One change of one distribution. `cause` is an event's action, or the reason for a change without one."""

    serial: int
    cause: str
    project: str
    version: str
    filename: str


def count_causes(connection: Connection, serials: SerialRange) -> dict[str, int]:
    """The number of changes of distributions in the range, by cause."""
    query = select(changes.c.cause, func.count()).where(*_within(serials)).group_by(changes.c.cause)
    return {cause: count for cause, count in connection.execute(query.order_by(changes.c.cause))}


def first_changes(connection: Connection, serials: SerialRange, limit: int) -> list[RangeChange]:
    """The first `limit` changes of the range, in order of serial."""
    query = (
        select(changes.c.serial, changes.c.cause, projects.c.name, releases.c.version, distributions.c.filename)
        .join(distributions, distributions.c.id == changes.c.distribution_id)
        .join(projects, projects.c.id == distributions.c.project_id)
        .join(releases, releases.c.id == distributions.c.release_id)
        .where(*_within(serials))
        .order_by(changes.c.logged_serial, changes.c.serial, changes.c.id)
        .limit(limit)
    )
    return [RangeChange(*row) for row in connection.execute(query)]


def count_unexplained(connection: Connection, serials: SerialRange | None = None) -> int:
    """The number of file changes that no event explains: all that are logged, or those logged in `serials`."""
    if serials is None:
        return read_counts(connection).get(UNEXPLAINED_CHANGES, 0)
    query = select(func.count()).select_from(changes).where(_IS_UNEXPLAINED, *_within(serials))
    return int(connection.scalar(query) or 0)


def unexplained_projects(connection: Connection) -> list[int]:
    """The ids of the projects of whose files a change is logged that no event explained, in order."""
    of_files = select(changes.c.distribution_id).where(_IS_UNEXPLAINED)
    query = select(distributions.c.project_id).where(distributions.c.id.in_(of_files)).distinct()
    return sorted(connection.scalars(query))


def _within(serials: SerialRange) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return changes.c.logged_serial > serials.start, changes.c.logged_serial <= serials.end
