"""Iterate over the changes of an index from its journal, batch by batch, from a service or from files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pypi_assets.journal.change_types import Change

MOST_PER_BATCH = 1_000
Filters = Mapping[str, list[str]]
"""The wanted values of `project`, `kind`, `stream`, `module` and `gained`. A missing filter allows all values."""


@dataclass(frozen=True, slots=True)
class ChangesBatch:
    """Some changes. The next changes come after `cursor`. `is_last`: no more changes are published now."""

    changes: Sequence[Change]
    cursor: str
    through: int
    is_last: bool


@dataclass(slots=True)
class ChangeIterator(Iterator[Change]):
    """The changes in order, up to the last published change. They can be iterated over once.

    >>> changes = client.changes("2026-03-03", kind="remove project")
    >>> [one["project"] for one in changes], changes.through
    (['gone'], 131)

    `cursor` is the position after the last change that was read, and at the end, the position after all published
    changes. Pass it to `client.changes(changes.cursor, ...)` for the changes after it. The journal is complete up to
    the serial `through`.
    """

    _read: Callable[[str | None], ChangesBatch] = field(repr=False)
    cursor: str | None = None
    through: int = field(init=False)
    _batch: ChangesBatch = field(init=False, repr=False)
    _rest: Iterator[Change] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._turn(self.cursor)

    def __next__(self) -> Change:
        while True:
            for change in self._rest:
                self.cursor = _cursor_after(change)
                return change
            self.cursor = self._batch.cursor
            if self._batch.is_last:
                raise StopIteration
            self._turn(self.cursor)

    def _turn(self, cursor: str | None) -> None:
        self._batch = self._read(cursor)
        self._rest = iter(self._batch.changes)
        self.through = self._batch.through


def _cursor_after(change: Change) -> str:
    from pypi_assets.journal.cursors import RANKS, Cursor

    return str(Cursor(change["serial"], RANKS[change["stream"]], change["ordinal"]))


def filters_of(given: Mapping[str, str | Sequence[str] | None]) -> dict[str, list[str]]:
    """Return the filters with a value, each as a list of values."""
    return {name: [value] if isinstance(value, str) else list(value) for name, value in given.items() if value}
