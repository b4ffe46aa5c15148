"""Content-addressed snapshots of pages, stored as full values and as differences from earlier snapshots.

The snapshots in a chain are numbered. The base of a difference is the snapshot whose number is its own without the
lowest set bit: the base of 6 (binary 110) is 4 (100), and the base of 4 is 0, a full value. So a snapshot is at most 16
differences away from its full value, and each base in turn lies at least twice as far back.
"""

import hashlib
import json
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection, select, update

from pypi_assets.catalog.database import CatalogError, at_a_time, insert_missing
from pypi_assets.catalog.tables import snapshots
from pypi_assets.index.models import IndexFile

LONGEST_CHAIN = 16
"""The greatest number of differences between a snapshot and its full value."""
LARGEST_SHARE = 0.75
"""A difference that is longer than this share of the full value is not stored as a difference."""

Entry = tuple[str | None, bool | str]
Entries = dict[str, Entry]
"""The entries by filename: the file's sha256, and whether it was yanked, or the reason for the yank."""


@dataclass(frozen=True, slots=True)
class PageSnapshot:
    """The files on a page: the sha256 of each, and whether it was yanked. `sha256` is the hash of the whole snapshot.

    `reasons` has the reasons of yanks, by filename. Older snapshots have no reasons.
    """

    sha256: str
    entries: Mapping[str, tuple[str | None, bool]]
    reasons: Mapping[str, str]

    @classmethod
    def of(cls, sha256: str, entries: Mapping[str, Entry]) -> "PageSnapshot":
        """Return the snapshot with these entries, in their stored form."""
        shown = {name: (digest, bool(yanked)) for name, (digest, yanked) in entries.items()}
        return cls(sha256, shown, {name: why for name, (_, why) in entries.items() if isinstance(why, str)})

    @property
    def files(self) -> list[list[str | bool | None]]:
        """Return the files as lists of [filename, sha256, yanked], by filename."""
        return [[name, *self.entries[name]] for name in sorted(self.entries)]


class _SnapshotRow(NamedTuple):
    """A snapshot as it is stored. `content` is None if the journal that was replayed lacks it."""

    id: int
    sha256: str
    content: bytes | None
    base_id: int | None
    number: int

    def stored(self) -> bytes:
        """Return the full value, or the difference from the base. Raises CatalogError if it is not stored."""
        if self.content is None:
            raise CatalogError(f"the files of the snapshot {self.sha256} are not in the journal that was replayed")
        return zlib.decompress(self.content)


@dataclass(frozen=True, slots=True)
class SnapshotSummary:
    """The hash of a snapshot and the number of its files."""

    sha256: str
    files: int


def snapshot_content(files: Iterable[IndexFile]) -> bytes:
    """Return the snapshot of a page with these files, as the bytes that are hashed."""
    return content_of({file.filename: (file.sha256, file.yanked and (file.yanked_reason or True)) for file in files})


def store_snapshots(
    connection: Connection, contents: Iterable[bytes], after: Mapping[bytes, int] | None = None
) -> dict[bytes, int]:
    """Store the new ones of `contents` as snapshots. Return the id of each content.

    `after` maps the content of a project that was seen before to the snapshot id of the project's previous page. If the
    change since then is small, only the difference is stored.
    """
    digests = {content: hashlib.sha256(content).hexdigest() for content in contents}
    found = find_snapshots(connection, digests.values())
    new = {digest: content for content, digest in digests.items() if digest not in found}
    chains = _chains(connection, {before for content, before in (after or {}).items() if digests[content] in new})
    insert_missing(
        connection,
        snapshots,
        [
            {"sha256": digest, **_row(new[digest], chains.get((after or {}).get(new[digest], 0)))}
            for digest in sorted(new)
        ],
    )
    found |= find_snapshots(connection, new)
    return {content: found[digest] for content, digest in digests.items()}


def read_snapshots(connection: Connection, snapshot_ids: Collection[int]) -> Iterator[tuple[int, PageSnapshot]]:
    """Yield the id and the snapshot for each of these ids.

    Raises CatalogError if the stored content of a snapshot does not have the hash that names it, or is not stored.
    """
    for ids in at_a_time(sorted(snapshot_ids)):
        for snapshot_id, chain in _chains(connection, ids).items():
            entries = _value(chain)
            _check(chain[0], entries)
            yield snapshot_id, PageSnapshot.of(chain[0].sha256, entries)


def read_entries(connection: Connection, snapshot_ids: Collection[int]) -> dict[int, Entries]:
    """Return the entries of each of these snapshots, by id. Snapshots whose content is not stored are omitted.

    Raises CatalogError if the stored content of a snapshot does not have the hash that names it.
    """
    c = snapshots.c
    known = [
        id_
        for ids in at_a_time(sorted(snapshot_ids))
        for id_ in connection.scalars(select(c.id).where(c.id.in_(ids), c.content.is_not(None)))
    ]
    return {id_: stored_entries(snapshot) for id_, snapshot in read_snapshots(connection, known)}


def stored_entries(snapshot: PageSnapshot) -> Entries:
    """Return the entries of a snapshot, in their stored form."""
    return {name: (sha256, snapshot.reasons.get(name, yanked)) for name, (sha256, yanked) in snapshot.entries.items()}


def store_known_snapshots(
    connection: Connection, files: Mapping[str, int], contents: Iterable[bytes], after: Mapping[bytes, int]
) -> dict[str, int]:
    """Store the snapshots with these hashes, as far as they are new. Return their ids by hash.

    `files` has the number of files of each. `contents` has the contents that are known, and `after` is as in
    `store_snapshots`. The other snapshots are stored without their content.
    """
    known = {hashlib.sha256(content).hexdigest(): content for content in contents}
    store_snapshots(connection, known.values(), after)
    unknown = {"content": None, "base_id": None, "number": 0}
    insert_missing(connection, snapshots, [{"sha256": one, "files": files[one]} | unknown for one in sorted(files)])
    found = find_snapshots(connection, files)
    c = snapshots.c
    for ids in at_a_time(sorted(found[sha256] for sha256 in known)):  # stored without content before
        for id_, sha256 in connection.execute(select(c.id, c.sha256).where(c.id.in_(ids), c.content.is_(None))).all():
            connection.execute(update(snapshots).where(c.id == id_).values(content=zlib.compress(known[sha256])))
    return found


class SnapshotWalk:
    """Snapshots of one project, of which one at a time is in memory.

    Each snapshot is computed from the one read before it, so only the differences between the two are decoded. If
    snapshots are read in the order in which they were stored, each difference is applied once, however long the chains
    are.
    """

    def __init__(self, chains: Mapping[int, list[_SnapshotRow]]) -> None:
        self._chains = chains
        self._checked = {max(chains, default=0)}
        self._entries: Entries = {}
        self._shown: dict[str, bool] = {}
        self._path: list[tuple[int, dict[str, Entry | None]]] = []

    def shown(self, snapshot_id: int) -> Mapping[str, bool]:
        """Return for each filename whether it was yanked. The next call changes the returned object.

        Raises CatalogError if a full value, or the newest snapshot, does not have the hash that names it. For the
        snapshots between, only the checksum of each difference is checked.
        """
        if not self._path or self._path[-1][0] != snapshot_id:
            self._move(self._chains[snapshot_id])
        return self._shown

    def _move(self, chain: list[_SnapshotRow]) -> None:
        ids = {row.id for row in chain}
        while self._path and self._path[-1][0] not in ids:
            self._put(self._path.pop()[1])
        done = {id_ for id_, _ in self._path}
        for row in reversed(chain):
            if row.id in done:
                continue
            if row.base_id is None:
                self._begin(row)
            else:
                gone, changed = _parsed(row.stored())
                new: dict[str, Entry | None] = {**dict.fromkeys(gone), **_entries(changed)}
                self._path.append((row.id, {name: self._entries.get(name) for name in new}))
                self._put(new)
        if chain[0].id in self._checked:
            self._checked.discard(chain[0].id)
            _check(chain[0], self._entries)

    def _begin(self, row: _SnapshotRow) -> None:
        self._entries = _value([row])
        _check(row, self._entries)
        self._shown = {name: bool(yanked) for name, (_, yanked) in self._entries.items()}
        self._path = [(row.id, {})]

    def _put(self, changed: Mapping[str, Entry | None]) -> None:
        """Set the entries of files. A file whose entry is None is removed."""
        for name, entry in changed.items():
            if entry is None:
                self._entries.pop(name, None)
                self._shown.pop(name, None)
            else:
                self._entries[name] = entry
                self._shown[name] = bool(entry[1])


def walk_snapshots(connection: Connection, by_project: Mapping[int, Collection[int]]) -> dict[int, SnapshotWalk]:
    """Return a walk through these snapshots for each project.

    The number of SQL statements does not grow with the number of projects.
    """
    chains: dict[int, list[_SnapshotRow]] = {}
    for chunk in at_a_time(sorted({id_ for ids in by_project.values() for id_ in ids})):
        chains |= _chains(connection, chunk)
    return {project_id: SnapshotWalk({id_: chains[id_] for id_ in ids}) for project_id, ids in by_project.items()}


def summarize_snapshots(connection: Connection, snapshot_ids: Collection[int]) -> dict[int, SnapshotSummary]:
    """Return the hash and the number of files of each of these snapshots."""
    columns = (snapshots.c.id, snapshots.c.sha256, snapshots.c.files)
    return {
        row.id: SnapshotSummary(row.sha256, row.files)
        for ids in at_a_time(sorted(snapshot_ids))
        for row in connection.execute(select(*columns).where(snapshots.c.id.in_(ids)))
    }


def _check(row: _SnapshotRow, entries: Mapping[str, Entry]) -> None:
    """Raise CatalogError if these are not the files of the snapshot `row`."""
    if hashlib.sha256(content_of(entries)).hexdigest() != row.sha256:
        raise CatalogError(
            f"snapshot {row.id} is corrupt: it does not have the hash {row.sha256}; restore the database from a backup"
        )


def content_of(entries: Mapping[str, Entry]) -> bytes:
    """Return the JSON array of [filename, sha256, yanked], in ascending order.

    `yanked` is a flag, or the reason. The format must never change, since the hash of these bytes names the snapshot.
    """
    shown = [(name, *entries[name]) for name in sorted(entries)]
    try:
        content = orjson.dumps(shown)
    except orjson.JSONEncodeError:  # an unpaired surrogate
        content = b"\x7f"
    # other characters than ASCII are escaped
    is_plain = content.isascii() and b"\x7f" not in content
    return content if is_plain else json.dumps(shown, separators=(",", ":")).encode()


def _row(content: bytes, chain: list[_SnapshotRow] | None) -> dict[str, Any]:
    """Return the row of a new snapshot, with the difference from its base if that is much shorter than the value."""
    entries = _entries(_parsed(content))
    stored, base_id, number = (chain and _difference(content, entries, chain)) or (content, None, 0)
    return {"content": zlib.compress(stored), "base_id": base_id, "number": number, "files": len(entries)}


def _difference(content: bytes, entries: Entries, chain: list[_SnapshotRow]) -> tuple[bytes, int, int] | None:
    """Return the difference from the base of the next snapshot, with the base's id and the next snapshot's number.

    `chain` is the chain of the newest snapshot. Return None if the difference is too long.
    """
    number = chain[0].number + 1
    base_number = number & (number - 1)
    if number.bit_count() > LONGEST_CHAIN:
        return None
    base_chain = chain[next(place for place, row in enumerate(chain) if row.number == base_number) :]
    base = _value(base_chain)
    gone = sorted(base.keys() - entries.keys())
    changed = [(name, *entry) for name, entry in sorted(entries.items()) if base.get(name) != entry]
    difference = json.dumps([gone, changed], separators=(",", ":")).encode()
    if len(difference) > len(content) * LARGEST_SHARE:
        return None
    return difference, base_chain[0].id, number


def _value(chain: list[_SnapshotRow]) -> Entries:
    """Return the files of the snapshot that `chain` begins with. The chain ends with a full value."""
    entries = _entries(_parsed(chain[-1].stored()))
    for row in reversed(chain[:-1]):
        gone, changed = _parsed(row.stored())
        for name in gone:
            entries.pop(name, None)
        entries.update(_entries(changed))
    return entries


def _entries(shown: Iterable[tuple[str, str | None, bool | str]]) -> Entries:
    return {name: (sha256, yanked) for name, sha256, yanked in shown}


def _parsed(content: bytes) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:  # an unpaired surrogate
        return json.loads(content)


def _chains(connection: Connection, snapshot_ids: Collection[int]) -> dict[int, list[_SnapshotRow]]:
    """Return, by snapshot id, the rows of the snapshot, its base, the base of that, and so on to a full value."""
    wanted = sorted(snapshot_ids)
    if not wanted:
        return {}
    first = select(snapshots.c.id, snapshots.c.base_id).where(snapshots.c.id.in_(wanted)).cte("chain", recursive=True)
    following = select(snapshots.c.id, snapshots.c.base_id).join(first, snapshots.c.id == first.c.base_id)
    chain = first.union(following)
    columns = (snapshots.c[name] for name in _SnapshotRow._fields)
    rows = connection.execute(select(*columns).where(snapshots.c.id.in_(select(chain.c.id))))
    by_id = {row.id: row for row in map(_SnapshotRow._make, rows)}
    found: dict[int, list[_SnapshotRow]] = {}
    for snapshot_id in wanted:
        if (row := by_id.get(snapshot_id)) is not None:
            of_it = found[snapshot_id] = [row]
            while (base_id := of_it[-1].base_id) is not None:
                of_it.append(by_id[base_id])
    return found


def find_snapshots(connection: Connection, digests: Iterable[str]) -> dict[str, int]:
    """Return the ids of the stored snapshots with these hashes, by hash."""
    found: dict[str, int] = {}
    for wanted in at_a_time(digests):
        rows = connection.execute(select(snapshots.c.sha256, snapshots.c.id).where(snapshots.c.sha256.in_(wanted)))
        found.update((sha256, snapshot_id) for sha256, snapshot_id in rows)
    return found
