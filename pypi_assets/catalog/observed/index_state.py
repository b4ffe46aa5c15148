"""Stored facts about the index itself: the states of its listers, the origin of its files, and broken entries.

The state of a lister is saved after each of its pages, and compared before it is overwritten. An *instance* is the URL
of the listed index. The serial up to which events are stored is in `catalog_state`, not here. `index/file_origins.py`
decides which origin of files is accepted from pages. Entries that break the index's protocol are stored separately and
displayed, so that one broken entry affects no other.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Select, delete, exists, func, select, update

from pypi_assets.catalog.database import CatalogError, at_a_time, insert_missing, storable
from pypi_assets.catalog.ledger.range_ledger import SIMPLE, XMLRPC
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.tables import broken_entries, catalog_state, distributions, lister_states, projects, visits
from pypi_assets.index.models import BrokenEntry

Content = Mapping[str, Any]


class OvertakenError(CatalogError):
    """Another run of the same lister has advanced its state in the meantime."""


@dataclass(frozen=True, slots=True)
class ListerState:
    """The last saved state of `lister` for `instance`, as JSON values.

    `revision` counts the saves; times are unix seconds.
    """

    lister: str
    instance: str
    content: Content
    revision: int = 0
    updated_at: float = 0.0


def read_lister_state(connection: Connection, lister: str, instance: str, *, lock: bool = False) -> ListerState:
    """Return the last saved state, or an empty one of revision 0. `lock` locks it until the transaction ends."""
    query = select(lister_states).where(lister_states.c.lister == lister, lister_states.c.instance == instance)
    if lock:
        query = query.with_for_update()
    row = connection.execute(query).first()
    if row is None:
        return ListerState(lister, instance, {})
    return ListerState(lister, instance, json.loads(row.state), row.revision, row.updated_at)


def save_lister_state(
    connection: Connection,
    known: ListerState,
    content: Content,
    now: float,
    reconcile: Callable[[Content, Content], Content],
) -> ListerState:
    """Save `content`, which was computed from the state `known`.

    If another run has saved a different state since, `reconcile` merges the stored content and `content`, or raises
    OvertakenError.
    """
    key = {"lister": known.lister, "instance": known.instance}
    insert_missing(connection, lister_states, [key | {"state": "{}", "revision": 0, "updated_at": now}])
    stored = read_lister_state(connection, known.lister, known.instance, lock=True)
    if stored.revision != known.revision and stored.content != known.content:
        content = reconcile(stored.content, content)
    revision = stored.revision + 1
    connection.execute(
        update(lister_states)
        .where(lister_states.c.lister == known.lister, lister_states.c.instance == known.instance)
        .values(state=json.dumps(dict(content), sort_keys=True), revision=revision, updated_at=now)
    )
    return ListerState(known.lister, known.instance, content, revision, now)


@dataclass(frozen=True, slots=True)
class ChangelogTrouble:
    """The changelog has failed since `since` (unix seconds).

    While `is_off`, the list of projects is followed instead, if the settings allow it.
    """

    since: float
    is_off: bool
    text: str


def changelog_trouble(connection: Connection, instance: str) -> ChangelogTrouble | None:
    """Return why and since when the changelog of the index fails; None if no failure is known."""
    known = read_lister_state(connection, XMLRPC, instance).content
    if "failing_since" not in known:
        return None
    return ChangelogTrouble(known["failing_since"], "off_since" in known, known["error"])


def last_listed(connection: Connection, instance: str) -> tuple[int | None, float | None]:
    """Return the serial of the last list that the lister `simple` compared, and the time of that (unix seconds)."""
    known = read_lister_state(connection, SIMPLE, instance).content
    return known.get("serial"), known.get("ended_at")


def last_accepted_look(connection: Connection) -> float | None:
    """Return when the lister `simple` last compared a whole list that counts (unix seconds); None if it never did."""
    states = connection.scalars(select(lister_states.c.state).where(lister_states.c.lister == SIMPLE))
    return max((at for state in states if (at := json.loads(state).get("looked_at")) is not None), default=None)


def known_file_origin(connection: Connection) -> str | None:
    """Return the stored origin of files, such as `https://files.example.org`.

    An empty text means that only the index's own hosts are accepted; None means that the origin is not decided yet.
    """
    return connection.scalar(select(catalog_state.c.file_origin))


def first_file_urls(connection: Connection, pages: int) -> list[str]:
    """Return the URLs of the files on the first `pages` visited pages that have files."""
    has_files = exists().where(distributions.c.project_id == visits.c.project_id, distributions.c.url.is_not(None))
    first = select(visits.c.project_id).where(visits.c.visit == 1, has_files).order_by(visits.c.id).limit(pages)
    ids = connection.scalars(first).all()
    query = select(distributions.c.url).where(distributions.c.project_id.in_(ids), distributions.c.url.is_not(None))
    return list(connection.scalars(query.order_by(distributions.c.id)))


def store_file_origin(connection: Connection, origin: str) -> bool:
    """Store `origin` unless an origin is already stored. Return whether it was stored."""
    statement = update(catalog_state).where(catalog_state.c.file_origin.is_(None)).values(file_origin=origin)
    return connection.execute(statement).rowcount == 1


class EntrySource(StrEnum):
    """The kind of answer that contained an entry."""

    CHANGELOG = "changelog"
    LIST = "project list"
    PAGE = "project page"


@dataclass(frozen=True, slots=True)
class KeptEntry:
    """A broken entry that is stored separately, first seen at `seen_at` (unix seconds).

    `project` is the displayed name of the page's project; it is empty for other sources.
    """

    id: int
    source: EntrySource
    project: str
    entry: BrokenEntry
    seen_at: float


def keep_rows(connection: Connection, rows: Iterable[BrokenEntry], now: float) -> None:
    """Store broken rows of the changelog. Rows that are already stored do not change."""
    insert_missing(connection, broken_entries, _rows(EntrySource.CHANGELOG, [(None, row) for row in rows], now))


def replace_list(connection: Connection, entries: Iterable[BrokenEntry], now: float) -> None:
    """Store the broken entries of the newest list of projects, and delete the broken entries of the older list."""
    connection.execute(delete(broken_entries).where(broken_entries.c.source == EntrySource.LIST))
    insert_missing(connection, broken_entries, _rows(EntrySource.LIST, [(None, entry) for entry in entries], now))


def replace_pages(connection: Connection, pages: Mapping[int, Sequence[BrokenEntry]], now: float) -> None:
    """Store the broken entries of the pages of these projects, by project id, and delete those of their older pages."""
    for ids in at_a_time(sorted(pages)):
        connection.execute(delete(broken_entries).where(broken_entries.c.project_id.in_(ids)))
    entries = [(project_id, entry) for project_id, found in sorted(pages.items()) for entry in found]
    insert_missing(connection, broken_entries, _rows(EntrySource.PAGE, entries, now))


def _rows(source: EntrySource, entries: Iterable[tuple[int | None, BrokenEntry]], now: float) -> list[dict[str, Any]]:
    return [
        {
            "source": source,
            "digest": hashlib.sha256(f"{project_id} {entry.after} {entry.text}".encode(errors="replace")).hexdigest(),
            "project_id": project_id,
            "name": None if entry.name is None else storable(entry.name),
            "serial": entry.serial,
            "after_serial": entry.after,
            "problem": storable(entry.problem),
            "content": storable(entry.text),
            "seen_at": now,
        }
        for project_id, entry in entries
    ]


def count_kept_aside(connection: Connection) -> dict[str, int]:
    """Return the number of broken entries from each source."""
    counted = select(func.count()).select_from(broken_entries)
    return {
        source.value: connection.scalar(counted.where(broken_entries.c.source == source)) or 0 for source in EntrySource
    }


def count_broken_rows(connection: Connection, serials: SerialRange) -> int:
    """Return the number of broken rows of the changelog in a range."""
    after = broken_entries.c.after_serial
    in_range = (broken_entries.c.source == EntrySource.CHANGELOG, after >= serials.start, after < serials.end)
    return connection.scalar(select(func.count()).select_from(broken_entries).where(*in_range)) or 0


def kept_aside(connection: Connection) -> list[KeptEntry]:
    """Return all broken entries, in the order in which they were stored."""
    return _read(connection, _entries())


def kept_rows(connection: Connection) -> list[KeptEntry]:
    """Return the broken rows of the changelog, in the order in which they were stored."""
    return _read(connection, _entries().where(broken_entries.c.source == EntrySource.CHANGELOG))


def forget_rows(connection: Connection, ids: Sequence[int]) -> None:
    """Delete the broken entries with these ids, which can be read now."""
    for chunk in at_a_time(ids):
        connection.execute(delete(broken_entries).where(broken_entries.c.id.in_(chunk)))


def _entries() -> Select[Any]:
    query = select(broken_entries, projects.c.name.label("project"))
    return query.outerjoin(projects, projects.c.id == broken_entries.c.project_id).order_by(broken_entries.c.id)


def _read(connection: Connection, query: Select[Any]) -> list[KeptEntry]:
    return [
        KeptEntry(
            id=row.id,
            source=EntrySource(row.source),
            project=row.project or "",
            entry=BrokenEntry(row.problem, row.content, row.name, row.serial, row.after_serial),
            seen_at=row.seen_at,
        )
        for row in connection.execute(query)
    ]
