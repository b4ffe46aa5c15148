"""Entries of the index's answers that break its protocol: kept aside, so that one costs no other, and shown.

Those of a page or of the list of projects are there until the next page or list without them; rows of the changelog
until a version of the code can read them. What is broken is decided in `index/`.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Select, delete, func, select

from pypi_assets.catalog.database import at_a_time, insert_missing, storable
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.tables import broken_entries, projects
from pypi_assets.index.models import BrokenEntry


class Source(StrEnum):
    """The kind of answer that an entry was in."""

    CHANGELOG = "changelog"
    LIST = "project list"
    PAGE = "project page"


@dataclass(frozen=True, slots=True)
class KeptEntry:
    """An entry that is kept aside, since `seen_at` (unix seconds).

    `project` is that of its page, as displayed; empty for other sources.
    """

    id: int
    source: Source
    project: str
    entry: BrokenEntry
    seen_at: float


def keep_rows(connection: Connection, rows: Iterable[BrokenEntry], now: float) -> None:
    """Keeps rows of the changelog aside. Those that are there already stay as they are."""
    insert_missing(connection, broken_entries, _rows(Source.CHANGELOG, [(None, row) for row in rows], now))


def replace_list(connection: Connection, entries: Iterable[BrokenEntry], now: float) -> None:
    """Keeps entries of the newest list of projects aside, in place of those of an older list."""
    connection.execute(delete(broken_entries).where(broken_entries.c.source == Source.LIST))
    insert_missing(connection, broken_entries, _rows(Source.LIST, [(None, entry) for entry in entries], now))


def replace_pages(connection: Connection, pages: Mapping[int, Sequence[BrokenEntry]], now: float) -> None:
    """Keeps entries of the pages of these projects aside, by project id, in place of those of their older pages."""
    for ids in at_a_time(sorted(pages)):
        connection.execute(delete(broken_entries).where(broken_entries.c.project_id.in_(ids)))
    entries = [(project_id, entry) for project_id, found in sorted(pages.items()) for entry in found]
    insert_missing(connection, broken_entries, _rows(Source.PAGE, entries, now))


def _rows(source: Source, entries: Iterable[tuple[int | None, BrokenEntry]], now: float) -> list[dict[str, Any]]:
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
    """The number of entries from each source."""
    counted = select(func.count()).select_from(broken_entries)
    return {source.value: connection.scalar(counted.where(broken_entries.c.source == source)) or 0 for source in Source}


def count_broken_rows(connection: Connection, serials: SerialRange) -> int:
    """The number of rows of the changelog that were kept aside in a range."""
    after = broken_entries.c.after_serial
    in_range = (broken_entries.c.source == Source.CHANGELOG, after >= serials.start, after < serials.end)
    return connection.scalar(select(func.count()).select_from(broken_entries).where(*in_range)) or 0


def kept_aside(connection: Connection) -> list[KeptEntry]:
    """All entries, in the order in which they were kept."""
    return _read(connection, _entries())


def kept_rows(connection: Connection) -> list[KeptEntry]:
    """The rows of the changelog, in the order in which they were kept."""
    return _read(connection, _entries().where(broken_entries.c.source == Source.CHANGELOG))


def forget_rows(connection: Connection, ids: Sequence[int]) -> None:
    """Removes the entries with these ids, which can be read now."""
    for some in at_a_time(ids):
        connection.execute(delete(broken_entries).where(broken_entries.c.id.in_(some)))


def _entries() -> Select[Any]:
    query = select(broken_entries, projects.c.name.label("project"))
    return query.outerjoin(projects, projects.c.id == broken_entries.c.project_id).order_by(broken_entries.c.id)


def _read(connection: Connection, query: Select[Any]) -> list[KeptEntry]:
    return [
        KeptEntry(
            id=row.id,
            source=Source(row.source),
            project=row.project or "",
            entry=BrokenEntry(row.problem, row.content, row.name, row.serial, row.after_serial),
            seen_at=row.seen_at,
        )
        for row in connection.execute(query)
    ]
