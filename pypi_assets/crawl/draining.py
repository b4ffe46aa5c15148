"""The loop that drains a queue shared by several processes, with up to `in_flight` items in progress at a time.

New items are claimed before the earlier ones are finished, so that a slow item does not delay the rest. A process that
finds nothing to claim waits for the items of other processes. It takes them over if those processes die: at once on the
same machine, and otherwise when their claims expire. `visiting.py` and `reading.py` define the items.
"""

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from typing import Protocol, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from pypi_assets.catalog.coordination.claims import (
    claim_workload,
    claiming_workers,
    expire_claims,
    is_dead,
    new_worker,
    release_claims,
    renew_claims,
)
from pypi_assets.catalog.database import Catalog
from pypi_assets.crawl.crawler import LONGEST_PAUSE_S, Crawler

_FIRST_NAP_S = 0.5
_LONGEST_NAP_S = 10.0
"""The queue is polled, since other processes do not signal that their claims are finished."""
_GATHER_S = 0.2

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Work(Protocol[_Item, _Result]):
    """A queue of items, the work on each item, and the storage of results. Only `do` runs in threads."""

    def claim(self, limit: int) -> Sequence[Sequence[_Item]]:
        """Claim up to `limit` items for this worker, in bundles. Returns no bundle if no free item is due."""

    def do(self, bundle: Iterable[_Item]) -> Sequence[_Result]:
        """Do the slow work, without using the catalog. A thread does the items of a bundle one after another.

        The iterator raises CancelledError once the results are no longer needed.
        """

    def store(self, done: Sequence[tuple[_Item, _Result]]) -> None:
        """Store the outcomes in the catalog."""

    def is_enough(self, done: Sequence[tuple[_Item, _Result]]) -> bool:
        """Return whether to store these results now, while other items are in progress."""

    def report(self, wait_s: float = 0.0) -> object:
        """Report progress, and for how many seconds the loop may only wait."""

    def ready_at(self) -> float | None:
        """Return when the next item becomes free (unix seconds), if it is not finished before; None if none is left."""


class Pace:
    """Spaces out a recurring task, so that it takes at most a small share of the total time."""

    def __init__(self, every_s: float = 1.0, share: float = 0.05) -> None:
        self._every_s = every_s
        self._share = share
        self._due_at = time.monotonic() + every_s

    def is_due(self) -> bool:
        return time.monotonic() >= self._due_at

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Time one run of the task, whose duration sets when the next run is due."""
        started = time.monotonic()
        yield
        ended = time.monotonic()
        self._due_at = ended + max(self._every_s, (ended - started) / self._share)


@contextmanager
def claiming(crawler: Crawler, workload: str | None) -> Iterator[str]:
    """Yield the name of a new worker. Its claims are renewed until the block ends, and released then.

    Until then, the worker counts as working on `workload` (None: on no workload), even while it has no claimed item.
    """
    catalog, worker, lease_s = crawler.catalog, new_worker(), crawler.claim_lease_s
    ended = threading.Event()

    def claim(connection: Connection) -> None:
        if workload is not None:
            now = catalog.clock()
            claim_workload(connection, workload, worker, now, now + lease_s)

    def extend(connection: Connection) -> None:
        renew_claims(connection, worker, catalog.clock() + lease_s)
        claim(connection)

    def renew() -> None:
        while not ended.wait(lease_s / 3):
            with suppress(SQLAlchemyError):  # renewed next time; otherwise the claims expire
                crawler.clock_steps.follow(catalog)
                catalog.transact(extend)

    crawler.clock_steps.follow(catalog)
    catalog.transact(claim)
    thread = threading.Thread(target=renew, name="claims", daemon=True)
    thread.start()
    try:
        yield worker
    finally:
        ended.set()
        thread.join()
        with suppress(SQLAlchemyError):  # if this fails, the claims expire
            catalog.transact(partial(release_claims, worker=worker))


def drain(crawler: Crawler, work: Work[_Item, _Result], *, only_due: bool = False) -> None:
    """Finish all items of `work`, and wait for items that other processes have claimed.

    With `only_due` it does not wait: it returns if no remaining item is both due and free. If it raises, results of
    items in progress are dropped.
    """
    flight: dict[Future[Sequence[_Result]], Sequence[_Item]] = {}
    done: list[tuple[_Item, _Result]] = []
    nap_s = _FIRST_NAP_S
    ended = threading.Event()
    with ThreadPoolExecutor(crawler.connections, thread_name_prefix="crawl") as pool:
        try:
            while True:
                free = crawler.in_flight - sum(map(len, flight.values()))
                if not flight or free * 4 >= crawler.in_flight:
                    flight |= {pool.submit(work.do, _until(ended, bundle)): bundle for bundle in work.claim(free)}
                finished = wait(flight, timeout=_GATHER_S).done
                for future in finished:
                    done += zip(flight.pop(future), future.result(), strict=True)
                if done and (not flight or work.is_enough(done)):
                    work.store(done)
                    done = []
                if not flight and not finished:
                    _expire_claims_of_the_dead(crawler.catalog)
                    crawler.clock_steps.follow(crawler.catalog)
                    crawler.clock_steps.end_long_pauses(crawler.catalog, LONGEST_PAUSE_S)
                    ready_at, now = work.ready_at(), crawler.catalog.clock()
                    if ready_at is None or (only_due and ready_at > now):
                        return
                    work.report(max(ready_at - now, 0.0))
                    crawler.wait_until(min(ready_at, now + nap_s))
                    nap_s = min(nap_s * 2, _LONGEST_NAP_S)
                elif finished:
                    nap_s = _FIRST_NAP_S
        finally:
            ended.set()
            for future in flight:
                future.cancel()


def _until(ended: threading.Event, bundle: Iterable[_Item]) -> Iterator[_Item]:
    for item in bundle:
        if ended.is_set():
            raise CancelledError
        yield item


def _expire_claims_of_the_dead(catalog: Catalog) -> None:
    """Expire the claims of dead processes of this machine at once."""
    with catalog.read() as connection:
        workers = claiming_workers(connection)
    for worker in workers:
        if is_dead(worker):
            catalog.transact(partial(expire_claims, worker=worker))
