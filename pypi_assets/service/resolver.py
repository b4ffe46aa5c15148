"""Resolution of requirements in a separate process, so that lookups never wait for a resolution.

The process opens the published sets and the catalog itself, and answers one question after the other. A resolution that
exceeds its time stops by itself, or is killed with the process. The process ends when its parent process ends.
"""

import multiprocessing
import os
import resource
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from pypi_assets.catalog.database import Catalog
from pypi_assets.components import catalog_to_read, storage_from
from pypi_assets.lookup.published_sets import OpenSet, PublishedSets
from pypi_assets.questions.catalog_snapshot import CatalogSnapshot
from pypi_assets.questions.published_snapshot import PublishedSnapshot
from pypi_assets.questions.snapshot import Snapshot
from pypi_assets.resolve.releases import ReleaseIndex
from pypi_assets.resolve.solver_data import ResolutionLimitError
from pypi_assets.service.client_limits import Places
from pypi_assets.service.problems import ProblemError, problem_of, unavailable
from pypi_assets.settings import Settings

_NICENESS = 5
"""Gives lookups priority if CPU time is scarce."""
_INDEXES = 3
"""The number of serials whose releases the process caches."""
_GRACE_S = 5.0
"""How much longer to wait for a resolution than it may take, because it only checks the clock now and then."""
_START_S = 60.0
"""The time in which the process must start, also on a busy machine."""
_PLACES, _PLACES_OF_A_CLIENT = 8, 4
"""The number of requests that may wait for the process. Each holds a thread, and lookups need the other threads."""
_MOST_RESIDENT_BYTES = 1024**3
"""The memory that the process may use after an answer. Above this limit, it is replaced by a new process.

Its caches of requests and releases limit the number of entries, which does not limit their size.
"""


@dataclass(frozen=True, slots=True)
class Job:
    """A call of `answer` with an index, which may take `seconds`. The function and its result must be picklable.

    `set_id` is the published set of the index. If it is None, the index is the catalog at `serial` in its `epoch`.
    """

    answer: Callable[[ReleaseIndex], Any]
    seconds: float
    set_id: str | None = None
    serial: int = 0
    epoch: int = 0


class _Reply(NamedTuple):
    """The reply of the process. `is_last` means that the process uses too much memory for another job."""

    content: Any
    is_last: bool


class _Failure(NamedTuple):
    """A problem, as sent between processes."""

    status: int
    kind: str
    detail: str
    headers: tuple[tuple[str, str], ...] = ()
    parameter: str | None = None
    accepts: str | None = None


class ResolverProcess:
    """The service's handle of the process. It starts the process on first use, and again after it has ended."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._places = Places(_PLACES, _PLACES_OF_A_CLIENT)
        self._using = threading.Lock()
        self._process: BaseProcess | None = None
        self._connection: Connection[Any, Any] | None = None

    def answer(self, job: Job, client: str = "", wait_s: float = 0.0) -> Any:
        """Return the result of the job's `answer`. Raises ProblemError if it is busy, too slow, or fails.

        Each `client` has a share of the places in the waiting room. `wait_s` is the time to wait for a place. A job
        that cannot finish before its request times out is not started.
        """
        patience_s = max(self._settings.service_timeout_s - job.seconds, 0.0)
        with self._places.turn(client, wait_s, patience_s), self._using:
            try:
                connection = self._started()
                connection.send(job)
                if not connection.poll(job.seconds + _GRACE_S):
                    self._end()
                    raise _too_slow(f"the resolution took longer than {job.seconds:g} s")
                found, is_last = connection.recv()
                if is_last:
                    self._end()
            except (EOFError, OSError):
                self._end()
                raise unavailable("the resolver process has ended and is restarting") from None
        if isinstance(found, _Failure):
            raise ProblemError(**found._asdict())
        return found

    def close(self) -> None:
        """Stop the process."""
        with self._using:
            self._end()

    def _started(self) -> "Connection[Any, Any]":
        if self._process is not None and not self._process.is_alive():
            self._end()
        if self._connection is None:
            context = multiprocessing.get_context("spawn")
            self._connection, theirs = context.Pipe()
            self._process = context.Process(target=_run, args=(self._settings, theirs), name="resolver", daemon=True)
            self._process.start()
            theirs.close()  # so that this side notices when the process ends
            if not self._connection.poll(_START_S):
                self._end()
                raise unavailable("the resolver process does not start")
            self._connection.recv()
        return self._connection

    def _end(self) -> None:
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if connection is not None:
            connection.close()
        if process is not None and process.pid is not None:
            process.kill()
            process.join()


def _too_slow(detail: str) -> ProblemError:
    return unavailable(f"{detail}: narrow the requirements", "too-slow")


def _run(settings: Settings, connection: "Connection[Any, Any]") -> None:
    """Run the process until the other end of the connection is closed."""
    with suppress(OSError):
        os.nice(_NICENESS)
    resolving = _Resolving(settings)
    with suppress(EOFError, OSError, KeyboardInterrupt):
        connection.send(None)  # ready
        while True:
            content = resolving.reply(connection.recv())
            connection.send(_Reply(content, _resident_bytes() > _MOST_RESIDENT_BYTES))


def _resident_bytes() -> int:
    """Return the memory that this process uses now, or its peak if the current use is unknown."""
    with suppress(OSError, ValueError, IndexError):
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class _Resolving:
    """The state in the process: the open datasets or catalog, and the indexes of the last serials."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._sets: PublishedSets | None = None
        self._catalog: Catalog | None = None
        self._indexes: OrderedDict[object, ReleaseIndex] = OrderedDict()

    def reply(self, job: Job) -> Any:
        """Return the answer, or the problem that ended the job."""
        try:
            return job.answer(self._index_of(job))
        except ResolutionLimitError as error:
            return _failure(_too_slow(str(error)))
        except Exception as error:  # noqa: BLE001 - the process must not end
            problem = problem_of(error)
            return _failure(problem) if problem else _Failure(500, "internal", f"{type(error).__name__}: {error}")

    def _index_of(self, job: Job) -> ReleaseIndex:
        key = job.set_id, job.serial, job.epoch
        found = self._indexes.pop(key, None) or self._snapshot(job).release_index()
        self._indexes[key] = found
        while len(self._indexes) > _INDEXES:
            self._indexes.popitem(last=False)
        return found

    def _snapshot(self, job: Job) -> Snapshot:
        if job.set_id is None:
            return CatalogSnapshot(self._open_catalog(), job.serial)
        if self._sets is None:
            self._sets = PublishedSets(storage_from(self._settings, read_only=True), self._settings.leveldbs_dir)
        published = self._sets.named(job.set_id)
        if published is None:
            raise unavailable(f"the set {job.set_id} is no longer published")
        opened = OpenSet(self._sets, published)  # opens only the one dataset that a resolution reads
        return PublishedSnapshot(opened.reader, opened.opened)

    def _open_catalog(self) -> Catalog:
        if self._catalog is None:
            self._catalog = catalog_to_read(self._settings)
        return self._catalog


def _failure(error: ProblemError) -> _Failure:
    problem = error.problem
    kind = problem.type.partition("#")[2]
    return _Failure(problem.status, kind, problem.detail, error.headers, problem.parameter, problem.accepts)
