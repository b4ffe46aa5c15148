"""Loads a full dump into an empty LevelDB: its records are sorted first, and so written once, in ascending order.

LevelDB then makes tables that it never has to merge. The sorting is done on disk by ranges of keys, so memory is
bounded; what holds for a project's records is defined by its dataset, here as elsewhere.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, TypeVar, cast

import msgspec

from pypi_assets.catalog.publications.dump_facts import DumpFile
from pypi_assets.dumps.dump_manifest import DumpManifest
from pypi_assets.leveldbs.build.builder import Loaded, Tallies
from pypi_assets.leveldbs.build.reduce_process import (
    ERRORS,
    FromReducer,
    ReduceFailed,
    ReducerSetup,
    Rows,
    Written,
    new_records,
)
from pypi_assets.leveldbs.build.sorted_runs import Runs, cut, memory_of, merged
from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.format.leveldb_binding import Database, WriteBatch
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbError
from pypi_assets.leveldbs.format.records import Records, hash_sum
from pypi_assets.storage.store import Storage

REDUCER_PROGRAM = "pypi_assets.leveldbs.build.reduce_process"
_REPORT_EVERY_S = 1.0
Expected = TypeVar("Expected", Rows, Written)


class Reducers:
    """Some reducer processes, which start while other things can be done, and end with this."""

    def __init__(self, count: int) -> None:
        self._exits = contextlib.ExitStack()
        with contextlib.ExitStack() as started:
            self._reducers = [started.enter_context(_Reducer()) for _ in range(count)]
            self._exits = started.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._exits.close()

    @property
    def processes(self) -> list[int]:
        """Their process ids."""
        return [reducer.process_id for reducer in self._reducers]

    def reduce(
        self,
        files: Iterable[DumpFile],
        setup_of: Callable[[int], ReducerSetup],
        rows_done: Callable[[int], object],
    ) -> list[Runs]:
        """Shares the files out, and returns all runs. `setup_of` is called with the number of the process, from 0.

        `rows_done` is called with the rows done so far, every second. Raises the error of a reducer, or LeveldbError if
        one died.
        """
        waiting = deque(sorted(files, key=lambda file: -file.rows))
        done = [0] * len(self._reducers)
        with ThreadPoolExecutor(len(self._reducers)) as threads:
            pending = {
                threads.submit(reducer.reduce, setup_of(number), _taken(waiting), done, number)
                for number, reducer in enumerate(self._reducers)
            }
            everything = tuple(pending)
            try:
                while pending:
                    finished, pending = wait(pending, _REPORT_EVERY_S, FIRST_EXCEPTION)
                    for each in finished:
                        each.result()
                    rows_done(sum(done))
            except BaseException:
                self._exits.close()  # their threads wait for their messages
                raise
        return [each.result() for each in everything]


class _Reducer:
    """One process."""

    def __init__(self) -> None:
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter and our own module
                [sys.executable, "-P", "-m", REDUCER_PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                process_group=0,
            )
        except OSError as error:
            raise LeveldbError(f"no process can be started to build with: {error}") from error
        self._outgoing = cast("BinaryIO", self._process.stdin)
        self._incoming = cast("BinaryIO", self._process.stdout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):  # of what it never took
            self._outgoing.close()
        self._incoming.close()

    @property
    def process_id(self) -> int:
        return self._process.pid

    def reduce(self, setup: ReducerSetup, files: Iterator[DumpFile], done: list[int], number: int) -> Runs:
        """Takes files until there are none, and counts their rows in `done[number]`."""
        self._send(setup)
        for file in files:
            self._send(file)
            file_ends = False
            while not file_ends:
                rows = self._receive(Rows)
                done[number] += rows.count
                file_ends = rows.file_ends
        with contextlib.suppress(BrokenPipeError):
            self._outgoing.close()
        written = self._receive(Written)
        return Runs(Path(setup.path), written.index_offset, written.counts, int(written.hash_sum, 16))

    def _send(self, message: ReducerSetup | DumpFile) -> None:
        with contextlib.suppress(BrokenPipeError):  # why it has ended is what is received next
            self._outgoing.write(msgspec.json.encode(message) + b"\n")
            self._outgoing.flush()

    def _receive(self, expected: type[Expected]) -> Expected:
        line = self._incoming.readline()
        if not line:
            status = self._process.wait()
            names = {-number: f"signal {number.name}" for number in signal.Signals}
            raise LeveldbError(
                f"a process that reads dumps has died: {names.get(status, f'exit status {status}')}; build again, with"
                " less memory at once where the machine is short of it"
            )
        message = msgspec.json.decode(line, type=FromReducer)
        if isinstance(message, ReduceFailed):
            raise ERRORS[message.error](message.text)
        if not isinstance(message, expected):
            raise TypeError(f"{message!r:.100} instead of {expected.__name__}")
        return message


def _taken(waiting: "deque[DumpFile]") -> Iterator[DumpFile]:
    """What is taken off by several threads."""
    with contextlib.suppress(IndexError):
        while True:
            yield waiting.popleft()


MEMORY_BYTES = 1024**3
_PROCESS_BYTES = 256 * 1024**2  # what a reducer may take, interpreter and run together
_PARTS = 32  # of the memory is what a reducer holds before it is written, or what is read at once
_SAMPLE_ROWS = 4_000
_BATCH_BYTES = 4 * 1024**2
_BATCHES_AHEAD = 2
_LEAST_ROWS = 50_000  # fewer are done in less time than processes take to start

RowsDone = Callable[[int], object]


def is_worth_loading(storage: Storage, dump: DumpManifest) -> bool:
    """Whether processes that read the dump would save time, and can."""
    return dump.rows >= _LEAST_ROWS and not storage.url.startswith("memory:")


def load_dump(
    db: Database,
    dataset: Dataset,
    storage: Storage,
    dump: DumpManifest,
    *,
    folder: Path,
    memory_bytes: int = MEMORY_BYTES,
    rows_done: RowsDone,
) -> Loaded:
    """Writes all records of a full dump into the empty `db`; what they are sorted in lies in the empty `folder`.

    `rows_done` is called with the number of rows done. Discard `db` after a DumpDamagedError, StorageError or
    LeveldbError.
    """
    count = max(1, min(len(os.sched_getaffinity(0)), memory_bytes // _PROCESS_BYTES))
    with Reducers(count) as reducers:
        bounds = [bound.decode() for bound in sampled_bounds(dataset, storage, dump, memory_bytes // _PARTS // 4)]
        runs = reducers.reduce(
            dump.files,
            lambda number: ReducerSetup(
                dataset=dataset.name,
                storage_url=storage.url,
                directory=dump.directory,
                path=str(folder / f"{number}.runs"),
                bounds=bounds,
                run_bytes=memory_bytes // _PARTS,
            ),
            rows_done,
        )
    return load_runs(db, dataset, runs, dump.rows, memory_bytes // _PARTS, rows_done)


def sampled_bounds(dataset: Dataset, storage: Storage, dump: DumpManifest, range_bytes: int) -> list[bytes]:
    """Bounds of ranges of keys in each of which all records of the dump take about `range_bytes` of memory.

    They are taken from whole files, since a file's projects are spread over all keys, but sorted: from as many files as
    it takes, and not from all projects where a file alone has many more.
    """
    sample: Records = {}
    sampled = 0
    for file in dump.files:
        if sampled >= _SAMPLE_ROWS:
            break
        every = 1 + file.rows // (4 * _SAMPLE_ROWS)
        for rows, records in new_records(dataset, storage, dump.directory, file, every=every):
            sample |= records
            sampled += rows
    return cut(sample, 1 + memory_of(sample) * dump.rows // max(1, sampled) // range_bytes)


def load_runs(
    db: Database, dataset: Dataset, runs: Sequence[Runs], rows: int, memory_bytes: int, rows_done: RowsDone
) -> Loaded:
    """Writes the records of the runs, in ascending order, and their tallies after them. Raises LeveldbError where a key
    is in them twice."""
    counts: Counter[str] = Counter()
    for one in runs:
        counts.update(one.counts)
    tallies = Tallies(dataset)
    written = _write(db, _tallied(merged(runs, memory_bytes), tallies), lambda: rows_done(rows))
    if written != counts.total():
        raise LeveldbError(f"a project is in the dump twice: {counts.total() - written} records came again")
    _, added = tallies.take(None)
    _write(db, [added], lambda: rows_done(rows))
    counts.update(chr(one[0]) for one in added)
    return Loaded(rows, counts, sum(one.hash_sum for one in runs) + hash_sum(added.items()))


def _tallied(parts: Iterable[Records], tallies: Tallies) -> Iterator[Records]:
    for records in parts:
        tallies.add(records)
        yield records


def _write(db: Database, parts: Iterable[Records], rows_done: Callable[[], object]) -> int:
    """Writes in the background, where LevelDB needs no lock of the interpreter; returns the number of records."""
    written = 0
    ahead: deque[Future[None]] = deque()
    with ThreadPoolExecutor(1) as writer:
        for batch, count in _batches(db, parts):
            written += count
            ahead.append(writer.submit(batch.write))
            if len(ahead) > _BATCHES_AHEAD:
                ahead.popleft().result()
                rows_done()
        for each in ahead:
            each.result()
    rows_done()
    return written


def _batches(db: Database, parts: Iterable[Records]) -> Iterator[tuple[WriteBatch, int]]:
    """Batches of about `_BATCH_BYTES`, each with the number of its records."""
    for records in parts:
        batch, size, count = db.write_batch(), 0, 0
        for record_key, value in records.items():
            batch.put(record_key, value)
            size += len(record_key) + len(value)
            count += 1
            if size >= _BATCH_BYTES:
                yield batch, count
                batch, size, count = db.write_batch(), 0, 0
        if count:
            yield batch, count
