"""The program of a reducer process: it reads files of a dump and writes the resulting records as sorted runs.

`loading.py` starts it. Messages in both directions are lines of JSON. The process receives the setup, then the files,
one at a time. When there are no more files, it reports what it has written. It decodes each row once, for all datasets.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import msgspec

from pypi_assets.catalog.publications.dump_columns import DumpFile
from pypi_assets.dumps.dump_manifest import file_path
from pypi_assets.dumps.later_rows import LaterRows, read_later_rows
from pypi_assets.dumps.worker_process import WorkerFailed, WorkerKind, send_message, start_worker
from pypi_assets.leveldbs.build.builder import by_project
from pypi_assets.leveldbs.build.row_decoder import columns_of, decoded_rows
from pypi_assets.leveldbs.build.sorted_runs import RunWriters
from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.registry import require_dataset
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbError
from pypi_assets.leveldbs.format.records import Records, Row
from pypi_assets.storage.store import Storage, open_storage

_REPORT_ROWS = 10_000
REDUCERS = WorkerKind("pypi_assets.leveldbs.build.reduce_process", "reads dumps", "build", LeveldbError)


class ReducedDataset(msgspec.Struct, frozen=True):
    """A dataset whose records the reducer makes: the file for its runs, and the bounds at which they are cut."""

    name: str
    path: str
    bounds: list[str]


class ReducerSetup(msgspec.Struct, frozen=True):
    """The first message to the reducer: the datasets, the dump, and the memory that the runs of all datasets share.

    `later` is the path of a database of later rows, for a dump of this number of `shards`.
    """

    datasets: list[ReducedDataset]
    storage_url: str
    directory: str
    run_bytes: int
    shards: int = 1
    later: str | None = None


class Rows(msgspec.Struct, frozen=True, tag=True):
    """Message from the reducer: this many more rows are done. `file_ends` is true if the whole file is done."""

    count: int
    file_ends: bool


class WrittenRuns(msgspec.Struct, frozen=True):
    """The runs of a dataset, and the offset of their index. The hash sum is in hexadecimal digits."""

    index_offset: int
    counts: dict[str, int]
    hash_sum: str


class Written(msgspec.Struct, frozen=True, tag=True):
    """Last message from the reducer: the runs of each dataset, in the order of the setup."""

    runs: list[WrittenRuns]


FromReducer = Rows | Written | WorkerFailed


def new_records(
    datasets: Sequence[Dataset],
    storage: Storage,
    directory: str,
    file: DumpFile,
    *,
    every: int = 1,
    later: LaterRows | None = None,
) -> Iterator[tuple[int, Iterator[Records]]]:
    """Yield the records of each dataset from a file of a full dump, one project at a time, with its number of rows.

    The records of a dataset are made when they are asked for, since those of a large project take much memory. With
    `every` above 1, only the first of each `every` projects is yielded. `later` replaces rows of the file.
    """
    name = storage.uri(file_path(directory, file.name))
    rows_of_file = decoded_rows(columns_of(datasets), storage, directory, file, later)
    for number, (project, rows) in enumerate(by_project(rows_of_file, name)):
        if number % every == 0:
            yield len(rows), _new_records_of(datasets, project, rows)


def _new_records_of(datasets: Iterable[Dataset], project: str, rows: list[Row]) -> Iterator[Records]:
    for dataset in datasets:
        yield dataset.change(None, project, rows)[1]


def reduce_files(
    setup: ReducerSetup, storage: Storage, files: Iterable[DumpFile], reported: Callable[[Rows], object]
) -> Written:
    """Write the runs of all datasets of the setup from these files. `reported` gets the progress.

    Raises the errors of `REDUCERS`, and OSError if the runs cannot be written.
    """
    datasets = [require_dataset(one.name) for one in setup.datasets]
    targets = [(Path(one.path), [bound.encode() for bound in one.bounds]) for one in setup.datasets]
    with ExitStack() as opened:
        path = setup.later
        later = None if path is None else opened.enter_context(read_later_rows(setup.shards, Path(path)))
        writers = opened.enter_context(RunWriters(targets, setup.run_bytes))
        for file in files:
            unreported = 0
            for rows, records in new_records(datasets, storage, setup.directory, file, later=later):
                writers.add(records)
                unreported += rows
                if unreported >= _REPORT_ROWS:
                    reported(Rows(unreported, file_ends=False))
                    unreported = 0
            reported(Rows(unreported, file_ends=True))
        runs = writers.finish()
    return Written([WrittenRuns(one.index_offset, dict(one.counts), f"{one.hash_sum:x}") for one in runs])


def main() -> None:
    """Serve the parent process until it has no more files or has ended."""
    incoming, outgoing = start_worker()
    setup = msgspec.json.decode(incoming.readline(), type=ReducerSetup)
    try:
        files = (msgspec.json.decode(line, type=DumpFile) for line in incoming)
        storage = open_storage(setup.storage_url, read_only=True)
        last: FromReducer = reduce_files(setup, storage, files, partial(send_message, outgoing))
    except BrokenPipeError:
        return
    except REDUCERS.caught as error:
        last = REDUCERS.failure(error, "the runs")
    send_message(outgoing, last)


if __name__ == "__main__":
    main()
