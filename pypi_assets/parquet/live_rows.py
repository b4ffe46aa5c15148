"""What is live at the end of the cover: the rows of its full dump, with the ranges that follow it applied."""

import heapq
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager

import orjson

from pypi_assets.dumps.dump_format import Row
from pypi_assets.dumps.dump_paths import shard_of

_CACHE_KIB = 16 * 1024
_TABLE = """
CREATE TABLE later (
    shard INTEGER NOT NULL, normalized TEXT NOT NULL, filename TEXT NOT NULL, version TEXT NOT NULL, row BLOB,
    PRIMARY KEY (shard, normalized, filename)
)
"""


class LaterRows:
    """The newest row or tombstone of each file that ranges have, by the shard of its project."""

    def __init__(self, database: sqlite3.Connection, shards: int) -> None:
        self._database, self._shards = database, shards

    def add(self, rows: Iterable[Row]) -> None:
        """Takes the rows of one range; ranges are to be added in the order of the cover."""
        self._database.executemany("REPLACE INTO later VALUES (?, ?, ?, ?, ?)", map(self._entry, rows))

    def count_by_shard(self) -> dict[int, int]:
        """How many files that are live the ranges have in each shard."""
        counted = "SELECT shard, count(*) FROM later WHERE row IS NOT NULL GROUP BY shard"
        return dict(self._database.execute(counted))

    def applied_to(self, shard: int, rows: Iterable[Row]) -> Iterator[Row]:
        """The `rows` of the full dump's shard as they are after all ranges, by project, version and filename.

        The names of the shard's changed files are held in memory, and no more than one row of each side.
        """
        changed = set(self._database.execute("SELECT normalized, filename FROM later WHERE shard = ?", (shard,)))
        if not changed:
            yield from rows
            return
        unchanged = (row for row in rows if (row["normalized"], row["filename"]) not in changed)
        yield from heapq.merge(unchanged, self._live(shard), key=_place)

    def _live(self, shard: int) -> Iterator[Row]:
        found = self._database.execute(
            "SELECT row FROM later WHERE shard = ? AND row IS NOT NULL ORDER BY normalized, version, filename", (shard,)
        )
        for (row,) in found:
            yield orjson.loads(row)

    def _entry(self, row: Row) -> tuple[int, str, str, str, bytes | None]:
        normalized = str(row["normalized"])
        return (
            shard_of(normalized, self._shards),
            normalized,
            str(row["filename"]),
            str(row["version"]),
            None if row["tombstone"] else orjson.dumps(row),
        )


@contextmanager
def later_rows(shards: int) -> Iterator[LaterRows]:
    """An empty LaterRows; beyond some 16 MiB it lies in a temporary file without a name, which ends with it."""
    with closing(sqlite3.connect("", isolation_level=None)) as database:
        for setting in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = -{_CACHE_KIB}"):
            database.execute(f"PRAGMA {setting}")
        database.execute(_TABLE)
        yield LaterRows(database, shards)


def _place(row: Row) -> tuple[str, str, str]:
    return str(row["normalized"]), str(row["version"]), str(row["filename"])
