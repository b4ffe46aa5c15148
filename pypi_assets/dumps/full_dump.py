"""Full dumps, written shard by shard and committed after the last shard.

If no full dump is open, a request for only some shards verifies these shards, and publishes nothing.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from sqlalchemy.exc import DBAPIError

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.dump_columns import DumpFile, DumpKind
from pypi_assets.catalog.publications.dump_registry import (
    Dump,
    DumpError,
    committed_dumps,
    find_open_full_dump,
    open_full_dump,
    recorded_files,
)
from pypi_assets.dumps.dump_format import RowError
from pypi_assets.dumps.dump_manifest import DumpManifest, file_path, read_manifest
from pypi_assets.dumps.dump_reader import iter_rows
from pypi_assets.dumps.dump_writer import commit, commit_pending_dumps, missing_shards, write_shard
from pypi_assets.storage.store import Storage, StorageError

if TYPE_CHECKING:
    import io


_FAILURES = (StorageError, DBAPIError, OSError, RowError)
_FAILURES_IN_A_ROW = 8
"""After this many consecutive failures no further shard begins, because the storage or the database itself fails."""
_REPORT_EVERY_S = 1.0

_Finished = TypeVar("_Finished")


class ShardsFailedError(DumpError):
    """Some shards could not be written. The message names them, and the error of the first one, which is the cause."""


def spread(wanted: Sequence[int], concurrency: int) -> list[Iterator[int]]:
    """Return `concurrency` iterators that together yield each shard of `wanted` once, however they are advanced.

    They begin at evenly spread positions of `wanted`. Each continues from its position, and wraps around, to the next
    shard that no other iterator has yielded.
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
    """Yield the results of `finish(shard, report)` for the shards of all `lanes`, in order of completion.

    Each lane has a thread. `finish` reports from time to time how many rows of its shard are done. `progress` receives
    the sum over all shards, in the caller's thread. If the caller stops early, `report` raises CancelledError, which
    ends the running shards.

    Raises ShardsFailedError when all other shards are finished. Unexpected errors are raised immediately.
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
    """The shards in progress, each in a thread, and the results of the others."""

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
        """Return the results of about one second, and begin the next shard of each finished lane."""
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
        f"shard {first} of dump {directory} was not written: {reason}{others if len(failed) > 1 else ''};"
        " run the same command again to write the missing shards"
    )


@dataclass(frozen=True, slots=True)
class FinishedFile:
    """One shard of the full dump in `directory`. `written` is false if an intact file existed before.

    `is_verified`: the dump was already committed, and the file was compared with its manifest.
    """

    directory: str
    file: DumpFile
    written: bool
    is_verified: bool = False


def full_dump(
    catalog: Catalog,
    storage: Storage,
    shards: int = 256,
    written: Callable[[int], None] | None = None,
    since: float | None = None,
    *,
    concurrency: int = 1,
) -> DumpManifest:
    """Write and commit a full dump, or continue the one that was left open or uncommitted.

    `written` receives the number of written shards. For `since`, `concurrency` and errors see `dump_each_shard`.
    """
    directory = ""
    each = dump_each_shard(catalog, storage, range(shards), shards, since=since, concurrency=concurrency)
    for done, finished in enumerate(each, start=1):
        directory = finished.directory
        if written:
            written(done)
    return read_manifest(storage, directory)


def dump_each_shard(
    catalog: Catalog,
    storage: Storage,
    wanted: Sequence[int],
    shards: int = 256,
    progress: Callable[[int], None] | None = None,
    since: float | None = None,
    *,
    concurrency: int = 1,
) -> Iterator[FinishedFile]:
    """Write the `wanted` shards of the open full dump, and commit it when all `shards` are written.

    A shard that is already stored with the recorded size and hash is kept. `concurrency` shards are written at once,
    each with its own connection. `progress` receives the number of rows from time to time.

    A request for all shards opens a dump if none is open. A request for some shards then verifies the newest committed
    dump instead: each file is read completely and compared with its manifest. Raises DumpError if there is neither an
    open nor a committed dump, DumpDamagedError, and ShardsFailedError when the other shards are written.

    With `since` (unix seconds), only a dump that was opened since then counts. If there is none, a new dump is opened.
    If it is already committed, its shards are kept.
    """
    settled = [
        manifest
        for manifest in commit_pending_dumps(catalog, storage)
        if _is_full(manifest.kind, manifest.shards, shards)
    ]
    if since is not None:
        newest = newest_dump(catalog, DumpKind.FULL, shards)
        is_done = newest is not None and newest.opened_at >= since
        settled = [read_manifest(storage, newest.directory)] if newest and is_done else []
    if settled:  # only its manifest was missing
        files = {file.shard: file for file in settled[-1].files}
        yield from (FinishedFile(settled[-1].directory, files[shard], True) for shard in wanted)
        return
    if since is None and len(set(wanted)) < shards and find_open_full_dump(catalog, shards) is None:
        yield from _verified(storage, _newest(catalog, shards), wanted)
        return
    dump = open_full_dump(catalog, shards, since or 0.0)
    missing = set(missing_shards(catalog, storage, dump))
    known = {file.shard: file for file in recorded_files(catalog, dump) if file.shard not in missing}

    def finish(shard: int, report: Callable[[int], None]) -> FinishedFile:
        file = known.get(shard)
        if file and _has_recorded_hash(storage, dump, file):
            return FinishedFile(dump.directory, file, False)
        return FinishedFile(dump.directory, write_shard(catalog, storage, dump, shard, report), True)

    yield from finish_each(dump.directory, spread(wanted, concurrency), finish, progress)
    if not missing_shards(catalog, storage, dump):
        commit(catalog, storage, dump)


def newest_dump(catalog: Catalog, kind: DumpKind, shards: int | None = None) -> Dump | None:
    """Return the committed dump of this kind, and with this number of `shards` if given, that was opened last."""
    found = [dump for dump in committed_dumps(catalog) if dump.kind == kind and dump.shards == (shards or dump.shards)]
    return found[-1] if found else None


def _newest(catalog: Catalog, shards: int) -> Dump:
    newest = newest_dump(catalog, DumpKind.FULL, shards)
    if newest is None:
        raise DumpError(
            f"no full dump of {shards} shards is open or committed, and a run of some shards does not open one: run"
            " all of them together (job full_dump, or pypi-assets dump full)"
        )
    return newest


def _verified(storage: Storage, dump: Dump, wanted: Sequence[int]) -> Iterator[FinishedFile]:
    files = {file.shard: file for file in read_manifest(storage, dump.directory).files}
    for shard in wanted:
        for _ in iter_rows(storage, dump.directory, files[shard]):
            pass
        yield FinishedFile(dump.directory, files[shard], written=False, is_verified=True)


def _has_recorded_hash(storage: Storage, dump: Dump, file: DumpFile) -> bool:
    with storage.open(file_path(dump.directory, file.name)) as stream:
        return hashlib.file_digest(cast("io.BufferedIOBase", stream), "sha256").hexdigest() == file.sha256


def _is_full(kind: DumpKind, has: int, shards: int) -> bool:
    return kind == DumpKind.FULL and has == shards
