"""Holds the parts that a crawl works with, its retry policy, and how it begins.

An empty catalog becomes the one of an index only after that index has answered. An index without serials is looked at
before its serials are used.
"""

import random
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TypeVar

from pypi_assets.catalog.coordination.clock_steps import ClockSteps
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import SIMPLE, XMLRPC
from pypi_assets.catalog.observed.followed import follows_all
from pypi_assets.catalog.observed.observations import require_counter
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.work.full_crawls import followed_index
from pypi_assets.distributions.reader_pool import ReaderPool
from pypi_assets.index.errors import (
    LoginError,
    NoAnswerError,
    NotOnIndexError,
    PackageIndexError,
    TransientError,
    requested_pause_s,
)
from pypi_assets.index.protocol import Observation, PackageIndex
from pypi_assets.progress import Progress
from pypi_assets.storage.store import Storage

MOST_FAILING = 20
"""Distinct projects. If as many fail and no other page comes meanwhile, the index is at fault."""


@dataclass
class PageFailures:
    """What this process has seen of the pages of an index.

    `answered_at` is when a page came last (unix seconds), `failing` are the projects that have failed since.
    """

    answered_at: float = 0.0
    failing: set[int] = field(default_factory=set)

    def note(self, project_id: int, now: float, *, is_answered: bool) -> None:
        """Record that a page came at `now`, or failed. A 404 is an answer."""
        if is_answered:
            self.answered_at = now
            self.failing.clear()
        else:
            self.failing.add(project_id)

    def is_of_page(self, first_failed_at: float) -> bool:
        """Check whether a page that fails since then (unix seconds) is at fault: others came meanwhile, or few fail."""
        return self.answered_at > first_failed_at or len(self.failing) < MOST_FAILING


LONGEST_PAUSE_S = 600.0
_LONGEST_NAP_S = 30.0

_T = TypeVar("_T")


def _ignore(_: Progress | str | Observation) -> None:
    """The default where no caller is interested."""


@dataclass(frozen=True)
class Crawler:
    """One index, the catalog that follows it, the reader processes, the storage, and the limits of a crawl.

    `lister` is what is followed: xmlrpc, simple or auto. `revisit_share` is in per cent of the visits of a range.
    With `trusts_first_file_host`, files also come from the host that the first pages of the index agree on.
    A page that keeps failing while others come is abandoned after `page_attempts`, and visited again by later crawls.
    `report` receives progress, `notify` messages for people, and `observed` what each round of looking at an index
    without serials came to.
    """

    index: PackageIndex
    catalog: Catalog
    storage: Storage
    readers: ReaderPool
    selection: Selection = field(default_factory=Selection)
    connections: int = 10
    lister: str = XMLRPC
    range_events: int = 20_000
    revisit_share: float = 0.0
    retry_pause_s: float = 1.0
    retry_deadline_s: float = 6 * 3600.0
    max_attempts: int = 50
    page_attempts: int = 3
    in_flight: int = 200
    claim_lease_s: float = 300.0
    page_failures: PageFailures = field(default_factory=PageFailures)
    trusts_first_file_host: bool = False
    clock_steps: ClockSteps = field(default_factory=ClockSteps)
    report: Callable[[Progress], None] = _ignore
    notify: Callable[[str], None] = _ignore
    observed: Callable[[Observation], None] = _ignore
    sleep: Callable[[float], None] = time.sleep

    def wait_until(self, due_at: float) -> None:
        """Sleeps until `due_at` (unix seconds), at most 30 seconds, so that progress can be reported in between."""
        self.sleep(min(max(due_at - self.catalog.clock(), 0.01), _LONGEST_NAP_S))

    def patiently(self, query: Callable[[], _T]) -> _T:
        """Returns what `query` returns; retries it with growing pauses while it raises TransientError.

        Raises that error once the deadline has passed. Each pause reports progress.
        """
        attempts, first_failed_at = 0, None
        while True:
            if first_failed_at is not None:
                first_failed_at = self.failing_since(first_failed_at, self.catalog.clock())
            try:
                return query()
            except TransientError as error:
                next_try = self.next_try(error, attempts, first_failed_at)
                if next_try is None:
                    raise
                first_failed_at = first_failed_at or self.catalog.clock()
                attempts += 1
                reason = str(error)
            left_s = next_try - self.catalog.clock()
            while left_s > 0:
                self.report(Progress("waiting for the index, tries", attempts, 0, reason=reason))
                self.wait_until(next_try)
                # whatever the clock was set to meanwhile
                left_s = min(left_s - _LONGEST_NAP_S, next_try - self.catalog.clock())

    def next_try(self, error: PackageIndexError, attempts: int, first_failed_at: float | None) -> float | None:
        """When to try again what fails now with `error`, after `attempts` earlier failures (unix seconds).

        A pause that the index requests is kept, up to the deadline. None once the deadline has passed, or where no
        attempt is left.
        """
        now = self.catalog.clock()
        since = now if first_failed_at is None else self.failing_since(first_failed_at, now)
        deadline = since + self.retry_deadline_s
        if now >= deadline or attempts + 1 >= self.max_attempts:
            return None
        pause = min(self.retry_pause_s * 2.0 ** min(attempts, 20), LONGEST_PAUSE_S) * random.uniform(0.75, 1.25)
        return min(now + max(pause, requested_pause_s(error)), deadline)

    def failing_since(self, first_failed_at: float, now: float) -> float:
        """Return since when something fails that failed at `first_failed_at` first, by the clock that shows `now`.

        A clock that was set forward in the last minutes does not count, so that it ends no attempts.
        """
        return min(first_failed_at + self.clock_steps.follow(self.catalog), now)


_MOST_PAGES = 3


def query_first(crawler: Crawler, query: Callable[[], _T]) -> _T:
    """Return the result of `query`, which is tried once: a first crawl is likely to have a setting to mend.

    Raises the error of `query`, with advice if `crawler.lister` may be what is wrong.
    """
    try:
        return query()
    except PackageIndexError as error:
        if crawler.lister not in {XMLRPC, SIMPLE} or isinstance(error, NoAnswerError | LoginError):
            raise
        text = f"{error.message}; PYPI_ASSETS_LISTER={crawler.lister} needs an index with serials"
        raise type(error)(f"{text}: set it to auto, which finds out what the index is", error.url) from error


def require_answer(crawler: Crawler, names: Collection[str]) -> None:
    """Request pages of these projects until the index has one, or else its list, if the catalog follows no index yet.

    Raises PackageIndexError if the index has neither: its URL is wrong, or it does not answer.
    """
    with crawler.catalog.read() as connection:
        if not names or followed_index(connection) is not None:
            return
    failure: PackageIndexError | None = None
    for name in sorted(names)[:_MOST_PAGES]:
        try:
            crawler.index.project_page(name)
        except PackageIndexError as error:
            failure = error
            if not isinstance(error, NotOnIndexError):  # the index can have one broken page: its list decides
                break
        else:
            return
    if crawler.index.is_observed and failure is not None:  # its list is what was observed so far
        raise failure
    with ExitStack() as opened:
        query_first(crawler, lambda: opened.enter_context(crawler.index.iter_listing()))


def observe(crawler: Crawler, *, everything: bool = False, with_list: bool = False) -> Observation:
    """One round of looking at the index: at what is due, or at `everything`. People are notified of what is wrong.

    Where scopes decide what is followed, the list of projects is not requested, unless `with_list`: then `everything`
    is all that the index lists, and else all that is known.

    Raises CatalogError where the catalog follows serials of another kind, or another index.
    """
    crawler.clock_steps.follow(crawler.catalog)
    with crawler.catalog.read() as connection:
        require_counter(connection, crawler.index.index_url, is_observed=crawler.index.is_observed)
        with_list = with_list or follows_all(connection)

    def report(done: int, total: int) -> None:
        crawler.report(Progress("looks", done, total))

    found = crawler.index.observe(report, everything=everything, with_list=with_list)
    crawler.observed(found)
    for message in found.messages:
        crawler.notify(message)
    return found
