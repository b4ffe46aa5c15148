"""What a reducer process does: it reads files of a dump, and writes the records that come of them as sorted runs.

Run as a program by `loading.py`. Messages either way are lines of JSON: the setup, then the files, one at a time. When
there are no more, it reports what it has written.
"""

import gc
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from pypi_assets.catalog.publications.dump_facts import DumpFile
from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.dumps.dump_manifest import file_path
from pypi_assets.dumps.dump_reader import iter_rows
from pypi_assets.leveldbs.build.builder import by_project
from pypi_assets.leveldbs.build.row_decoder import RowDecoder
from pypi_assets.leveldbs.build.sorted_runs import RunWriter
from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.registry import require_dataset
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbError
from pypi_assets.leveldbs.format.records import Records
from pypi_assets.storage.store import Storage, StorageError, open_storage

_REPORT_ROWS = 10_000
ERRORS: dict[str, type[Exception]] = {known.__name__: known for known in (DumpDamagedError, StorageError, LeveldbError)}
"""What is raised in a reducer is raised by its parent too, by this name."""


class ReducerSetup(msgspec.Struct, frozen=True):
    """To the reducer, once: what to make of which dump, and the file that its runs go to."""

    dataset: str
    storage_url: str
    directory: str
    path: str
    bounds: list[str]
    run_bytes: int


class Rows(msgspec.Struct, frozen=True, tag=True):
    """From the reducer: this many more rows are done, and if `file_ends`, the whole file."""

    count: int
    file_ends: bool


class Written(msgspec.Struct, frozen=True, tag=True):
    """From the reducer, at the end: its runs, and where their index begins. The sum of the hashes is in hex."""

    index_offset: int
    counts: dict[str, int]
    hash_sum: str


class ReduceFailed(msgspec.Struct, frozen=True, tag=True):
    """From the reducer, at the end: why it could not go on."""

    error: str
    text: str


FromReducer = Rows | Written | ReduceFailed


def new_records(
    dataset: Dataset, storage: Storage, directory: str, file: DumpFile, *, every: int = 1
) -> Iterator[tuple[int, Records]]:
    """The records that a file of a full dump leads to, project by project, each time with the number of its rows.

    With `every` above 1 only the first of each `every` projects is sent.
    """
    name = storage.uri(file_path(directory, file.name))
    decode = RowDecoder(dataset.columns).decode
    for number, (project, rows) in enumerate(by_project(iter_rows(storage, directory, file, decode), name)):
        if number % every == 0:
            yield len(rows), dataset.change(None, project, rows)[1]


def main() -> None:
    """Serves the parent until it has no more files, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    gc.freeze()  # what is imported is no garbage, and need not be looked through again and again
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
        last = ReduceFailed(LeveldbError.__name__, "there is not enough memory to build with: give it more")
    _send(outgoing, last)


def _serve(setup: ReducerSetup, incoming: BinaryIO, outgoing: BinaryIO) -> FromReducer:
    dataset, storage = require_dataset(setup.dataset), open_storage(setup.storage_url, read_only=True)
    bounds = [bound.encode() for bound in setup.bounds]
    with RunWriter(Path(setup.path), bounds, setup.run_bytes) as writer:
        for line in incoming:
            file = msgspec.json.decode(line, type=DumpFile)
            unreported = 0
            for rows, records in new_records(dataset, storage, setup.directory, file):
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
