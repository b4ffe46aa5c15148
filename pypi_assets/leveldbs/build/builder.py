"""Updates a LevelDB with the rows of dumps, one project at a time.

Tallies count the records for each second part of a key, for example how many projects require each project.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.format.leveldb_binding import Database, WriteBatch
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError, LeveldbError
from pypi_assets.leveldbs.format.records import SEPARATOR, ContentHash, Meta, Records, Row, hash_sum, write_meta


class Tallies:
    """Counts added and deleted keys by their second part."""

    def __init__(self, dataset: Dataset) -> None:
        counted, self._letter = dataset.tallied or ("", "")
        self._start = counted.encode() + SEPARATOR if counted else b""
        self._changes: Counter[bytes] = Counter()

    def add(self, keys: Iterable[bytes], amount: int = 1) -> None:
        """Count added keys, or deleted keys if the amount is -1."""
        if not self._start:
            return
        start, length, changes = self._start, len(self._start), self._changes
        for key in keys:
            if key.startswith(start):
                changes[key[length : key.index(SEPARATOR, length)]] += amount

    def take(self, db: Database | None) -> tuple[Records, Records]:
        """Return the tally records before and after everything that was counted since the last call.

        Without `db`, there are no records before.
        """
        before: Records = {}
        after: Records = {}
        for part, change in sorted(self._changes.items()):
            if not change:
                continue
            key = self._letter.encode() + SEPARATOR + part
            value = None if db is None else db.get(key, verify_checksums=True)
            count = int(value or 0) + change
            if count < 0:
                raise LeveldbDamagedError(f"{key!r} counts fewer records than exist")
            if value is not None:
                before[key] = value
            if count:
                after[key] = b"%d" % count
        self._changes.clear()
        return before, after


_BATCH_BYTES = 4 * 1024**2
_BATCH_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of loading `rows` of dumps: the numbers of records by the first letter of the key, and a hash sum."""

    rows: int
    counts: Mapping[str, int]
    hash_sum: int


class Builder:
    """Applies dump files to an open LevelDB, and maintains the counts and the content hash of its records.

    `meta` describes the LevelDB, or is None for an empty one. `flushed` is called with the number of rows applied so
    far.
    """

    def __init__(
        self, db: Database, dataset: Dataset, meta: Meta | None = None, flushed: Callable[[int], object] = int
    ) -> None:
        self._db, self.dataset, self._flushed = db, dataset, flushed
        self._counts = Counter(meta.counts if meta else {})
        self._hash = ContentHash(meta.content_hash if meta else "0")
        self._tallies = Tallies(dataset)
        self.changed = dataset.side_files.changes(meta.content_hash) if dataset.side_files and meta else None
        """The changes that the files beside the LevelDB need, or None for an empty LevelDB."""
        self.rows = 0
        self.written = 0

    def apply(self, rows: Iterable[Row], name: str, *, fresh: bool = False) -> None:
        """Apply the rows of one dump file, which must ascend by project. Errors use `name` for it.

        `fresh` asserts that the LevelDB has no records of these projects yet, as with a full dump into an empty
        LevelDB.
        """
        batch, pending, flushed_at = self._db.write_batch(), 0, self.rows
        for project, project_rows in by_project(rows, name):
            self.rows += len(project_rows)
            before, after = self.dataset.change(None if fresh else self._db, project, project_rows)
            if self.changed is not None:
                self.changed.see(self._db, project, before, after)
            pending += self._difference(batch, before, after)
            if pending >= _BATCH_BYTES or self.rows - flushed_at >= _BATCH_ROWS:
                batch.write()
                batch, pending, flushed_at = self._db.write_batch(), 0, self.rows
                self._flushed(self.rows)
        batch.write()
        self._flushed(self.rows)

    def add_loaded(self, loaded: Loaded) -> None:
        """Add the counts of records that were written to the empty LevelDB by `load_dump`."""
        self._counts.update(loaded.counts)
        self._hash.add_sum(loaded.hash_sum)
        self.rows += loaded.rows
        self.written += sum(loaded.counts.values())

    def finish(self, serial: int) -> Meta:
        """Store the tallies and the LevelDB's record about itself, and return that record."""
        batch = self._db.write_batch()
        self._difference(batch, *self._tallies.take(self._db))
        batch.write()
        counts = {letter: self._counts[letter] for letter in sorted(self._counts) if self._counts[letter]}
        meta = Meta(self.dataset.name, self.dataset.format, serial, counts, self._hash.hex)
        write_meta(self._db, meta)
        return meta

    def _difference(self, batch: WriteBatch, before: Records, after: Records) -> int:
        """Add the changes from `before` to `after` to `batch`. Returns their approximate size in bytes."""
        removed = [(key, value) for key, value in before.items() if after.get(key) != value]
        added = [(key, value) for key, value in after.items() if before.get(key) != value]
        self._hash.add_sum(hash_sum(added) - hash_sum(removed))
        self._tallies.add((key for key, _ in removed if key not in after), -1)
        self._tallies.add(key for key, _ in added if key not in before)
        size = 0
        for key, _ in removed:
            self._counts[chr(key[0])] -= 1
            if key not in after:
                batch.delete(key)
                self.written += 1
                size += len(key)
        for key, value in added:
            self._counts[chr(key[0])] += 1
            batch.put(key, value)
            size += len(key) + len(value)
        self.written += len(added)
        return size


def by_project(rows: Iterable[Row], name: str) -> Iterator[tuple[str, list[Row]]]:
    """Yield each project with its rows, by normalized name.

    Raises LeveldbError if the projects do not ascend in `name`.
    """
    last = ""
    for project, group in groupby(rows, key=lambda row: str(row["normalized"])):
        if project <= last:
            raise LeveldbError(f"{name} is not sorted by project: {project} comes after {last}")
        last = project
        yield project, list(group)
