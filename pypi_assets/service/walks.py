"""Bounds searches over what newest releases require: how many there are at once, and how long one at a serial takes.

So they leave the interpreter to other requests.
"""

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from pypi_assets.lookup.newest_requirements import NewestRelease, NewestRequirements
from pypi_assets.service.problems import ProblemError, unavailable

MOST_WALKS = 2
_walks = threading.BoundedSemaphore(MOST_WALKS)


@contextmanager
def counted_walk() -> Iterator[None]:
    """Counts a search that goes on step by step until the end of the block. Raises a ProblemError where there are
    `MOST_WALKS` already.
    """
    if not _walks.acquire(blocking=False):
        detail = f"{MOST_WALKS} searches of what is not direct are under way"
        raise ProblemError(503, "busy", detail, headers=[("Retry-After", "1")])
    try:
        yield
    finally:
        _walks.release()


def counted_chunks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks of such a search, which counts from the first chunk on, until the iterator is closed."""
    with counted_walk():
        yield from chunks


class TimedRequirements:
    """Those of `graph`, for `seconds`: after that each question raises a ProblemError."""

    def __init__(self, graph: NewestRequirements, seconds: float) -> None:
        self._graph, self._seconds = graph, seconds
        self._ends = time.monotonic() + seconds

    def requiring(self, project: str, after: str | None = None) -> Iterator[str]:
        self.check()
        return self._graph.requiring(project, after)

    def newest(self, projects: Sequence[str]) -> Iterator[NewestRelease | None]:
        self.check()
        return self._graph.newest(projects)

    def versions(self, project: str) -> Sequence[tuple[str, bool]]:
        self.check()
        return self._graph.versions(project)

    def check(self) -> None:
        """Raise a ProblemError if the time is over."""
        if time.monotonic() > self._ends:
            raise unavailable(
                f"the search took more than {self._seconds:g} s: request fewer steps by depth, or the latest answer",
                "too-slow",
            )
