"""Full dumps, written shard by shard and committed with the last one.

Where none is open, some shards alone are verified, and nothing is published.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from sqlalchemy.exc import DBAPIError

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.dump_facts import DumpFile, DumpKind
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


@dataclass(frozen=True, slots=True)
class FinishedFile:
    """One shard of the full dump in `directory`; it was `written` just now, or else found whole.

    `is_verified`: the dump was committed before, and the file was compared with its manifest.
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
    """Writes and commits a full dump, going on with the one that was left open or uncommitted, if any.

    `written` receives the number of shards that are written. For `since`, `concurrency` and errors see
    `dump_each_shard`.
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
    """Writes the `wanted` ones of the open full dump's `shards`, and commits it once all are written.

    A shard that is stored already, with the size and the hash that are recorded, is left as it is. `concurrency`
    shards are written at once, each by a connection of its own. `progress` receives the number of rows now and then.

    All of them together open a dump where none is open. Some of them alone then verify the newest committed one:
    each file is read whole and held against its manifest. Raises DumpError where there is neither, DumpDamagedError,
    and ShardsFailedError once the others are written.

    With `since` (unix seconds) nothing counts that began to be read before: where no dump was opened since then, one
    is, and the shards of one that is committed already are left as they are.
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
    if settled:  # it lacked nothing but its manifest
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
    """The committed dump of that kind, and of that number of `shards` if given, which began to read last."""
    found = [dump for dump in committed_dumps(catalog) if dump.kind == kind and dump.shards == (shards or dump.shards)]
    return found[-1] if found else None


def _newest(catalog: Catalog, shards: int) -> Dump:
    newest = newest_dump(catalog, DumpKind.FULL, shards)
    if newest is None:
        raise DumpError(
            f"no full dump of {shards} shards is open or committed: some shards alone open none; run all of them"
            " together (job full_dump, or pypi-assets dump full)"
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
