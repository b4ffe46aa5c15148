"""Measure the search for the projects of a scope, and the update when a requirement changes.

    python -m benchmarks.scope_discovery [--projects 2000 8000] [--repetitions 3]

All projects of an index were read. Each requires four other projects of its own, and three of 200 popular ones. A scope
with one root leads to all of them. The benchmark measures the processor time to find all of them at once, and then of
an update when one project has a new release, which requires the same projects, another project of the scope as well, or
a new project. The last column is the memory peak, and the last line the ratio of the last size to the first.
"""

import argparse
import multiprocessing
import resource
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from sqlalchemy import Connection

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.observed.followed import mark_projects
from pypi_assets.catalog.scopes.discovery import discover
from pypi_assets.catalog.scopes.stored_scopes import create_scope
from pypi_assets.scopes.plan import ScopePlan

POPULAR = 200
SERIAL = 10_000_000
COLUMNS = ("projects", "found", "the same", "another", "a new one", "MiB")


def required_by(number: int, projects: int) -> list[int]:
    """Return the numbers of a project's requirements: its children in a tree of four branches, and three popular
    ones.
    """
    children = [child for child in range(4 * number - 2, 4 * number + 2) if child <= projects]
    return sorted({*children, *((number * step) % min(POPULAR, projects) + 1 for step in (3, 7, 11))} - {number})


def fill(path: Path, projects: int) -> None:
    """Create a catalog in SQLite in which each project has one wheel that was read."""
    open_catalog(f"sqlite:///{path}").close()
    numbers = range(1, projects + 1)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA synchronous = OFF")
        _insert(
            database,
            "projects (id, normalized, name, bucket, shard, known_since, page_serial)",
            ((number, f"p{number}", f"p{number}", 0, 0, 0, number) for number in numbers),
        )
        for number in numbers:
            add_release(database, number, number, "1.0", 1, [f"p{one}" for one in required_by(number, projects)])


def add_release(
    database: sqlite3.Connection, project: int, number: int, version: str, serial: int, required: Sequence[str]
) -> None:
    """Add a release of a project with one wheel. Release, file and list of requirements have the id `number`."""
    _insert(database, "releases (id, project_id, version)", [(number, project, version)])
    file = (number, project, number, f"p{project}-{version}-py3-none-any.whl", "wheel", "https://x.example/x")
    _insert(database, "distributions (id, project_id, release_id, filename, kind, url)", [file])
    _insert(database, "live_intervals (distribution_id, start)", [(number, serial)])
    _insert(
        database,
        "name_lists (id, sha256, length, content, has_required)",
        [(number, f"{number}", len(required), b"", 1)],
    )
    _insert(database, "required_names (name, list_id, condition)", ((name, number, 0) for name in required))
    data = (number, "data", number, 0, 0, 0.0)
    _insert(
        database,
        "distribution_data (distribution_id, outcome, requires_dist_id, bytes_fetched, requests, seconds)",
        [data],
    )


def _insert(database: sqlite3.Connection, into: str, rows: Iterable[tuple[object, ...]]) -> None:
    marks = ", ".join("?" * (into.count(",") + 1))
    database.executemany(f"INSERT INTO {into} VALUES ({marks})", rows)


def measured(projects: int, repetitions: int) -> list[float]:
    """Return the seconds of each search, and the memory peak in MiB above the memory before."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "catalog.sqlite"
        fill(path, projects)
        catalog = open_catalog(f"sqlite:///{path}")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        plan = ScopePlan("all", {"p1": frozenset()})
        catalog.transact(partial(create_scope, plan=plan, serial=SERIAL, index_url="https://x.example/", now=0.0))
        found = [seconds(partial(discover_all, catalog))]
        changes: tuple[Callable[[int], list[str]], ...] = (
            lambda project: [f"p{one}" for one in required_by(project, projects)],
            lambda project: [f"p{one}" for one in required_by(project, projects)] + [f"p{projects - 7}"],
            lambda project: [f"p{one}" for one in required_by(project, projects)] + [f"new{project}"],
        )
        number = projects
        for requires in changes:
            times = []
            for repetition in range(repetitions):
                number += 1
                project = projects // 3 + repetition
                release(path, project, number, requires(project))
                catalog.transact(partial(mark, project=project))
                times.append(seconds(partial(discover_all, catalog)))
            found.append(min(times))
        catalog.close()
    return [*found, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024]


def release(path: Path, project: int, number: int, required: Sequence[str]) -> None:
    """Add a newer release of the project, which is known from the next serial on."""
    with closing(sqlite3.connect(path)) as database, database:
        add_release(database, project, number, f"2.{number}", SERIAL + number, required)


def mark(connection: Connection, project: int) -> None:
    mark_projects(connection, [project])


def discover_all(catalog: Catalog) -> None:
    while not catalog.transact(partial(discover, now=0.0)).is_all:
        pass


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--projects", type=int, nargs="+", default=[2_000, 8_000])
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    print(*COLUMNS, sep="\t")
    results = []
    for projects in options.projects:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            results.append(pool.apply(measured, (projects, options.repetitions)))
        print(projects, *(f"{one:.3f}" for one in results[-1]), sep="\t", flush=True)
    first, last = results[0], results[-1]
    ratios = (f"{new / old:.1f}" if old else "-" for old, new in zip(first, last, strict=True))
    print("ratio", *ratios, sep="\t")


if __name__ == "__main__":
    main()
