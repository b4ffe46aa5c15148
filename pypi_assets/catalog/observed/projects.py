"""Projects, entered from the index's list or from an event, and the shards that they belong to."""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from packaging.utils import canonicalize_name
from sqlalchemy import Connection, and_, case, select, update

from pypi_assets.catalog.database import at_a_time, insert_missing, lock_rows, sent_values
from pypi_assets.catalog.tables import catalog_state, projects

PROJECT_SHARDS = 1_000
SHARDS_IN_A_PART = 10


@dataclass(frozen=True, slots=True)
class Project:
    """One project of the catalog. All its events above `known_since` are stored.

    That is 0 for each project once the whole changelog is stored, whatever its row has.
    """

    id: int
    normalized: str
    name: str
    known_since: int
    page_serial: int | None


_IS_ALL_STORED = select(
    and_(catalog_state.c.events_since == 0, catalog_state.c.all_events_since.is_(None))
).scalar_subquery()
PROJECT_COLUMNS = (
    projects.c.id,
    projects.c.normalized,
    projects.c.name,
    case((_IS_ALL_STORED, 0), else_=projects.c.known_since).label("known_since"),
    projects.c.page_serial,
)
"""The columns of a Project, in the order of its fields. That all events are stored is one row and not one a project."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The normalized names of the projects that a catalog is limited to. Without names it follows all."""

    names: frozenset[str] = frozenset()

    def __contains__(self, normalized: str) -> bool:
        return not self.names or normalized in self.names


def project_shard(normalized: str) -> int:
    """The shard of a full crawl, 0 to 999, that the project is in."""
    return _shard(_digest(normalized))


def project_part_key(shard: int) -> str:
    """Return the partition key of a full crawl that has this shard: the first two of its three decimal digits.

    >>> project_part_key(457)
    '45'
    """
    return f"{shard // SHARDS_IN_A_PART:02d}"


def project_bucket(normalized: str) -> int:
    """The first 16 bits of the hash of the name. Its first digits are the shard of a dump."""
    return _bucket(_digest(normalized))


def _shard(digest: bytes) -> int:
    return int.from_bytes(digest) % PROJECT_SHARDS


def _bucket(digest: bytes) -> int:
    return int.from_bytes(digest[:2])


def _digest(normalized: str) -> bytes:
    return hashlib.sha256(normalized.encode()).digest()


def enter_projects(connection: Connection, names: Iterable[tuple[str, int] | tuple[str, int, int | None]]) -> None:
    """Enters new projects from `names`: each as displayed, with the serial above which its events are stored.

    A third item is the serial at which it is displayed so, where that is known.
    """
    first: dict[str, tuple[str, int, int | None]] = {}
    for name, known_since, *at in names:
        first.setdefault(canonicalize_name(name), (name, known_since, at[0] if at else None))
    rows = []
    for normalized, (name, known_since, named_at) in sorted(first.items()):
        digest = _digest(normalized)
        rows.append(
            {
                "normalized": normalized,
                "name": name,
                "bucket": _bucket(digest),
                "shard": _shard(digest),
                "known_since": known_since,
                "named_at": named_at,
            }
        )
    insert_missing(connection, projects, rows)


def project_ids(connection: Connection, normalized: Sequence[str]) -> dict[str, int]:
    """The ids of these projects, by normalized name, without unknown ones."""
    named = sent_values(connection, projects.c.normalized, normalized)
    query = select(projects.c.normalized, projects.c.id).join(named, projects.c.normalized == named.c.value)
    return {name: project_id for name, project_id in connection.execute(query)}


def projects_in_shards(connection: Connection, shards: Sequence[int]) -> list[tuple[int, int]]:
    """All known projects of `shards`: (project id, its shard)."""
    query = select(projects.c.id, projects.c.shard).where(projects.c.shard.in_(shards)).order_by(projects.c.id)
    return [(project_id, shard) for project_id, shard in connection.execute(query)]


def find_project(connection: Connection, name: str) -> Project | None:
    """The project of that name in any spelling; None where it is unknown."""
    named = select(*PROJECT_COLUMNS).where(projects.c.normalized == canonicalize_name(name))
    row = connection.execute(named).first()
    return None if row is None else Project(*row)


def load_projects(connection: Connection, ids: Sequence[int]) -> list[Project]:
    """These projects, in order of their ids."""
    found = []
    for some in at_a_time(sorted(ids)):
        query = select(*PROJECT_COLUMNS).where(projects.c.id.in_(some)).order_by(projects.c.id)
        found += [Project(*row) for row in connection.execute(query)]
    return found


def know_from_the_beginning(connection: Connection, normalized: Collection[str]) -> None:
    """All events of these projects are stored, though not those of all projects."""
    ids = sorted(project_ids(connection, sorted(normalized)).values())
    for some in at_a_time(ids):
        is_later = (projects.c.id.in_(some), projects.c.known_since > 0)
        lock_rows(connection, projects, *is_later)
        connection.execute(update(projects).where(*is_later).values(known_since=0))
