"""Results of a question, read page by page as they are iterated over."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

if TYPE_CHECKING:
    import pandas as pd

Result = TypeVar("Result", bound=Mapping[str, Any])


@dataclass(frozen=True, slots=True)
class ResultPage(Generic[Result]):
    """One page as a source gives it. `next` is the cursor of the following page; None: this one is the last.

    A table without rows has `columns`. `hints` returns sentences about an empty answer. `cursor_after` returns
    the cursor of the position after a result; None: the list has no pages. `close` lets go of what unread results hold.
    """

    serial: int
    epoch: int | None
    followed_projects: int | None
    results: Iterable[Result]
    next: str | None
    columns: tuple[str, ...]
    hints: Callable[[], tuple[str, ...]] = tuple
    cursor_after: Callable[[Result], str] | None = None
    close: Callable[[], None] = lambda: None


@dataclass(slots=True)
class ResultIterator(Iterator[Result], Generic[Result]):
    """Results of one question, as the index was at `serial`. They are read once, during iteration.

    >>> results = client.module("yaml")
    >>> [one["project"] for one in results], results.serial
    (['PyYAML'], 131)

    `epoch` belongs to answers at a serial. `followed_projects` is the number of followed projects; None: the answer
    covers the whole index, or a service does not say.

    Results that are not read to their end can hold a connection or a version of a dataset, until `close`, the end of a
    `with` block, or until nothing refers to them.
    """

    _read: Callable[[str | None], ResultPage[Result]] = field(repr=False)
    cursor: str | None = field(default=None, repr=False)
    """The position after the last result that was read. A method of a client continues there: `cursor=...`.

    None before the first result, and for lists that have no pages.
    """
    serial: int = field(init=False)
    epoch: int | None = field(init=False)
    followed_projects: int | None = field(init=False)
    _page: ResultPage[Result] = field(init=False, repr=False)
    _rest: Iterator[Result] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        page = self._turn(self.cursor)
        self.serial, self.epoch, self.followed_projects = page.serial, page.epoch, page.followed_projects

    def __next__(self) -> Result:
        while True:
            for result in self._rest:
                if self._page.cursor_after is not None:
                    self.cursor = self._page.cursor_after(result)
                return result
            if self._page.next is None:
                raise StopIteration
            self._turn(self._page.next)

    def close(self) -> None:
        """Let go of the rest, which then is empty: a connection of a service, or a version of a dataset."""
        self._rest = iter(())
        self._page = replace(self._page, next=None)
        self._page.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_page"):  # a question that failed has none
            self._page.close()

    @property
    def hints(self) -> tuple[str, ...]:
        """Sentences that name what may have been meant, if nothing was found."""
        return self._page.hints()

    def frame(self) -> "pd.DataFrame":
        """Return the results that were not read yet as a table; `attrs` has the `serial` and the `epoch`."""
        import pandas as pd  # takes longer to load than all the rest

        rows = list(self)
        columns = list(rows[0] if rows else self._page.columns)
        frame = pd.DataFrame(rows, columns=columns)
        frame.attrs.update(serial=self.serial, epoch=self.epoch)
        return frame

    def _turn(self, cursor: str | None) -> ResultPage[Result]:
        self._page = self._read(cursor)
        self._rest = iter(self._page.results)
        return self._page
