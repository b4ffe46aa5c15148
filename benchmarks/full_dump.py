"""Measure a full dump, compared with only reading the same rows and compressing the same bytes.

    python -m benchmarks.full_dump [--rows 100000 1000000] [--databases sqlite postgresql] [--repeats 3]
        [--folder FOLDER]

Fills catalogs with generated distributions (see benchmarks/generated.py). In FOLDER they are kept for the next time.
Times three things for each of the 256 shards: the query alone, whose rows are fetched and dropped; the shard itself,
from allocating its name to recording its hash; and the compression of its bytes alone, by the same compressor. The
ratio is the first and the third to the second, of all shards, by the clock. Then it dumps everything again, `--repeats`
times for each concurrency, each time in a new process, which reports its peak memory. Prints the median of the seconds,
and the greatest of the peaks, which differ by 2 MB.
"""

import argparse
import gzip
import io
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import TypeVar

import psycopg
from isal import igzip

from benchmarks.filled_catalog import fill_catalog
from benchmarks.generated import generate_projects, project_rows
from benchmarks.listing import postgresql, resident_bytes
from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.publications.dump_registry import open_full_dump
from pypi_assets.catalog.publications.dump_rows import shard_at
from pypi_assets.dumps.dump_format import GZIP_LEVEL
from pypi_assets.dumps.dump_manifest import file_path
from pypi_assets.dumps.dump_writer import commit, write_shard
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.storage.store import open_storage

SIZES = (100_000, 1_000_000)
CONCURRENCIES = (1, 2)
SHARDS = 256
PIECE = 1024**2
STEPS = ("read", "dump", "compress")

Result = TypeVar("Result")


@dataclass(frozen=True)
class Parts:
    """Seconds by the clock and of the processor, for all shards of `rows` rows."""

    rows: int
    plain_bytes: int
    seconds: dict[str, float]
    processor: dict[str, float]

    def ratio(self, seconds: dict[str, float]) -> float:
        return (seconds["read"] + seconds["compress"]) / seconds["dump"]


@dataclass(frozen=True)
class Whole:
    """A full dump in its own process: seconds by the clock, and the peak of its memory in bytes."""

    rows: int
    seconds: float
    peak: int


@contextmanager
def opened(url: str) -> Iterator[Catalog]:
    catalog = open_catalog(url)
    try:
        yield catalog
    finally:
        catalog.close()


def fill(url: str, rows: int) -> float:
    """Fill the catalog if it is empty; return the seconds that it took."""
    started = time.monotonic()
    with opened(url) as catalog:
        with catalog.read() as connection:
            if complete_serial(connection):
                return 0.0
        fill_catalog(catalog, (row for project in generate_projects(rows) for row in project_rows(project)))
    return time.monotonic() - started


def read(catalog: Catalog, serial: int, shard: int) -> None:
    query = shard_at(catalog, serial, SHARDS, shard)
    with catalog.read() as connection:
        for _ in connection.execution_options(yield_per=1_000).execute(query).partitions():
            pass


def compress(content: bytes) -> None:
    with igzip.open(io.BytesIO(), "wb", compresslevel=GZIP_LEVEL) as target:
        for start in range(0, len(content), PIECE):
            target.write(content[start : start + PIECE])


def measure_parts(url: str, folder: str) -> Parts:
    seconds, processor = dict.fromkeys(STEPS, 0.0), dict.fromkeys(STEPS, 0.0)

    def timed(name: str, work: Callable[..., Result], *arguments: object) -> Result:
        started, used = time.monotonic(), time.process_time()
        result = work(*arguments)
        seconds[name] += time.monotonic() - started
        processor[name] += time.process_time() - used
        return result

    with opened(url) as catalog:
        storage = open_storage(Path(folder).as_uri())
        dump = open_full_dump(catalog, SHARDS)
        rows = size = 0
        for shard in range(SHARDS):
            if shard % 2:  # the second one finds more in the cache
                timed("read", read, catalog, dump.serials.end, shard)
            file = timed("dump", write_shard, catalog, storage, dump, shard)
            if not shard % 2:
                timed("read", read, catalog, dump.serials.end, shard)
            content = gzip.decompress(storage.get(file_path(dump.directory, file.name)))
            timed("compress", compress, content)
            rows += file.rows
            size += len(content)
        timed("dump", commit, catalog, storage, dump)
    return Parts(rows, size, seconds, processor)


def measure_whole(url: str, folder: str, concurrency: int) -> Whole:
    with opened(url) as catalog:
        started = time.monotonic()
        manifest = full_dump(catalog, open_storage(Path(folder).as_uri()), SHARDS, concurrency=concurrency)
        return Whole(manifest.rows, time.monotonic() - started, resident_bytes("VmHWM"))


def alone(work: Callable[..., Result], *arguments: object) -> Result:
    """Return the result of `work`, which runs in a new process."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def database_url(folder: Path, rows: int, server_url: str | None) -> str:
    if server_url is None:
        return f"sqlite:///{folder / f'catalog_{rows}.sqlite'}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (f"catalog_{rows}",)).fetchone():
            connection.execute(f"CREATE DATABASE catalog_{rows}")  # type: ignore[arg-type]
    return server_url.replace("/postgres?", f"/catalog_{rows}?").replace("postgresql://", "postgresql+psycopg://")


def measure(database: str, rows: int, url: str, repeats: int) -> dict[int, int]:
    """Print the results, and return the greatest peak for each concurrency."""
    peaks = {}
    filled = alone(fill, url, rows)
    with tempfile.TemporaryDirectory() as folder:
        parts = alone(measure_parts, url, folder)
    each = {name: value / parts.rows * 1e6 for name, value in parts.seconds.items()}
    print(f"\n{database}, {parts.rows} rows of {parts.plain_bytes / parts.rows:.0f} bytes, filled in {filled:.0f} s\n")
    print("| read, µs a row | compressed | dumped | ratio | of the process's own time |\n|---|---|---|---|---|")
    print(
        f"| {each['read']:.1f} | {each['compress']:.1f} | {each['dump']:.1f} | {parts.ratio(parts.seconds):.2f} |"
        f" {parts.ratio(parts.processor):.2f} |",
        flush=True,
    )
    print("\n| at once | seconds | rows/s | ratio | peak, MB |\n|---|---|---|---|---|")
    for concurrency in CONCURRENCIES:
        wholes = []
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as folder:
                wholes.append(alone(measure_whole, url, folder, concurrency))
        seconds = median(whole.seconds for whole in wholes)
        peaks[concurrency] = max(whole.peak for whole in wholes)
        baseline = parts.seconds["read"] + parts.seconds["compress"]
        print(
            f"| {concurrency} | {seconds:.1f} | {parts.rows / seconds:,.0f} | {baseline / seconds:.2f} |"
            f" {peaks[concurrency] / 1e6:.0f} |",
            flush=True,
        )
    return peaks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=SIZES)
    parser.add_argument("--databases", nargs="+", choices=("sqlite", "postgresql"), default=("sqlite", "postgresql"))
    parser.add_argument("--repeats", type=int, default=3, help="repeats of the whole dump, for each concurrency")
    parser.add_argument("--folder", type=Path, help="folder of the catalogs, which are created if missing, and kept")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for database in options.databases:
            server_url = stack.enter_context(postgresql(folder)) if database == "postgresql" else None
            measured = [
                measure(database, rows, database_url(folder, rows, server_url), options.repeats)
                for rows in options.rows
            ]
            for concurrency in CONCURRENCIES:
                growth = measured[-1][concurrency] / measured[0][concurrency] - 1
                print(f"    {concurrency} at once: the peak grew by {growth:.1%} from {options.rows[0]} rows on")


if __name__ == "__main__":
    main()
