"""Measure the cost of a Parquet export compared with reading the dumps, of appending to it, and the speed of queries.

    python -m benchmarks.parquet_export [--rows 200000 1000000] [--ranges 10] [--changed 1000]

Exports generated full dumps of `--rows` rows in 256 shards, each followed by some ranges of changed rows, to a local
folder. The baseline reads the rows of the same dumps and discards them. Then one more range is appended, and the same
rows are exported from scratch; both exports must have the same rows. Each runs in a new process; rates are per
second of processor time of all processes, and memory is the peak of the largest. Then DuckDB answers the questions of
docs/formats.md by the views on the appended export and on the one from scratch, by the clock, with all files in the
system's cache.
"""

import argparse
import functools
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
from pypi_assets.parquet.export_manifest import newest_export
from pypi_assets.parquet.views import VIEWS, write_views
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
    """Write a full dump and ranges. Those that exist stay."""
    storage = open_storage(folder.as_uri())
    projects = list(generate_projects(rows))
    written = len(committed_directories(storage))
    if not written:
        write_full_dump(storage, projects)
    for number in range(max(0, written - 1), ranges):
        serials = SerialRange(SERIAL + number * RANGE_SERIALS, SERIAL + (number + 1) * RANGE_SERIALS)
        write_range_dump(storage, changed_rows(projects, changed, serials.end), serials, sequence=number + 2)


def read_dumps(folder: Path) -> Cost:
    storage = open_storage(folder.as_uri())
    directories = committed_directories(storage)
    started = _processor_s()
    rows = sum(1 for directory in directories for _ in iter_dump(storage, directory))
    size = sum(read_manifest(storage, directory).size for directory in directories)
    return _cost(rows, size, started)


def export(folder: Path, *, force: bool = False) -> tuple[Cost, int]:
    """Export, and also return the number of layers."""
    storage = open_storage(folder.as_uri())
    catalog = small_catalog(Path(tempfile.mkdtemp(dir=folder))).catalog
    restore_index(catalog, storage)
    assert len(cover(catalog).dumps) == len(committed_directories(storage))
    started = _processor_s()
    made = export_parquet(catalog, storage, force=force).export
    size = sum(file.size for file in made.files if file.name.startswith(made.directory))
    return _cost(made.rows, size, started), len(made.layers)


def query(storage: Storage) -> list[tuple[int, float]]:
    """Return for each question the number of rows of its answer, and the seconds of its second run."""
    newest = newest_export(storage)
    assert newest is not None
    write_views(storage, newest)
    attach, *questions = re.findall(r"```sql\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    took = []
    with duckdb.connect() as connection:
        connection.execute(re.sub(r"'[^']*pypi.duckdb'", f"'{storage.local_path(VIEWS)}'", attach))
        for question in questions:
            connection.execute(question).fetchall()
            started = time.monotonic()
            took.append((len(connection.execute(question).fetchall()), time.monotonic() - started))
    return took


def query_folder(folder: Path) -> list[tuple[int, float]]:
    return query(open_storage(folder.as_uri()))


def _processor_s() -> float:
    """Return the processor time of this process and of those that it has ended, in seconds."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _cost(rows: int, size: int, started: float) -> Cost:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return Cost(rows, size, _processor_s() - started, max(one.ru_maxrss for one in used) * 1024)


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
            made, _ = alone(export, folder)
            print(read.line("dumps read"))
            print(made.line("exported as Parquet"))
            ratio = (made.processor_s / made.rows) / (read.processor_s / read.rows)
            print(f"{ratio:.1f} times the time of reading alone, {made.size / read.size:.2f} of the bytes")
            alone(write_dumps, folder, rows, options.ranges + 1, options.changed)
            appended, layers = alone(export, folder)
            answers = alone(query_folder, folder)
            forced, _ = alone(functools.partial(export, force=True), folder)
            assert appended.rows == forced.rows
            print(forced.line("from scratch"))
            print(
                f"a range of {options.changed:,} rows appended in {appended.processor_s:.2f} s,"
                f" {appended.size / 1e6:.2f} MB, {appended.processor_s / forced.processor_s:.3f} of the time from"
                f" scratch ({layers} layers)"
            )
            again = alone(query_folder, folder)
            for number, ((count, seconds), (same, alone_s)) in enumerate(zip(answers, again, strict=True), start=1):
                assert count == same
                print(f"question {number}: {count:,} rows in {seconds:.2f} s, from scratch {alone_s:.2f} s")


if __name__ == "__main__":
    main()
