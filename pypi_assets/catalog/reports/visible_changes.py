"""At which serials what is answered of a project changed: its live and yanked files, their contents, and whether it is
followed.
"""

from collections.abc import Iterator, Sequence

from sqlalchemy import ColumnElement, Connection, Select, select, union

from pypi_assets.catalog.database import storable
from pypi_assets.catalog.ledger.range_ledger import inexact_spans
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.tables import (
    distributions,
    followed_intervals,
    live_intervals,
    past_generations,
    projects,
    yanked_intervals,
)


def changed_serials(connection: Connection, normalized: str, after: int, through: int) -> list[int]:
    """The serials in (after, through] at which anything that is answered of a project changed, ascending.

    It costs by the files that the project has had.
    """
    id_ = connection.scalar(select(projects.c.id).where(projects.c.normalized == storable(normalized)))
    if id_ is None:
        return []
    return sorted(connection.scalars(union(*_boundaries(id_, after, through))))


def answerable_changes(connection: Connection, normalized: str, after: int, through: int) -> list[int]:
    """The same, each as the first serial from there on that can be answered for."""
    serials = changed_serials(connection, normalized, after, through)
    spans = inexact_spans(connection) if serials else []
    return sorted({min(_answerable(serial, spans), through) for serial in serials})


def answerable_before(connection: Connection, serial: int) -> int:
    """The greatest serial below `serial` that can be answered for, where `serial` can be, and any below it."""
    return min((span.start for span in inexact_spans(connection, around=serial - 1)), default=serial - 1)


def _answerable(serial: int, spans: Sequence[SerialRange]) -> int:
    inside = (span.end for span in spans if span.start < serial < span.end)
    return max(inside, default=serial)


def _boundaries(project_id: int, after: int, through: int) -> Iterator[Select[tuple[int]]]:
    def within(serial: ColumnElement[int]) -> ColumnElement[bool]:
        return (serial > after) & (serial <= through)

    live, yanked, past = live_intervals.c, yanked_intervals.c, past_generations.c
    of_files = [(table.distribution_id, serial) for table in (live, yanked) for serial in (table.start, table.end)]
    for distribution_id, serial in [*of_files, (past.distribution_id, past.until)]:
        yield (
            select(serial)
            .join(distributions, distributions.c.id == distribution_id)
            .where(distributions.c.project_id == project_id, within(serial))
        )
    for serial in (followed_intervals.c.start, followed_intervals.c.end):
        yield select(serial).where(followed_intervals.c.project_id == project_id, within(serial))
