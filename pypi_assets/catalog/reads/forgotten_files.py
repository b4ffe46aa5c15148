"""Files whose bytes must never be kept again, by their hash, and takedowns of the journal that name files.

`kept_files.py` deletes the bytes that are kept.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from packaging.utils import canonicalize_version
from sqlalchemy import Connection, select, update

from pypi_assets.catalog.database import at_a_time, insert_missing
from pypi_assets.catalog.tables import (
    distributions,
    forgotten_files,
    journal_takedowns,
    kept_files,
    past_generations,
    projects,
    releases,
)


@dataclass(frozen=True, slots=True)
class ForgottenFile:
    """The record of a forgotten file. Times are unix seconds; `deleted_at` is None until its bytes are deleted.

    `takedown_id` is the takedown of the journal that names it; None: it was forgotten by its hash. `had_bytes` is set
    if its bytes were kept.
    """

    sha256: str
    forgotten_at: float
    reason: str
    takedown_id: int | None
    had_bytes: bool
    deleted_at: float | None


def forget(
    connection: Connection, sha256s: Iterable[str], reason: str, now: float, takedown_id: int | None = None
) -> list[str]:
    """Record that the bytes of these files must never be kept again. Return the hashes that were not recorded before.

    The caller holds the lock of kept files, and dooms the files (`kept_files.doom`).
    """
    hashes = sorted(set(sha256s))
    known = forgotten_among(connection, hashes)
    kept = _kept_among(connection, hashes)
    new = [sha256 for sha256 in hashes if sha256 not in known]
    rows = [
        {
            "sha256": sha256,
            "forgotten_at": now,
            "reason": reason,
            "takedown_id": takedown_id,
            "had_bytes": sha256 in kept,
            "deleted_at": None,
        }
        for sha256 in new
    ]
    insert_missing(connection, forgotten_files, rows)
    return new


def forgotten_among(connection: Connection, sha256s: Sequence[str]) -> set[str]:
    """Return the forgotten files among these hashes."""
    c = forgotten_files.c.sha256
    return {one for some in at_a_time(sha256s) for one in connection.scalars(select(c).where(c.in_(some)))}


def all_forgotten(connection: Connection) -> list[ForgottenFile]:
    """Return the records of all forgotten files, the oldest first."""
    c = forgotten_files.c
    return [
        ForgottenFile(*row) for row in connection.execute(select(forgotten_files).order_by(c.forgotten_at, c.sha256))
    ]


def still_to_delete(connection: Connection) -> list[str]:
    """Return the forgotten files of which the storage may still have bytes."""
    c = forgotten_files.c
    return list(connection.scalars(select(c.sha256).where(c.deleted_at.is_(None)).order_by(c.sha256)))


def note_bytes_deleted(connection: Connection, sha256s: Sequence[str], now: float) -> None:
    """Record that the storage has no bytes of these files, if they are forgotten."""
    c = forgotten_files.c
    for some in at_a_time(sorted(sha256s)):
        connection.execute(
            update(forgotten_files).where(c.sha256.in_(some), c.deleted_at.is_(None)).values(deleted_at=now)
        )


def hashes_of(connection: Connection, project: str, version: str | None, filename: str | None) -> set[str]:
    """Return the hashes of all files that a takedown names, including replaced contents."""
    d = distributions.c
    query = (
        select(d.id, d.sha256, releases.c.version)
        .join(projects, projects.c.id == d.project_id)
        .join(releases, releases.c.id == d.release_id)
        .where(projects.c.normalized == project)
    )
    if filename is not None:
        query = query.where(d.filename == filename)
    named = {id_: sha256 for id_, sha256, of in connection.execute(query) if _is_version(of, version)}
    past = past_generations.c
    former = {
        sha256
        for ids in at_a_time(named)
        for sha256 in connection.scalars(select(past.sha256).where(past.distribution_id.in_(ids)))
    }
    return {sha256 for sha256 in (*named.values(), *former) if sha256 is not None}


def taken_down_among(connection: Connection, distribution_ids: Sequence[int]) -> set[int]:
    """Return the distributions among these that a takedown names by their project, release or filename."""
    t = journal_takedowns.c
    takedowns = connection.execute(select(t.project, t.version, t.filename).where(t.project.is_not(None))).all()
    if not takedowns:
        return set()
    names = {row.project for row in takedowns}
    query = (
        select(distributions.c.id, projects.c.normalized, releases.c.version, distributions.c.filename)
        .join(projects, projects.c.id == distributions.c.project_id)
        .join(releases, releases.c.id == distributions.c.release_id)
    )
    return {
        row.id
        for ids in at_a_time(distribution_ids)
        for row in connection.execute(query.where(distributions.c.id.in_(ids)))
        if row.normalized in names
        and any(
            one.project == row.normalized
            and one.filename in {None, row.filename}
            and _is_version(row.version, one.version)
            for one in takedowns
        )
    }


def _is_version(found: str, wanted: str | None) -> bool:
    return wanted is None or found == wanted or canonicalize_version(found) == canonicalize_version(wanted)


def _kept_among(connection: Connection, sha256s: Sequence[str]) -> set[str]:
    c = kept_files.c.sha256
    return {one for some in at_a_time(sha256s) for one in connection.scalars(select(c).where(c.in_(some)))}
