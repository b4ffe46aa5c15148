"""Reports the state of an index without serials: its due projects, and the changes that wait to be confirmed."""

import zlib
from dataclasses import dataclass

import msgspec
from sqlalchemy import Connection, func, select

from pypi_assets.catalog.tables import observed_projects
from pypi_assets.index.observing.comparison import KnownPage

_READER = msgspec.json.Decoder(KnownPage)
_WAITING = b'"waiting":'  # absent from the JSON of a page for which nothing waits
_AT_A_TIME = 500
_NAMED = 3


@dataclass(frozen=True, slots=True)
class ObservedState:
    """The projects of an observed index: how many there are, how many are `due`, and when the next one is.

    `unconfirmed` counts the projects that show something as gone or changed back, which counts once later looks agree;
    `first_unconfirmed` names some. The last of them is looked at again at `confirmed_from` or later. Times are unix
    seconds, None if there is no such project.
    """

    projects: int
    due: int
    next_due_at: float | None
    unconfirmed: int
    first_unconfirmed: tuple[str, ...]
    confirmed_from: float | None


def observed_state(connection: Connection, now: float, confirm_after_s: float) -> ObservedState:
    """Return the state at `now` (unix seconds). It reads the pages that are due within `confirm_after_s` seconds."""
    of = observed_projects.c
    counts = select(func.count(), func.count().filter(of.due_at <= now), func.min(of.due_at).filter(of.due_at > now))
    projects, due, next_due_at = connection.execute(counts.select_from(observed_projects)).one()
    # What waits is due again once it can be confirmed, or sooner.
    pages = select(of.project, of.content, of.due_at).where(of.content.is_not(None), of.due_at <= now + confirm_after_s)
    waiting: list[tuple[float, str]] = []
    for project, content, due_at in connection.execute(pages.execution_options(yield_per=_AT_A_TIME)):
        page = zlib.decompress(content)
        if _WAITING in page and _READER.decode(page).waiting:
            waiting.append((due_at, project))
    return ObservedState(
        projects,
        due,
        next_due_at,
        len(waiting),
        tuple(sorted(project for _, project in waiting)[:_NAMED]),
        max((due_at for due_at, _ in waiting), default=None),
    )
