"""Queries about kept files: a file by its hash, lists of kept and missing files, totals. They change nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, or_, select

from pypi_assets.catalog.counters import read_counts
from pypi_assets.catalog.database import at_a_time
from pypi_assets.catalog.reads.kept_files import KEPT_BYTES, KEPT_FILES, KeptObject, KeptState, Standing, ranks
from pypi_assets.catalog.reads.read_outcomes import ReadOutcome
from pypi_assets.catalog.tables import (
    distribution_data,
    distributions,
    forgotten_files,
    kept_files,
    kept_in_scopes,
    live_intervals,
    projects,
    scope_projects,
    scopes,
)

_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that is completely written: its object, and the hashes of its blocks."""

    object: KeptObject
    blocks: bytes
    is_corrupt: bool


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A kept file as `files list` shows it. `names` has its project and filename, for each distribution with it."""

    sha256: str
    size: int
    state: KeptState
    standing: Standing
    kept_at: float | None
    names: tuple[tuple[str, str], ...]
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MissingFile:
    """A file on the index whose bytes a scope wants and does not have. `size` is None if its page states none."""

    distribution_id: int
    filename: str
    url: str
    sha256: str
    size: int | None


@dataclass(frozen=True, slots=True)
class KeptTotals:
    """The number of kept files and of their bytes, each file once, and how many of them are known to be corrupt."""

    files: int = 0
    bytes: int = 0
    corrupt: int = 0


def find_kept(connection: Connection, sha256: str) -> WrittenFile | None:
    """Return a file that is completely written; None if its bytes are not kept."""
    c = kept_files.c
    query = select(kept_files).where(c.sha256 == sha256, c.state.in_((KeptState.KEPT, KeptState.CORRUPT)))
    row = connection.execute(query).first()
    if row is None:
        return None
    return WrittenFile(KeptObject(row.sha256, row.attempt, row.size), row.blocks or b"", row.state != KeptState.KEPT)


def known_files(connection: Connection, after: str, limit: int) -> dict[str, str]:
    """Return the attempts of the next files after the hash `after`, by their hashes in order."""
    c = kept_files.c
    query = select(c.sha256, c.attempt).where(c.sha256 > after).order_by(c.sha256).limit(limit)
    return {sha256: attempt for sha256, attempt in connection.execute(query)}


def kept_totals(connection: Connection) -> KeptTotals:
    """Return the totals of all kept files. The query is fast for any number of files."""
    counts = read_counts(connection)
    c = kept_files.c
    corrupt = select(func.count()).where(c.state != KeptState.KEPT, c.state == KeptState.CORRUPT)
    return KeptTotals(counts.get(KEPT_FILES, 0), counts.get(KEPT_BYTES, 0), connection.scalar(corrupt) or 0)


def kept_in(connection: Connection, scope_id: int) -> int:
    """Return the number of kept files of a scope. Reads a row for each."""
    c = kept_in_scopes.c
    return connection.scalar(select(func.count()).where(c.scope_id == scope_id)) or 0


def forgotten_in(connection: Connection, scope_id: int) -> int:
    """Return the number of forgotten files of a scope's projects."""
    d, c = distributions.c, scope_projects.c
    query = (
        select(func.count(d.sha256.distinct()))
        .select_from(forgotten_files)
        .join(distributions, d.sha256 == forgotten_files.c.sha256)
        .join(scope_projects, c.project_id == d.project_id)
        .where(c.scope_id == scope_id, c.is_beyond.is_(False))
    )
    return connection.scalar(query) or 0


def missing_ids(connection: Connection, scope_id: int) -> list[int]:
    """Return the distributions on the index whose bytes the scope does not have, the newest uploads first.

    Files that rules skip, forgotten files, and files that are still to be read are omitted. Reads a row for each file
    of the scope.
    """
    d, c = distributions.c, scope_projects.c
    has = select(kept_in_scopes.c.sha256).where(kept_in_scopes.c.scope_id == scope_id)
    is_corrupt = select(kept_files.c.sha256).where(
        kept_files.c.state != KeptState.KEPT, kept_files.c.state == KeptState.CORRUPT
    )
    query = (
        select(d.id)
        .join(scope_projects, c.project_id == d.project_id)
        .join(distribution_data, distribution_data.c.distribution_id == d.id)
        .join(live_intervals, live_intervals.c.distribution_id == d.id)
        .where(c.scope_id == scope_id, c.is_beyond.is_(False), live_intervals.c.end.is_(None))
        .where(d.url.is_not(None), d.sha256.is_not(None))
        .where(distribution_data.c.outcome.not_in((ReadOutcome.PENDING, ReadOutcome.SKIPPED)))
        .where(d.sha256.not_in(select(forgotten_files.c.sha256)))
        .where(or_(d.sha256.not_in(has), d.sha256.in_(is_corrupt)))
        .order_by(func.coalesce(d.uploaded_at, d.first_seen_at, "").desc(), d.id.desc())
    )
    return list(connection.scalars(query))


def missing_files(connection: Connection, distribution_ids: Sequence[int]) -> list[MissingFile]:
    """Return these distributions as files to fetch, in the given order."""
    d = distributions.c
    query = select(d.id, d.filename, d.url, d.sha256, d.size).where(d.id.in_(distribution_ids))
    found = {row.id: MissingFile(*row) for row in connection.execute(query)}
    return [found[id_] for id_ in distribution_ids if id_ in found]


def list_kept(connection: Connection, scope: str | None = None, project: str | None = None) -> Iterator[ListedFile]:
    """Yield the kept files by hash, with `scope` only those of this scope, with `project` those of this project."""
    c = kept_files.c
    query = select(kept_files).order_by(c.sha256).limit(_AT_ONCE)
    if scope is not None:
        of_scope = select(kept_in_scopes.c.sha256).join(scopes, scopes.c.id == kept_in_scopes.c.scope_id)
        query = query.where(c.sha256.in_(of_scope.where(scopes.c.name == scope)))
    if project is not None:
        of_project = select(distributions.c.sha256).join(projects, projects.c.id == distributions.c.project_id)
        query = query.where(c.sha256.in_(of_project.where(projects.c.normalized == project)))
    after = ""
    while rows := connection.execute(query.where(c.sha256 > after)).all():
        after = rows[-1].sha256
        present = ranks(connection, [row.sha256 for row in rows])
        names, held = (
            _names(connection, [row.sha256 for row in rows]),
            _scopes(connection, [row.sha256 for row in rows]),
        )
        for row in rows:
            yield ListedFile(
                row.sha256,
                row.size,
                KeptState(row.state),
                Standing(present[row.sha256].standing),
                row.kept_at,
                tuple(names.get(row.sha256, ())),
                tuple(held.get(row.sha256, ())),
            )


def _names(connection: Connection, sha256s: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    d = distributions.c
    query = select(d.sha256, projects.c.normalized, d.filename).join(projects, projects.c.id == d.project_id)
    found: dict[str, list[tuple[str, str]]] = {}
    for some in at_a_time(sha256s):
        for sha256, project, filename in connection.execute(query.where(d.sha256.in_(some)).order_by(d.id)):
            found.setdefault(sha256, []).append((project, filename))
    return found


def _scopes(connection: Connection, sha256s: Sequence[str]) -> dict[str, list[str]]:
    c = kept_in_scopes.c
    query = select(c.sha256, scopes.c.name).join(scopes, scopes.c.id == c.scope_id).order_by(scopes.c.name)
    found: dict[str, list[str]] = {}
    for some in at_a_time(sha256s):
        for sha256, name in connection.execute(query.where(c.sha256.in_(some))):
            found.setdefault(sha256, []).append(name)
    return found
