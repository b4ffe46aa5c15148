"""The measurements of a filled catalog. Each function is a stage, which runs in its own process.

A stage returns figures by name. Figures of `Meter.timed` are seconds by the clock, of this process, and of the database
server.
"""

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, TypeVar, cast
from xmlrpc.server import SimpleXMLRPCRequestHandler, SimpleXMLRPCServer

from sqlalchemy import func, select, text, update

from benchmarks.size_filling import connect
from benchmarks.size_index import URL, AnsweringIndex, MadeUpReaders, active_projects, release_each
from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.derived.stored_files import load_files
from pypi_assets.catalog.derived.visits import recompute_stored
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.observed.projects import CatalogProject
from pypi_assets.catalog.publications.dump_rows import project_rows_at, providing_releases, requiring_releases
from pypi_assets.catalog.reports.live_files import files_with_sha256
from pypi_assets.catalog.reports.project_history import read_history
from pypi_assets.catalog.tables import catalog_state, changes, distributions, projects
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.incremental_crawl import (
    RangeResult,
    allocate_next_ranges,
    crawl_range,
    read_range,
    visit_range,
)
from pypi_assets.crawl.index_audit import audit_index
from pypi_assets.distributions.reader_pool import ReaderPool
from pypi_assets.dumps.dump_writer import write_missing_ranges
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.index.client import IndexClient
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.metrics import StatusMetrics
from pypi_assets.parquet.export import export_parquet
from pypi_assets.settings import Settings, load_settings
from pypi_assets.status import read_status
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets.upkeep.deletion import DeletionChain, Pruning, kept_from
from pypi_assets.upkeep.due import what_is_due

RANGE_EVENTS = 500
CHANGED_ROWS = 1_000
REPEATS = 5
DRIFTING = 20
RECOMPUTED = 100
RECOMPUTED_FILES = 50
_TICKS = os.sysconf("SC_CLK_TCK")

Result = TypeVar("Result")
Figures = dict[str, Any]


@dataclass
class Meter:
    """Times work by name. `server_pid` is the database server's process ID, if it is on this machine."""

    server_pid: int | None
    figures: Figures = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def timed(self, name: str, work: Callable[[], Result]) -> Result:
        """Time `work`, and return its result. If a name is repeated, the medians count."""
        self.figures.setdefault("idle_mb", _resident_mb())
        started, used, served = time.monotonic(), time.process_time(), server_seconds(self.server_pid)
        result = work()
        took = {
            "seconds": time.monotonic() - started,
            "processor_s": time.process_time() - used,
            "server_s": server_seconds(self.server_pid) - served,
        }
        self.taken.add(name)
        for unit, value in took.items():
            self.figures.setdefault(name, {}).setdefault(unit, []).append(round(value, 4))
        return result

    @property
    def medians(self) -> Figures:
        return {name: _medians(value) if name in self.taken else value for name, value in self.figures.items()}


def _medians(taken: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {unit: round(median(values), 4) for unit, values in taken.items()}


@dataclass(frozen=True)
class Measured:
    """The filled catalog at `url` with its storage, and a meter."""

    url: str
    folder: Path
    catalog: Catalog
    storage: Storage
    meter: Meter

    @property
    def largest(self) -> CatalogProject:
        """Return the project with the most files."""
        with self.catalog.read() as connection:
            columns = (projects.c[one.name] for one in fields(CatalogProject))
            row = connection.execute(select(*columns).where(projects.c.id == 1)).one()
        return CatalogProject(**row._mapping)

    def crawler(self, index: AnsweringIndex) -> Crawler:
        return Crawler(
            cast("IndexClient", index), self.catalog, self.storage, cast("ReaderPool", MadeUpReaders()), connections=2
        )


def server_seconds(pid: int | None) -> float:
    """Return the processor seconds of a server and all its child processes, including ended ones."""
    if pid is None:
        return 0.0
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return (_ticks(pid, 4) + sum(_ticks(int(child), 2) for child in children)) / _TICKS


def _ticks(pid: int, fields: int) -> int:
    try:
        of_process = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # the process has just ended
        return 0
    return sum(map(int, of_process[11 : 11 + fields]))


def _resident_mb() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 10**6


def sizes(measured: Measured) -> None:
    """Record the bytes of the database, and the bytes and rows of each table with its indexes."""
    with connect(measured.url) as connection:
        [whole] = connection.execute("SELECT pg_database_size(current_database())").fetchone() or (0,)
        tables = connection.execute(
            "SELECT relname, pg_table_size(oid), pg_indexes_size(oid), reltuples::bigint FROM pg_class"
            " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 2 DESC"
        ).fetchall()
    measured.meter.figures["database"] = whole
    measured.meter.figures["tables"] = {
        name: {"table": table, "indexes": indexes, "rows": rows} for name, table, indexes, rows in tables
    }


def recompute(measured: Measured) -> None:
    """Recompute some large projects from the stored observations, as visits do. This changes nothing."""
    catalog = measured.catalog
    with catalog.read() as connection:
        files = func.count()
        sizes = select(distributions.c.project_id).group_by(distributions.c.project_id)
        found = sorted(connection.scalars(sizes.having(files >= RECOMPUTED_FILES)))
        chosen = found[:: max(len(found) // RECOMPUTED, 1)]
        count = connection.scalar(select(files).where(distributions.c.project_id.in_(chosen)))
        before = connection.scalar(select(func.max(changes.c.id)))

    def compute() -> None:
        for project_id in chosen:
            catalog.transact(partial(recompute_stored, project_ids=[project_id]))

    measured.meter.timed("projects computed again", compute)
    with catalog.read() as connection:
        after = connection.scalar(select(func.max(changes.c.id)))
    assert before == after, "the filled catalog is not what follows from its events and pages"
    measured.meter.figures |= {"projects": len(chosen), "files": count}


def _compute(catalog: Catalog, project_ids: Sequence[int]) -> None:
    """Compute the projects as their last visit did, so that the next computation finds its result."""
    for project_id in project_ids:
        catalog.transact(partial(recompute_stored, project_ids=[project_id]))


def dump_all(measured: Measured) -> None:
    manifest = measured.meter.timed("full dump", lambda: full_dump(measured.catalog, measured.storage, concurrency=2))
    measured.meter.figures |= {"rows": manifest.rows, "bytes": manifest.size}


def build(measured: Measured, dataset: str, *, from_scratch: bool) -> None:
    made = measured.meter.timed(
        dataset if from_scratch else f"{dataset}, {CHANGED_ROWS} rows more",
        lambda: build_version(dataset, storage=measured.storage, catalog=measured.catalog, from_scratch=from_scratch),
    )
    size = sum(path.stat().st_size for path in (measured.folder / "storage" / dataset).rglob("*") if path.is_file())
    measured.meter.figures |= {"rows": made.rows, "bytes": size}


def ranges(measured: Measured) -> None:
    """Measure ranges of 500 events, from the changelog to the stored records, and their dumps.

    The filled catalog has no checkpoints, so the first visits of projects are measured separately from the next ones.
    """
    index = AnsweringIndex(measured.catalog)
    crawler = measured.crawler(index)
    files = []
    for repeat in range(REPEATS):
        names = active_projects(measured.catalog, RANGE_EVENTS // 3, seed=repeat)
        for name in ("range of 500 events, first visits", "range of 500 events"):
            count = release_each(index, names)
            done = measured.meter.timed(name, partial(_crawl_new_ranges, crawler))
            assert [one.events.events for one in done] == [count], done
            measured.meter.figures["unexplained"] = sum(one.unexplained_changes for one in done)
            measured.meter.timed("its dump", lambda: list(write_missing_ranges(measured.catalog, measured.storage)))
        files.append(sum(len(page.files) for page in index.pages.values()))
        index.pages.clear()  # the catalog knows them now, and they do not count as memory of the range
    measured.meter.figures["files on the pages of a range"] = median(files)


def _crawl_new_ranges(crawler: Crawler) -> list[RangeResult]:
    return [crawl_range(crawler, one) for one in allocate_next_ranges(crawler)]


def largest_project(measured: Measured) -> None:
    """Measure a new release of the largest project: the first visit, and later visits."""
    index = AnsweringIndex(measured.catalog)
    crawler = measured.crawler(index)
    for repeat in range(REPEATS):
        index.release(measured.largest.name)
        [serials] = allocate_next_ranges(crawler)
        name = "visit of the largest project" if repeat else "its first visit"
        measured.meter.timed(name, lambda serials=serials: visit_range(crawler, serials))  # type: ignore[misc]
        measured.meter.timed("reading its two files", lambda serials=serials: read_range(crawler, serials))  # type: ignore[misc]
        list(write_missing_ranges(measured.catalog, measured.storage))
    with measured.catalog.read() as connection:
        measured.meter.figures["files"] = len(load_files(connection, [1])[1])


def change_rows(measured: Measured) -> None:
    """Crawl a range with 1,000 changed rows, for the next versions."""
    index = AnsweringIndex(measured.catalog)
    crawler = measured.crawler(index)
    release_each(index, active_projects(measured.catalog, CHANGED_ROWS // 2, seed=REPEATS))
    measured.meter.timed("range of 1,500 events", partial(_crawl_new_ranges, crawler))
    list(write_missing_ranges(measured.catalog, measured.storage))


def parquet(measured: Measured) -> None:
    made = measured.meter.timed("Parquet", lambda: export_parquet(measured.catalog, measured.storage)).export
    measured.meter.figures |= {"rows": made.rows, "bytes": made.size}
    shutil.rmtree(measured.folder / "storage" / "parquet", ignore_errors=True)


@contextmanager
def _answering_server(measured: Measured) -> Iterator[Settings]:
    """Yield settings with an index on loopback that answers with the catalog's serial."""
    with measured.catalog.read() as connection:
        serial = complete_serial(connection)

    class Handler(SimpleXMLRPCRequestHandler):
        rpc_paths = ("/pypi",)

    with SimpleXMLRPCServer(("127.0.0.1", 0), Handler, logRequests=False) as server:
        server.register_function(lambda: serial, "changelog_last_serial")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/simple/"
        try:
            _follow(measured.catalog, url)
            yield load_settings(
                database_url=measured.url, storage_url=measured.storage.uri(""), index_url=url, home=measured.folder
            )
        finally:
            _follow(measured.catalog, URL)
            server.shutdown()


def _follow(catalog: Catalog, url: str) -> None:
    with catalog.write() as connection:
        connection.execute(update(catalog_state).values(index_url=url))


def status(measured: Measured) -> None:
    with _answering_server(measured) as settings:
        for _ in range(REPEATS):
            shown = measured.meter.timed("status", lambda: read_status(settings))
        measured.meter.figures["to do"] = shown.to_do()


def metrics(measured: Measured) -> None:
    with _answering_server(measured) as settings:
        taken = StatusMetrics(settings)
        for _ in range(REPEATS):
            measured.meter.timed("metrics", taken.take)


def ticks(measured: Measured) -> None:
    """Measure a sensor's tick when nothing is new."""
    crawler = measured.crawler(AnsweringIndex(measured.catalog))
    for _ in range(REPEATS):
        assert not measured.meter.timed("no new range", lambda: allocate_next_ranges(crawler))
        measured.meter.timed("what is due", lambda: what_is_due(measured.catalog, measured.storage))


def history(measured: Measured) -> None:
    def read() -> int:
        with measured.catalog.read() as connection:
            return len(read_history(connection, measured.largest))

    for _ in range(REPEATS):
        measured.meter.figures["entries"] = measured.meter.timed("history of the largest project", read)


def _all_rows(catalog: Catalog, serial: int, project: str) -> list[dict[str, object]]:
    return list(project_rows_at(catalog, serial, project))


def lookups(measured: Measured) -> None:
    """Measure answers as of the middle of the year."""
    catalog = measured.catalog
    with catalog.read() as connection:
        state = connection.execute(select(catalog_state)).one()
    serial = (state.events_since + state.events_through) // 2
    for name in active_projects(catalog, 4 * REPEATS, seed=1):
        rows = measured.meter.timed("a project", partial(_all_rows, catalog, serial, name))
        module = name.lower().replace("-", "_")
        measured.meter.timed("a module", lambda module=module: list(providing_releases(catalog, serial, module)))  # type: ignore[misc]
        sha256 = str(rows[0]["sha256"]) if rows else "0" * 64
        measured.meter.timed("a hash", lambda sha256=sha256: list(files_with_sha256(catalog, serial, sha256)))  # type: ignore[misc]
    largest = measured.largest.normalized
    for _ in range(REPEATS):
        found = measured.meter.timed("the largest project", partial(_all_rows, catalog, serial, largest))
        dependents = measured.meter.timed(
            "dependents of numpy", lambda: list(requiring_releases(catalog, serial, "numpy"))
        )
    measured.meter.figures |= {"files of the largest": len(found), "dependents": len(dependents)}


def audit(measured: Measured) -> None:
    """Measure a comparison of the whole list of projects, some of which differ."""
    index = AnsweringIndex(measured.catalog)
    for name in active_projects(measured.catalog, DRIFTING, seed=3):
        index.drift(name)
    crawler = measured.crawler(index)
    done = measured.meter.timed("audit", lambda: audit_index(crawler, 0.0))
    measured.meter.figures |= {"findings": done.audit.findings.counts, "visits": done.visits.total}


def clean_up(measured: Measured) -> None:
    """Measure the chain of deletions, first with a year to delete, then with nothing."""
    settings = load_settings(
        database_url=measured.url,
        storage_url=measured.storage.uri(""),
        home=measured.folder,
        contact="benchmark@example.org",
    )
    chain = DeletionChain(measured.catalog, measured.storage, kept_from(settings))
    nothing = Pruning(lambda _: 0, lambda _: 0)
    for name in ("clean-up", "clean-up again"):
        done = measured.meter.timed(name, lambda: chain.clean_all(nothing, lambda _: None))
        assert not done.failures, done.failures
        measured.meter.figures[f"{name}, counts"] = done.counts


def vacuum(measured: Measured) -> None:
    with connect(measured.url) as connection:
        measured.meter.timed("vacuum", lambda: connection.execute("VACUUM (ANALYZE)"))
    sizes(measured)


STAGES: dict[str, Callable[[Measured], None]] = {
    "recompute": recompute,
    "sizes": sizes,
    "full_dump": dump_all,
    "modules": lambda measured: build(measured, "modules", from_scratch=True),
    "depgraph": lambda measured: build(measured, "depgraph", from_scratch=True),
    "ranges": ranges,
    "largest": largest_project,
    "changed_rows": change_rows,
    "modules_more": lambda measured: build(measured, "modules", from_scratch=False),
    "depgraph_more": lambda measured: build(measured, "depgraph", from_scratch=False),
    "parquet": parquet,
    "status": status,
    "metrics": metrics,
    "ticks": ticks,
    "history": history,
    "lookups": lookups,
    "audit": audit,
    "clean_up": clean_up,
    "sizes_after": vacuum,
}


def measure(stage: str, url: str, folder: Path, server_pid: int | None) -> Figures:
    """Run one stage in this process, and return its figures."""
    catalog = open_catalog(url)
    try:
        measured = Measured(url, folder, catalog, open_storage((folder / "storage").as_uri()), Meter(server_pid))
        STAGES[stage](measured)
        with catalog.read() as connection:  # so that a stage that broke its connection fails
            connection.execute(text("SELECT 1"))
        return measured.meter.medians
    finally:
        catalog.close()
