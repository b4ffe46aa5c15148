"""Several shards of a full dump at once, so many and no more, so that the load of the database is bounded.

Threads do it: reading and compressing, which are most of the work, let other threads run meanwhile.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, ThreadPoolExecutor, wait
from typing import TypeVar

from sqlalchemy.exc import DBAPIError

from pypi_assets.catalog.publications.dump_registry import DumpError
from pypi_assets.dumps.dump_format import RowError
from pypi_assets.storage.store import StorageError

_FAILURES = (StorageError, DBAPIError, OSError, RowError)
_FAILURES_IN_A_ROW = 8
"""After so many without a success no further shard is begun: what failed is the storage or the database."""
_TELL_EVERY_S = 1.0

_Finished = TypeVar("_Finished")


class ShardsFailedError(DumpError):
    """Some shards could not be written; the text names them and the first one's error, which is the cause."""


def spread(wanted: Sequence[int], concurrency: int) -> list[Iterator[int]]:
    """`concurrency` iterators that together give each of `wanted` once, however they are taken from.

    They begin at places that are evenly spread over `wanted`, and each goes on from there, round about, to the next
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
    """What `finish(shard, tell)` returns for the shards of all `lanes`, as they come; each lane has a thread.

    `finish` tells now and then how many rows of its shard are done, and `progress`, in the caller's thread, how many
    of all are. Where nobody waits for more, telling raises CancelledError, so that what is under way ends soon.

    Raises ShardsFailedError once all others are finished, or at once any error that is not of a kind to be expected.
    """
    rows: dict[int, int] = {}
    failed: dict[int, Exception] = {}
    in_a_row = 0
    stopped = threading.Event()

    def run(shard: int) -> _Finished:
        def tell(count: int) -> None:
            if stopped.is_set():
                raise CancelledError
            rows[shard] = count

        return finish(shard, tell)

    threads = ThreadPoolExecutor(max(len(lanes), 1), thread_name_prefix="dump-shard")
    try:
        begun = ((shard, lane) for lane in lanes if (shard := next(lane, None)) is not None)
        under_way = {threads.submit(run, shard): (shard, lane) for shard, lane in begun}
        while under_way:
            done, _ = wait(under_way, _TELL_EVERY_S, FIRST_COMPLETED)
            finished = []
            for future in done:
                shard, lane = under_way.pop(future)
                try:
                    finished.append(future.result())
                    in_a_row = 0
                except _FAILURES as error:
                    failed[shard] = error
                    in_a_row += 1
                if in_a_row < _FAILURES_IN_A_ROW and (following := next(lane, None)) is not None:
                    under_way[threads.submit(run, following)] = following, lane
            if progress:
                progress(sum(rows.values()))
            yield from finished
    finally:
        stopped.set()
        threads.shutdown(cancel_futures=True)
    if failed:
        first, cause = next(iter(failed.items()))
        others = f"; {len(failed) - 1} others failed as well, {sorted(failed.keys() - {first})[:5]}"
        reason = str(cause.orig).strip() if isinstance(cause, DBAPIError) else cause
        raise ShardsFailedError(
            f"shard {first} of dump {directory} is not written: {reason}{others if len(failed) > 1 else ''};"
            " run it again, and it goes on with those that are missing"
        ) from cause
