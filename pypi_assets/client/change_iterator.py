"""Changes of an index, as the journal has them: read batch by batch, from a service or from its files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pypi_assets.journal.change_types import Change

MOST_PER_BATCH = 1_000
Filters = Mapping[str, list[str]]
"""The wanted values of `project`, `kind`, `stream`, `module` and `gained`; without a value, all are wanted."""


@dataclass(frozen=True, slots=True)
class ChangesBatch:
    """Some changes. The following ones come after `cursor`; `is_last`: there are none now."""

    changes: Sequence[Change]
    cursor: str
    through: int
    is_last: bool


@dataclass(slots=True)
class ChangeIterator(Iterator[Change]):
    """Changes in order, up to the last one that is published now. They are read once, during iteration.

    >>> changes = client.changes("2026-03-03", kind="remove project")
    >>> [one["project"] for one in changes], changes.through
    (['gone'], 131)

    `cursor` is the position after the last change that was read; at the end, after all that was looked at. What comes
    later is `client.changes(changes.cursor, ...)`. The journal has the changes up to the serial `through`.
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
    """Return the filters that were given, each as a text or as several."""
    return {name: [value] if isinstance(value, str) else list(value) for name, value in given.items() if value}
