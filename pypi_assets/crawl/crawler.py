"""The components and limits of a crawl, its retry policy, and its first requests.

An empty catalog is bound to an index only after the index has answered. An index without serials is polled before its
serials are used.
"""

import random
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TypeVar

from packaging.utils import canonicalize_name

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
"""Number of distinct projects. If so many fail, and no other page is served meanwhile, the index is at fault."""


@dataclass
class PageFailures:
    """The answers of an index's pages that this process has seen.

    `answered_at` is the time of the last answered page (unix seconds). `failing` has the projects that failed since
    then.
    """

    answered_at: float = 0.0
    failing: set[int] = field(default_factory=set)

    def note(self, project_id: int, now: float, *, is_answered: bool) -> None:
        """Record that a page was answered at `now`, or failed. A 404 is an answer."""
        if is_answered:
            self.answered_at = now
            self.failing.clear()
        else:
            self.failing.add(project_id)

    def is_of_page(self, first_failed_at: float) -> bool:
        """Check whether a page that fails since `first_failed_at` (unix seconds) is at fault, and not the whole index.

        This is so if other pages were served since then, or if only a few pages fail.
        """
        return self.answered_at > first_failed_at or len(self.failing) < MOST_FAILING


LONGEST_PAUSE_S = 600.0
_LONGEST_NAP_S = 30.0

_T = TypeVar("_T")


def _ignore(_: Progress | str | Observation) -> None:
    """Do nothing, as the default of callbacks."""


@dataclass(frozen=True)
class Crawler:
    """An index, the catalog that follows it, the reader processes, the storage, and the limits of a crawl.

    `lister` is the source of changes: xmlrpc, simple or auto. `revisit_share` is a percentage of the visits of a range.
    With `trusts_first_file_host`, files may also come from the host that the first pages of the index agree on. A page
    that keeps failing while others are served is abandoned after `page_attempts`, and later crawls visit it again.
    `report` receives progress, `notify` receives messages for people, and `observed` receives the result of each
    polling round of an index without serials.
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
        """Sleep until `due_at` (unix seconds), but at most 30 seconds, so that progress can be reported in between."""
        self.sleep(min(max(due_at - self.catalog.clock(), 0.01), _LONGEST_NAP_S))

    def patiently(self, query: Callable[[], _T]) -> _T:
        """Return the result of `query`. While it raises TransientError, retry it after growing pauses.

        Raises the error once the deadline has passed. Each pause reports progress.
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
                # the clock may have been set during the pause
                left_s = min(left_s - _LONGEST_NAP_S, next_try - self.catalog.clock())

    def next_try(self, error: PackageIndexError, attempts: int, first_failed_at: float | None) -> float | None:
        """Return the time of the next attempt (unix seconds), after `attempts` earlier failures and now `error`.

        A pause that the index requests is respected, up to the deadline. Returns None if the deadline has passed or no
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
        """Return the time of the first failure, by the clock that shows `now`.

        If the clock was set forward in the last minutes, the step is added to `first_failed_at`. Otherwise the step
        would look like a long time of failures, and end the attempts.
        """
        return min(first_failed_at + self.clock_steps.follow(self.catalog), now)


_MOST_PAGES = 3


def query_first(crawler: Crawler, query: Callable[[], _T]) -> _T:
    """Return the result of `query`, without retries: at a first crawl, a wrong setting is the likely cause of an error.

    Raises the error of `query`, with advice if the setting of `crawler.lister` may be wrong.
    """
    try:
        return query()
    except PackageIndexError as error:
        if crawler.lister not in {XMLRPC, SIMPLE} or isinstance(error, NoAnswerError | LoginError):
            raise
        text = f"{error.message}; PYPI_ASSETS_LISTER={crawler.lister} needs an index with serials"
        raise type(error)(f"{text}: set it to auto, which detects the kind of index", error.url) from error


def require_answer(crawler: Crawler, names: Collection[str]) -> None:
    """Check that an index answers before an empty catalog is bound to it.

    Requests pages of these projects until one is served, and otherwise the list of projects. Does nothing if the
    catalog already follows an index. Raises PackageIndexError if the index serves neither: its URL is wrong, or it does
    not answer.
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
            if not isinstance(error, NotOnIndexError):  # a single page may be broken, so the list decides
                break
        else:
            return
    if crawler.index.is_observed and failure is not None:  # its list has only projects that were polled before
        raise failure
    with ExitStack() as opened:
        query_first(crawler, lambda: opened.enter_context(crawler.index.iter_listing()))


def observe(
    crawler: Crawler, *, everything: bool = False, with_list: bool = False, only: Collection[str] | None = None
) -> Observation:
    """Poll an index without serials once: its due projects, all of them with `everything`, or `only` the named ones.

    People are notified of problems. If scopes decide which projects are followed, the list of projects is requested
    only with `with_list`. Without the list, `everything` means all known projects.

    Raises CatalogError if the catalog follows another index, or serials of another kind.
    """
    crawler.clock_steps.follow(crawler.catalog)
    with crawler.catalog.read() as connection:
        require_counter(connection, crawler.index.index_url, is_observed=crawler.index.is_observed)
        with_list = with_list or follows_all(connection)

    def report(done: int, total: int) -> None:
        crawler.report(Progress("looks", done, total))

    if only is None:
        found = crawler.index.observe(report, everything=everything, with_list=with_list)
    else:
        found = crawler.index.observe(report, only=frozenset(map(canonicalize_name, only)))
    crawler.observed(found)
    for message in found.messages:
        crawler.notify(message)
    return found
