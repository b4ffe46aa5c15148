"""The files whose bytes are in the storage for scopes that keep files, within the budget of each scope.

A file is reserved before its bytes are written, and counts from then on. To make room, a reservation evicts files of
lower rank: files that are on the index first, then yanked files, then files that the index has removed, and of each
kind the files with the oldest upload first. So a file on the index never displaces a file that only the storage has,
and a file that was evicted never displaces the file that took its place.

A file counts until its bytes are deleted from the storage, so the storage never has more bytes of a scope than its
budget. Callers delete the objects that `reserve` returns, and then call `drop_deleted`. `keeping/` writes and deletes
the objects. Each attempt to write a file has a path that is never used again, so no process deletes the object of
another one. All changes hold one lock, so budgets hold for any number of processes.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, delete, exists, func, insert, select, tuple_, update

from pypi_assets.catalog.coordination.claims import is_dead
from pypi_assets.catalog.counters import add_counts
from pypi_assets.catalog.database import at_a_time, insert_missing, lock_name
from pypi_assets.catalog.reads.forgotten_files import forgotten_among, taken_down_among
from pypi_assets.catalog.reads.past_generations import has_past_generations
from pypi_assets.catalog.tables import (
    distributions,
    kept_files,
    kept_in_scopes,
    live_intervals,
    past_generations,
    scope_projects,
    scopes,
    yanked_intervals,
)

KEPT_FILES, KEPT_BYTES = "kept files", "kept bytes"
"""The names of the counts of kept files and of their bytes, each file once. Files that are being written count too."""
_LOCK = "kept files"
_AT_ONCE = 200
_CLAIM_S = 6 * 3600.0
"""Another process may write a file again after this time, if the process that reserved it is not known to be dead."""


class KeptState(StrEnum):
    """The state of a kept file. A corrupt file does not have the bytes of its hash, and is not served."""

    WRITING = "writing"
    KEPT = "kept"
    CORRUPT = "corrupt"
    DELETING = "deleting"


class Standing(IntEnum):
    """Whether the index still has a file. Files with a lower standing are evicted first."""

    LISTED = 0
    YANKED = 1
    GONE = 2


class Rank(NamedTuple):
    """The rank of a file. Files of lower ranks are evicted first. `uploaded` is the time of the upload, or empty."""

    standing: int
    uploaded: str
    sha256: str


@dataclass(frozen=True, slots=True)
class KeptObject:
    """An object in the storage with the bytes of a file, by its attempt. `size` is in bytes."""

    sha256: str
    attempt: str
    size: int


@dataclass(frozen=True, slots=True)
class FileToKeep:
    """A distribution whose bytes are wanted, if a scope that keeps files leads to its project."""

    distribution_id: int
    sha256: str
    size: int


@dataclass(slots=True)
class Reserved:
    """The result of `reserve`.

    The caller writes the objects in `new`, by distribution id. `left` are files that have room once the objects in
    `doomed` are deleted; the caller deletes them in any case.
    """

    new: dict[int, KeptObject] = field(default_factory=dict)
    left: list[FileToKeep] = field(default_factory=list)
    doomed: list[KeptObject] = field(default_factory=list)


def lock_kept_files(connection: Connection) -> None:
    """Lock the kept files of all scopes, so that one transaction at a time changes them. Call it before other locks,
    but after `lock_scopes`.
    """
    lock_name(connection, _LOCK)


def keeps_any(connection: Connection) -> bool:
    """Check whether a scope keeps files."""
    return bool(connection.scalar(select(exists(select(scopes.c.id).where(scopes.c.keep_files)))))


def wanted_among(connection: Connection, distribution_ids: Sequence[int]) -> dict[int, list[int]]:
    """Return the distributions whose projects are in scopes that keep files, each with the ids of these scopes."""
    query = (
        select(distributions.c.id, scopes.c.id)
        .join(scope_projects, scope_projects.c.project_id == distributions.c.project_id)
        .join(scopes, scopes.c.id == scope_projects.c.scope_id)
        .where(scope_projects.c.is_beyond.is_(False), scopes.c.keep_files)
        .order_by(distributions.c.id, scopes.c.id)
    )
    found: dict[int, list[int]] = {}
    for ids in at_a_time(distribution_ids):
        for id_, scope_id in connection.execute(query.where(distributions.c.id.in_(ids))):
            found.setdefault(id_, []).append(scope_id)
    return found


def reserve(connection: Connection, files: Sequence[FileToKeep], worker: str, now: float) -> Reserved:
    """Reserve room for files that the caller is about to write, and evict files of lower rank where it is missing.

    Files that are kept already only get further scopes. Forgotten files and files without room are skipped.
    """
    lock_kept_files(connection)
    _doom_abandoned(connection, now)
    rooms = _Rooms(connection)
    _enforce(connection, rooms, rooms.of)
    reserved = Reserved()
    wanted = wanted_among(connection, [file.distribution_id for file in files])
    refused = taken_down_among(connection, list(wanted))
    forgotten = forgotten_among(connection, [file.sha256 for file in files])
    for file in files:
        scope_ids = wanted.get(file.distribution_id)
        if scope_ids and file.sha256 not in forgotten and file.distribution_id not in refused:
            _reserve_one(connection, rooms, file, scope_ids, reserved, worker, now)
    rooms.store()
    reserved.doomed = doomed(connection)
    return reserved


def doomed(connection: Connection) -> list[KeptObject]:
    """Return the objects that are to be deleted, and then dropped by `drop_deleted`."""
    c = kept_files.c
    query = select(c.sha256, c.attempt, c.size).where(c.state != KeptState.KEPT, c.state == KeptState.DELETING)
    return [KeptObject(*row) for row in connection.execute(query.order_by(c.sha256))]


def finish(connection: Connection, written: Mapping[KeptObject, bytes], now: float) -> list[KeptObject]:
    """Record that these objects are written, with the hashes of their blocks. Return the recorded objects.

    The other objects were forgotten or taken over meanwhile, and the caller deletes them.
    """
    lock_kept_files(connection)
    return [
        one
        for one, blocks in sorted(written.items(), key=lambda item: item[0].sha256)
        if _change(connection, one, KeptState.WRITING, state=KeptState.KEPT, kept_at=now, blocks=blocks)
    ]


def abandon(connection: Connection, objects: Iterable[KeptObject]) -> list[KeptObject]:
    """Give up files that were reserved, but not written. Return the objects to delete."""
    lock_kept_files(connection)
    for one in objects:
        _change(connection, one, KeptState.WRITING, state=KeptState.DELETING)
    return doomed(connection)


def drop_deleted(connection: Connection, objects: Sequence[KeptObject]) -> None:
    """Remove the rows of objects that are deleted from the storage."""
    lock_kept_files(connection)
    rooms = _Rooms(connection)
    for one in objects:
        row = _row(connection, one.sha256)
        if row is not None and row.attempt == one.attempt and row.state == KeptState.DELETING:
            for scope_id in _scopes_of(connection, one.sha256):
                rooms.give_back(scope_id, row.size)
            connection.execute(delete(kept_in_scopes).where(kept_in_scopes.c.sha256 == one.sha256))
            connection.execute(delete(kept_files).where(kept_files.c.sha256 == one.sha256))
            add_counts(connection, {KEPT_FILES: -1, KEPT_BYTES: -row.size})
    rooms.store()


def enforce_budgets(connection: Connection, scope_ids: Iterable[int] | None = None) -> list[KeptObject]:
    """Evict files of scopes (None: of all scopes) that have more bytes than their budgets. Return the objects to
    delete.
    """
    lock_kept_files(connection)
    rooms = _Rooms(connection)
    _enforce(connection, rooms, rooms.of if scope_ids is None else scope_ids)
    rooms.store()
    return doomed(connection)


def _enforce(connection: Connection, rooms: "_Rooms", scope_ids: Iterable[int]) -> None:
    for scope_id in sorted(scope_ids):
        if (lacking := rooms.lacking(scope_id, 0)) > 0:
            _evict(connection, rooms, scope_id, lacking, None)


def release_unwanted(connection: Connection, sha256s: Sequence[str]) -> list[KeptObject]:
    """Remove those of these files from scopes that no longer want them, and doom those that no scope wants.

    A scope wants the files of the projects that it follows. Return the objects to delete.
    """
    lock_kept_files(connection)
    rooms = _Rooms(connection)
    wanted = _wanting_scopes(connection, sha256s)
    for sha256 in sha256s:
        row = _row(connection, sha256)
        if row is None or row.state == KeptState.DELETING:
            continue
        held = set(_scopes_of(connection, sha256))
        if not held & wanted.get(sha256, set()):
            _set(connection, sha256, state=KeptState.DELETING)
            continue
        for scope_id in sorted(held - wanted[sha256]):
            _leave(connection, rooms, scope_id, sha256, row.size)
    rooms.store()
    return doomed(connection)


def _wanting_scopes(connection: Connection, sha256s: Sequence[str]) -> dict[str, set[int]]:
    """Return the scopes that keep files and follow a project that has, or had, each of these files."""
    d, past = distributions.c, past_generations.c
    of_scope = scope_projects.c.project_id == d.project_id
    found: dict[str, set[int]] = {}
    for some in at_a_time(sha256s):
        present = select(d.sha256, scopes.c.id).join(scope_projects, of_scope).where(d.sha256.in_(some))
        former = select(past.sha256, scopes.c.id).join(distributions, d.id == past.distribution_id)
        former = former.join(scope_projects, of_scope).where(past.sha256.in_(some))
        for query in (present, former) if has_past_generations(connection) else (present,):
            joined = query.join(scopes, scopes.c.id == scope_projects.c.scope_id)
            followed = joined.where(scope_projects.c.is_beyond.is_(False), scopes.c.keep_files)
            for sha256, scope_id in connection.execute(followed):
                found.setdefault(sha256, set()).add(scope_id)
    return found


def release_scope(connection: Connection, scope_id: int) -> None:
    """Remove all kept files from a scope that is about to be deleted. Files of no other scope become unwanted."""
    lock_kept_files(connection)
    connection.execute(delete(kept_in_scopes).where(kept_in_scopes.c.scope_id == scope_id))


def mark_verified(connection: Connection, one: KeptObject, *, is_corrupt: bool) -> None:
    """Record whether this object has the bytes of its hash. If not, its scopes have work: to fetch it again."""
    lock_kept_files(connection)
    before, after = (KeptState.KEPT, KeptState.CORRUPT) if is_corrupt else (KeptState.CORRUPT, KeptState.KEPT)
    if _change(connection, one, before, state=after) and is_corrupt:
        of_it = scopes.c.id.in_(_scopes_of(connection, one.sha256))
        connection.execute(update(scopes).where(of_it).values(completed_at=None))


def doom(connection: Connection, sha256s: Iterable[str]) -> list[KeptObject]:
    """Mark these files to be deleted, whoever wants them. Return the objects to delete."""
    lock_kept_files(connection)
    for sha256 in sha256s:
        _set(connection, sha256, state=KeptState.DELETING)
    return doomed(connection)


def refresh_ranks(connection: Connection, sha256s: Sequence[str]) -> None:
    """Update the stored ranks of these files, which change when the index removes or yanks a file."""
    lock_kept_files(connection)
    for rank in ranks(connection, sha256s).values():
        _store_rank(connection, rank)


def ranks(connection: Connection, sha256s: Sequence[str]) -> dict[str, Rank]:
    """Return the present ranks of these files. If several distributions have the bytes, the highest rank counts."""
    d = distributions.c
    is_live = exists().where(live_intervals.c.distribution_id == d.id, live_intervals.c.end.is_(None))
    is_yanked = exists().where(yanked_intervals.c.distribution_id == d.id, yanked_intervals.c.end.is_(None))
    uploaded = func.coalesce(d.uploaded_at, d.first_seen_at, "")
    found: dict[str, list[Rank]] = {}
    for some in at_a_time(sha256s):
        query = select(d.sha256, uploaded, is_live, is_yanked).where(d.sha256.in_(some))
        for sha256, at, live, yanked in connection.execute(query):
            standing = Standing.GONE if not live else Standing.YANKED if yanked else Standing.LISTED
            found.setdefault(sha256, []).append(Rank(standing, at, sha256))
    result = {sha256: Rank(Standing.GONE, "", sha256) for sha256 in sha256s}
    for sha256, of_it in found.items():
        on_index = [rank for rank in of_it if rank.standing != Standing.GONE]
        result[sha256] = min(on_index) if on_index else max(of_it)
    return result


_BYTES_OF_DOOMED = (
    select(kept_in_scopes.c.scope_id, func.sum(kept_files.c.size).label("size"))
    .join(kept_files, kept_files.c.sha256 == kept_in_scopes.c.sha256)
    .where(kept_files.c.state != KeptState.KEPT, kept_files.c.state == KeptState.DELETING)
    .group_by(kept_in_scopes.c.scope_id)
)


class _Rooms:
    """The bytes and budgets of all scopes within a transaction. `store` writes the changes at its end."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        c = scopes.c
        rows = connection.execute(select(c.id, c.keep_files, c.most, c.kept_bytes).order_by(c.id))
        self.of = {row.id: row for row in rows}
        self._changes: dict[int, int] = {}
        self._evicted: dict[int, list[int]] = {}
        self._freed = {row.scope_id: int(row.size) for row in connection.execute(_BYTES_OF_DOOMED)}
        self._promised: dict[int, int] = {}

    def lacking(self, scope_id: int, size: int) -> int:
        """Return how many bytes have to be evicted before the scope has room for `size` more."""
        scope = self.of[scope_id]
        if scope.most is None:
            return 0
        used = scope.kept_bytes + self._changes.get(scope_id, 0) + self._promised.get(scope_id, 0)
        return max(int(used - self._freed.get(scope_id, 0) + size - scope.most), 0)

    def is_too_large(self, scope_id: int, size: int) -> bool:
        most = self.of[scope_id].most
        return most is not None and size > most

    def fits_now(self, scope_id: int, size: int) -> bool:
        """Check whether the scope has room for `size` bytes before doomed objects are deleted."""
        scope = self.of[scope_id]
        return scope.most is None or scope.kept_bytes + self._changes.get(scope_id, 0) + size <= scope.most

    def take(self, scope_id: int, size: int) -> None:
        self._changes[scope_id] = self._changes.get(scope_id, 0) + size

    def give_back(self, scope_id: int, size: int) -> None:
        self._changes[scope_id] = self._changes.get(scope_id, 0) - size

    def promise(self, scope_id: int, size: int) -> None:
        """Note that a file of this size enters the scope once doomed objects are deleted."""
        self._promised[scope_id] = self._promised.get(scope_id, 0) + size

    def evict(self, scope_id: int, size: int, *, is_deleted_later: bool) -> None:
        """Count an eviction. If its object has to be deleted, its bytes count until then."""
        self._evicted.setdefault(scope_id, []).append(size)
        if is_deleted_later:
            self._freed[scope_id] = self._freed.get(scope_id, 0) + size

    def note_doomed(self, scope_id: int, size: int) -> None:
        """Note that an object of the scope will be deleted for another reason than an eviction."""
        self._freed[scope_id] = self._freed.get(scope_id, 0) + size

    def store(self) -> None:
        c = scopes.c
        for scope_id in sorted(self._changes.keys() | self._evicted.keys()):
            sizes = self._evicted.get(scope_id, [])
            values = {
                c.kept_bytes: c.kept_bytes + self._changes.get(scope_id, 0),
                c.evicted_files: c.evicted_files + len(sizes),
                c.evicted_bytes: c.evicted_bytes + sum(sizes),
            }
            self._connection.execute(update(scopes).where(c.id == scope_id).values(values))


def _reserve_one(
    connection: Connection,
    rooms: _Rooms,
    file: FileToKeep,
    scope_ids: Sequence[int],
    reserved: Reserved,
    worker: str,
    now: float,
) -> None:
    row = _row(connection, file.sha256)
    if row is not None and row.state == KeptState.CORRUPT:
        _set(connection, file.sha256, state=KeptState.DELETING)
        for scope_id in _scopes_of(connection, file.sha256):
            rooms.note_doomed(scope_id, row.size)
    if row is not None and row.state in {KeptState.CORRUPT, KeptState.DELETING}:
        reserved.left.append(file)
        return
    size = file.size if row is None else row.size
    held = set(_scopes_of(connection, file.sha256)) if row is not None else set()
    rank = ranks(connection, [file.sha256])[file.sha256]
    takers = []
    is_left = False
    for scope_id in scope_ids:
        if scope_id in held or rooms.is_too_large(scope_id, size):
            continue
        lacking = rooms.lacking(scope_id, size)
        if lacking and not _evict(connection, rooms, scope_id, lacking, rank):
            continue
        if rooms.fits_now(scope_id, size):
            takers.append(scope_id)
            rooms.take(scope_id, size)
        else:
            rooms.promise(scope_id, size)
            is_left = True
    if is_left:
        reserved.left.append(file)
    if not takers:
        return
    if row is None:
        values = {
            "sha256": file.sha256,
            "attempt": os.urandom(8).hex(),
            "size": size,
            "state": KeptState.WRITING,
            "worker": worker,
            "until": now + _CLAIM_S,
            "standing": rank.standing,
            "uploaded": rank.uploaded,
        }
        connection.execute(insert(kept_files).values(values))
        add_counts(connection, {KEPT_FILES: 1, KEPT_BYTES: size})
        reserved.new[file.distribution_id] = KeptObject(file.sha256, str(values["attempt"]), size)
    insert_missing(connection, kept_in_scopes, [{"scope_id": scope_id, "sha256": file.sha256} for scope_id in takers])


def _evict(connection: Connection, rooms: _Rooms, scope_id: int, lacking: int, below: Rank | None) -> bool:
    """Evict files of a scope with lower ranks than `below` until `lacking` bytes are free.

    Return False, and evict nothing, if such files do not have as many bytes. If `below` is None, all files can be
    evicted.
    """
    victims: list[tuple[str, int]] = []
    for sha256, size in _in_order(connection, scope_id, below):
        victims.append((sha256, size))
        lacking -= size
        if lacking <= 0:
            break
    if lacking > 0 and below is not None:
        return False
    for sha256, size in victims:
        is_last = _scopes_of(connection, sha256) == [scope_id]
        rooms.evict(scope_id, size, is_deleted_later=is_last)
        if is_last:
            _set(connection, sha256, state=KeptState.DELETING)
        else:
            _leave(connection, rooms, scope_id, sha256, size)
    return True


def _in_order(connection: Connection, scope_id: int, below: Rank | None) -> Iterator[tuple[str, int]]:
    """Yield the written files of a scope, from the lowest present rank to `below`.

    Stored ranks may be old. Files that have risen get their new ranks first, and are then read at their new places.
    """
    c = kept_files.c
    order = tuple_(c.standing, c.uploaded, c.sha256)
    query = (
        select(c.sha256, c.size, c.standing, c.uploaded)
        .join(kept_in_scopes, kept_in_scopes.c.sha256 == c.sha256)
        .where(kept_in_scopes.c.scope_id == scope_id, c.state.in_((KeptState.KEPT, KeptState.CORRUPT)))
        .order_by(c.standing, c.uploaded, c.sha256)
        .limit(_AT_ONCE)
    )
    if below is not None:
        query = query.where(order < tuple(below))
    after: Rank | None = None
    while True:
        rows = connection.execute(query if after is None else query.where(order > tuple(after))).all()
        stored = {row.sha256: Rank(row.standing, row.uploaded, row.sha256) for row in rows}
        risen = [rank for rank in ranks(connection, list(stored)).values() if rank > stored[rank.sha256]]
        if risen:  # files of this batch may now come after files of later batches
            for rank in risen:
                _store_rank(connection, rank)
            continue
        yield from ((row.sha256, row.size) for row in rows)
        if len(rows) < _AT_ONCE:
            return
        after = stored[rows[-1].sha256]


def _doom_abandoned(connection: Connection, now: float) -> None:
    """Doom files whose writer died or did not finish in time."""
    c = kept_files.c
    query = select(c.sha256, c.worker, c.until).where(c.state != KeptState.KEPT, c.state == KeptState.WRITING)
    for row in connection.execute(query.order_by(c.sha256)).all():
        if row.until <= now or is_dead(row.worker):
            _set(connection, row.sha256, state=KeptState.DELETING)


def doom_abandoned(connection: Connection, now: float) -> list[KeptObject]:
    """Doom files whose writer died or did not finish in time. Return the objects to delete."""
    lock_kept_files(connection)
    _doom_abandoned(connection, now)
    return doomed(connection)


def _leave(connection: Connection, rooms: _Rooms, scope_id: int, sha256: str, size: int) -> None:
    of_it = (kept_in_scopes.c.scope_id == scope_id, kept_in_scopes.c.sha256 == sha256)
    connection.execute(delete(kept_in_scopes).where(*of_it))
    rooms.give_back(scope_id, size)


def _scopes_of(connection: Connection, sha256: str) -> list[int]:
    c = kept_in_scopes.c
    return list(connection.scalars(select(c.scope_id).where(c.sha256 == sha256).order_by(c.scope_id)))


def _row(connection: Connection, sha256: str) -> Row[Any] | None:
    return connection.execute(select(kept_files).where(kept_files.c.sha256 == sha256)).first()


def _set(connection: Connection, sha256: str, **values: Any) -> None:
    connection.execute(update(kept_files).where(kept_files.c.sha256 == sha256).values(values))


def _store_rank(connection: Connection, rank: Rank) -> None:
    _set(connection, rank.sha256, standing=int(rank.standing), uploaded=rank.uploaded)


def _change(connection: Connection, one: KeptObject, before: KeptState, **values: Any) -> bool:
    """Change the row of an object in the state `before`. Return whether there is one."""
    c = kept_files.c
    of_it = (c.sha256 == one.sha256, c.attempt == one.attempt, c.state == before)
    return connection.execute(update(kept_files).where(*of_it).values(values)).rowcount == 1
