"""Projects, entered from the index's list or from an event: their shards, names as displayed and statuses (PEP 792).

A name follows the newest event or list of projects that shows another one, and a status the newest page.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from packaging.utils import canonicalize_name
from sqlalchemy import Connection, and_, bindparam, case, func, or_, select, update

from pypi_assets.catalog.database import at_a_time, insert_missing, lock_rows, sent_values, storable
from pypi_assets.catalog.ledger.epochs import note_change, note_changed_projects
from pypi_assets.catalog.ledger.range_ledger import lock_state, log_changes, seals
from pypi_assets.catalog.observed.sightings import StoredSighting, newest_events
from pypi_assets.catalog.tables import catalog_state, distributions, live_intervals, projects
from pypi_assets.index.models import ProjectPage

PROJECT_SHARDS = 1_000
SHARDS_IN_A_PART = 10


@dataclass(frozen=True, slots=True)
class CatalogProject:
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


def find_project(connection: Connection, name: str) -> CatalogProject | None:
    """The project of that name in any spelling; None where it is unknown."""
    named = select(*PROJECT_COLUMNS).where(projects.c.normalized == canonicalize_name(name))
    row = connection.execute(named).first()
    return None if row is None else CatalogProject(*row)


def load_projects(connection: Connection, ids: Sequence[int]) -> list[CatalogProject]:
    """These projects, in order of their ids."""
    found = []
    for some in at_a_time(sorted(ids)):
        query = select(*PROJECT_COLUMNS).where(projects.c.id.in_(some)).order_by(projects.c.id)
        found += [CatalogProject(*row) for row in connection.execute(query)]
    return found


def know_from_the_beginning(connection: Connection, normalized: Collection[str]) -> None:
    """All events of these projects are stored, though not those of all projects."""
    ids = sorted(project_ids(connection, sorted(normalized)).values())
    for some in at_a_time(ids):
        is_later = (projects.c.id.in_(some), projects.c.known_since > 0)
        lock_rows(connection, projects, *is_later)
        connection.execute(update(projects).where(*is_later).values(known_since=0))


CORRECTED = "corrected"
"""The cause of a change that is in no history of a file: its row is recorded otherwise than before."""


class ShownName(NamedTuple):
    """A project's name as displayed by an event or on a list, with the serial of that event or of the project there."""

    name: str
    serial: int


def rename_projects(connection: Connection, shown: Iterable[ShownName], *, are_events: bool = False) -> dict[int, int]:
    """Gives known projects the names that are newer than theirs. Returns the serials of the new names, by project id.

    A list counts before the event of the same serial, which can be stored once more after it.
    It locks these projects, so call it before anything that locks the state of the catalog. `log_renamed` follows.
    """
    newest: dict[str, ShownName] = {}
    for one in shown:
        normalized = canonicalize_name(one.name)
        if normalized not in newest or one.serial >= newest[normalized].serial:
            newest[normalized] = one
    named = sent_values(connection, projects.c.normalized, sorted(newest))
    columns = (projects.c.id, projects.c.normalized, projects.c.name, projects.c.named_at)
    known = connection.execute(select(*columns).join(named, projects.c.normalized == named.c.value)).all()
    other = {row.id: row for row in known if storable(newest[row.normalized].name) != row.name}
    last_events = newest_events(connection, other)
    renamed = {
        id_: newest[row.normalized]
        for id_, row in sorted(other.items())
        if newest[row.normalized].serial >= max((row.named_at or 0) + are_events, last_events.get(id_, 0))
    }
    if renamed:
        connection.execute(
            update(projects)
            .where(projects.c.id == bindparam("of_project"), func.coalesce(projects.c.named_at, 0) <= bindparam("at"))
            .values(name=bindparam("new_name"), named_at=bindparam("at")),
            [{"of_project": id_, "new_name": storable(one.name), "at": one.serial} for id_, one in renamed.items()],
        )
    return {id_: one.serial for id_, one in renamed.items()}


def log_renamed(connection: Connection, renamed: Mapping[int, int]) -> None:
    """Logs the live files of renamed projects, so that the next dumps have their rows; serials by project id."""
    if not renamed:
        return
    log_live_files(connection, renamed)
    note_changed_projects(connection, renamed)


def log_live_files(connection: Connection, serials: Mapping[int, int]) -> None:
    """Logs the live files of these projects at a serial each, so that the next dumps have their rows: what rows hold of
    a project has changed. It costs by the files of the projects, and locks the state."""
    lock_state(connection, exclusive=False)
    sealed = seals(connection)
    is_live = live_intervals.c.distribution_id == distributions.c.id
    live = select(distributions.c.id, distributions.c.project_id).join(live_intervals, is_live)
    live = live.where(live_intervals.c.end.is_(None))
    for ids in at_a_time(sorted(serials)):
        rows = [
            {"distribution_id": id_, "serial": serials[project_id], "cause": CORRECTED, "logged_serial": logged}
            for id_, project_id in connection.execute(live.where(distributions.c.project_id.in_(ids)))
            for logged in sealed.logged_serials(max(serials[project_id], 1))
        ]
        log_changes(connection, rows)


QUARANTINED = "quarantined"
"""The status of a project all of whose files are hidden."""


def note_statuses(
    connection: Connection,
    visited: Iterable[CatalogProject],
    pages: Mapping[int, ProjectPage],
    seen: Mapping[int, StoredSighting],
) -> None:
    """Stores the statuses that pages of these projects show, and logs what follows for dumps and for epochs.

    `pages` were just seen, and `seen` is what is new of that; both by project id. The projects are locked.
    """
    changed = _changed(connection, pages, seen)
    if pages:
        is_newest = or_(projects.c.page_serial.is_(None), projects.c.page_serial <= bindparam("serial"))
        connection.execute(
            update(projects)
            .where(projects.c.id == bindparam("of_project"), is_newest)
            .values(page_serial=bindparam("serial"), status=bindparam("page_status")),
            [
                {"of_project": id_, "serial": page.last_serial, "page_status": storable(page.status)}
                for id_, page in sorted(pages.items())
            ],
        )
    if changed:
        log_live_files(connection, changed)
    visible = [*changed.values(), *_first_quarantines(visited, pages), *_vanished(seen)]
    if visible:
        lock_state(connection, exclusive=False)
        note_change(connection, min(visible))


def _changed(
    connection: Connection, pages: Mapping[int, ProjectPage], seen: Mapping[int, StoredSighting]
) -> dict[int, int]:
    """The projects whose status is another one than on the page before, each with the serial from which that counts."""
    found = {}
    of = projects.c
    for ids in at_a_time(sorted(pages.keys() & seen.keys())):
        for row in connection.execute(select(of.id, of.status, of.page_serial).where(of.id.in_(ids))):
            page, before = pages[row.id], row.page_serial
            if before is not None and before <= page.last_serial and row.status != storable(page.status):
                found[row.id] = page.last_serial if page.last_serial > before else seen[row.id].seen_through
    return found


def _first_quarantines(visited: Iterable[CatalogProject], pages: Mapping[int, ProjectPage]) -> Iterable[int]:
    """Since when projects have a page that are quarantined on the first one that was ever seen."""
    for project in visited:
        page = pages.get(project.id)
        if page is not None and project.page_serial is None and page.status == QUARANTINED:
            yield project.known_since


def _vanished(seen: Mapping[int, StoredSighting]) -> Iterable[int]:
    """From where on projects have no page any more."""
    return (one.seen_through for one in seen.values() if one.page_status is None)
