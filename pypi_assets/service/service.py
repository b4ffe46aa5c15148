"""State that the routes of a process share: settings, the published set of datasets, the catalog, and threads.

New versions are opened in the background. A request uses one set from its beginning to its end.
"""

import asyncio
import copy
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from sqlalchemy.exc import SQLAlchemyError

from pypi_assets.catalog.database import Catalog, CatalogError, NoCatalogError
from pypi_assets.catalog.reports.past_pages import StoredFiles
from pypi_assets.components import catalog_to_read, storage_from
from pypi_assets.errors import FIRST_COMMANDS
from pypi_assets.journal.segment_files import JournalDamagedError
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbError
from pypi_assets.lookup.published_sets import OpenSet, PublishedSets
from pypi_assets.mirror.mirror_state import journal_end
from pypi_assets.resolve.solvability import StoredDays
from pypi_assets.service.kept_files import KeptBytes
from pypi_assets.service.problems import unavailable
from pypi_assets.service.published_changes import PublishedChanges
from pypi_assets.service.resolver import ResolverProcess
from pypi_assets.service.response_cache import ResponseCache
from pypi_assets.settings import Settings
from pypi_assets.storage.store import StorageError

_log = logging.getLogger(__name__)
_THREADS = 16
_FORMER_SETS = 2
"""The number of earlier sets that stay open, for further pages of lists that began with them."""

Result = TypeVar("Result")


class Threads:
    """Threads for blocking calls that read LevelDBs and the catalog.

    `waiting` counts the calls that are running or waiting for a thread. A call that takes too long holds its thread
    until it ends, so a slow storage cannot increase the number of threads.
    """

    def __init__(self, timeout_s: float = 30.0) -> None:
        self.waiting = 0
        self._timeout_s = timeout_s
        self._short = ThreadPoolExecutor(_THREADS, "service")
        self._streams = ThreadPoolExecutor(_THREADS, "streams")

    async def run(self, work: Callable[[], Result]) -> Result:
        """Return the result of `work`. Raises TimeoutError if it takes too long."""
        self.waiting += 1
        try:
            async with asyncio.timeout(self._timeout_s):
                return await asyncio.get_running_loop().run_in_executor(self._short, work)
        finally:
            self.waiting -= 1

    async def run_part(self, work: Callable[..., Result], *arguments: object) -> Result:
        """Return the result of `work`, a part of a stream. Streams have their own threads and no time limit."""
        return await asyncio.get_running_loop().run_in_executor(self._streams, work, *arguments)

    def close(self) -> None:
        """Start no further calls."""
        for pool in (self._short, self._streams):
            pool.shutdown(wait=False, cancel_futures=True)


@dataclass
class Service:
    """The state of a service, made by `open_service`. `datasets` and `catalog` are for handlers, which run in threads.

    `problems` has the reason if the storage or the catalog did not answer the last poll, by the name of the part.
    `threads`, `cache` and `waits` belong to the event loop; `waits` has a future for each client that waits for
    changes. `address` is the URL at which a client on this machine reaches the service.
    """

    settings: Settings
    problems: dict[str, str] = field(default_factory=dict)
    address: str = "http://127.0.0.1:8642/"
    threads: Threads = field(default_factory=Threads)
    cache: ResponseCache = field(default_factory=ResponseCache)
    waits: set[asyncio.Future[None]] = field(default_factory=set)
    stored_files: StoredFiles = field(default_factory=StoredFiles)
    resolver: ResolverProcess = field(init=False)
    solvability: StoredDays = field(init=False)
    changes: PublishedChanges = field(init=False)
    kept: KeptBytes = field(init=False)
    _sets: PublishedSets | None = None
    _present: OpenSet | None = None
    _former: list[OpenSet] = field(default_factory=list)
    _catalog: Catalog | None = None
    _is_without_catalog: bool = False
    _journal_end: int | None = None
    _opening: threading.Lock = field(default_factory=threading.Lock)
    _closing: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.resolver = ResolverProcess(self.settings)
        opened = partial(storage_from, self.settings, read_only=True)
        self.solvability, self.changes = StoredDays(opened), PublishedChanges(opened)
        self.kept = KeptBytes(opened)

    @property
    def present(self) -> OpenSet | None:
        """Return the current datasets, or None if nothing is published."""
        return self._present

    @property
    def serial(self) -> int:
        """Return the serial of the current datasets, or 0 if nothing is published."""
        return self._present.serial if self._present else 0

    @property
    def catalog(self) -> Catalog | None:
        """Return the catalog, or None if there is none or it has not answered yet."""
        return self._catalog

    def datasets(self) -> OpenSet:
        """Return the readers for one request, all of one serial. Raises a ProblemError if nothing is published.

        >>> service.datasets().reader(ModulesReader).module("yaml").results
        """
        if self._present is None:
            raise unavailable(
                self.problems.get("storage") or f"nothing is published yet: {FIRST_COMMANDS}", "not-built-yet"
            )
        return self._present

    def of_one_set(self) -> "Service":
        """Return a copy that keeps the current datasets, for responses that need several lookups."""
        return copy.copy(self)

    def named_set(self, set_id: str) -> OpenSet | None:
        """Return the datasets that a cursor names, or None if they are no longer published. Raises StorageError.

        They can be earlier datasets, or newer ones that this process has not opened yet.
        """
        for opened in (self._present, *self._former):
            if opened is not None and opened.id == set_id:
                return opened
        with self._opening:
            opened = None if self._sets is None else self._sets.open_named(set_id)
            if opened is not None:
                self._keep(opened)
            return opened

    @property
    def journal_end(self) -> int | None:
        """Return the serial up to which a mirror will replay the journal, or None if this is not a mirror."""
        return self._journal_end

    def require_catalog(self) -> Catalog:
        """Return the catalog. Raises a ProblemError without one."""
        if self._catalog is None:
            if self._journal_end is not None:
                raise unavailable(
                    "this mirror cannot answer past serials yet: `pypi-assets mirror run` replays the journal for them,"
                    " unless it has the option --latest-only",
                    "no-catalog",
                )
            raise unavailable(self.problems.get("catalog") or "this service has no catalog", "no-catalog")
        return self._catalog

    @property
    def has_catalog(self) -> bool:
        """Return whether there is a catalog, even if its database does not answer."""
        return self._catalog is not None or not self._is_without_catalog

    @property
    def is_closing(self) -> bool:
        """Return whether the service is about to stop."""
        return self._closing.is_set()

    def follow(self) -> None:
        """Open newly published datasets, and the catalog if it is not open yet."""
        with self._opening:
            self._note("storage", self._follow_storage)
            if self._catalog is None:
                self._note("catalog", self._open_catalog)

    def follow_in_background(self, followed: Callable[["Service"], None]) -> None:
        """Poll in the background until `close`, at the interval of the settings.

        `followed` is called now and after each poll.
        """
        followed(self)
        threading.Thread(target=self._keep_following, args=(followed,), name="follow", daemon=True).start()

    def stop(self) -> None:
        """Stop polling, and end the answers of clients that wait for changes. Other answers are finished."""
        self._closing.set()
        for ended in tuple(self.waits):
            ended.get_loop().call_soon_threadsafe(ended.cancel)

    def close(self) -> None:
        """Close the service. Resources in use are closed once their answers end."""
        self._closing.set()
        self.threads.close()
        self.resolver.close()
        with self._opening:
            self._present = None
            self._former.clear()
            if self._catalog is not None:
                self._catalog.close()
                self._catalog = None

    def _keep_following(self, followed: Callable[["Service"], None]) -> None:
        while not self._closing.wait(self.settings.service_refresh_s):
            self.follow()
            followed(self)

    def _note(self, part: str, step: Callable[[], None]) -> None:
        try:
            step()
        except (LeveldbError, StorageError, JournalDamagedError, CatalogError, SQLAlchemyError, OSError) as error:
            if self.problems.get(part) != str(error):
                _log.warning("%s: %s", part, error)
            self.problems[part] = str(error)
        except Exception:  # noqa: BLE001 - a defect must not stop the polling: answers would become stale
            _log.exception("polling the %s failed", part)
            self.problems[part] = "polling it failed; the log of the service has the reason"
        else:
            self.problems.pop(part, None)

    def _follow_storage(self) -> None:
        storage = storage_from(self.settings, read_only=True)
        if self._sets is None:
            self._sets = PublishedSets(storage, self.settings.leveldbs_dir)
        self._open_newest_set(self._sets)
        self._journal_end = journal_end(storage)

    def _open_newest_set(self, sets: PublishedSets) -> None:
        newest = sets.open_newest(self._present)
        if newest is None or self._closing.is_set():
            return
        before, self._present = self._present, newest
        if before is not None:
            self._keep(before)
        _log.info("answers are as of serial %d", newest.serial, extra={"serial": newest.serial})

    def _keep(self, opened: OpenSet) -> None:
        self._former = [opened, *self._former][:_FORMER_SETS]

    def _open_catalog(self) -> None:
        try:
            self._catalog = catalog_to_read(self.settings)
            self._is_without_catalog = False
        except NoCatalogError:
            self._is_without_catalog = True
            raise


def open_service(settings: Settings) -> Service:
    """Return a service with these settings, which has polled the storage once. Nothing needs to be published yet."""
    service = Service(settings, threads=Threads(settings.service_timeout_s))
    service.follow()
    return service
