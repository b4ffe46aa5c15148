"""Types of answers: the results of a lookup, with the LevelDB version and the serial that they come from."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import pandas as pd


class LookupNameError(ValueError):
    """Invalid input of a lookup, such as a malformed hash. The message states the expected form."""


Result = TypeVar("Result", bound=Mapping[str, object])
"""The `TypedDict` of one result. Each dataset's reader defines its own."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[Result]):
    """The results of one lookup, as of `serial`. `results` is empty if nothing matches.

    `version` is the LevelDB version that was read. If the catalog was read instead, `version` is None and `epoch` is
    the epoch of the serial. `followed_projects` is the number of followed projects; the answer knows nothing about
    other projects. It is None if the whole index is followed.
    """

    version: int | None
    serial: int
    results: tuple[Result, ...]
    kind: type[Result] = field(repr=False)
    epoch: int | None = None
    followed_projects: int | None = None

    def frame(self) -> "pd.DataFrame":
        """Return the results as a table, with all columns even without rows. `attrs` has `version` and `serial`."""
        return _frame(self.version, self.serial, self.results, self.kind)


@dataclass(frozen=True, slots=True)
class Stream(Generic[Result]):
    """The results of one lookup, read from one version while you iterate over them. You can iterate only once."""

    version: int
    serial: int
    results: Iterator[Result]
    kind: type[Result] = field(repr=False)
    followed_projects: int | None = None

    def __iter__(self) -> Iterator[Result]:
        return self.results

    def frame(self) -> "pd.DataFrame":
        """Return the results that were not read yet as a table, like `Answer.frame`. The whole table is in memory."""
        return _frame(self.version, self.serial, self.results, self.kind)


def _frame(version: int | None, serial: int, results: Iterable[Result], kind: type[Result]) -> "pd.DataFrame":
    import pandas as pd  # takes longer to import than everything else

    frame = pd.DataFrame(list(results), columns=list(kind.__annotations__))
    frame.attrs.update(version=version, serial=serial)
    return frame
