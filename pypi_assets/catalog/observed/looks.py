"""Times of changes that only the list of projects and pages show, since their events are not known.

A look is a comparison of the list of projects with the catalog. What a page shows beyond the stored events happened
after the last look that did not show it yet. The list can come from a cache, so it shows the index of up to
LIST_AGE_S seconds before the look.
"""

from collections.abc import Collection

from sqlalchemy import Connection, case, func, or_, select

from pypi_assets.catalog.database import at_a_time, upsert
from pypi_assets.catalog.observed.index_state import last_accepted_look
from pypi_assets.catalog.tables import events, full_crawls, visit_statistics

LIST_AGE_S = 2_100.0
"""The greatest age of a cached list, in seconds. PyPI's list is cached for up to 35 minutes."""
UNKNOWN_TIME = 0.0
"""Stored in place of a look: the project may have changed at any time, since a visit before the look has failed."""
_FAILING = ("failed", "partial")


def last_look(connection: Connection) -> float | None:
    """Return a time before which each change is known or was listed, in unix seconds; None if there is none.

    It is the latest of three: the last accepted list, the last stored event, and the list of the last completed full
    crawl, each less the greatest age of a list.
    """
    newest = select(events.c.timestamp).order_by(events.c.serial.desc()).limit(1)
    crawl = select(func.max(full_crawls.c.listed_at)).where(full_crawls.c.completed_at.is_not(None))
    found = (last_accepted_look(connection), connection.scalar(newest), connection.scalar(crawl))
    known = [float(at) for at in found if at is not None]
    return max(known) - LIST_AGE_S if known else None


def note_unshown(connection: Connection, project_ids: Collection[int], since: float | None) -> None:
    """Record that a list shows changes of these projects that no page has shown, and `since` when they can be.

    The time of an earlier list stays until a page shows its changes. If the last visit of a project failed, an
    earlier change may be among them, so the time is unknown.
    """
    known = visit_statistics.c
    at = UNKNOWN_TIME if since is None else since
    is_failing = or_(*(known.last_outcome == outcome for outcome in _FAILING))
    upsert(
        connection,
        visit_statistics,
        [{"project_id": id_, "unshown_since": at} for id_ in sorted(project_ids)],
        key=("project_id",),
        update=lambda new: {
            "unshown_since": func.coalesce(
                known.unshown_since, case((is_failing, UNKNOWN_TIME), else_=new.unshown_since)
            )
        },
    )


def changed_after(connection: Connection, project_ids: Collection[int]) -> dict[int, float]:
    """Return after which time the changes happened that a page beyond the stored events shows now, by project id.

    Projects without such a time are omitted: they were never seen before, or a visit before the last look has failed.
    """
    found: dict[int, float] = {}
    if not project_ids:
        return found
    look = last_look(connection)
    known = visit_statistics.c
    columns = (known.project_id, known.unshown_since, known.last_successful_at, known.last_outcome)
    for ids in at_a_time(sorted(project_ids)):
        for id_, unshown_since, successful_at, outcome in connection.execute(
            select(*columns).where(known.project_id.in_(ids))
        ):
            is_shown = successful_at is not None and outcome not in _FAILING
            at = unshown_since if unshown_since is not None else look if is_shown else None
            if at is not None and at != UNKNOWN_TIME:
                found[id_] = at
    return found
