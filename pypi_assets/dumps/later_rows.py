"""The newest row of each file in several range dumps, and the rows of a cover at its end.

The rows of the ranges are in a temporary SQLite database, so memory is bounded. Readers in other processes open a
database that has a path. For the end of a cover, each shard of the full dump is read once, in order.
"""

import heapq
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import orjson

from pypi_assets.dumps.dump_format import Row
from pypi_assets.dumps.dump_manifest import shard_of
from pypi_assets.dumps.dump_reader import iter_dump
from pypi_assets.storage.store import Storage

_CACHE_KIB = 16 * 1024
_TABLE = """
CREATE TABLE later (
    shard INTEGER NOT NULL, normalized TEXT NOT NULL, filename TEXT NOT NULL, version TEXT NOT NULL,
    is_live INTEGER NOT NULL, row BLOB NOT NULL,
    PRIMARY KEY (shard, normalized, filename)
)
"""


class LaterRows:
    """The newest row or tombstone of each file in the range dumps, by the shard of its project."""

    def __init__(self, database: sqlite3.Connection, shards: int) -> None:
        self._database, self._shards = database, shards

    def add_dumps(self, storage: Storage, directories: Iterable[str], added: Callable[[], object]) -> None:
        """Add the rows of range dumps, in the order of the cover. `added` is called after each dump.

        Raises DumpDamagedError.
        """
        for directory in directories:
            self.add(iter_dump(storage, directory))
            added()

    def add(self, rows: Iterable[Row]) -> None:
        """Add the rows of one range dump. Ranges must be added in the order of the cover."""
        self._database.execute("BEGIN")
        self._database.executemany("REPLACE INTO later VALUES (?, ?, ?, ?, ?, ?)", map(self._entry, rows))
        self._database.execute("COMMIT")

    def count_by_shard(self) -> dict[int, int]:
        """Return the number of live files that the ranges have in each shard."""
        counted = "SELECT shard, count(*) FROM later WHERE is_live GROUP BY shard"
        return dict(self._database.execute(counted))

    def changed(self, shard: int) -> set[tuple[str, str]]:
        """Return the project and filename of each file of the shard that the ranges change or delete."""
        return set(self._database.execute("SELECT normalized, filename FROM later WHERE shard = ?", (shard,)))

    def changes(self, shards: range) -> Iterator[Row]:
        """Yield the newest row of each changed file of the `shards`, by project, version and filename.

        A tombstone has only these three columns and `tombstone`.
        """
        found = self._database.execute(
            "SELECT normalized, version, filename, is_live, row FROM later WHERE shard BETWEEN ? AND ?"
            " ORDER BY normalized, version, filename",
            (shards.start, shards.stop - 1),
        )
        for normalized, version, filename, is_live, row in found:
            if is_live:
                yield orjson.loads(row)
            else:
                yield {"normalized": normalized, "version": version, "filename": filename, "tombstone": True}

    def applied_to(
        self, shard: int, rows: Iterable[Row], decode: Callable[[bytes], Row] = orjson.loads
    ) -> Iterator[Row]:
        """Yield the shard's `rows` of the full dump as they are after all ranges, by project, version and filename.

        `decode` converts the JSON of a range's row. The names of the shard's changed files are held in memory, and at
        most one row of each side.
        """
        changed = self.changed(shard)
        if not changed:
            yield from rows
            return
        unchanged = (row for row in rows if (row["normalized"], row["filename"]) not in changed)
        yield from heapq.merge(unchanged, self._live(shard, decode), key=_place)

    def newest(self, decode: Callable[[bytes], Row] = orjson.loads) -> Iterator[Row]:
        """Yield the newest row or tombstone of each file in the ranges, by shard, project, version and filename."""
        for (row,) in self._database.execute("SELECT row FROM later ORDER BY shard, normalized, version, filename"):
            yield decode(row)

    def _live(self, shard: int, decode: Callable[[bytes], Row]) -> Iterator[Row]:
        found = self._database.execute(
            "SELECT row FROM later WHERE shard = ? AND is_live ORDER BY normalized, version, filename", (shard,)
        )
        for (row,) in found:
            yield decode(row)

    def _entry(self, row: Row) -> tuple[int, str, str, str, bool, bytes]:
        normalized = str(row["normalized"])
        return (
            shard_of(normalized, self._shards),
            normalized,
            str(row["filename"]),
            str(row["version"]),
            not row["tombstone"],
            orjson.dumps(row),
        )


@contextmanager
def later_rows(shards: int, path: Path | None = None) -> Iterator[LaterRows]:
    """Yield an empty LaterRows, in a new database at `path`.

    Without a path it is in memory, and beyond some 16 MiB in an unnamed temporary file, which is deleted at the end.
    """
    with closing(sqlite3.connect(path or "", isolation_level=None)) as database:
        for setting in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = -{_CACHE_KIB}"):
            database.execute(f"PRAGMA {setting}")
        database.execute(_TABLE)
        yield LaterRows(database, shards)


@contextmanager
def read_later_rows(shards: int, path: Path) -> Iterator[LaterRows]:
    """Yield the rows in the database at `path`, to read them in another process."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
        yield LaterRows(database, shards)


def _place(row: Row) -> tuple[str, str, str]:
    return str(row["normalized"]), str(row["version"]), str(row["filename"])
