"""The program of a process that writes buckets of an export. `buckets.py` starts it, and divides the work.

Messages in both directions are lines of JSON: the process receives the setup, then one bucket at a time, and answers
each with its file. It ends when its input does.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import msgspec

from pypi_assets.catalog.publications.dump_columns import DumpFile
from pypi_assets.dumps.dump_reader import iter_rows
from pypi_assets.dumps.dump_writer import put_file
from pypi_assets.dumps.later_rows import LaterRows, read_later_rows
from pypi_assets.dumps.worker_process import WorkerFailed, WorkerKind, send_message, start_worker
from pypi_assets.parquet.export_manifest import ParquetError, file_path
from pypi_assets.parquet.parquet_writer import write_rows
from pypi_assets.storage.store import Storage, open_storage

WRITERS = WorkerKind("pypi_assets.parquet.bucket_process", "writes Parquet", "export", ParquetError)


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


Answer = BucketWritten | WorkerFailed


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
    incoming, outgoing = start_worker()
    setup = msgspec.json.decode(incoming.readline(), type=BucketSetup)
    storage = open_storage(setup.storage_url)
    with read_later_rows(setup.shards, Path(setup.later)) as later:
        for line in incoming:
            bucket = msgspec.json.decode(line, type=Bucket)
            answer = _answer(storage, setup.full_dump, later, bucket)
            try:
                send_message(outgoing, answer)
            except BrokenPipeError:
                return


def _answer(storage: Storage, full_dump: str, later: LaterRows, bucket: Bucket) -> Answer:
    try:
        return BucketWritten(write_bucket(storage, full_dump, later, bucket))
    except WRITERS.caught as error:
        return WRITERS.failure(error, bucket.name)


if __name__ == "__main__":
    main()
