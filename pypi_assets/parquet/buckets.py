"""Write all buckets of an export, in several processes if there are many rows.

A bucket has the projects of some successive shards of the full dump. Each process writes one bucket at a time.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO, Self, cast

import msgspec

from pypi_assets.catalog.publications.dump_columns import DumpFile
from pypi_assets.dumps.dump_manifest import DumpManifest
from pypi_assets.dumps.later_rows import LaterRows
from pypi_assets.parquet.bucket_process import (
    ERRORS,
    Answer,
    Bucket,
    BucketFailed,
    BucketSetup,
    write_bucket,
)
from pypi_assets.parquet.export_manifest import ROWS_NAME, ParquetError
from pypi_assets.storage.store import Storage

BUCKET_ROWS = 65_536
BUCKET_BYTES = 2 * 1024**2
"""The mean of the compressed bytes of the full dump's files in one bucket. They fill a row group of some 32 MiB."""
LEAST_ROWS = 50_000
"""Fewer rows take less time than starting processes."""
_PROGRAM = "pypi_assets.parquet.bucket_process"
_PROCESS_BYTES = 320 * 1024**2
_REPORT_EVERY_S = 1.0


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
        started = [running.enter_context(_Process(setup)) for _ in range(min(processes, len(buckets)))]
        pending = {threads.submit(process.write, waiting, files) for process in started}
        try:
            while pending:
                finished, pending = wait(pending, _REPORT_EVERY_S, FIRST_EXCEPTION)
                for each in finished:
                    each.result()
                report(sum(file.rows for file in list(files)))
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


class _Process:
    def __init__(self, setup: BucketSetup) -> None:
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter and our own module
                [sys.executable, "-P", "-m", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                process_group=0,
            )
        except OSError as error:
            raise ParquetError(f"the processes for the export cannot be started: {error}") from error
        self._outgoing = cast("BinaryIO", self._process.stdin)
        self._incoming = cast("BinaryIO", self._process.stdout)
        self._send(setup)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):  # data that the process never read
            self._outgoing.close()
        self._incoming.close()

    def write(self, waiting: "deque[Bucket]", files: list[DumpFile]) -> None:
        """Write buckets until none is `waiting`, and append their files to `files`. Other threads share both."""
        with contextlib.suppress(IndexError):
            while True:
                files.append(self._written(waiting.popleft()))

    def _written(self, bucket: Bucket) -> DumpFile:
        self._send(bucket)
        line = self._incoming.readline()
        if not line:
            status = self._process.wait()
            names = {-number: f"signal {number.name}" for number in signal.Signals}
            raise ParquetError(
                f"a process that writes Parquet has died: {names.get(status, f'exit status {status}')}; export again,"
                " with less memory if the machine is short of it"
            )
        answer: Answer = msgspec.json.decode(line, type=Answer)
        if isinstance(answer, BucketFailed):
            raise ERRORS[answer.error](answer.text)
        return answer.file

    def _send(self, message: BucketSetup | Bucket) -> None:
        with contextlib.suppress(BrokenPipeError):  # _written reports why the process ended
            self._outgoing.write(msgspec.json.encode(message) + b"\n")
            self._outgoing.flush()
