"""Several shards of a full dump at once, up to a fixed number, so that the load of the database is bounded.

Threads do it: reading and compressing, which are most of the work, let other threads run meanwhile.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

from sqlalchemy.exc import DBAPIError

from pypi_assets.catalog.publications.dump_registry import DumpError
from pypi_assets.dumps.dump_format import RowError
from pypi_assets.storage.store import StorageError

_FAILURES = (StorageError, DBAPIError, OSError, RowError)
_FAILURES_IN_A_ROW = 8
"""After this many without a success no further shard begins: what failed is the storage or the database."""
_REPORT_EVERY_S = 1.0

_Finished = TypeVar("_Finished")


class ShardsFailedError(DumpError):
    """Some shards could not be written; the text names them and the first one's error, which is the cause."""


def spread(wanted: Sequence[int], concurrency: int) -> list[Iterator[int]]:
    """`concurrency` iterators that together give each of `wanted` once, in whatever order they are taken from.

    They begin at places that are evenly spread over `wanted`. Each goes on from there, round about, to the next shard
    that no other one has given.
    """
    left = set(wanted)

    def given_from(start: int) -> Iterator[int]:
        for shard in (*wanted[start:], *wanted[:start]):
            if shard in left:
                left.remove(shard)
                yield shard

    lanes = min(concurrency, len(wanted))
    return [given_from(len(wanted) * lane // lanes) for lane in range(lanes)]


def finish_each(
    directory: str,
    lanes: Sequence[Iterator[int]],
    finish: Callable[[int, Callable[[int], None]], _Finished],
    progress: Callable[[int], None] | None = None,
) -> Iterator[_Finished]:
    """Yields what `finish(shard, report)` returns for the shards of all `lanes`, as they come; a lane has a thread.

    `finish` reports now and then how many rows of its shard are done. `progress` receives the sum over all shards, in
    the caller's thread. If the caller stops early, reporting raises CancelledError, which ends what is under way.

    Raises ShardsFailedError once all others are finished, or at once any error that is not of an expected kind.
    """
    work = _Work(finish, max(len(lanes), 1))
    try:
        for lane in lanes:
            work.begin_next(lane)
        while work.under_way:
            finished = work.wait_for_some()
            if progress:
                progress(sum(work.rows.values()))
            yield from finished
    finally:
        work.stop()
    if work.failed:
        raise _shards_failed(directory, work.failed) from next(iter(work.failed.values()))


class _Work(Generic[_Finished]):
    """The shards that are under way, each in a thread, and what came of the others."""

    def __init__(self, finish: Callable[[int, Callable[[int], None]], _Finished], threads: int) -> None:
        self.under_way: dict[Future[_Finished], tuple[int, Iterator[int]]] = {}
        self.rows: dict[int, int] = {}
        self.failed: dict[int, Exception] = {}
        self._finish = finish
        self._failures_in_a_row = 0
        self._stopped = threading.Event()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="dump-shard")

    def begin_next(self, lane: Iterator[int]) -> None:
        if self._failures_in_a_row < _FAILURES_IN_A_ROW and (shard := next(lane, None)) is not None:
            self.under_way[self._threads.submit(self._run, shard)] = shard, lane

    def wait_for_some(self) -> list[_Finished]:
        """What has been finished within about a second; the lanes of these go on."""
        done, _ = wait(self.under_way, _REPORT_EVERY_S, FIRST_COMPLETED)
        finished = []
        for future in done:
            shard, lane = self.under_way.pop(future)
            try:
                finished.append(future.result())
                self._failures_in_a_row = 0
            except _FAILURES as error:
                self.failed[shard] = error
                self._failures_in_a_row += 1
            self.begin_next(lane)
        return finished

    def stop(self) -> None:
        self._stopped.set()
        self._threads.shutdown(cancel_futures=True)

    def _run(self, shard: int) -> _Finished:
        def report(count: int) -> None:
            if self._stopped.is_set():
                raise CancelledError
            self.rows[shard] = count

        return self._finish(shard, report)


def _shards_failed(directory: str, failed: Mapping[int, Exception]) -> ShardsFailedError:
    first, cause = next(iter(failed.items()))
    others = f"; {len(failed) - 1} others failed as well, {sorted(failed.keys() - {first})[:5]}"
    reason = str(cause.orig).strip() if isinstance(cause, DBAPIError) else cause
    return ShardsFailedError(
        f"shard {first} of dump {directory} is not written: {reason}{others if len(failed) > 1 else ''};"
        " run it again, and it goes on with those that are missing"
    )
