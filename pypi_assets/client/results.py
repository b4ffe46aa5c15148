"""The results of a question, read page by page during iteration."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

if TYPE_CHECKING:
    import pandas as pd

Result = TypeVar("Result", bound=Mapping[str, Any])


@dataclass(frozen=True, slots=True)
class ResultPage(Generic[Result]):
    """One page of a source. `next` is the cursor of the following page, or None for the last page.

    `columns` are the columns of a table without rows. `hints` returns sentences about an empty answer. `cursor_after`
    returns the cursor after a result; it is None if the list has no pages. `close` releases the resources of unread
    results.
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
    """The results of a question, as of `serial`. They can be iterated over once.

    >>> results = client.module("yaml")
    >>> [one["project"] for one in results], results.serial
    (['PyYAML'], 131)

    `epoch` is set for answers at a serial. `followed_projects` is the number of followed projects. It is None if the
    answer covers the whole index, or if a service does not report it.

    Unread results can hold a connection or a version of a dataset. `close`, the end of a `with` block, or the garbage
    collector releases it.
    """

    _read: Callable[[str | None], ResultPage[Result]] = field(repr=False)
    cursor: str | None = field(default=None, repr=False)
    """The position after the last result that was read. Pass it to a method of the client to continue there:
    `cursor=...`.

    None before the first result, and for lists without pages.
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
        """Release the connection of a service, or the version of a dataset. The remaining results are dropped."""
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
        if hasattr(self, "_page"):  # not set if the question failed
            self._page.close()

    @property
    def hints(self) -> tuple[str, ...]:
        """Return sentences with suggestions, if nothing was found."""
        return self._page.hints()

    def frame(self) -> "pd.DataFrame":
        """Return the unread results as a data frame; its `attrs` have the `serial` and the `epoch`."""
        import pandas as pd  # takes longer to import than everything else

        rows = list(self)
        columns = list(rows[0] if rows else self._page.columns)
        frame = pd.DataFrame(rows, columns=columns)
        frame.attrs.update(serial=self.serial, epoch=self.epoch)
        return frame

    def _turn(self, cursor: str | None) -> ResultPage[Result]:
        self._page = self._read(cursor)
        self._rest = iter(self._page.results)
        return self._page
