"""The files of projects as the catalog stores them: their rows and their intervals."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from sqlalchemy import ColumnElement, Connection, Table, exists, or_, select

from pypi_assets.catalog.database import bare_rows, sent_rows, sent_values, storable
from pypi_assets.catalog.derived.project_state import Interval
from pypi_assets.catalog.tables import distribution_data, distributions, live_intervals, releases, yanked_intervals
from pypi_assets.index.models import IndexFile


class PageFacts(NamedTuple):
    """The facts that a page shows of a file. The names are those of `distributions` and IndexFile."""

    url: str | None = None
    sha256: str | None = None
    size: int | None = None
    uploaded_at: str | None = None
    requires_python: str | None = None
    yanked_reason: str | None = None
    core_metadata: bool = False
    core_metadata_sha256: str | None = None
    first_seen_at: str | None = None

    @classmethod
    def of(cls, file: IndexFile) -> "PageFacts":
        """Return the facts of a file of a page, with texts that the database can store."""
        values: Iterator[Any] = (getattr(file, name) for name in cls._fields)
        return cls._make(storable(value) if isinstance(value, str) else value for value in values)


def facts_digest(file: IndexFile) -> int:
    """Return a 48-bit hash of everything that a page shows of a file."""
    try:
        content = orjson.dumps(file)
    except TypeError:  # an unpaired surrogate, or a number of more than 64 bits
        content = repr(file).encode(errors="replace")
    return int.from_bytes(hashlib.blake2b(content, digest_size=6).digest())


SHOWN_FACTS = tuple(name for name in PageFacts._fields if name != "core_metadata")
"""The facts that dumps and the journal contain."""


class StoredFile(NamedTuple):
    """The row of a file.

    `facts` come from the page with `page_serial`; they are unknown if there was no page. `generation` counts the
    contents of the file.
    """

    id: int
    project_id: int
    filename: str
    release_id: int
    page_serial: int | None
    version: str
    outcome: str
    error_kind: str | None
    generation: int
    facts: PageFacts


def load_files(connection: Connection, project_ids: Sequence[int]) -> dict[int, dict[str, StoredFile]]:
    """Return the stored files of each project, by project id and filename."""
    rows = connection.execute(_FILES.where(distributions.c.project_id.in_(project_ids)).order_by(distributions.c.id))
    return _by_project(rows, project_ids)


def load_named_files(connection: Connection, names: Mapping[int, Collection[str]]) -> dict[int, dict[str, StoredFile]]:
    """Return the stored files with these names, by project id and filename."""
    wanted = [(project_id, name) for project_id, of_it in sorted(names.items()) for name in sorted(of_it)]
    if not wanted:
        return {project_id: {} for project_id in names}
    sent, equal = sent_rows(connection, (distributions.c.project_id, distributions.c.filename), wanted)
    found = select(distributions.c.id).select_from(sent).join(distributions, equal).subquery()
    rows = connection.execute(_FILES.join(found, found.c.id == distributions.c.id).order_by(distributions.c.id))
    return _by_project(rows, names)


_FILES = (
    select(
        distributions.c.id,
        distributions.c.project_id,
        distributions.c.filename,
        distributions.c.release_id,
        distributions.c.page_serial,
        releases.c.version,
        distribution_data.c.outcome,
        distribution_data.c.error_kind,
        distributions.c.generation,
        *(distributions.c[name] for name in PageFacts._fields),
    )
    .join(releases, releases.c.id == distributions.c.release_id)
    .join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
)


def _by_project(rows: Iterable[Any], project_ids: Iterable[int]) -> dict[int, dict[str, StoredFile]]:
    found: dict[int, dict[str, StoredFile]] = {project_id: {} for project_id in project_ids}
    own = len(StoredFile._fields) - 1
    for row in rows:
        file = StoredFile._make((*row[:own], PageFacts._make(row[own:])))
        found[file.project_id][file.filename] = file
    return found


def intervals_of_projects(
    connection: Connection, table: Table, project_ids: Sequence[int]
) -> dict[int, tuple[Interval, ...]]:
    """Return the stored intervals of the projects' files, in order, by distribution id."""
    query = (
        select(table.c.distribution_id, table.c.start, table.c.end)
        .join(distributions, distributions.c.id == table.c.distribution_id)
        .where(distributions.c.project_id.in_(project_ids))
        .order_by(table.c.distribution_id, table.c.start)
    )
    return _by_file(bare_rows(connection, query))


def intervals_of_files(
    connection: Connection, table: Table, distribution_ids: Sequence[int]
) -> dict[int, tuple[Interval, ...]]:
    """Return the stored intervals of these files, in order, by distribution id."""
    return _by_file(interval_rows(connection, table, distribution_ids)) if distribution_ids else {}


def interval_rows(connection: Connection, table: Table, distribution_ids: Sequence[int]) -> Sequence[Any]:
    """Return (distribution id, start, end) of the stored intervals of these files, in order."""
    sent = sent_values(connection, distributions.c.id, distribution_ids)
    query = (
        select(table.c.distribution_id, table.c.start, table.c.end)
        .select_from(sent)
        .join(table, table.c.distribution_id == sent.c.value)
        .order_by(table.c.distribution_id, table.c.start)
    )
    return bare_rows(connection, query)


def shown_at(connection: Connection, project_id: int, serial: int) -> dict[str, bool]:
    """Return the files of a project that are live at `serial`, by stored intervals, each with whether it is yanked."""
    live, yanked = live_intervals, yanked_intervals
    is_yanked = exists().where(yanked.c.distribution_id == distributions.c.id, *_hold_at(yanked, serial))
    rows = connection.execute(
        select(distributions.c.filename, is_yanked.label("is_yanked"))
        .join(live, live.c.distribution_id == distributions.c.id)
        .where(distributions.c.project_id == project_id, *_hold_at(live, serial))
    )
    return {filename: bool(is_yanked) for filename, is_yanked in rows}


def _hold_at(table: Table, serial: int) -> tuple[ColumnElement[bool], ...]:
    return table.c.start <= serial, or_(table.c.end.is_(None), table.c.end > serial)


def _by_file(rows: Iterable[Any]) -> dict[int, tuple[Interval, ...]]:
    found: dict[int, list[Interval]] = {}
    for distribution_id, start, end in rows:
        found.setdefault(distribution_id, []).append(Interval(start, end))
    return {distribution_id: tuple(intervals) for distribution_id, intervals in found.items()}
