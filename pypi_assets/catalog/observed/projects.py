"""Projects from the index's list or from events: their shards, displayed names, and statuses (PEP 792).

A name is taken from the newest event or list of projects that shows another one, and a status from the newest page.
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

    Once the whole changelog is stored, `known_since` is 0 for each project, even if its row has another value.
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
"""The columns of a CatalogProject, in the order of its fields. One row of `catalog_state` has whether all events are
stored, so that not every project has to be updated.
"""


@dataclass(frozen=True, slots=True)
class Selection:
    """The normalized names of the projects that a catalog is limited to. Without names, it follows all projects."""

    names: frozenset[str] = frozenset()

    def __contains__(self, normalized: str) -> bool:
        return not self.names or normalized in self.names


def project_shard(normalized: str) -> int:
    """Return the project's shard in a full crawl, from 0 to 999."""
    return _shard(_digest(normalized))


def project_part_key(shard: int) -> str:
    """Return the partition key of a full crawl that has this shard: the first two of its three decimal digits.

    >>> project_part_key(457)
    '45'
    """
    return f"{shard // SHARDS_IN_A_PART:02d}"


def project_bucket(normalized: str) -> int:
    """Return the first 16 bits of the name's SHA-256. Their leading bits are the shard of a full dump."""
    return _bucket(_digest(normalized))


def _shard(digest: bytes) -> int:
    return int.from_bytes(digest) % PROJECT_SHARDS


def _bucket(digest: bytes) -> int:
    return int.from_bytes(digest[:2])


def _digest(normalized: str) -> bytes:
    return hashlib.sha256(normalized.encode()).digest()


def enter_projects(connection: Connection, names: Iterable[tuple[str, int] | tuple[str, int, int | None]]) -> None:
    """Insert new projects. Each of `names` has the displayed name, and the serial above which its events are stored.

    A third item is the serial at which this name is displayed, if known.
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
    """Return the ids of these projects by normalized name. Unknown projects are skipped."""
    named = sent_values(connection, projects.c.normalized, normalized)
    query = select(projects.c.normalized, projects.c.id).join(named, projects.c.normalized == named.c.value)
    return {name: project_id for name, project_id in connection.execute(query)}


def projects_in_shards(connection: Connection, shards: Sequence[int]) -> list[tuple[int, int]]:
    """Return all known projects of `shards`, as (project id, shard)."""
    query = select(projects.c.id, projects.c.shard).where(projects.c.shard.in_(shards)).order_by(projects.c.id)
    return [(project_id, shard) for project_id, shard in connection.execute(query)]


def find_project(connection: Connection, name: str) -> CatalogProject | None:
    """Return the project with this name in any spelling; None if it is unknown."""
    named = select(*PROJECT_COLUMNS).where(projects.c.normalized == canonicalize_name(name))
    row = connection.execute(named).first()
    return None if row is None else CatalogProject(*row)


def load_projects(connection: Connection, ids: Sequence[int]) -> list[CatalogProject]:
    """Return these projects, in order of their ids."""
    found = []
    for chunk in at_a_time(sorted(ids)):
        query = select(*PROJECT_COLUMNS).where(projects.c.id.in_(chunk)).order_by(projects.c.id)
        found += [CatalogProject(*row) for row in connection.execute(query)]
    return found


def know_from_the_beginning(connection: Connection, normalized: Collection[str]) -> None:
    """Record that all events of these projects are stored, although those of other projects may not be."""
    ids = sorted(project_ids(connection, sorted(normalized)).values())
    for chunk in at_a_time(ids):
        is_later = (projects.c.id.in_(chunk), projects.c.known_since > 0)
        lock_rows(connection, projects, *is_later)
        connection.execute(update(projects).where(*is_later).values(known_since=0))


CORRECTED = "corrected"
"""The cause of a change that is not in the history of a file: its row has other facts than before."""


class ShownName(NamedTuple):
    """A displayed name of a project, with the serial of the event, or of the project in the list, that shows it."""

    name: str
    serial: int


def rename_projects(connection: Connection, shown: Iterable[ShownName], *, are_events: bool = False) -> dict[int, int]:
    """Give known projects the names that are newer than theirs. Return the serials of the new names, by project id.

    A list counts as older than an event with the same serial, since the event can be stored again after the list. The
    projects are locked, so call this before the state of the catalog is locked, and call `log_renamed` afterwards.
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
    """Log the live files of renamed projects, so that the next dumps contain their rows.

    `renamed` is the result of `rename_projects`.
    """
    if not renamed:
        return
    log_live_files(connection, renamed)
    note_changed_projects(connection, renamed)


def log_live_files(connection: Connection, serials: Mapping[int, int]) -> None:
    """Log the live files of these projects, each at the given serial, so that the next dumps contain their rows.

    Call it if facts about a project in these rows have changed. It reads all files of the projects, and locks the
    state.
    """
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
"""The status of a project whose files are all hidden."""


def note_statuses(
    connection: Connection,
    visited: Iterable[CatalogProject],
    pages: Mapping[int, ProjectPage],
    seen: Mapping[int, StoredSighting],
) -> None:
    """Store the statuses that pages of these projects show, and log the resulting changes of dumps and epochs.

    `pages` were just seen, and `seen` has the new sightings among them; both are by project id. The projects are
    locked.
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
    """Return the projects whose status differs from that on their previous page, each with the serial of the change."""
    found = {}
    c = projects.c
    for ids in at_a_time(sorted(pages.keys() & seen.keys())):
        for row in connection.execute(select(c.id, c.status, c.page_serial).where(c.id.in_(ids))):
            page, before = pages[row.id], row.page_serial
            if before is not None and before <= page.last_serial and row.status != storable(page.status):
                found[row.id] = page.last_serial if page.last_serial > before else seen[row.id].seen_through
    return found


def _first_quarantines(visited: Iterable[CatalogProject], pages: Mapping[int, ProjectPage]) -> Iterable[int]:
    """Yield the serials since which projects have pages, if their first page ever seen shows a quarantine."""
    for project in visited:
        page = pages.get(project.id)
        if page is not None and project.page_serial is None and page.status == QUARANTINED:
            yield project.known_since


def _vanished(seen: Mapping[int, StoredSighting]) -> Iterable[int]:
    """Return the serials from which projects have no page any more."""
    return (one.seen_through for one in seen.values() if one.page_status is None)
