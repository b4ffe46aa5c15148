"""The logs of visits and of attempts to read, which go by their age.

What follows from visits is elsewhere: file states from sightings, which stay, and the statistics of each project.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, exists, func, select

from pypi_assets.catalog.pruning.sweeps import Sweep
from pypi_assets.catalog.reads.read_outcomes import Outcome
from pypi_assets.catalog.tables import (
    audits,
    distribution_data,
    full_crawls,
    read_attempts,
    visit_statuses,
    visits,
)

FIRST_VISITS_KEPT = 1_000
"""The first visits stay: what their pages show decides which hosts files may come from."""
_UNREAD = (Outcome.PENDING, Outcome.ERROR, Outcome.EXHAUSTED)


def old_visits(before: float) -> Sweep:
    """The visits that began `before` (unix seconds), except the newest of each project.

    So visits of a project go on to be counted up, and the outcome of the last one stays. So do the visits of an open
    full crawl or audit, which is completed by what they saw.
    """
    later = visits.alias("later")
    is_newest = ~exists().where(later.c.project_id == visits.c.project_id, later.c.visit > visits.c.visit)

    def chosen(connection: Connection, rows: Sequence[Row[Any]]) -> Sequence[int]:
        workloads = [
            f"{kind}:{id_}"
            for kind, table in (("crawl", full_crawls), ("audit", audits))
            for id_ in connection.scalars(select(table.c.id).where(table.c.open.is_not(None)))
        ]
        ids = [row.id for row in rows if row.started_at < before and row.id > FIRST_VISITS_KEPT]
        return connection.scalars(
            select(visits.c.id).where(visits.c.id.in_(ids), ~is_newest, visits.c.workload.not_in(workloads))
        ).all()

    return Sweep(
        visits,
        chosen,
        columns=(visits.c.started_at,),
        owned=(visit_statuses.c.visit_id,),
        is_old=lambda row: row.started_at < before,
    )


def old_attempts(before: float) -> Sweep:
    """The attempts to read that began `before` (unix seconds), except those of files that are not read.

    Their failures are listed with the number of attempts. Of an attempt whose worker died no time is known: it goes
    with the one before it. The newest attempt stays, since attempts are counted by it.
    """

    def chosen(connection: Connection, rows: Sequence[Row[Any]]) -> Sequence[int]:
        ids, is_old = [], True
        for row in rows:
            is_old = is_old if row.started_at is None else row.started_at < before
            if is_old:
                ids.append(row.id)
        is_unread = exists().where(
            distribution_data.c.distribution_id == read_attempts.c.distribution_id,
            distribution_data.c.outcome.in_(_UNREAD),
        )
        newest = select(func.max(read_attempts.c.id)).scalar_subquery()
        return connection.scalars(
            select(read_attempts.c.id).where(read_attempts.c.id.in_(ids), read_attempts.c.id < newest, ~is_unread)
        ).all()

    return Sweep(
        read_attempts,
        chosen,
        columns=(read_attempts.c.started_at,),
        is_old=lambda row: row.started_at is not None and row.started_at < before,
    )
