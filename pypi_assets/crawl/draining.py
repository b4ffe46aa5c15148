"""Works off a queue that several processes share, with as much in flight as the crawler says.

What is next is claimed while the rest is still under way, so that no slow item keeps the others waiting. A process
that finds nothing to claim waits for what others have claimed, and takes it over where they die: at once where they ran
on the same machine, else when their claims run out.
"""

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import Protocol, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from pypi_assets.catalog.coordination.claims import (
    claim_scope,
    claiming_workers,
    expire_claims,
    release_claims,
    renew_claims,
)
from pypi_assets.catalog.coordination.worker_names import is_dead, new_worker
from pypi_assets.catalog.database import Catalog
from pypi_assets.crawl.crawler import Crawler

_FIRST_NAP_S = 0.5
_LONGEST_NAP_S = 10.0
"""Others finish what they have claimed without telling: so it is looked for now and then."""
_GATHER_S = 0.2

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Work(Protocol[_Item, _Result]):
    """A queue of items, what is done with each, and what becomes of that. Only `do` runs in threads."""

    def claim(self, limit: int) -> Sequence[Sequence[_Item]]:
        """Up to `limit` items for this worker alone, in bundles; none where nothing is due that is free."""

    def do(self, bundle: Iterable[_Item]) -> Sequence[_Result]:
        """What costs time without the catalog: one thread does it with the items of a bundle, one after another.

        Asking for the next one raises CancelledError once nobody wants the results any more.
        """

    def store(self, done: Sequence[tuple[_Item, _Result]]) -> None:
        """Gives what was done its outcome in the catalog."""

    def is_enough(self, done: Sequence[tuple[_Item, _Result]]) -> bool:
        """Whether it is worth while to store what is done, with more under way."""

    def report(self, wait_s: float = 0.0) -> object:
        """Tells how far it is, and for how many seconds there may be nothing to do but to wait."""

    def ready_at(self) -> float | None:
        """When something can be claimed (unix seconds) that nobody finishes before; None once nothing is left."""


class Pace:
    """When it is time again for something that is done now and then, and may take a small share of all time."""

    def __init__(self, every_s: float = 1.0, share: float = 0.05) -> None:
        self._every_s = every_s
        self._share = share
        self._due_at = time.monotonic() + every_s

    def is_due(self) -> bool:
        return time.monotonic() >= self._due_at

    @contextmanager
    def timed(self) -> Iterator[None]:
        """What is done now and then."""
        started = time.monotonic()
        yield
        ended = time.monotonic()
        self._due_at = ended + max(self._every_s, (ended - started) / self._share)


@contextmanager
def claiming(crawler: Crawler, scope: str | None) -> Iterator[str]:
    """The name of a new worker, whose claims are renewed until the end, and given back then.

    All the while it is said to be at work on `scope` (None: on no single one), also where it has claimed nothing of it.
    """
    catalog, worker, lease_s = crawler.catalog, new_worker(), crawler.claim_lease_s
    ended = threading.Event()

    def claim(connection: Connection) -> None:
        if scope is not None:
            now = catalog.clock()
            claim_scope(connection, scope, worker, now, now + lease_s)

    def renew() -> None:
        while not ended.wait(lease_s / 3):
            with suppress(SQLAlchemyError), catalog.write() as connection:  # else the next time, or they are lost
                renew_claims(connection, worker, catalog.clock() + lease_s)
                claim(connection)

    catalog.transact(claim)
    thread = threading.Thread(target=renew, name="claims", daemon=True)
    thread.start()
    try:
        yield worker
    finally:
        ended.set()
        thread.join()
        with suppress(SQLAlchemyError), catalog.write() as connection:  # else they run out
            release_claims(connection, worker)


def drain(crawler: Crawler, work: Work[_Item, _Result], *, only_due: bool = False) -> None:
    """Does all that is left of `work`, or waits for those who do; what is under way when it fails is dropped.

    With `only_due` it waits for nothing: it ends once none of what is left is due and free.
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
    """Nobody need wait for the claims of a process that ran on this machine, and is gone, to run out."""
    with catalog.read() as connection:
        workers = claiming_workers(connection)
    for worker in workers:
        if is_dead(worker):
            with catalog.write() as connection:
                expire_claims(connection, worker)
