"""The program of a reducer process: it reads files of a dump and writes the resulting records as sorted runs.

`loading.py` starts it. Messages in both directions are lines of JSON. The process receives the setup, then the files,
one at a time. When there are no more files, it reports what it has written.
"""

import gc
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import msgspec

from pypi_assets.catalog.publications.dump_columns import DumpFile
from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.dumps.dump_manifest import file_path
from pypi_assets.dumps.later_rows import LaterRows, read_later_rows
from pypi_assets.leveldbs.build.builder import by_project
from pypi_assets.leveldbs.build.row_decoder import decoded_rows
from pypi_assets.leveldbs.build.sorted_runs import RunWriter
from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.registry import require_dataset
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbError
from pypi_assets.leveldbs.format.records import Records
from pypi_assets.storage.store import Storage, StorageError, open_storage

_REPORT_ROWS = 10_000
ERRORS: dict[str, type[Exception]] = {known.__name__: known for known in (DumpDamagedError, StorageError, LeveldbError)}
"""Errors that the parent process raises again, by name."""


class ReducerSetup(msgspec.Struct, frozen=True):
    """The first message to the reducer: the dataset, the dump, and the file for its runs.

    `later` is the path of a database of later rows, for a dump of this number of `shards`.
    """

    dataset: str
    storage_url: str
    directory: str
    path: str
    bounds: list[str]
    run_bytes: int
    shards: int = 1
    later: str | None = None


class Rows(msgspec.Struct, frozen=True, tag=True):
    """Message from the reducer: this many more rows are done. `file_ends` is true if the whole file is done."""

    count: int
    file_ends: bool


class Written(msgspec.Struct, frozen=True, tag=True):
    """Last message from the reducer: its runs, and the offset of their index. The hash sum is in hexadecimal digits."""

    index_offset: int
    counts: dict[str, int]
    hash_sum: str


class ReduceFailed(msgspec.Struct, frozen=True, tag=True):
    """Last message from the reducer after a failure: the error."""

    error: str
    text: str


FromReducer = Rows | Written | ReduceFailed


def new_records(
    dataset: Dataset,
    storage: Storage,
    directory: str,
    file: DumpFile,
    *,
    every: int = 1,
    later: LaterRows | None = None,
) -> Iterator[tuple[int, Records]]:
    """Yield the records from a file of a full dump, one project at a time, each with the number of its rows.

    With `every` above 1, only the first of each `every` projects is yielded. `later` replaces rows of the file.
    """
    name = storage.uri(file_path(directory, file.name))
    rows_of_file = decoded_rows(dataset.columns, storage, directory, file, later)
    for number, (project, rows) in enumerate(by_project(rows_of_file, name)):
        if number % every == 0:
            yield len(rows), dataset.change(None, project, rows)[1]


def main() -> None:
    """Serve the parent process until it has no more files or has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    gc.freeze()  # imported modules are not garbage, and need not be scanned again and again
    incoming, outgoing = sys.stdin.buffer, sys.stdout.buffer
    setup = msgspec.json.decode(incoming.readline(), type=ReducerSetup)
    try:
        last = _serve(setup, incoming, outgoing)
    except BrokenPipeError:
        return
    except tuple(ERRORS.values()) as error:
        known = next(name for name, kind in ERRORS.items() if isinstance(error, kind))
        last = ReduceFailed(known, str(error))
    except OSError as error:
        last = ReduceFailed(LeveldbError.__name__, f"{setup.path} cannot be written: {error}; is the disk full?")
    except MemoryError:
        last = ReduceFailed(LeveldbError.__name__, "there is not enough memory for the build: give it more")
    _send(outgoing, last)


def _serve(setup: ReducerSetup, incoming: BinaryIO, outgoing: BinaryIO) -> FromReducer:
    dataset, storage = require_dataset(setup.dataset), open_storage(setup.storage_url, read_only=True)
    bounds = [bound.encode() for bound in setup.bounds]
    with ExitStack() as opened:
        path = setup.later
        later = None if path is None else opened.enter_context(read_later_rows(setup.shards, Path(path)))
        writer = opened.enter_context(RunWriter(Path(setup.path), bounds, setup.run_bytes))
        for line in incoming:
            file = msgspec.json.decode(line, type=DumpFile)
            unreported = 0
            for rows, records in new_records(dataset, storage, setup.directory, file, later=later):
                writer.add(records)
                unreported += rows
                if unreported >= _REPORT_ROWS:
                    _send(outgoing, Rows(unreported, file_ends=False))
                    unreported = 0
            _send(outgoing, Rows(unreported, file_ends=True))
        runs = writer.finish()
    return Written(runs.index_offset, dict(runs.counts), f"{runs.hash_sum:x}")


def _send(outgoing: BinaryIO, message: FromReducer) -> None:
    outgoing.write(msgspec.json.encode(message) + b"\n")
    outgoing.flush()


if __name__ == "__main__":
    main()
