"""Keeps how many records a dataset has of each second part of their keys: such as how many projects require each one.

These records are of several projects, so no project's change can contain them. They follow from the records that come
and go, and equal a count of all that are there.
"""

from collections import Counter
from collections.abc import Iterable

from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.format.errors import LeveldbDamagedError
from pypi_assets.leveldbs.format.keys import SEPARATOR
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.records import Records


class Tallies:
    """Counts the keys that come and go, by their second part."""

    def __init__(self, dataset: Dataset) -> None:
        counted, self._letter = dataset.tallied or ("", "")
        self._start = counted.encode() + SEPARATOR if counted else b""
        self._changes: Counter[bytes] = Counter()

    def add(self, keys: Iterable[bytes], amount: int = 1) -> None:
        """Counts keys that come, or with the amount -1 keys that go."""
        if not self._start:
            return
        start, length, changes = self._start, len(self._start), self._changes
        for key in keys:
            if key.startswith(start):
                changes[key[length : key.index(SEPARATOR, length)]] += amount

    def take(self, db: Database | None) -> tuple[Records, Records]:
        """The records before and after all that was counted since the last call. Without `db` there are none before."""
        before: Records = {}
        after: Records = {}
        for part, change in sorted(self._changes.items()):
            if not change:
                continue
            key = self._letter.encode() + SEPARATOR + part
            value = None if db is None else db.get(key, verify_checksums=True)
            count = int(value or 0) + change
            if count < 0:
                raise LeveldbDamagedError(f"{key!r} counts fewer records than there are")
            if value is not None:
                before[key] = value
            if count:
                after[key] = b"%d" % count
        self._changes.clear()
        return before, after
