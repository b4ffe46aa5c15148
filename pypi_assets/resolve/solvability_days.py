"""The days of solvability over time: of each the counts, which are remembered as long as its file stays the same."""

import threading
from collections.abc import Callable, Mapping
from datetime import date, datetime

import msgspec

from pypi_assets.resolve.solvability_files import (
    SOLVABILITY,
    Solvability,
    SolvabilityError,
    day_of,
    read_day,
    read_newest,
)
from pypi_assets.storage.store import Storage, StoredObject


class DaySummary(msgspec.Struct, frozen=True):
    """A day: its serial, and how many resolutions ended how, one a project and environment. `problem` is why its file
    cannot be read; then nothing is counted.
    """

    day: date
    serial: int | None
    projects: int
    environments: int
    outcomes: Mapping[str, int]
    newly_unsolvable: int
    newly_solvable: int
    problem: str | None = None


class StoredDays:
    """The days of the storage that `opened` returns, which is opened when it is first needed. Several threads may use
    it.
    """

    def __init__(self, opened: Callable[[], Storage]) -> None:
        self._opened = opened
        self._storage: Storage | None = None
        self._known: dict[date, tuple[int, datetime, DaySummary]] = {}
        self._using = threading.Lock()

    def read(self, day: date | None) -> Solvability:
        """What was published of a day; None: of the newest one. Raises SolvabilityError and StorageError."""
        with self._using:
            storage = self._open()
        return read_newest(storage) if day is None else read_day(storage, day)

    def summaries(self, most: int) -> list[DaySummary]:
        """The last `most` days that have a file, ascending. Raises StorageError."""
        with self._using:
            storage = self._open()
            stored = {day: one for one in storage.list(SOLVABILITY) if (day := day_of(one.path))}
            self._known = {day: known for day, known in self._known.items() if day in stored}
            return [self._summary(storage, day, stored[day]) for day in sorted(stored)[-most:]]

    def _open(self) -> Storage:
        self._storage = self._storage or self._opened()
        return self._storage

    def _summary(self, storage: Storage, day: date, stored: StoredObject) -> DaySummary:
        known = self._known.get(day)
        if known is None or known[:2] != (stored.size, stored.last_modified):
            known = self._known[day] = stored.size, stored.last_modified, _summarized(storage, day)
        return known[2]


def _summarized(storage: Storage, day: date) -> DaySummary:
    try:
        made = read_day(storage, day)
    except SolvabilityError as error:
        return DaySummary(day, None, 0, 0, {}, 0, 0, str(error))
    return DaySummary(
        day=day,
        serial=made.moment.serial,
        projects=len(made.projects),
        environments=len(made.environments),
        outcomes=made.counts,
        newly_unsolvable=len(made.newly_unsolvable),
        newly_solvable=len(made.newly_solvable),
    )
