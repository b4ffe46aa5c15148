"""Find out whether there are answers about a project at a serial, and if not, why."""

from dataclasses import dataclass
from enum import StrEnum

from packaging.utils import canonicalize_name
from sqlalchemy import Connection, select

from pypi_assets.catalog.database import Catalog, storable
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.observed.followed import count_answered, follows_all
from pypi_assets.catalog.observed.projects import find_project
from pypi_assets.catalog.publications.dump_rows import holds_at
from pypi_assets.catalog.tables import (
    distributions,
    followed_intervals,
    live_intervals,
    projects,
    scope_projects,
)
from pypi_assets.errors import NotAnsweredError


class Following(StrEnum):
    """The answers about a project that its following allows.

    ANSWERED: there are answers. ENTERING: no answers until the project is visited and its files are read. EARLIER: no
    answers at this serial, but at later ones. ENDED: it is no longer followed. NEVER: no scope led to it by then.
    """

    ANSWERED = "answered"
    ENTERING = "entering"
    EARLIER = "earlier"
    ENDED = "ended"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class ProjectFollowing:
    """The state of following the project `name` (normalized) at `serial`.

    `projects` counts the projects with answers there. `since` is the first serial with answers, only for EARLIER.
    `ended` is the serial from which the project is not followed, only for ENDED. `is_beyond`: the project is known, but
    beyond the depth of its scopes.
    """

    name: str
    serial: int
    state: Following
    projects: int
    since: int | None = None
    ended: int | None = None
    is_beyond: bool = False

    def sentence(self) -> str | None:
        """Return the reason why there is no answer, and the remedy; None if there are answers."""
        add = f"add it with `pypi-assets scope create NAME {self.name}` and `pypi-assets scope run NAME`"
        match self.state:
            case Following.ANSWERED:
                return None
            case Following.ENTERING:
                return (
                    f"{self.name} is entering: there are no answers about it until it is visited and its files are read"
                    " (`pypi-assets scope run`)"
                )
            case Following.EARLIER:
                return (
                    f"there is no answer about {self.name} at serial {self.serial}: the first serial with one is"
                    f" {self.since}"
                )
            case Following.ENDED:
                return f"{self.name} has not been followed since serial {self.ended}, when it left the scopes: {add}"
            case Following.NEVER:
                beyond = " because it is beyond the depth of its scope" if self.is_beyond else ""
                return f"{self.name} is not followed{beyond}, so there are no answers about it: {add}"


def following_at(connection: Connection, name: str, serial: int | None = None) -> ProjectFollowing | None:
    """Return how the project with this name, in any spelling, is followed at `serial` (None: the complete serial).

    Return None if the whole index is followed: then there are answers about each project.
    """
    if follows_all(connection):
        return None
    at = complete_serial(connection) if serial is None else serial
    count = count_answered(connection, at) or 0
    project = find_project(connection, storable(name))
    if project is None:
        return ProjectFollowing(canonicalize_name(name), at, Following.NEVER, count)
    c = followed_intervals.c
    rows = connection.execute(select(followed_intervals).where(c.project_id == project.id).order_by(c.start)).all()
    known = [row for row in rows if row.exact_from is not None]
    if any(row.exact_from <= at and (row.end is None or row.end > at) for row in known):
        return ProjectFollowing(project.normalized, at, Following.ANSWERED, count)
    later = [row.exact_from for row in known if row.exact_from > at]
    if later:
        return ProjectFollowing(project.normalized, at, Following.EARLIER, count, since=min(later))
    if any(row.end is None for row in rows):
        return ProjectFollowing(project.normalized, at, Following.ENTERING, count)
    if known:
        return ProjectFollowing(project.normalized, at, Following.ENDED, count, ended=known[-1].end)
    in_scopes = connection.scalars(select(scope_projects.c.is_beyond).where(scope_projects.c.project_id == project.id))
    is_beyond = any(in_scopes)
    return ProjectFollowing(project.normalized, at, Following.NEVER, count, is_beyond=is_beyond)


def unfollowed_at(catalog: Catalog, serial: int, name: str) -> str | None:
    """Return why there is no answer about a project at `serial`; None if there are answers."""
    with catalog.read() as connection:
        found = following_at(connection, name, serial)
    return None if found is None else found.sentence()


def require_answered(connection: Connection, name: str, serial: int) -> ProjectFollowing | None:
    """Return the result of `following_at`.

    Raises NotAnsweredError, with the first serial that has answers, if `serial` is before it.
    """
    found = following_at(connection, name, serial)
    if found is not None and found.state == Following.EARLIER:
        raise NotAnsweredError(str(found.sentence()))
    return found


def unpublished_sentence(connection: Connection, name: str, serial: int) -> str | None:
    """Return why a publication at `serial` has nothing about the project.

    Return None if it is known that the project has no file there.
    """
    now = following_at(connection, name)
    if now is None or now.state != Following.ANSWERED:
        return None if now is None else now.sentence()
    then = following_at(connection, name, serial)
    if then is not None and then.state == Following.ANSWERED and not _has_live_files(connection, now.name, serial):
        return None
    return (
        f"{now.name} has entered since then: the next version will have it (`pypi-assets dump incremental`, then"
        " `pypi-assets leveldb update`)"
    )


def _has_live_files(connection: Connection, normalized: str, serial: int) -> bool:
    query = (
        select(live_intervals.c.distribution_id)
        .join(distributions, distributions.c.id == live_intervals.c.distribution_id)
        .join(projects, projects.c.id == distributions.c.project_id)
        .where(projects.c.normalized == normalized, holds_at(live_intervals.c.start, live_intervals.c.end, serial))
    )
    return connection.execute(query.limit(1)).first() is not None
