"""Measure the cost of a Parquet export compared with reading the dumps, its size, and the speed of queries.

    python -m benchmarks.parquet_export [--rows 200000 1000000] [--ranges 10] [--changed 1000]

Exports generated full dumps of `--rows` rows in 256 shards, each followed by some ranges of changed rows, to a local
folder. The baseline reads the rows of the same dumps and discards them. Each runs in a new process; rates are per
second of processor time, and memory is the peak of the process. Then DuckDB answers the questions of docs/formats.md,
by the clock, with all files in the system's cache.
"""

import argparse
import multiprocessing
import re
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.generated import SERIAL, changed_rows, generate_projects, write_full_dump, write_range_dump
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_manifest import committed_directories, read_manifest
from pypi_assets.dumps.dump_reader import iter_dump
from pypi_assets.dumps.restore import restore_index
from pypi_assets.parquet.export import export_parquet
from pypi_assets.parquet.export_manifest import export_path, newest_export
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.small_catalog import small_catalog

DOCUMENT = Path(__file__).parents[1] / "docs" / "formats.md"
RANGE_SERIALS = 1_000


@dataclass(frozen=True, slots=True)
class Cost:
    rows: int
    size: int
    processor_s: float
    peak_bytes: int

    def line(self, what: str) -> str:
        return (
            f"{what:<22}{self.rows:>10,} rows {self.rows / self.processor_s:>9,.0f} rows/s"
            f" {self.size / 1e6:>8.1f} MB, peak {self.peak_bytes / 2**20:>4.0f} MiB"
        )


def write_dumps(folder: Path, rows: int, ranges: int, changed: int) -> None:
    storage = open_storage(folder.as_uri())
    projects = list(generate_projects(rows))
    write_full_dump(storage, projects)
    for number in range(ranges):
        serials = SerialRange(SERIAL + number * RANGE_SERIALS, SERIAL + (number + 1) * RANGE_SERIALS)
        write_range_dump(storage, changed_rows(projects, changed, serials.end), serials, sequence=number + 2)


def read_dumps(folder: Path) -> Cost:
    storage = open_storage(folder.as_uri())
    directories = committed_directories(storage)
    started = time.process_time()
    rows = sum(1 for directory in directories for _ in iter_dump(storage, directory))
    size = sum(read_manifest(storage, directory).size for directory in directories)
    return _cost(rows, size, started)


def export(folder: Path) -> Cost:
    storage = open_storage(folder.as_uri())
    catalog = small_catalog(folder).catalog
    restore_index(catalog, storage)
    assert len(cover(catalog).dumps) == len(committed_directories(storage))
    started = time.process_time()
    made = export_parquet(catalog, storage).export
    return _cost(made.rows, made.size, started)


def query(storage: Storage) -> list[tuple[int, float]]:
    """Return for each question the number of rows of its answer, and the seconds of its second run."""
    newest = newest_export(storage)
    assert newest is not None
    view, *questions = re.findall(r"```sql\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    took = []
    files = storage.local_path(f"{export_path(newest.directory)}/*/*.parquet")
    with duckdb.connect() as connection:
        connection.execute(re.sub(r"read_parquet\(\s*'[^']*'\s*\)", f"read_parquet('{files}')", view))
        for question in questions:
            connection.execute(question).fetchall()
            started = time.monotonic()
            took.append((len(connection.execute(question).fetchall()), time.monotonic() - started))
    return took


def _cost(rows: int, size: int, started: float) -> Cost:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Cost(rows, size, time.process_time() - started, peak)


def alone(work: Callable[..., Any], *arguments: object) -> Any:
    """Return the result of `work`, which runs in a new process with its own memory peak."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[200_000, 1_000_000])
    parser.add_argument("--ranges", type=int, default=10)
    parser.add_argument("--changed", type=int, default=1_000)
    options = parser.parse_args()
    for rows in options.rows:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            alone(write_dumps, folder, rows, options.ranges, options.changed)
            read = alone(read_dumps, folder)
            made = alone(export, folder)
            print(read.line("dumps read"))
            print(made.line("exported as Parquet"))
            ratio = (made.processor_s / made.rows) / (read.processor_s / read.rows)
            print(f"{ratio:.1f} times the time of reading alone, {made.size / read.size:.2f} of the bytes")
            for number, (answers, seconds) in enumerate(query(open_storage(folder.as_uri())), start=1):
                print(f"question {number}: {answers:,} rows in {seconds:.2f} s")


if __name__ == "__main__":
    main()
