"""Loads a full dump into empty LevelDBs: its records are sorted first, so that they are written once, in order.

The rows are read once for all datasets. LevelDB then creates tables that it never has to merge. Sorting uses files on
disk, by ranges of keys, so memory is bounded. The records of a project are defined by its dataset, as in every other
build.
"""

import contextlib
import os
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from pypi_assets.catalog.publications.dump_columns import DumpFile
from pypi_assets.dumps.dump_manifest import DumpManifest
from pypi_assets.dumps.worker_process import WorkerProcess, await_all, taken
from pypi_assets.leveldbs.build.builder import Loaded, Tallies
from pypi_assets.leveldbs.build.reduce_process import (
    REDUCERS,
    FromReducer,
    ReducedDataset,
    ReducerSetup,
    Rows,
    Written,
    new_records,
    reduce_files,
)
from pypi_assets.leveldbs.build.sorted_runs import Runs, cut, merged, sizes_of
from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.format.leveldb_binding import Database, WriteBatch
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbError
from pypi_assets.leveldbs.format.records import Records, hash_sum
from pypi_assets.storage.store import Storage

_Expected = TypeVar("_Expected", Rows, Written)
_MESSAGES: msgspec.json.Decoder[FromReducer] = msgspec.json.Decoder(FromReducer)


class Reducers:
    """A group of reducer processes, which start in the background and end with this context manager."""

    def __init__(self, count: int) -> None:
        self._exits = contextlib.ExitStack()
        with contextlib.ExitStack() as started:
            self._reducers = [started.enter_context(WorkerProcess(REDUCERS, _MESSAGES)) for _ in range(count)]
            self._exits = started.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._exits.close()

    @property
    def processes(self) -> list[int]:
        """The process ids."""
        return [reducer.process_id for reducer in self._reducers]

    def reduce(
        self,
        files: Iterable[DumpFile],
        setup_of: Callable[[int], ReducerSetup],
        rows_done: Callable[[int], object],
    ) -> dict[str, list[Runs]]:
        """Distribute the files over the processes, and return all runs by dataset.

        `setup_of` is called with the number of a process, from 0. `rows_done` is called every second with the number of
        rows done so far. Raises the error of a reducer, or LeveldbError if a reducer died.
        """
        waiting = deque(sorted(files, key=lambda file: -file.rows))
        done = [0] * len(self._reducers)
        with ThreadPoolExecutor(len(self._reducers)) as threads:
            reduced = [
                threads.submit(_reduce, reducer, setup_of(number), taken(waiting), done, number)
                for number, reducer in enumerate(self._reducers)
            ]
            try:
                return _by_dataset(await_all(reduced, lambda: rows_done(sum(done))))
            except BaseException:
                self._exits.close()  # ends the waits of the threads for messages
                raise


def _reduce(
    reducer: WorkerProcess[Rows | Written],
    setup: ReducerSetup,
    files: Iterator[DumpFile],
    done: list[int],
    number: int,
) -> dict[str, Runs]:
    """Let a process reduce files until there are none left, and count their rows in `done[number]`."""
    reducer.send(setup)
    for file in files:
        reducer.send(file)
        file_ends = False
        while not file_ends:
            rows = _expected(Rows, reducer.receive())
            done[number] += rows.count
            file_ends = rows.file_ends
    reducer.end_input()
    return _runs(setup, _expected(Written, reducer.receive()))


def _expected(kind: type[_Expected], message: Rows | Written) -> _Expected:
    if not isinstance(message, kind):
        raise TypeError(f"{message!r:.100} instead of {kind.__name__}")
    return message


def _runs(setup: ReducerSetup, written: Written) -> dict[str, Runs]:
    """Return the runs of a reducer by dataset."""
    return {
        dataset.name: Runs(Path(dataset.path), runs.index_offset, runs.counts, int(runs.hash_sum, 16))
        for dataset, runs in zip(setup.datasets, written.runs, strict=True)
    }


def _by_dataset(of_reducers: Iterable[dict[str, Runs]]) -> dict[str, list[Runs]]:
    found = defaultdict[str, list[Runs]](list)
    for runs in of_reducers:
        for name, of_dataset in runs.items():
            found[name].append(of_dataset)
    return dict(found)


MEMORY_BYTES = 1024**3
_PROCESS_BYTES = 256 * 1024**2  # the memory of a reducer, including the interpreter and one run
PARTS = 32  # a reducer holds this fraction of the memory before it writes a run; the same fraction is read at once
_SAMPLE_ROWS = 4_000
_MOST_RANGES = 1_000  # the number of blocks is the number of ranges times the number of runs
_UNCUT_ROWS = 10_000  # the records of so few rows are read at once, since a sample would be a second pass
_BATCH_BYTES = 4 * 1024**2
_BATCHES_AHEAD = 2
LEAST_ROWS = 50_000  # fewer rows take less time than starting processes

RowsDone = Callable[[int], object]


def is_worth_loading(storage: Storage, rows: int) -> bool:
    """Check whether reading this number of rows in several processes is possible and saves time."""
    return rows >= LEAST_ROWS and not storage.url.startswith("memory:")


def reduce_dump(
    datasets: Sequence[Dataset],
    storage: Storage,
    dump: DumpManifest,
    *,
    folder: Path,
    later: Path | None = None,
    memory_bytes: int = MEMORY_BYTES,
    in_processes: bool = True,
    rows_done: RowsDone,
) -> dict[str, list[Runs]]:
    """Write the records of a full dump as sorted runs in `folder`, and return the runs of each dataset.

    `later` is a database of later rows, which replace rows of the dump. `rows_done` is called with the number of rows
    done. After a DumpDamagedError, StorageError or LeveldbError, discard the folder.
    """
    shares = 1 if len(datasets) == 1 else 2  # records of several datasets take more memory for the same bytes
    count = max(1, min(len(os.sched_getaffinity(0)), memory_bytes // _PROCESS_BYTES))
    with Reducers(count if in_processes else 0) as reducers:
        if dump.rows > _UNCUT_ROWS:
            bounds = sampled_bounds(datasets, storage, dump, memory_bytes // PARTS // 4)
        else:
            bounds = {dataset.name: [] for dataset in datasets}

        def setup_of(number: int) -> ReducerSetup:
            return ReducerSetup(
                datasets=[
                    ReducedDataset(name, str(folder / f"{name}.{number}.runs"), [one.decode() for one in of_dataset])
                    for name, of_dataset in bounds.items()
                ],
                storage_url=storage.url,
                directory=dump.directory,
                run_bytes=memory_bytes // PARTS // shares,
                shards=dump.shards,
                later=None if later is None else str(later),
            )

        if in_processes:
            return reducers.reduce(dump.files, setup_of, rows_done)
        return _reduce_here(setup_of(0), storage, dump, rows_done)


def _reduce_here(
    setup: ReducerSetup, storage: Storage, dump: DumpManifest, rows_done: RowsDone
) -> dict[str, list[Runs]]:
    """Reduce the files of a dump in this process."""
    done = 0

    def report(rows: Rows) -> None:
        nonlocal done
        done += rows.count
        rows_done(done)

    return _by_dataset([_runs(setup, reduce_files(setup, storage, dump.files, report))])


def sampled_bounds(
    datasets: Sequence[Dataset], storage: Storage, dump: DumpManifest, range_bytes: int
) -> dict[str, list[bytes]]:
    """Return bounds that divide the keys of each dataset into ranges whose records take about `range_bytes` of memory.

    The sample is taken from as many whole files as needed. The projects of a file are spread over all keys, but sorted,
    so its first rows alone would not be representative. If a file has many more rows than needed, only every n-th of
    its projects is used.
    """
    samples: list[dict[bytes, int]] = [{} for _ in datasets]
    sampled = 0
    for file in dump.files:
        if sampled >= _SAMPLE_ROWS:
            break
        every = 1 + file.rows // (4 * _SAMPLE_ROWS)
        for rows, records in new_records(datasets, storage, dump.directory, file, every=every):
            for sample, of_dataset in zip(samples, records, strict=True):
                sample |= sizes_of(of_dataset)
            sampled += rows
    return {
        dataset.name: cut(
            sample, min(_MOST_RANGES, 1 + sum(sample.values()) * dump.rows // max(1, sampled) // range_bytes)
        )
        for dataset, sample in zip(datasets, samples, strict=True)
    }


def load_runs(
    db: Database, dataset: Dataset, runs: Sequence[Runs], rows: int, memory_bytes: int, rows_done: RowsDone
) -> Loaded:
    """Write the records of the runs in ascending order into the empty `db`, and then their tallies.

    About `memory_bytes` of records are read at once. Raises LeveldbError if a key occurs twice; then discard `db`.
    """
    counts: Counter[str] = Counter()
    for run in runs:
        counts.update(run.counts)
    tallies = Tallies(dataset)
    written = _write(db, _tallied(merged(runs, memory_bytes), tallies), lambda: rows_done(rows))
    if written != counts.total():
        raise LeveldbError(f"a project is in the dump twice: {counts.total() - written} records are duplicates")
    _, added = tallies.take(None)
    _write(db, [added], lambda: rows_done(rows))
    counts.update(chr(key[0]) for key in added)
    return Loaded(rows, counts, sum(run.hash_sum for run in runs) + hash_sum(added.items()))


def _tallied(parts: Iterable[Records], tallies: Tallies) -> Iterator[Records]:
    for records in parts:
        tallies.add(records)
        yield records


def _write(db: Database, parts: Iterable[Records], rows_done: Callable[[], object]) -> int:
    """Write in a background thread, where LevelDB does not hold the interpreter's lock.

    Returns the number of records.
    """
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
    """Yield batches of about `_BATCH_BYTES`, each with its number of records."""
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
