"""The service's additions to answers of questions: datasets of cursors, facts from the catalog, and resolutions.

Searches of the whole graph are limited in number, and in time at a past serial, so that other requests are not starved.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from packaging.version import Version

from pypi_assets.lookup.project_answers import ProjectFacts, known_facts
from pypi_assets.lookup.published_sets import OpenSet
from pypi_assets.lookup.release_impact import Solvable, Verdict
from pypi_assets.questions.breaks import BreaksParameters, resolutions_of
from pypi_assets.questions.paging import CursorError, PageCursor, parse_cursor
from pypi_assets.questions.question import Parameters, Question
from pypi_assets.questions.resolutions import ResolutionWork
from pypi_assets.questions.snapshot import Snapshot
from pypi_assets.resolve.formats.json_answer import ResolutionResult
from pypi_assets.resolve.releases import ReleaseIndex
from pypi_assets.resolve.solutions import Allowance, verdict_on
from pypi_assets.service.pins import Pinned
from pypi_assets.service.problems import ProblemError, conflict, not_found, unavailable
from pypi_assets.service.resolver import Job
from pypi_assets.service.responses import Lasting, WholeAnswer
from pypi_assets.service.service import Service

_ACCEPTS = "`next` of the page before"


def read_cursor(text: str, question: Question[Any], asked: Parameters) -> PageCursor:
    """Return the cursor in a request. Raises a ProblemError: 404 if it is invalid, 409 if it is of another list."""
    try:
        return parse_cursor(text, question, asked)
    except CursorError as error:
        if error.is_of_another_list:
            raise conflict("cursor", str(error), _ACCEPTS) from None
        raise not_found(str(error), parameter="cursor") from None


def set_of(service: Service, cursor: PageCursor | None) -> OpenSet:
    """Return the datasets to read a page from: the ones of its cursor, or the current ones.

    Raises a ProblemError with status 410 if the cursor's datasets are no longer published.
    """
    if cursor is None:
        return service.datasets()
    found = service.named_set(cursor.set)
    if found is None:
        raise ProblemError(
            410, "gone", "the datasets of this cursor are no longer published: start again", parameter="cursor"
        )
    return found


@dataclass
class CatalogFacts:
    """Looks up the catalog's facts about a project as of a serial.

    They are None without a catalog, or if it does not answer. `marked` then shortens the time that caches keep the
    answer.
    """

    service: Service
    serial: int
    _has_failed: bool = False
    _is_missing: bool = False

    def __call__(self, name: str) -> ProjectFacts | None:
        """Return the facts about a project, or None."""
        found = self._facts(name)
        self._is_missing = found is None
        return found

    def marked(self, answer: WholeAnswer) -> WholeAnswer:
        """Return the answer, marked so that it is cached only as long as the facts in it stay valid."""
        if self._is_missing:
            answer.set_id = None  # the catalog may come back while the datasets stay the same
        if self._has_failed:
            answer.lasting = Lasting.NO_STORE
        return answer

    def _facts(self, name: str) -> ProjectFacts | None:
        catalog = self.service.catalog
        found = None if catalog is None else known_facts(catalog, self.serial, name)
        self._has_failed = found is None and self.service.has_catalog
        return found


MOST_WALKS = 2
_walks = threading.BoundedSemaphore(MOST_WALKS)


@contextmanager
def counted_walk() -> Iterator[None]:
    """Count a search of the graph until the end of the block.

    Raises a ProblemError if `MOST_WALKS` searches are running already.
    """
    if not _walks.acquire(blocking=False):
        detail = f"{MOST_WALKS} transitive searches are running already"
        raise ProblemError(503, "busy", detail, headers=[("Retry-After", "1")])
    try:
        yield
    finally:
        _walks.release()


def counted_chunks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the chunks of a search. It is counted from its first chunk until the iterator is closed."""
    with counted_walk():
        yield from chunks


def time_limit(seconds: float) -> Callable[[], None]:
    """Return a function that raises a ProblemError once this time is over."""
    ends = time.monotonic() + seconds

    def check() -> None:
        if time.monotonic() > ends:
            raise unavailable(
                f"the search took more than {seconds:g} s: set a smaller depth, or request the latest answer",
                "too-slow",
            )

    return check


_PROJECT_S, _WAIT_S = 2.0, 10.0
"""The time for resolving one project, short so that other requests get their turn, and the time to wait for a turn."""


@dataclass(frozen=True, slots=True)
class JobResolver:
    """Runs resolutions in the resolver process, for one request."""

    service: Service
    pinned: Pinned | None
    client: str

    def resolution(self, work: ResolutionWork) -> ResolutionResult:
        """Return the result of `work` with the releases of the index. Raises ProblemError."""
        seconds = self.service.settings.service_resolve_timeout_s
        found: ResolutionResult = self.service.resolver.answer(
            self._job(partial(work, seconds=seconds), seconds), self.client
        )
        return found

    def __call__(self, _snapshot: Snapshot, given: BreaksParameters, version: Version) -> Solvable:
        """Return a function that judges projects with this version."""
        with_it, without = resolutions_of(given, version)
        most = self.service.settings.service_timeout_s / 2  # at a serial, nothing is sent before the answer is complete
        allowance = Allowance(given.seconds if self.pinned is None else min(given.seconds, most))

        def solvable(project: str, newest: str) -> Verdict | None:
            work = partial(
                verdict_on, question=with_it, without=without, project=project, newest=newest, most_seconds=_PROJECT_S
            )

            def solve() -> Verdict | None:
                try:
                    job = self._job(work, 3 * _PROJECT_S)
                    found: Verdict | None = self.service.resolver.answer(job, self.client, _WAIT_S)
                except ProblemError as error:
                    return Verdict("undecided", error.problem.detail)
                return found

            return allowance.spend(solve, partial(Verdict, "undecided"))

        return solvable

    def _job(self, work: Callable[[ReleaseIndex], Any], seconds: float) -> Job:
        if self.pinned is None:
            return Job(work, seconds, set_id=self.service.datasets().id)
        return Job(work, seconds, serial=self.pinned.serial, epoch=self.pinned.epoch)
