"""What lookups return: results together with the version and serial that they are from."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import pandas as pd


class LookupNameError(ValueError):
    """A text that is not a name of what is looked up; the message describes what it must be."""


Result = TypeVar("Result", bound=Mapping[str, object])
"""A typed dictionary; each dataset's reader defines its own."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[Result]):
    """What was found, as the index was at `serial`. `version` is the LevelDB version that it is from; None: from the
    catalog.

    Where nothing was found, `results` is empty. `epoch` is that of the serial, for answers of the catalog.
    `followed_projects` is how many projects are followed: nothing is known of others. None: all of the index is.
    """

    version: int | None
    serial: int
    results: tuple[Result, ...]
    kind: type[Result] = field(repr=False)
    epoch: int | None = None
    followed_projects: int | None = None

    def frame(self) -> "pd.DataFrame":
        """The results as a table, with all columns even without rows; `attrs` has `version` and `serial`."""
        return _frame(self.version, self.serial, self.results, self.kind)


@dataclass(frozen=True, slots=True)
class Stream(Generic[Result]):
    """Like an `Answer`, but results are read as they are iterated over, once. All are from one version."""

    version: int
    serial: int
    results: Iterator[Result]
    kind: type[Result] = field(repr=False)
    followed_projects: int | None = None

    def __iter__(self) -> Iterator[Result]:
        return self.results

    def frame(self) -> "pd.DataFrame":
        """What has not been read yet as a table, whole in memory; otherwise like an answer's."""
        return _frame(self.version, self.serial, self.results, self.kind)


def _frame(version: int | None, serial: int, results: Iterable[Result], kind: type[Result]) -> "pd.DataFrame":
    import pandas as pd  # takes longer to load than all the rest

    frame = pd.DataFrame(list(results), columns=list(kind.__annotations__))
    frame.attrs.update(version=version, serial=serial)
    return frame
