"""Write all buckets of an export, in several processes if there are many rows.

A bucket has the projects of some successive shards of the full dump. Each process writes one bucket at a time.
"""

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import attrgetter
from pathlib import Path

import msgspec

from pypi_assets.catalog.publications.dump_columns import DumpFile
from pypi_assets.dumps.dump_manifest import DumpManifest
from pypi_assets.dumps.later_rows import LaterRows
from pypi_assets.dumps.worker_process import WorkerProcess, await_all, taken
from pypi_assets.parquet.bucket_process import WRITERS, Answer, Bucket, BucketSetup, BucketWritten, write_bucket
from pypi_assets.parquet.export_manifest import ROWS_NAME
from pypi_assets.storage.store import Storage

BUCKET_ROWS = 65_536
BUCKET_BYTES = 2 * 1024**2
"""The mean of the compressed bytes of the full dump's files in one bucket. They fill a row group of some 32 MiB."""
LEAST_ROWS = 50_000
"""Fewer rows take less time than starting processes."""
_PROCESS_BYTES = 320 * 1024**2
_ANSWERS: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)


def bucket_count(rows: int, size: int, most: int) -> int:
    """Return the number of buckets: a power of two up to `most`, so that a mean bucket fits into one row group.

    `size` is the number of compressed bytes in dumps.

    >>> bucket_count(200_000, 30_000_000, 256)
    16
    """
    buckets = 1
    while buckets < most and (rows > BUCKET_ROWS * buckets or size > BUCKET_BYTES * buckets):
        buckets *= 2
    return buckets


def buckets_of(full: DumpManifest, buckets: int, directory: str) -> list[Bucket]:
    """Return the buckets of a full dump, to write them into the folder of the export `directory`."""
    each = full.shards // buckets
    files = sorted(full.files, key=attrgetter("shard"))
    return [
        Bucket(
            number,
            ROWS_NAME.format(directory=directory, bucket=number),
            files[number * each : (number + 1) * each],
        )
        for number in range(buckets)
    ]


def process_count(storage: Storage, rows: int, memory_bytes: int) -> int:
    """Return the number of processes that write `rows`: one for each core, as far as the memory suffices."""
    if rows < LEAST_ROWS or storage.url.startswith("memory:"):
        return 1
    return max(1, min(len(os.sched_getaffinity(0)), memory_bytes // _PROCESS_BYTES))


def write_buckets(
    storage: Storage,
    full: DumpManifest,
    buckets: Sequence[Bucket],
    later: LaterRows,
    later_path: Path,
    processes: int,
    report: Callable[[int], object],
) -> list[DumpFile]:
    """Write the buckets, and return their files in order. `report` is called every second with the number of rows.

    `later` is the database at `later_path`. Raises the error of a process, or ParquetError if a process died.
    """
    if processes == 1:
        return list(_one_by_one(storage, full.directory, buckets, later, report))
    waiting = deque(sorted(buckets, key=lambda bucket: -sum(source.rows for source in bucket.sources)))
    setup = BucketSetup(storage.url, full.directory, str(later_path), full.shards)
    files: list[DumpFile] = []
    with contextlib.ExitStack() as running, ThreadPoolExecutor(processes) as threads:
        count = min(processes, len(buckets))
        started = [running.enter_context(WorkerProcess(WRITERS, _ANSWERS)) for _ in range(count)]
        written = [threads.submit(_write, process, setup, taken(waiting), files) for process in started]
        try:
            await_all(written, lambda: report(sum(file.rows for file in list(files))))
        except BaseException:
            running.close()  # ends the waits of the threads for answers
            raise
    return sorted(files, key=attrgetter("shard"))


def _one_by_one(
    storage: Storage, full_dump: str, buckets: Sequence[Bucket], later: LaterRows, report: Callable[[int], object]
) -> Iterator[DumpFile]:
    written = 0
    for bucket in buckets:
        file = write_bucket(storage, full_dump, later, bucket, partial(_report_all, report, written))
        written += file.rows
        yield file
        report(written)


def _report_all(report: Callable[[int], object], before: int, rows: int) -> None:
    report(before + rows)


def _write(
    process: WorkerProcess[BucketWritten], setup: BucketSetup, buckets: Iterator[Bucket], files: list[DumpFile]
) -> None:
    """Let a process write buckets until there are none left, and append their files to `files`."""
    process.send(setup)
    for bucket in buckets:
        process.send(bucket)
        files.append(process.receive().file)
