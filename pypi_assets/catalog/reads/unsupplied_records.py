"""Live files whose record is of an older extractor, and stays so: no stored extract can supply a newer one.

They were read before extracts were stored, or their pack is missing or damaged. Only reading the files again helps.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, exists, func, select, update

from pypi_assets.catalog.database import at_a_time
from pypi_assets.catalog.ledger.epochs import note_changed_files
from pypi_assets.catalog.reads.file_counts import counting_files
from pypi_assets.catalog.reads.read_outcomes import Outcome
from pypi_assets.catalog.tables import distribution_data, distributions, live_intervals


@dataclass(frozen=True, slots=True)
class UnsuppliedRecord:
    """A file that could be read again."""

    distribution_id: int
    project_id: int
    filename: str


def count_unsupplied(connection: Connection, version: int, project_id: int | None = None) -> int:
    """How many records an extractor older than `version` made, of all projects or one, once a reprocess is over."""
    found = _unsupplied(version, project_id, after=0).subquery()
    return int(connection.scalar(select(func.count()).select_from(found)) or 0)


def unsupplied_records(
    connection: Connection, version: int, project_id: int | None = None, *, after: int = 0, limit: int
) -> list[UnsuppliedRecord]:
    """The same records by distribution id, up to `limit` of those after the id `after`."""
    query = _unsupplied(version, project_id, after).order_by(distribution_data.c.distribution_id).limit(limit)
    return [UnsuppliedRecord(*row) for row in connection.execute(query)]


def make_pending(connection: Connection, distribution_ids: Iterable[int]) -> None:
    """Notes that these are to be read again. What is stored of them stays until they are."""
    for ids in at_a_time(distribution_ids):
        of_these = distribution_data.c.distribution_id.in_(ids)
        with counting_files(connection, ids):
            connection.execute(update(distribution_data).where(of_these).values(outcome=Outcome.PENDING))
        note_changed_files(connection, ids)


def _unsupplied(version: int, project_id: int | None, after: int) -> Select[Any]:
    data, live = distribution_data.c, live_intervals.c
    query = (
        select(data.distribution_id, distributions.c.project_id, distributions.c.filename)
        .select_from(distribution_data)
        .join(distributions, distributions.c.id == data.distribution_id)
        .where(
            data.distribution_id > after,
            data.extractor_version < version,
            data.outcome.in_((Outcome.DATA, Outcome.ERROR)),
            distributions.c.url.is_not(None),
            exists().where(live.distribution_id == data.distribution_id, live.end.is_(None)),
        )
    )
    return query if project_id is None else query.where(distributions.c.project_id == project_id)
