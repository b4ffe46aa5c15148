"""Measure the cost of Iceberg tables: of the first full dump, and of each range after it.

    python -m benchmarks.iceberg_tables [--rows 20000 200000] [--ranges 5] [--changed 1000]

Makes the tables of a generated full dump of `--rows` rows in 256 shards, and then of some ranges of changed rows, in a
local folder. The baselines are reading the rows of the same full dump for the first tables, and a Parquet export of all
rows for a range. The rows of all tables are counted and compared with the rows of the export at the end.
Each runs in a new process; times are processor time, and memory is the peak of the process.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.generated import SERIAL, changed_rows, generate_projects, write_full_dump, write_range_dump
from benchmarks.parquet_export import RANGE_SERIALS, alone
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.dump_reader import iter_dump
from pypi_assets.dumps.restore import restore_index
from pypi_assets.iceberg.newest_tables import NewestTables
from pypi_assets.iceberg.table_catalog import TableOptions, tables_path
from pypi_assets.iceberg.updates import update_tables
from pypi_assets.parquet.export import export_parquet
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog


@dataclass(frozen=True, slots=True)
class Measured:
    """The seconds of processor time of reading, the first tables, each range and an export; rows, bytes and memory."""

    read_s: float
    full_s: float
    range_s: list[float]
    export_s: float
    newest: NewestTables
    export_rows: int
    size: int
    peak_bytes: int


def measure(folder: Path, rows: int, ranges: int, changed: int) -> Measured:
    storage = open_storage(folder.as_uri())
    projects = list(generate_projects(rows))
    write_full_dump(storage, projects)
    with opened(folder) as small:
        restore_index(small.catalog, storage)
        (full,) = cover(small.catalog).directories
        started = time.process_time()
        assert sum(1 for _ in iter_dump(storage, full))
        read_s = time.process_time() - started
        started = time.process_time()
        newest = update_tables(small.catalog, storage, TableOptions()).newest
        full_s = time.process_time() - started
        taken = []
        for number in range(ranges):
            serials = SerialRange(SERIAL + number * RANGE_SERIALS, SERIAL + (number + 1) * RANGE_SERIALS)
            write_range_dump(storage, changed_rows(projects, changed, serials.end), serials, sequence=number + 2)
            restore_index(small.catalog, storage)
            started = time.process_time()
            newest = update_tables(small.catalog, storage, TableOptions()).newest
            taken.append(time.process_time() - started)
        started = time.process_time()
        export = export_parquet(small.catalog, storage, force=True).export
        export_s = time.process_time() - started
    size = sum(stored.size for stored in storage.list(tables_path(TableOptions().namespace)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Measured(read_s, full_s, taken, export_s, newest, export.rows, size, peak)


@contextmanager
def opened(folder: Path) -> Iterator[SmallCatalog]:
    small = small_catalog(folder)
    yield small
    small.catalog.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000, 200_000])
    parser.add_argument("--ranges", type=int, default=5)
    parser.add_argument("--changed", type=int, default=1_000)
    options = parser.parse_args()
    for rows in options.rows:
        with tempfile.TemporaryDirectory() as name:
            found: Measured = alone(measure, Path(name), rows, options.ranges, options.changed)
        files = found.newest.tables["files"].rows
        if files != found.export_rows:
            raise SystemExit(f"files has {files} rows, and the export {found.export_rows}")
        each = sum(found.range_s) / len(found.range_s)
        print(f"{'files':>10}  {'step':<22}  {'s':>7}  {'us a row':>8}  {'times the baseline':>18}")
        print(
            f"{files:>10,}  {'first tables':<22}  {found.full_s:>7.2f}  {1e6 * found.full_s / files:>8.0f}"
            f"  {found.full_s / found.read_s:>18.2f}"
        )
        step = f"range of {options.changed:,} rows"
        print(
            f"{files:>10,}  {step:<22}  {each:>7.2f}  {1e6 * each / options.changed:>8.0f}"
            f"  {each / found.export_s:>18.2f}"
        )
        print(", ".join(f"{name} {table.rows:,} rows" for name, table in found.newest.tables.items()))
        print(f"{found.size / 1e6:.0f} MB with all snapshots, peak {found.peak_bytes / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
