"""The program of a process that writes buckets of an export. `buckets.py` starts it, and divides the work.

Messages in both directions are lines of JSON: the process receives the setup, then one bucket at a time, and answers
each with its file. It ends when its input does.
"""

import gc
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import msgspec

from pypi_assets.catalog.publications.dump_columns import DumpFile
from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.dumps.dump_reader import iter_rows
from pypi_assets.dumps.dump_writer import put_file
from pypi_assets.dumps.later_rows import LaterRows, read_later_rows
from pypi_assets.parquet.export_manifest import ParquetError, file_path
from pypi_assets.parquet.parquet_writer import write_rows
from pypi_assets.storage.store import Storage, StorageError, open_storage

ERRORS: dict[str, type[Exception]] = {known.__name__: known for known in (DumpDamagedError, StorageError, ParquetError)}
"""Errors that the parent process raises again, by name."""


class BucketSetup(msgspec.Struct, frozen=True):
    """The first message: the storage, the full dump, and the database of later rows by its `shards`."""

    storage_url: str
    full_dump: str
    later: str
    shards: int


class Bucket(msgspec.Struct, frozen=True):
    """A bucket to write: its number, the name of its file, and the files of the full dump that it consists of."""

    number: int
    name: str
    sources: list[DumpFile]


class BucketWritten(msgspec.Struct, frozen=True, tag=True):
    """Answer to a bucket: its file."""

    file: DumpFile


class BucketFailed(msgspec.Struct, frozen=True, tag=True):
    """Last answer after a failure: the error."""

    error: str
    text: str


Answer = BucketWritten | BucketFailed


def write_bucket(
    storage: Storage, full_dump: str, later: LaterRows, bucket: Bucket, progress: Callable[[int], None] | None = None
) -> DumpFile:
    """Write the live rows of a bucket, and return its file. `progress` receives the number of rows, now and then."""
    rows = chain.from_iterable(
        later.applied_to(source.shard, iter_rows(storage, full_dump, source)) for source in bucket.sources
    )

    def write(target: BinaryIO) -> int:
        return write_rows(target, rows, progress, are_sorted=len(bucket.sources) == 1)

    return replace(put_file(storage, file_path(bucket.name), bucket.number, write), name=bucket.name)


def main() -> None:
    """Serve the parent process until it has no more buckets or has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    gc.freeze()  # imported modules are not garbage, and need not be scanned again and again
    incoming, outgoing = sys.stdin.buffer, sys.stdout.buffer
    setup = msgspec.json.decode(incoming.readline(), type=BucketSetup)
    storage = open_storage(setup.storage_url)
    with read_later_rows(setup.shards, Path(setup.later)) as later:
        for line in incoming:
            bucket = msgspec.json.decode(line, type=Bucket)
            answer = _answer(storage, setup.full_dump, later, bucket)
            try:
                outgoing.write(msgspec.json.encode(answer) + b"\n")
                outgoing.flush()
            except BrokenPipeError:
                return


def _answer(storage: Storage, full_dump: str, later: LaterRows, bucket: Bucket) -> Answer:
    try:
        return BucketWritten(write_bucket(storage, full_dump, later, bucket))
    except tuple(ERRORS.values()) as error:
        known = next(name for name, kind in ERRORS.items() if isinstance(error, kind))
        return BucketFailed(known, str(error))
    except OSError as error:
        return BucketFailed(ParquetError.__name__, f"{bucket.name} cannot be written: {error}; is the disk full?")
    except MemoryError:
        return BucketFailed(ParquetError.__name__, "there is not enough memory for the export: give it more")


if __name__ == "__main__":
    main()
